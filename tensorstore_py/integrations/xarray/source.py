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

#: How many names of what is there in the place of a group are told.
_SHOWN = 5


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

    Making it begins to open; `look` begins to look what is there, and `nodes` waits. So many
    sources are opened together.

    Raises:
        SpecError, TypeError: the arguments are wrong.
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
                f"a {type(given).__name__} is no group of arrays; pass the ts.Group, or the path "
                "or spec, of the group that the array is in"
            )
        #: Where it is, or None.
        self.url: str | None = None
        if isinstance(given, ts.Group) and (context is not None or cache_pool is not None):
            raise TypeError(
                "a ts.Group has the context that it was opened with; pass context= to "
                "ts.Group.open, or pass the group's spec, path or kvstore here"
            )
        self._owned: list[Callable[[], object]] = []
        shared = shared_context(context, cache_pool)
        if shared is not None and shared is not context:
            self._owned.append(shared.close)
        self._given = given
        self._path = (group or "").strip("/")
        self._max_depth = max_depth
        self._begun: list[ts.Future[ts.Group]] = []
        self._root: ts.Group | None = None
        self._looking: ts.Future[Any] | None = None
        self._found: Mapping[str, Node] | None = None
        store = n5_store(given, self._path, shared)
        if store is not None:
            self._owned.append(store.close)
            self._found, self.url = n5_nodes(store, max_depth), _url(store)
        elif isinstance(given, ts.Group) and consolidated in (None, given.consolidated):
            self._root = given
        else:
            # Consolidated metadata is stored with the outermost group, whichever is asked for; so
            # both are asked for at once.
            outermost = [""] if consolidated is not False else []
            inner = [self._path] if consolidated is not True else []
            options: dict[str, Any] = {"zarr_format": zarr_format, "context": shared}
            self._begun = [
                ts.Group.open(_local(given), path=path, consolidated=consolidated, **options)
                for path in dict.fromkeys(outermost + inner)
            ]

    def look(self) -> None:
        """Begin to look what is there.

        Raises:
            NotFoundError: nothing is there; says what was looked for.
            MismatchError: an array is there.
            DataLossError: a document is corrupt; names its key.
        """
        if self._looking is None and self._found is None:
            try:
                found = self._group()
            except ts.NotFoundError as error:
                raise ts.NotFoundError(
                    f"{str(error).partition('; to create')[0]}; {self._instead()}"
                ) from error
            self.url = _url(found)
            self._looking = found.nodes(self._max_depth)

    def _instead(self) -> str:
        """What is there in the place of a group, as far as that is told without much asking."""
        given = _local(self._given)
        if not isinstance(given, Path):
            return "name the folder that the group's metadata is in, and the group within by group="
        path = given / self._path
        if path.is_dir():
            names = sorted(each.name for each in path.iterdir())
            more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            return f"there are {', '.join(names[:_SHOWN])}{more}" if names else "it is empty"
        return "a file is there" if path.exists() else f'there is no folder "{path}"'

    def _group(self) -> ts.Group:
        """The group that is asked for: as consolidated metadata tells, or as it is stored."""
        if self._root is not None:
            return _inner(self._root, self._path)
        *outermost, last = self._begun
        for opening in outermost:
            try:
                root = opening.result()
            except ts.NotFoundError:
                continue
            self._owned.append(root.close)
            if root.consolidated and root.contains(self._path).result():
                return _inner(root, self._path)
        found = last.result()
        self._owned.append(found.close)
        return found if found.path == self._path else _inner(found, self._path)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """By path; `""` is the group itself. Waits; raises what `look` raises."""
        if self._found is None:
            self.look()
            assert self._looking is not None
            self._found = self._looking.result()
        return self._found

    def close(self) -> None:
        """Close what was opened here; what the caller opened stays open."""
        while self._owned:
            self._owned.pop()()


def _inner(root: ts.Group, path: str) -> ts.Group:
    """The group at a path.

    Raises:
        MismatchError: an array is there.
    """
    found = root.open(path).result() if path else root
    if isinstance(found, ts.TensorStore):
        raise ts.MismatchError(
            f'"{path}" is an array, not a group, in {_url(root) or root!r}; name the group that it '
            "is in, or open the array alone with ts.open"
        )
    assert isinstance(found, ts.Group)
    return found


def _local(given: object) -> object:
    """What `Group.open` takes: local paths are no text there, so that none is taken for a URL."""
    if isinstance(given, ts.Group):
        return given.kvstore
    if isinstance(given, os.PathLike):
        return Path(given).expanduser()
    if isinstance(given, str) and "://" not in given and given.lstrip()[:1] != "{":
        return Path(given).expanduser()
    return given


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
