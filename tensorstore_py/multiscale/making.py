"""The levels of an image, and making its group and arrays, empty, before anything is computed.

All that can be refused is refused before anything is stored. How many levels there are, how large,
and in which chunks and shards is pure arithmetic (`level_forms`). The one invariant: all levels
have the same chunks and shards, but for dimensions that are smaller than these, so that a chunk of
a level is made of whole chunks of the level above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import NewArray
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._compute.pyramid import LevelForm, smaller_shape
from tensorstore_py._hierarchy.changes import create_group, make_parents
from tensorstore_py._hierarchy.document import AttributesFile
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.path import join
from tensorstore_py._index import IndexDomain
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.units import Unit
from tensorstore_py.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    MismatchError,
    SpecError,
)
from tensorstore_py.multiscale.axes import by_axis
from tensorstore_py.multiscale.metadata import image_attributes

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.endpoints import FoundEndpoint
    from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # as it is called
    from tensorstore_py.multiscale.axes import Axis
    from tensorstore_py.multiscale.metadata import ImageMetadata

__all__ = ["IfExists", "LevelForms", "NewImage", "level_forms"]


Extents = tuple[int, ...]

#: The last level is at most so large along each axis that becomes smaller, or one chunk.
_SMALLEST: Final = 256
#: So large a chunk is, about, and so long at most, if the source has none to go by.
_CHUNK_BYTES: Final = 2**20
_LONGEST: Final = 512
_MOST_LEVELS: Final = 32


class LevelForms(NamedTuple):
    """What levels are to be like.

    Attributes:
        levels: their shapes, what is stored at a time, and factors to the level above.
        chunks: of each level, what is read at a time.
    """

    levels: tuple[LevelForm, ...]
    chunks: tuple[Extents, ...]

    @property
    def factors(self) -> list[Extents]:
        """Of each level, how many positions of the first make one."""
        found = [(1,) * len(self.levels[0].shape)]
        for level in self.levels[1:]:
            found.append(tuple(a * b for a, b in zip(found[-1], level.factors, strict=True)))
        return found


def level_forms(
    shape: Extents,
    axes: tuple[Axis, ...],
    item_bytes: int,
    present: Sequence[int | None] | None,
    *,
    levels: int | None,
    scale: object,
    chunks: object,
    shards: object,
) -> LevelForms:
    """What the levels of a pyramid are to be like.

    Args:
        shape: of the source.
        axes: its axes.
        item_bytes: size of an element.
        present: extents of chunks of the source, if it has any.
        levels: how many, with the first; None: until the last is small.
        scale: how many positions make one of the next level; see `by_axis`; or a list with one of
            these for each level but the first.
        chunks: extents of chunks; None: those of the source, unless they are very long.
        shards: extents of shards; None: there are none.

    Raises:
        SpecError: they are no positive numbers, or do not go together; names the argument.

    Example:
        >>> from tensorstore_py.multiscale.axes import as_axes
        >>> asked = dict(levels=None, scale={"y": 2, "x": 2}, chunks=None, shards=None)
        >>> forms = level_forms((30, 3000, 3000), as_axes("zyx", 3), 2, (1, 3000, 3000), **asked)
        >>> [form.shape for form in forms.levels], forms.chunks[0]
        ([(30, 3000, 3000), (30, 1500, 1500), (30, 750, 750), (30, 375, 375)], (1, 500, 500))
    """
    if levels is not None and (isinstance(levels, bool) or levels < 1):
        raise SpecError(f"expected a positive number of levels, not {levels!r}", ("levels",))
    chunk = _extents(chunks, axes, shape, "chunks") or _default_chunk(
        shape, axes, item_bytes, present
    )
    shard = _extents(shards, axes, shape, "shards")
    if shard is not None:
        if chunks is None:
            chunk = _fitting(chunk, shard)
        for axis, inner, outer in zip(axes, chunk, shard, strict=True):
            if outer % inner:
                raise SpecError(
                    f"a shard of {outer} along {axis.name} is not of whole chunks of {inner}",
                    ("shards",),
                )
    several = isinstance(scale, Sequence) and any(
        isinstance(one, Mapping | Sequence) for one in scale
    )
    sizes, factors = [shape], [(1,) * len(shape)]
    wanted = levels
    if several:
        assert isinstance(scale, Sequence)
        if levels not in (None, len(scale) + 1):
            raise SpecError(f"{len(scale)} scales make {len(scale) + 1} levels", ("scale",))
        wanted = len(scale) + 1
    while wanted is None or len(sizes) < wanted:
        each = scale[len(sizes) - 1] if several else scale  # type: ignore[index]
        factor = _factors(each, axes, sizes[-1])
        if wanted is None and (_is_small(sizes[-1], factor, shard or chunk) or max(factor) == 1):
            break
        sizes.append(smaller_shape(sizes[-1], factor))
        factors.append(factor)
        if len(sizes) > _MOST_LEVELS:
            raise SpecError(f"more than {_MOST_LEVELS} levels", ("levels",))
    read = [_clipped(chunk, extents) for extents in sizes]
    stored = read
    if shard is not None:
        stored = [_whole_chunks(shard, *each) for each in zip(read, sizes, strict=True)]
    forms = [LevelForm(*each) for each in zip(sizes, stored, factors, strict=True)]
    return LevelForms(tuple(forms), tuple(read))


def _factors(given: object, axes: tuple[Axis, ...], shape: Extents) -> Extents:
    """Factors of one level; an axis that is as small as it can be stays."""
    found = by_axis(given, axes, "scale", (1,) * len(axes))
    for factor in found:
        if not isinstance(factor, int) or isinstance(factor, bool) or factor < 1:
            raise SpecError(f"expected positive integers, but found {factor!r:.60}", ("scale",))
    return tuple(
        factor if extent > 1 else 1  # type: ignore[misc]  # they are integers
        for factor, extent in zip(found, shape, strict=True)
    )


def _is_small(shape: Extents, factors: Extents, chunk: Extents) -> bool:
    return all(
        extent <= max(_SMALLEST, size)
        for extent, factor, size in zip(shape, factors, chunk, strict=True)
        if factor > 1
    )


def _extents(given: object, axes: tuple[Axis, ...], shape: Extents, name: str) -> Extents | None:
    """Extents as a caller says them; one number is of space, and -1 is all there is."""
    if given is None:
        return None
    default = tuple(
        1 if axis.type != "space" else extent for axis, extent in zip(axes, shape, strict=True)
    )
    if isinstance(given, Iterable | int):
        found = by_axis(given, axes, name, default)
        if all(isinstance(each, int) and (each > 0 or each == -1) for each in found):
            return tuple(
                max(1, extent) if each == -1 else each  # type: ignore[misc]
                for each, extent in zip(found, shape, strict=True)
            )
    raise SpecError(f"expected positive extents, or -1 for all, but found {given!r:.60}", (name,))


def _default_chunk(
    shape: Extents,
    axes: tuple[Axis, ...],
    item_bytes: int,
    present: Sequence[int | None] | None,
) -> Extents:
    """Chunks of the source or parts of them, made larger if they are small."""
    space = [axis.type == "space" for axis in axes]
    if present is None or not any(present):
        start = [min(32, extent) if here else 1 for here, extent in zip(space, shape, strict=True)]
    else:
        start = [
            _part(min(size or extent, max(1, extent)))
            for size, extent in zip(present, shape, strict=True)
        ]
    chunk = [max(1, size) for size in start]
    while item_bytes * prod(chunk) < _CHUNK_BYTES:
        able = [
            dim
            for dim, size in enumerate(chunk)
            if space[dim] and size < shape[dim] and 2 * size <= _LONGEST and size >= 2
        ]
        if not able:
            break
        chunk[min(able, key=lambda dim: (chunk[dim], -dim))] *= 2
    return tuple(chunk)


def _part(size: int) -> int:
    """A whole part of an extent that is not too long, if there is one near."""
    if size <= _LONGEST:
        return size
    count = -(-size // _LONGEST)
    return next((size // each for each in range(count, 2 * count) if size % each == 0), _LONGEST)


def _fitting(chunk: Extents, shard: Extents) -> Extents:
    """The longest chunks of which shards are made, no longer than these."""
    return tuple(
        next(size for size in range(min(inner, outer), 0, -1) if outer % size == 0)
        for inner, outer in zip(chunk, shard, strict=True)
    )


def _clipped(chunk: Extents, shape: Extents) -> Extents:
    return tuple(min(size, max(1, extent)) for size, extent in zip(chunk, shape, strict=True))


def _whole_chunks(shard: Extents, chunk: Extents, shape: Extents) -> Extents:
    """A shard no larger than the chunks that there are."""
    return tuple(
        min(outer, -(-max(1, extent) // inner) * inner)
        for outer, inner, extent in zip(shard, chunk, shape, strict=True)
    )


IfExists = Literal["raise", "replace"]

#: By version of Zarr, how chunks are encoded by default: quickly, and pixels well.
_CODECS: Final[dict[int | None, object]] = {
    2: {"driver": "zarr", "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}},
    3: {
        "driver": "zarr3",
        "codecs": [
            {
                "name": "blosc",
                "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"},
            }
        ],
    },
}


class NewImage(NamedTuple):
    """An image that is to be made.

    Attributes:
        metadata: what it says of itself.
        more: what else its entry says.
        forms: its levels.
        data_type: of elements.
        fill_value: of what is not stored; None: the format's.
        codec: how chunks are encoded; None: as is usual.
    """

    metadata: ImageMetadata
    more: dict[str, object]
    forms: LevelForms
    data_type: DType
    fill_value: object
    codec: object

    async def check(self, found: FoundEndpoint, if_exists: IfExists) -> None:
        """Refuse what cannot be made.

        Raises:
            AlreadyExistsError: a level is there, and may not be replaced.
            MismatchError: an array is where the group would have to be.
        """
        tree = found.tree
        if tree is None or found.place is None or (found.node and found.node.kind != "group"):
            raise MismatchError("the target is an array; an image is a group of such: name a place")
        for dataset in self.metadata.datasets if if_exists != "replace" else ():
            where = join(found.path, dataset.path)
            if await read_node(tree, where) is not None:
                raise AlreadyExistsError(
                    f'level "{dataset.path}" exists already, at {tree.describe(where)}; pass '
                    'if_exists="replace" to replace the image'
                )

    async def check_made(self, found: FoundEndpoint) -> None:
        """See that the arrays are there.

        Raises:
            FailedPreconditionError: one is not.
        """
        tree = found.tree
        assert tree is not None
        for dataset in self.metadata.datasets:
            where = join(found.path, dataset.path)
            if await read_node(tree, where) is None:
                raise FailedPreconditionError(
                    f'level "{dataset.path}" was deleted since this began, at '
                    f"{tree.describe(where)}; delete the manifest to begin anew"
                )

    async def make(self, found: FoundEndpoint, if_exists: IfExists) -> Group:
        """Store the group and its empty arrays.

        Args and errors are those of `check`.
        """
        await self.check(found, if_exists)
        tree, path = found.tree, found.path
        assert tree is not None
        await make_parents(tree, path)
        await create_group(tree, path, {}, may_exist=True)
        for number, dataset in enumerate(self.metadata.datasets):
            if if_exists == "replace":
                where = KeyRange.prefix(tree.below(join(path, dataset.path)))
                await tree.store.delete_range(where)
            new = self._new(found, number)
            await new.make(tree, path, found.transaction, Lifetime("TensorStore"))
        group = self.group(found)
        await store_metadata(group, self.metadata, self.more)
        return group

    def group(self, found: FoundEndpoint) -> Group:
        """The group that is at a place."""
        assert found.place is not None
        return Group._of(found.place, found.path, found.transaction, None, found.tree)

    async def assumed(self, found: FoundEndpoint, number: int) -> TensorStore:
        """The array of a level as it will be; nothing is read or stored."""
        mode = {"create": False, "open": True, "delete_existing": False, "assume_metadata": True}
        asked = updated(self._new(found, number).spec, mode)
        driver = await asked.open_within(found.transaction)
        return opened(driver, asked, readable=True, writable=True)

    def _new(self, found: FoundEndpoint, number: int) -> NewArray:
        assert found.place is not None
        form, chunk = self.forms.levels[number], self.forms.chunks[number]
        dataset, axes = self.metadata.datasets[number], self.metadata.axes
        version = found.place.form.zarr_format
        options: dict[str, Any] = {
            "dtype": self.data_type,
            "domain": IndexDomain(shape=form.shape, labels=[axis.name for axis in axes]),
            "chunk_layout": ChunkLayout(read_chunk_shape=chunk, write_chunk_shape=form.chunk),
            "codec": _CODECS.get(version) if self.codec is None else self.codec,
        }
        if self.fill_value is not None:
            options["fill_value"] = self.fill_value
        if version == 2:
            options["metadata"] = {"dimension_separator": "/"}
        elif any(axis.unit for axis in axes):
            options["dimension_units"] = [
                None if axis.unit is None else Unit(size, axis.unit)
                for axis, size in zip(axes, dataset.scale, strict=True)
            ]
        path = join(found.path, dataset.path)
        return NewArray.of(found.place, path, {}, options, may_exist=False, deletes=False)


async def store_metadata(group: Group, image: ImageMetadata, more: dict[str, object]) -> None:
    """Say in a group's attributes what image it is; others stay."""
    tree, new = group._tree, image_attributes(image, more)
    file = AttributesFile(tree.store, tree.below(group._path), tree.form)

    def change(stored: dict[str, object]) -> dict[str, object]:
        before = stored.get("ome")
        if isinstance(before, dict) and isinstance(new.get("ome"), dict):
            return {**stored, "ome": {**before, **new["ome"]}}  # type: ignore[dict-item]
        return {**stored, **new}

    await file.change(change)
