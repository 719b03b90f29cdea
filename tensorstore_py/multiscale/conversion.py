"""`ts.multiscale.convert`: images, plates and collections of one version of OME-Zarr in another.

Groups are made first, arrays next, and what makes a group an image last, the outermost group's at
the very end: so no reader takes what is not finished for a whole image. Where the other version of
Zarr has words for how chunks are encoded, chunks stay what they are; whether that is so is checked
when they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.blockwise import ArrayCopy, each_block, selected
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import NewArray
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._conversion.array_copy import ChunkCopy
from tensorstore_py._conversion.endpoints import destination, node_attributes, open_source
from tensorstore_py._conversion.endpoints import source as source_end
from tensorstore_py._conversion.target_metadata import RequestedMetadata, target_metadata
from tensorstore_py._conversion.translation import same_array
from tensorstore_py._conversion.versions import (
    array_in_version3,
    codec_in_version2,
    plain_attributes,
)
from tensorstore_py._hierarchy.changes import consolidate, create_group, make_parents
from tensorstore_py._hierarchy.document import AttributesFile
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.path import join
from tensorstore_py._hierarchy.walk import Walk
from tensorstore_py._index import d, identity
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._runtime.progress import PartReporter, Reporter
from tensorstore_py.errors import (
    AlreadyExistsError,
    MismatchError,
    NotFoundError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.multiscale.image import Multiscale
from tensorstore_py.multiscale.making import IfExists
from tensorstore_py.multiscale.metadata import (
    VERSIONS,
    in_version,
    ome_members,
    parse_image,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    import numpy as np

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.endpoints import FoundEndpoint, SourceArray
    from tensorstore_py._hierarchy.node import Node
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

__all__ = ["convert", "encoded_anew", "with_same_chunks"]


#: Codecs of version 3 whose bytes are those of version 2's codec of that name.
_SAME: Final = frozenset({"gzip", "zstd", "blosc"})


def with_same_chunks(source: SourceArray, to: int, names: tuple[str, ...]) -> JsonObject | None:
    """The metadata of a copy that has the source's chunks; None: there is none."""
    document = source.document
    if document is None:
        return None
    if to == 3:
        try:
            found = array_in_version3(document, source.attributes)
        except SpecError:
            return None
        if names and not found.get("dimension_names"):
            found["dimension_names"] = list(names)
        return {name: value for name, value in found.items() if name != "attributes"}
    return _in_version2(source, document)


def _in_version2(source: SourceArray, document: JsonObject) -> JsonObject | None:
    codecs, grid = document.get("codecs"), document.get("chunk_grid")
    if not isinstance(codecs, list) or not isinstance(grid, Mapping):
        return None
    named = [each if isinstance(each, Mapping) else {"name": each} for each in codecs]
    first, rest = named[:1], named[1:]
    plain = bool(first) and first[0].get("name") == "bytes" and len(rest) <= 1
    endian = (first[0].get("configuration") or {}).get("endian") if first else None
    dtype = source.array.dtype.array_dtype
    if (
        not plain
        or grid.get("name") != "regular"
        or dtype.kind not in "biuf"
        or dtype.isbuiltin != 1
        or endian == "big"
        or any(each.get("name") not in _SAME for each in rest)
    ):
        return None
    chunks = grid["configuration"]["chunk_shape"]
    return {
        "zarr_format": 2,
        "shape": list(source.shape),
        "chunks": list(chunks),
        "dtype": dtype.newbyteorder("<").str,
        "fill_value": document.get("fill_value"),
        "filters": None,
        "order": "C",
        "dimension_separator": "/",
        **codec_in_version2(rest),
    }


def encoded_anew(
    source: SourceArray, form: HierarchyFormat, names: tuple[str, ...]
) -> tuple[dict[str, object], JsonObject]:
    """The options of a new array, and its attributes, whose chunks are encoded anew."""
    if names and source.array.domain.labels != names and form.zarr_format == 3:
        source = source._replace(array=source.array[d[:].label[names]])
    found = target_metadata(source, form, RequestedMetadata())
    options = dict(found.options)
    if form.zarr_format == 2:
        metadata = options.get("metadata")
        stated = dict(metadata) if isinstance(metadata, Mapping) else {}
        options["metadata"] = {**stated, "dimension_separator": "/"}
        options.pop("dimension_units", None)
        labels = source.array.domain.labels
        if any(labels):
            options["domain"] = source.array.domain.label[("",) * len(labels)]
    return options, found.attributes


def attributes_in(source: SourceArray, to: int) -> JsonObject:
    """The attributes of a copy."""
    if to == 3:
        return plain_attributes(source.attributes, len(source.shape))
    return {name: value for name, value in source.attributes.items() if name != "dimension_units"}


def convert(
    source: object,
    target: object,
    *,
    version: str = "0.5",
    if_exists: IfExists = "raise",
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[Group]:
    """Make a copy in another version of OME-Zarr: of an image, a plate, or a collection of images.

    Everything in it comes along: levels, label images, wells, and what is none of OME-Zarr's
    business. Chunks are copied as they are stored, without decoding them, unless they are in shards
    or encoded in a way that the other version of Zarr has no words for.

    Args:
        source: a URL, a local path (`os.PathLike`), a spec, a `KvStore`, a `Group` or a
            `Multiscale`.
        target: the same; it is made.
        version: `"0.5"`, which is stored as Zarr version 3, or `"0.4"`, as version 2.
        if_exists: what to do about arrays that are there: `"raise"`, or `"replace"`.
        progress: called with a `Progress`, of bytes, chunks and arrays; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of the new group.

    Raises:
        SpecError: (at once) an argument is wrong; (by the Future) metadata is; has the JSON path.
        NotFoundError: (by the Future) there is no OME-Zarr group.
        MismatchError: (by the Future) it is of that version already.
        UnsupportedError: (by the Future) it is of a version before 0.4.
        AlreadyExistsError: (by the Future) an array is at the target.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> old = ts.pyramid(
        ...     np.ones((300, 300)), "memory://old/", axes="yx", version="0.4"
        ... ).result()
        >>> new = ts.multiscale.convert(old, "memory://new/", version="0.5").result()
        >>> new.attrs["ome"]["version"], ts.multiscale.open(new).result().levels[0].dtype.name
        ('0.5', 'float64')
    """
    if version not in VERSIONS:
        raise SpecError(f'expected "0.4" or "0.5", not {version!r}', ("version",))
    if if_exists not in get_args(IfExists):
        raise SpecError(f'expected "raise" or "replace", not {if_exists!r}', ("if_exists",))
    shared = as_context(context)
    from_ = source_end(source.group if isinstance(source, Multiscale) else source, shared)
    to = destination(target, shared, VERSIONS[version])
    reporter = Reporter(progress, "convert")
    inline = from_.inline and to.inline

    async def body() -> Group:
        found = await within(inline, from_.inline, from_.find)
        tree = await within(inline, from_.inline, lambda: _tree(found, version))
        there = await within(inline, to.inline, lambda: to.find(None))
        work = _Conversion(inline, to.inline, there, version, if_exists)
        return await work.run(tree, reporter)

    return reporter.until(start(inline, body, on_interrupt=OnInterrupt.CANCEL))


def _read(driver: Driver, box: tuple[tuple[int, int], ...]) -> Coroutine[Any, Any, Array]:
    return driver.read(identity(driver.domain.mark_bounds_implicit[False])[selected(box)], "C")


class _Group(NamedTuple):
    path: str
    attributes: JsonObject
    consolidated: bool


class _Tree(NamedTuple):
    """What is converted.

    Attributes:
        groups: by path below what is converted, the outermost first.
        arrays: those of images and all others.
        names: of the dimensions of arrays of images, by path.
    """

    groups: list[_Group]
    arrays: list[SourceArray]
    names: dict[str, tuple[str, ...]]


async def _tree(found: FoundEndpoint, version: str) -> _Tree:
    """What there is to be converted.

    Raises:
        NotFoundError, MismatchError, UnsupportedError, SpecError: as `convert`.
    """
    tree, root = found.tree, found.node
    if tree is None or root is None or root.kind != "group":
        raise NotFoundError("an array is there, which is no image; convert the group that it is in")
    where = tree.describe(found.path)
    nodes: list[Node] = [root]
    walk = Walk(tree, found.path, root.consolidated, None)
    while (more := await walk.step()) is not None:
        nodes += more
    groups: list[_Group] = []
    arrays: list[SourceArray] = []
    names: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        path = node.path[len(found.path) :].lstrip("/")
        if node.kind == "array":
            arrays.append(await open_source(found, node, path))
            continue
        attributes = await node_attributes(tree, node)
        present = version_of(attributes)
        if not path:
            _check_root(present, version, where)
        known = node.consolidated is not None and not path
        groups.append(_Group(path, attributes, known))
        if "multiscales" in ome_members(attributes)[1]:
            image = parse_image(attributes, tree.describe(node.path))
            labels = tuple(axis.name for axis in image.axes)
            names.update((join(path, each.path), labels) for each in image.datasets)
    return _Tree(groups, arrays, names)


def _check_root(present: str | None, version: str, where: str) -> None:
    if present is None:
        raise NotFoundError(f"no OME-Zarr metadata is at {where}")
    if present == version:
        raise MismatchError(f"{where} is of version {version} already; ts.copy copies it")
    if present not in VERSIONS:
        raise UnsupportedError(
            f"{where} is of version {present} of OME-Zarr; 0.4 and 0.5 can be converted"
        )


class _Conversion(NamedTuple):
    """The doing."""

    inline: bool
    there: bool
    to: FoundEndpoint
    version: str
    if_exists: IfExists

    async def run(self, found: _Tree, reporter: Reporter) -> Group:
        """Convert everything."""
        tree, place = self.to.tree, self.to.place
        if tree is None or place is None:
            raise MismatchError("the target is an array; name a place for a group")
        size = sum(each.array.nbytes for each in found.arrays)
        reporter.begin(size, 0, len(found.arrays))
        await self._at_target(self._make_groups, found)
        for array in found.arrays:
            await self._copy(array, found.names.get(array.path, ()), reporter)
            reporter.advance(0, 0, 1)
        await self._at_target(self._tell, found)
        return Group._of(place, self.to.path, self.to.transaction, None, tree)

    async def _at_target(
        self, work: Callable[[_Tree], Coroutine[Any, Any, None]], found: _Tree
    ) -> None:
        await within(self.inline, self.there, lambda: work(found))

    async def _make_groups(self, found: _Tree) -> None:
        tree = self.to.tree
        assert tree is not None
        for array in found.arrays:
            where = join(self.to.path, array.path)
            node = await read_node(tree, where)
            if node is not None and self.if_exists != "replace":
                raise AlreadyExistsError(
                    f'"/{array.path}" exists already, at {tree.describe(where)}; pass '
                    'if_exists="replace" to replace it'
                )
            if node is not None:
                await tree.store.delete_range(KeyRange.prefix(tree.below(where)))
        for group in found.groups:
            where = join(self.to.path, group.path)
            await make_parents(tree, where)
            await create_group(tree, where, {}, may_exist=True)

    async def _tell(self, found: _Tree) -> None:
        """Store attributes, from the inside out."""
        tree = self.to.tree
        assert tree is not None
        for group in sorted(found.groups, key=lambda each: -each.path.count("/") - bool(each.path)):
            new = in_version(group.attributes, self.version)
            file = AttributesFile(tree.store, tree.below(join(self.to.path, group.path)), tree.form)
            await file.change(lambda _, new=new: new)  # type: ignore[misc]
            if group.consolidated and tree.form.consolidated_key is not None:
                await consolidate(tree, join(self.to.path, group.path))

    async def _copy(self, source: SourceArray, names: tuple[str, ...], reporter: Reporter) -> None:
        """Copy an array, its chunks as they are if that is possible."""
        tree = self.to.tree
        assert tree is not None
        zarr_format = VERSIONS[self.version]
        document = with_same_chunks(source, zarr_format, names)
        if document is not None:
            options: dict[str, object] = {"metadata": document, "dtype": source.array.dtype}
            attributes = attributes_in(source, zarr_format)
            target = await self._made(source, options, attributes, (SpecError, UnsupportedError))
            if target is not None and await self._copied_as_it_is(source, target, reporter):
                return
            where = tree.below(join(self.to.path, source.path))
            await within(
                self.inline, self.there, lambda: tree.store.delete_range(KeyRange.prefix(where))
            )
        options, attributes = encoded_anew(source, tree.form, names)
        target = await self._made(source, options, attributes, ())
        assert target is not None
        copy = ArrayCopy.of(
            source.driver, source.array._transform, target._driver, target._transform
        )
        await self._each(copy, reporter)

    async def _copied_as_it_is(
        self, source: SourceArray, target: TensorStore, reporter: Reporter
    ) -> bool:
        """Copy stored chunks; whether they mean the same there."""
        here, there = source.driver, target._driver
        if not isinstance(here, ChunkedDriver) or not isinstance(there, ChunkedDriver):
            return False
        if (
            here.schema.chunk_layout.write_chunk.shape
            != there.schema.chunk_layout.write_chunk.shape
        ):
            return False
        await self._each(ChunkCopy.of(here, there), reporter)
        try:
            if await same_array(source.array, target, chunks=False):
                return False
            return await self._same_ends(here, there)
        except TensorStoreError:
            return False

    async def _same_ends(self, here: Driver, there: Driver) -> bool:
        """Whether the first chunk and the last one mean the same in both arrays."""
        shape = here.domain.shape
        sizes = here.schema.chunk_layout.read_chunk.shape or shape
        last = [
            max(0, extent - 1) // (size or 1) * (size or 1)
            for extent, size in zip(shape, sizes, strict=True)
        ]
        for lows in ([0] * len(shape), last):
            box = tuple(
                (low, min(low + (size or extent), extent))
                for low, size, extent in zip(lows, sizes, shape, strict=True)
            )
            one, other = [
                await within(self.inline, driver.inline, partial(_read, driver, box))
                for driver in (here, there)
            ]
            if one.tobytes() != other.tobytes():
                return False
        return True

    async def _each(self, copy: ArrayCopy | ChunkCopy, reporter: Reporter) -> None:
        await each_block(
            self.inline,
            copy.blocks,
            copy.run,
            item_bytes=copy.item_bytes,
            memory=copy.memory,
            reporter=PartReporter(reporter),
            progress_bytes=copy.progress_bytes,
        )

    async def _made(
        self,
        source: SourceArray,
        options: dict[str, object],
        attributes: JsonObject,
        but: tuple[type[TensorStoreError], ...],
    ) -> TensorStore | None:
        """The new array; None if it cannot be, by one of some errors."""
        tree, place = self.to.tree, self.to.place
        assert tree is not None
        assert place is not None
        path = join(self.to.path, source.path)
        try:
            new = NewArray.of(place, path, attributes, options, may_exist=False, deletes=False)
        except but:
            return None

        async def make() -> TensorStore:
            return await new.make(tree, self.to.path, self.to.transaction, Lifetime("TensorStore"))

        return await within(self.inline, self.there, make)
