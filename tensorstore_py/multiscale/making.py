"""Making the group and the arrays of an image, empty, before anything is computed.

All that can be refused is refused before anything is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorstore_py._api.group import Group
from tensorstore_py._api.group_arrays import NewArray
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._hierarchy.attributes import AttributesFile
from tensorstore_py._hierarchy.creating import create_group, make_parents
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.path import join
from tensorstore_py._index import IndexDomain
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.units import Unit
from tensorstore_py.errors import AlreadyExistsError, FailedPreconditionError, MismatchError
from tensorstore_py.multiscale.metadata import image_attributes

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.ends import Found
    from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # as it is called
    from tensorstore_py.multiscale.forms import Forms
    from tensorstore_py.multiscale.metadata import ImageMetadata

__all__ = ["IfExists", "NewImage"]

IfExists = Literal["raise", "replace"]

#: By version of Zarr, how chunks are encoded if nobody says: quickly, and pixels well.
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
    forms: Forms
    data_type: DType
    fill_value: object
    codec: object

    async def check(self, found: Found, if_exists: IfExists) -> None:
        """Refuse what cannot be made.

        Args:
            found: where.
            if_exists: what to do about arrays that are there.

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

    async def check_made(self, found: Found) -> None:
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

    async def make(self, found: Found, if_exists: IfExists) -> Group:
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

    def group(self, found: Found) -> Group:
        """The group that is at a place."""
        assert found.place is not None
        return Group._of(found.place, found.path, found.transaction, None, found.tree)

    async def assumed(self, found: Found, number: int) -> TensorStore:
        """The array of a level as it will be; nothing is read or stored."""
        mode = {"create": False, "open": True, "delete_existing": False, "assume_metadata": True}
        asked = updated(self._new(found, number).spec, mode)
        driver = await asked.open_within(found.transaction)
        return opened(driver, asked, readable=True, writable=True)

    def _new(self, found: Found, number: int) -> NewArray:
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
