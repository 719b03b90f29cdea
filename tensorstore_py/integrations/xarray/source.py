"""`Source`: what `xr.open_dataset` was given, opened: the nodes of a group, and how to close them.

Everything that is opened from one source shares one `Context`, and so one cache pool. What the
caller opened stays open when a dataset is closed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.n5 import n5_nodes, n5_store

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Node", "Source", "shared_context"]


class Node(Protocol):
    """An array or a group with what is stored of it."""

    @property
    def kind(self) -> Literal["array", "group"]:
        """Which it is."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata document."""

    @property
    def open(self) -> Callable[[], ts.Future[Any]]:
        """Opens it."""


class Source:
    """The nodes of a group.

    Args:
        given: a path, a URL, a spec, a `Group`, a `KvStore`.
        group: the path of the group within.
        consolidated: as for `Group.open`.
        zarr_format: as for `Group.open`.
        context: shared resources, or their JSON.
        cache_pool: bytes to keep of chunks that were decoded, for all variables together.
        max_depth: 0 for the group alone; None for all groups below it, too.

    Attributes:
        nodes: by path; `""` is the group itself.
        url: where it is, or None.

    Raises:
        NotFoundError: nothing is there; says what was looked for.
        MismatchError: an array is there.
        SpecError: the arguments are wrong.
    """

    def __init__(
        self,
        given: object,
        *,
        group: str | None,
        consolidated: bool | None,
        zarr_format: Literal[2, 3] | None,
        context: ts.Context | Mapping[str, Any] | None,
        cache_pool: int | None,
        max_depth: int | None,
    ) -> None:
        if isinstance(given, ts.TensorStore | ts.Future):
            raise TypeError(
                f"a {type(given).__name__} is no group of arrays; pass the ts.Group, or the path or "
                "spec, of the group that the array is in"
            )
        self._owned: list[Callable[[], object]] = []
        shared = shared_context(context, cache_pool)
        if shared is not None and shared is not context:
            self._owned.append(shared.close)
        path = group or ""
        store = n5_store(given, path, shared)
        self.nodes: dict[str, Node]
        if store is not None:
            self._owned.append(store.close)
            self.nodes, self.url = n5_nodes(store, max_depth), _url(store)
            return
        found = self._group(given, path, consolidated, zarr_format, shared)
        self.nodes, self.url = found.nodes(max_depth).result(), _url(found)

    def _group(
        self,
        given: object,
        path: str,
        consolidated: bool | None,
        zarr_format: Literal[2, 3] | None,
        shared: ts.Context | None,
    ) -> ts.Group:
        if isinstance(given, ts.Group):
            if not path and consolidated in (None, given.consolidated):
                return given
            given, path = given.kvstore, path.lstrip("/")
        elif isinstance(given, str) and "://" not in given and given.lstrip()[:1] != "{":
            given = Path(os.path.expandvars(given)).expanduser()
        elif isinstance(given, os.PathLike):
            given = Path(given).expanduser()
        options: dict[str, Any] = {"zarr_format": zarr_format, "context": shared}
        # Consolidated metadata is stored with the outermost group, whichever is asked for.
        root = ts.Group.open(given, consolidated=consolidated, **options).result()
        self._owned.append(root.close)
        found = root.open(path).result() if path.strip("/") else root
        if isinstance(found, ts.TensorStore):
            raise ts.MismatchError(
                f'"{path}" is an array, not a group, in {_url(root) or root!r}; name the group that '
                "it is in, or open the array alone with ts.open"
            )
        return found

    def close(self) -> None:
        """Close what was opened here; what the caller opened stays open."""
        while self._owned:
            self._owned.pop()()


def shared_context(
    context: ts.Context | Mapping[str, Any] | None, cache_pool: int | None
) -> ts.Context | None:
    """The context that all variables share; None: nothing is said of it.

    Args:
        context: the context, or its JSON.
        cache_pool: bytes to keep of chunks that were decoded.

    Example:
        >>> shared_context(None, 1 << 20)["cache_pool"].to_json()
        {'total_bytes_limit': 1048576}
    """
    if isinstance(context, Mapping):
        context = ts.Context(dict(context))
    if cache_pool is None:
        return context
    return ts.Context({"cache_pool": {"total_bytes_limit": cache_pool}}, context)


def _url(place: ts.Group | ts.KvStore) -> str | None:
    try:
        return place.url
    except ts.UnsupportedError:
        return None
