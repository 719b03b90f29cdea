"""`TensorStoreBackendEntrypoint`: xarray's engine `"tensorstore"`, and how it opens datasets.

It says which keywords there are, and takes what no other engine does. A source is surveyed once,
and all arrays are opened together. xarray reads index coordinates one after the other while it
builds a dataset; here their reads are begun before, for all groups of a tree, so that they cost one
round trip and not one each.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import xarray as xr
from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.source import Source
from tensorstore_py.integrations.xarray.stored_group import StoredGroup

__all__ = ["OPTIONS", "TensorStoreBackendEntrypoint", "open_groups", "stored_groups"]


_DECODERS = (
    "mask_and_scale", "decode_times", "concat_characters", "decode_coords", "use_cftime",
    "decode_timedelta",
)  # fmt: skip
#: The keywords of `open_groups`.
OPTIONS = (
    *_DECODERS, "drop_variables", "group", "consolidated", "zarr_format", "context", "cache_pool",
    "use_zarr_fill_value_as_mask", "prefetch",
)  # fmt: skip


def open_groups(
    given: object,
    *,
    tree: bool,
    drop_variables: str | Iterable[str] | None = None,
    group: str | None = None,
    consolidated: bool | None = None,
    zarr_format: Literal[2, 3] | None = None,
    context: ts.Context | Mapping[str, Any] | None = None,
    cache_pool: int | None = None,
    use_zarr_fill_value_as_mask: bool | None = None,
    prefetch: bool = True,
    decode_times: Any = True,  # noqa: ANN401 - a flag, a coder, or one for each variable
    **decoders: Any,
) -> dict[str, xr.Dataset]:
    """The datasets of a group, at `"/"`, and of those below it.

    Args:
        given: a path, a URL, a spec, a `ts.Group`, a `ts.KvStore`.
        tree: whether those below it, too.
        drop_variables: names of variables that are not opened, nor looked at.
        group: the path of the group within.
        consolidated: use consolidated metadata: by default if it is there; True: it must be.
        zarr_format: 2 or 3; by default whichever is there.
        context: a `ts.Context` that all variables share, or its JSON.
        cache_pool: bytes to keep of decoded chunks, for all variables together.
        use_zarr_fill_value_as_mask: whether Zarr's fill value says which elements are missing; by
            default so it does in version 2.
        prefetch: read index coordinates, and what decides the types of times, all together.
        decode_times: as `xr.open_dataset` takes it.
        **decoders: what else `xr.open_dataset` takes of decoding.

    Raises:
        TypeError: an argument that does not exist.
        NotFoundError: nothing is there; says what was looked for.
        MismatchError: an array is there; or a dimension has two sizes.
        UnsupportedError: a variable cannot be represented; names it.
    """
    unknown = [name for name in decoders if name not in _DECODERS]
    if unknown:
        raise TypeError(
            f'engine "tensorstore" takes no {unknown[0]!r}; it takes {", ".join(OPTIONS)}'
        )
    source = Source(
        given,
        group=group,
        consolidated=consolidated,
        zarr_format=zarr_format,
        context=context,
        cache_pool=cache_pool,
        max_depth=None if tree else 0,
    )
    dropped = {drop_variables} if isinstance(drop_variables, str) else {*(drop_variables or ())}
    entry = StoreBackendEntrypoint()
    try:
        groups = stored_groups(source, tree, dropped, use_zarr_fill_value_as_mask)
        for group_ in groups.values():
            group_.ready()
        if prefetch:
            for group_ in groups.values():
                group_.fetch(times=bool(decode_times))
        found = {
            path: entry.open_dataset(group_, decode_times=decode_times, **decoders)
            for path, group_ in groups.items()
        }
    except BaseException:
        source.close()
        raise
    if source.url is not None and not isinstance(given, str | os.PathLike):
        # Of paths and URLs xarray says so itself.
        for path, dataset in found.items():
            dataset.encoding["source"] = source.url + path.lstrip("/")
    return found


def stored_groups(
    source: Source, tree: bool, dropped: Collection[str], fills: bool | None
) -> dict[str, StoredGroup]:
    """The groups, by path, with the arrays in them; closing the first closes the source."""
    arrays: dict[str, dict[str, Any]] = {
        path: {}
        for path, node in source.nodes.items()
        if node.kind == "group" and (tree or not path)
    }
    for path, node in source.nodes.items():
        parent, name = posixpath.split(path)
        if node.kind == "array" and parent in arrays and name not in dropped:
            arrays[parent][name] = node
    return {
        f"/{path}": StoredGroup(
            f"{source.url or ''}{path}/" if path else source.url or "",
            source.nodes[path],
            inner,
            fills,
            (lambda: None) if path else source.close,
        )
        for path, inner in arrays.items()
    }


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
