"""`TensorStoreBackendEntrypoint`: xarray's engine `"tensorstore"`.

It says which keywords there are, and takes what nobody else does; how datasets are opened is
`open_groups`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from typing import Any

import xarray as xr
from xarray.backends import BackendEntrypoint

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.opening import OPTIONS, open_groups

__all__ = ["TensorStoreBackendEntrypoint"]

_NAMES = ("|zarr2:", "|zarr3:", "|zarr:", "|n5:", ".n5")


class TensorStoreBackendEntrypoint(BackendEntrypoint):
    """Zarr and N5, in any store, opened by this package.

    xarray finds it by `engine="tensorstore"`. Where no engine is named, it takes only what no other
    does: a `ts.Group`, a `ts.KvStore`, a spec, URLs that name a format (`…|zarr3:`) and `.n5`.
    Paths that end in `.zarr` stay with xarray's engine for Zarr, unless there is no zarr-python.

    Besides those of `xr.open_dataset` the keywords are `group`, `consolidated`, `zarr_format`,
    `context`, `cache_pool`, `use_zarr_fill_value_as_mask` and `prefetch`; see `docs/xarray.md`.

    Example:
        >>> import tensorstore_py as ts
        >>> import xarray as xr
        >>> group = ts.Group.open("memory://", create=True).result()
        >>> domain = ts.IndexDomain(shape=[3], labels=["x"])
        >>> group.create_array("a", dtype="int16", domain=domain).result()[...] = [1, 2, 3]
        >>> xr.open_dataset(group, engine="tensorstore")["a"].sum().item()
        6
    """

    description = "Open Zarr and N5, in any store, by tensorstore_py"
    supports_groups = True
    open_dataset_parameters = ("filename_or_obj", *OPTIONS)

    def guess_can_open(self, filename_or_obj: object) -> bool:
        """Whether to take it where no engine is named; see the class."""
        if isinstance(filename_or_obj, ts.Group | ts.KvStore | ts.Spec | ts.KvStore.Spec):
            return True
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        text = os.fspath(filename_or_obj).rstrip("/")
        if text.endswith(_NAMES):
            return True
        return text.endswith(".zarr") and importlib.util.find_spec("zarr") is None

    def open_dataset(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - what sources are, and other packages' stores
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> xr.Dataset:
        """Open one group; the keywords are those of `open_groups`.

        Args:
            filename_or_obj: a path, a URL, a spec, a `ts.Group`, a `ts.KvStore`.
            drop_variables: names of variables that are not opened, nor looked at.
            **options: see the class.

        Raises:
            TypeError: a keyword that does not exist.
            NotFoundError: nothing is there.
            MismatchError: an array is there; or a dimension has two sizes.
            UnsupportedError: a variable cannot be represented; names it.
        """
        found = open_groups(filename_or_obj, tree=False, drop_variables=drop_variables, **options)
        return found["/"]

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as above
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> dict[str, xr.Dataset]:
        """Open a group and all below it, each by its path.

        Takes and raises what `open_dataset` does.
        """
        found = open_groups(filename_or_obj, tree=True, drop_variables=drop_variables, **options)
        if not options.get("group"):
            return found
        # As xarray's engine for Zarr names what is below a group that is asked for.
        return {path.strip("/") or ".": each for path, each in found.items()}

    def open_datatree(
        self,
        filename_or_obj: Any,  # noqa: ANN401 - as above
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> xr.DataTree:
        """Open a group and all below it as a tree. Takes and raises what `open_dataset` does."""
        found = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        tree = xr.DataTree.from_dict(found)
        for path, dataset in found.items():
            # A tree is made of copies, which close nothing by themselves.
            tree[path].set_close(dataset.close)
        return tree
