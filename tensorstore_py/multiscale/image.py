"""`Multiscale`: an image of several levels, as users hold it; and opening one.

It holds the group, and what its metadata says. Arrays of levels are opened when they are first
asked for, and kept. `open` finds an image in a group, a plate or a collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import open_array
from tensorstore_py._conversion.endpoints import node_attributes
from tensorstore_py._conversion.endpoints import source as source_end
from tensorstore_py._display.info import columns, rows, times
from tensorstore_py._display.markup import element
from tensorstore_py._display.page import page
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.path import join, normalised
from tensorstore_py._index import d
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.units import Unit
from tensorstore_py.errors import MismatchError, NotFoundError, OutOfRangeError, SpecError
from tensorstore_py.multiscale.metadata import ImageMetadata, ome_members, parse_image
from tensorstore_py.multiscale.selection import physical_region, wanted_level

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._api.view import View
    from tensorstore_py._conversion.endpoints import FoundEndpoint
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context
    from tensorstore_py.multiscale.axes import Axis

__all__ = ["Levels", "Multiscale", "found_image", "open"]


class Levels(Sequence["TensorStore"]):
    """The levels of an image, the largest first; each is opened when it is first asked for."""

    __slots__ = ("_image",)

    def __init__(self, image: Multiscale) -> None:
        self._image = image

    def __len__(self) -> int:
        return len(self._image.metadata.datasets)

    @overload
    def __getitem__(self, number: int) -> TensorStore: ...
    @overload
    def __getitem__(self, number: slice) -> list[TensorStore]: ...
    def __getitem__(self, number: int | slice) -> TensorStore | list[TensorStore]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        return self._image.level(number).result()

    def __iter__(self) -> Iterator[TensorStore]:
        futures = [self._image.level(number) for number in range(len(self))]
        return (future.result() for future in futures)

    def __repr__(self) -> str:
        paths = ", ".join(dataset.path for dataset in self._image.metadata.datasets)
        return f"<{len(self)} levels: {paths}>"


class Multiscale:
    """An OME-Zarr image, made by `ts.multiscale.open` and `ts.pyramid`.

    Attributes:
        group: where it is.
        metadata: what it says of itself.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> pixels = np.arange(600 * 800, dtype="uint16").reshape(600, 800)
        >>> image = ts.pyramid(
        ...     pixels, "memory://cells.zarr/", axes="yx", levels=3, pixel_size=0.5, units="um"
        ... ).result()
        >>> image
        Multiscale('memory://cells.zarr/', version='0.5', axes='yx', levels=3)
        >>> [level.shape for level in image.levels], image.scale(1)
        ([(600, 800), (300, 400), (150, 200)], {'y': 1.0, 'x': 1.0})
        >>> image.at(1.5).result().shape
        (300, 400)
    """

    __slots__ = ("_arrays", "group", "metadata")

    def __init__(self, group: Group, metadata: ImageMetadata) -> None:
        self.group = group
        self.metadata = metadata
        self._arrays: dict[int, TensorStore] = {}

    @property
    def levels(self) -> Levels:
        """The arrays, the largest first; opened when they are first asked for."""
        return Levels(self)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes: name, type and unit."""
        return self.metadata.axes

    @property
    def version(self) -> str:
        """The version of OME-Zarr."""
        return self.metadata.version

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self.metadata.name

    @property
    def omero(self) -> Mapping[str, Any] | None:
        """How to show it, as its metadata says; None: it says nothing."""
        return self.metadata.omero

    @property
    def units(self) -> dict[str, str | None]:
        """The unit along each axis."""
        return {axis.name: axis.unit for axis in self.axes}

    def scale(self, level: int = 0) -> dict[str, float]:
        """The size of a pixel of a level, along each axis."""
        return self._by_axis(self.metadata.datasets[level].scale)

    def translation(self, level: int = 0) -> dict[str, float]:
        """Where the centre of the first pixel of a level is, along each axis."""
        return self._by_axis(self.metadata.datasets[level].translation)

    def dimension_units(self, level: int = 0) -> tuple[Unit | None, ...]:
        """The same as `ts.Unit`, with the size of a pixel; None along axes without unit."""
        return tuple(
            None if axis.unit is None else Unit(size, axis.unit)
            for axis, size in zip(self.axes, self.metadata.datasets[level].scale, strict=True)
        )

    def level(self, number: int) -> Future[TensorStore]:
        """Open the array of a level; its dimensions are labelled with the axes' names.

        Raises:
            OutOfRangeError: (at once) there is no such level.
            NotFoundError: (by the Future) the array is not there.
            MismatchError: (by the Future) it has another number of dimensions than the image.
        """
        count = len(self.metadata.datasets)
        if not -count <= number < count:
            raise OutOfRangeError(f"there is no level {number}; there are {count}")
        number %= count

        async def body() -> TensorStore:
            if number not in self._arrays:
                self._arrays[number] = await self._opened(number)
            return self._arrays[number]

        return self.group._begin(body)

    def at(
        self, pixel_size: object = None, *, shape: Sequence[int] | None = None
    ) -> Future[TensorStore]:
        """Open the smallest level that is good enough.

        Args:
            pixel_size: how large pixels may be, along the axes of space, or by axis name.
            shape: how large the level has to be at least, along each axis.

        Raises:
            SpecError: (at once) none of both is given, or an axis that there is not.

        If no level is good enough it is the largest.
        """
        if (pixel_size is None) == (shape is None):
            raise SpecError("give either pixel_size or shape")

        async def body() -> TensorStore:
            whole = await self._kept(0) if shape is not None else None
            extents = None if whole is None else whole.shape
            return await self._kept(wanted_level(self.metadata, pixel_size, shape, extents))

        if pixel_size is not None:
            wanted_level(self.metadata, pixel_size, None, None)
        return self.group._begin(body)

    def sel(self, level: int = 0, **ranges: slice | float) -> Future[TensorStore]:
        """The part of a level that lies in physical coordinates, in the axes' units.

        Args:
            level: which.
            **ranges: by axis name: `slice(10.0, 20.0)` is all pixels whose centres lie there, a
                number is the nearest pixel, along which no dimension is left.

        Raises:
            SpecError: (at once) an axis that there is not.
            OutOfRangeError: (by the Future) nothing of the level lies there.
        """
        for name in ranges:
            if name not in self.units:
                raise SpecError(f"there is no axis {name!r}; there are {list(self.units)}", (name,))

        async def body() -> TensorStore:
            store = await self._kept(level)
            return physical_region(store, self.scale(level), self.translation(level), ranges)

        return self.group._begin(body)

    def label_names(self) -> Future[list[str]]:
        """The names of its label images; `open(image, path="labels/cells")` opens one."""

        async def body() -> list[str]:
            group = self.group
            node = await read_node(group._tree, join(group._path, "labels"), group._known)
            if node is None:
                return []
            attributes = await group._group(node).attrs._file.read()
            _, members, path = ome_members(attributes)
            found = members.get("labels", [])
            if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
                raise SpecError("expected a list of names", ("labels", *path, "labels"))
            return found

        return self.group._begin(body)

    @property
    def labels(self) -> list[str]:
        """`label_names().result()`."""
        return self.label_names().result()

    def view(self, *, port: int = 0, height: int = 600) -> View:
        """Show it in a browser, each zoom from the level that suits; see `TensorStore.view`."""
        return self.group.view(port=port, height=height)

    def __len__(self) -> int:
        return len(self.metadata.datasets)

    def __repr__(self) -> str:
        where = repr(self.group).removeprefix("Group(").partition(", ")[0]
        names = "".join(axis.name for axis in self.axes)
        return f"Multiscale({where}, version={self.version!r}, axes={names!r}, levels={len(self)})"

    def _repr_html_(self) -> str:
        where = repr(self.group).removeprefix("Group(").partition(", ")[0].strip("'")
        units = ", ".join(
            f"{axis.name} ({axis.unit or axis.type or 'no unit'})" for axis in self.axes
        )
        facts = [("Name", self.name), ("Version", f"OME-Zarr {self.version}"), ("Axes", units)]
        lines = []
        for number, dataset in enumerate(self.metadata.datasets):
            store = self._arrays.get(number)
            shape = "not opened" if store is None else times(store.shape)
            lines.append(
                (dataset.path, shape, times_of(dataset.scale), times_of(dataset.translation))
            )
        table = columns(("Level", "Shape", "Pixel size", "Translation"), lines)
        shown = rows([(name, value) for name, value in facts if value is not None])
        hint = element("div", element("code", ".levels[0]"), " opens a level")
        return page("Multiscale", where, shown, table, hint)

    def _by_axis(self, values: Sequence[float]) -> dict[str, float]:
        return {axis.name: value for axis, value in zip(self.axes, values, strict=True)}

    async def _kept(self, number: int) -> TensorStore:
        if number not in self._arrays:
            self._arrays[number] = await self._opened(number)
        return self._arrays[number]

    async def _opened(self, number: int) -> TensorStore:
        group, path = self.group, self.metadata.datasets[number].path
        tree, where = group._tree, join(group._path, path)
        node = await read_node(tree, where, group._known)
        if node is None or node.kind != "array":
            raise NotFoundError(
                f'level {number} of the image, "{path}", is not there: no array at '
                f"{tree.describe(where)}"
            )
        life = Lifetime("TensorStore")
        group._life.include(life)
        store = await open_array(group._place, node, group._transaction, {}, life)
        names = tuple(axis.name for axis in self.axes)
        if store.rank != len(names):
            raise MismatchError(
                f'level {number} of the image, "{path}", has {store.rank} dimensions, but its '
                f"metadata says {len(names)} axes {list(names)}"
            )
        return store if store.domain.labels == names else store[d[:].label[names]]


def times_of(values: Sequence[float]) -> str:
    """Numbers along the axes, for people."""
    return " × ".join(f"{value:g}" for value in values)


def image_of(group: Group, attributes: Mapping[str, object]) -> Multiscale:
    """The image that a group is.

    Raises:
        NotFoundError, SpecError, UnsupportedError: as `parse_image`.
    """
    return Multiscale(group, parse_image(attributes, group._tree.describe(group._path)))


def open(  # it opens
    source: object, *, path: str = "", context: Context | None = None
) -> Future[Multiscale]:
    """Open an OME-Zarr image: what it is, and its levels, which are opened when they are used.

    Costs what it costs to open a group, and nothing for its levels; nothing more if metadata is
    consolidated. Versions 0.1 to 0.5 are read.

    Args:
        source: a URL, a local path (`os.PathLike`), a spec, a `KvStore`, a `Group`, or a
            `Multiscale`.
        path: of the image below that, such as `"labels/cells"`, or `"A/1/0"` in a plate.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: (at once) the source is wrong; (by the Future) metadata is; has the JSON path.
        NotFoundError: (by the Future) there is no image, and what there is instead.
        UnsupportedError: (by the Future) a version that is not known here.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> store = ts.KvStore.open("memory://").result()
        >>> _ = ts.pyramid(np.ones((40, 600, 600), "uint8"), store, axes="zyx").result()
        >>> image = ts.multiscale.open(store).result()
        >>> image.version, len(image.levels), image.levels[1].domain.labels
        ('0.5', 3, ('z', 'y', 'x'))
    """
    inner = normalised(path)
    if isinstance(source, Multiscale):
        source = source.group
    end = source_end(source, as_context(context))

    async def body() -> Multiscale:
        try:
            found = await end.find()
        except NotFoundError as error:
            problem = str(error).replace("nothing to copy", "there is no image")
            raise NotFoundError(problem) from None
        return await found_image(found, inner)

    return start(end.inline, body)


async def found_image(found: FoundEndpoint, path: str = "") -> Multiscale:
    """The image at a place that was found, or below it.

    Raises:
        MismatchError: an array is there.
        NotFoundError, SpecError, UnsupportedError: as `open`.
    """
    tree, place, node = found.tree, found.place, found.node
    if tree is None or node is None or place is None:
        raise MismatchError("an array is no image; open the group that it is in")
    known = node.consolidated
    if path:
        where = join(found.path, path)
        inner = await read_node(tree, where, known)
        if inner is None:
            raise NotFoundError(f'no image is at "/{path}", at {tree.describe(where)}')
        node = inner
    if node.kind == "array":
        raise MismatchError(
            f"an array, which is no image by itself, is at {tree.describe(node.path)}; open the "
            "group that it is in"
        )
    group = Group._of(place, node.path, found.transaction, known, tree)
    return await _with_scales(image_of(group, await node_attributes(tree, node)))


async def _with_scales(image: Multiscale) -> Multiscale:
    """Images before version 0.4 do not say their scales: extents do."""
    metadata = image.metadata
    if metadata.known_scales:
        return image
    shapes = [(await image._kept(number)).shape for number in range(len(metadata.datasets))]
    datasets = tuple(
        dataset._replace(
            scale=tuple(
                float(round(whole / extent)) if extent else 1.0
                for whole, extent in zip(shapes[0], shape, strict=True)
            )
        )
        for dataset, shape in zip(metadata.datasets, shapes, strict=True)
    )
    image.metadata = metadata._replace(datasets=datasets, known_scales=True)
    return image
