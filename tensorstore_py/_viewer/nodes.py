"""What is shown: the node that was asked for, and what is below it, opened as it is looked at.

Paths are those below the node, so nothing else can be named. Arrays are opened with a cache pool of
the viewer's own where theirs has no room, so that tiles of one chunk decode it once, and memory has
a bound. What was opened is kept, as many nodes as `_KEPT`.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from tensorstore_py._api.begin import begin
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.options import Options, updated
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.pool import CachePool, ChunkCache
from tensorstore_py._hierarchy.path import normalised
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py._runtime.execution import start
from tensorstore_py._spec.context import with_resources
from tensorstore_py._spec.resource import Resource
from tensorstore_py._viewer.levels import Level, Picture
from tensorstore_py.errors import (
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.multiscale.image import Multiscale
from tensorstore_py.multiscale.image import open as open_image

__all__ = ["MEMBERS", "Found", "Member", "Nodes"]

Found: TypeAlias = TensorStore | Group | KvStore
T = TypeVar("T")

#: How many members of a group are listed at most.
MEMBERS: Final = 2000

_KEPT: Final = 64
_AT_ONCE: Final = 16


class Member(NamedTuple):
    """Something right below a node.

    Attributes:
        name: its name.
        kind: `"array"`, `"group"`, `"directory"` or `"unreadable"`.
        summary: shape and type of an array; why it is unreadable.
    """

    name: str
    kind: str
    summary: str = ""


class Nodes:
    """What was asked for, and what is below.

    Args:
        root: what was asked for, open.
        cache_bytes: how much decoded data is kept at most.
    """

    def __init__(self, root: Found, cache_bytes: int) -> None:
        self.root = root
        self._pool: Resource[Any] = Resource(CachePool(total_bytes_limit=cache_bytes))
        self._kept: OrderedDict[str, asyncio.Task[Picture | Found]] = OrderedDict()

    @property
    def cached_bytes(self) -> int:
        """How much decoded data is kept."""
        pool: ChunkCache = self._pool.value
        return pool.held_bytes

    async def at(self, path: str, *, again: bool = False) -> Picture | Found:
        """What is at a path, open: what can be drawn as a `Picture`.

        Args:
            path: below what was asked for.
            again: open it, also if it is kept: it may have changed its shape.

        Raises:
            NotFoundError: nothing is there.
            SpecError: the path has the part `.` or `..`.
            TensorStoreError: it cannot be opened.
        """
        path = normalised(path)
        task = self._kept.get(path)
        failed = task is not None and task.done() and (task.cancelled() or task.exception())
        if task is None or failed or again:
            task = self._kept[path] = asyncio.ensure_future(self._opened(path))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(path)
        # One who goes away does not take it from others who wait for the same.
        return await asyncio.shield(task)

    async def _opened(self, path: str) -> Picture | Found:
        found = await self._found(path)
        if isinstance(found, TensorStore):
            store = await self._pooled(found)
            level = Level("", store, (1.0,) * store.rank)
            return Picture(path, [level], await _attributes(store))
        if isinstance(found, Group):
            image = await _image(found)
            if image is not None:
                return await self._levels(path, image)
        return found

    async def _found(self, path: str) -> Found:
        root = self.root
        if not path:
            return root
        if isinstance(root, Group):
            found: Found = await root.open(path)
            return found
        if isinstance(root, KvStore):
            return await _below(root, path)
        raise NotFoundError(f'nothing is at "{path}": an array is shown, which has no members')

    async def _pooled(self, store: TensorStore) -> TensorStore:
        """The same array with the viewer's cache pool, if its own one keeps nothing."""
        if store.transaction is not None:
            return store
        try:
            bound = store._bound_spec()
        except (SpecError, UnsupportedError):
            return store

        def instead(resource: Resource[object]) -> Resource[object]:
            spec = resource.spec
            return self._pool if isinstance(spec, CachePool) and not spec.remembers else resource

        model = with_resources(bound, instead)
        if model is bound:
            return store
        asked: Options = {"open": True, "assume_cached_metadata": True}
        model = updated(model, asked)
        driver = await start(model.inline, model.open)
        assert model.transform is not None
        found = TensorStore(driver, model.transform, store.readable, False, store._life)
        return found._resolved(driver.domain)

    async def _levels(self, path: str, image: Multiscale) -> Picture:
        stores = [await self._pooled(await image.level(at)) for at in range(len(image))]
        datasets = image.metadata.datasets
        first = datasets[0].scale
        levels = [
            Level(
                dataset.path,
                store,
                tuple(max(1.0, size / whole) for size, whole in zip(dataset.scale, first,
                                                                    strict=True)),
            )
            for dataset, store in zip(datasets, stores, strict=True)
        ]  # fmt: skip
        axes = [(size, axis.unit or "") for size, axis in zip(first, image.axes, strict=True)]
        attributes = await image.group.attrs.read()
        return Picture(path, levels, attributes, axes, f"OME-Zarr {image.version}")

    async def members(self, path: str) -> tuple[list[Member], bool]:
        """What is right below a group or a directory, sorted; and whether that is all.

        Raises:
            NotFoundError, MismatchError: there is no group.
            UnsupportedError: the store cannot list its keys.
        """
        found = await self._found(normalised(path))
        if isinstance(found, TensorStore):
            return [], True
        if isinstance(found, Group):
            listed = await _of_group(found)
        else:
            listed = await _of_directory(found)
        listed.sort(key=lambda member: _natural(member.name))
        return listed[:MEMBERS], len(listed) <= MEMBERS


async def _of_group(group: Group) -> list[Member]:
    with suppress(TensorStoreError):
        nodes = await group.nodes(0)
        form = group._tree.form
        return [
            Member(name, node.kind, form.summary(node.metadata) if node.kind == "array" else "")
            for name, node in nodes.items()
            if name
        ]
    # One that is damaged hides no other.
    names = (await group.names())[: MEMBERS + 1]
    return await _each([_looked_at(name, group.open(name)) for name in names])


async def _looked_at(name: str, opening: Any) -> Member:  # noqa: ANN401 - a Future of a node
    try:
        found = await opening
    except NotFoundError:
        return Member(name, "directory")
    except TensorStoreError as error:
        return Member(name, "unreadable", str(error))
    return _member(name, found)


def _member(name: str, found: Found) -> Member:
    if isinstance(found, TensorStore):
        return Member(name, "array", f"{found.shape} {found.dtype.to_json()}")
    return Member(name, "group" if isinstance(found, Group) else "directory")


async def _of_directory(directory: KvStore) -> list[Member]:
    names = [name[:-1] for name in await _names(directory) if name.endswith("/") and name != "/"]
    return await _each([_of_entry(directory, name) for name in names[: MEMBERS + 1]])


async def _of_entry(directory: KvStore, name: str) -> Member:
    try:
        return _member(name, await _below(directory, name))
    except TensorStoreError as error:
        return Member(name, "unreadable", str(error))


async def _each(steps: list[Coroutine[Any, Any, Member]]) -> list[Member]:
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(step: Coroutine[Any, Any, Member]) -> Member:
        async with free:
            return await step

    return list(await asyncio.gather(*map(one, steps)))


async def _names(directory: KvStore) -> list[str]:
    store, path = directory.store, directory.path

    async def body() -> list[str]:
        return [name async for name in list_directory(store, path)]

    return await begin(store.inline, body, None)


async def _below(directory: KvStore, path: str) -> Found:
    """What is at a path below a directory: an array, a group, or a directory.

    Raises:
        NotFoundError: no key begins with it.
    """
    below = directory + f"{path}/"
    try:
        return await open_array(below, read=True)
    except (MismatchError, NotFoundError):
        with suppress(NotFoundError, SpecError, UnsupportedError):
            return await Group.open(below)
    parts = path.split("/")
    if len(parts) > 1:
        # An array or a group above it knows its own names: consolidated metadata, Zarr 2.
        for count in range(1, len(parts)):
            with suppress(TensorStoreError):
                group = await Group.open(directory + f"{'/'.join(parts[:count])}/")
                found: Found = await group.open("/".join(parts[count:]))
                return found
    if not await _names(below):
        raise NotFoundError(f'nothing is at "{path}"')
    return below


async def _image(group: Group) -> Multiscale | None:
    """The image that a group is; None: it is none."""
    try:
        image = await open_image(group)
    except (NotFoundError, MismatchError):
        return None
    except (SpecError, UnsupportedError):
        return None  # metadata of an image that is wrong: its arrays are shown
    return image if image.group.path == group.path else None


async def _attributes(store: TensorStore) -> dict[str, object]:
    try:
        return dict(await store.attrs.read())
    except (UnsupportedError, FailedPreconditionError):
        return {}


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Names in the order that people expect: numbers in them by value."""
    parts = re.split(r"(\d+)", name.lower())
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
