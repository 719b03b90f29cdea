"""`ts.pyramid`: an OME-Zarr image with all its levels, made in one pass.

What a caller says is checked here, where the call is; what the source says besides is found by the
Future. How levels are computed is `_compute`'s matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import each_block, limits
from tensorstore_py._api.copy import check_types
from tensorstore_py._api.downsample import DownsampleMethod
from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._compute.pyramid import PyramidPart
from tensorstore_py._compute.pyramid_steps import pyramid_steps
from tensorstore_py._conversion.ends import destination
from tensorstore_py._index import d, identity, propagate_bounds
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.progress import Told, ToldOfPart
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.drivers.downsample.methods import check_method
from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.multiscale.axes import as_axes, by_axis, full_unit
from tensorstore_py.multiscale.forms import level_forms
from tensorstore_py.multiscale.image import Multiscale
from tensorstore_py.multiscale.making import IfExists, NewImage, store_metadata
from tensorstore_py.multiscale.metadata import Dataset, ImageMetadata
from tensorstore_py.multiscale.omero import omero_of, with_windows
from tensorstore_py.multiscale.sources import pyramid_source
from tensorstore_py.multiscale.versions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py.multiscale.axes import Axis
    from tensorstore_py.multiscale.forms import Forms
    from tensorstore_py.multiscale.sources import PyramidSource

    #: One value for all axes of space, one for each axis in turn, or by axis name.
    PerAxis = float | Sequence[float] | Mapping[str, float]
    Extents = int | Sequence[int] | Mapping[str, int]

__all__ = ["pyramid"]

Version = Literal["0.4", "0.5"]


def pyramid(
    source: object,
    target: object,
    axes: str | Iterable[str | Axis | Mapping[str, str]] | None = None,
    *,
    levels: int | None = None,
    scale: Extents | Sequence[Extents] = 2,
    method: DownsampleMethod = "mean",
    version: Version = "0.5",
    pixel_size: PerAxis | None = None,
    units: str | Sequence[str | None] | Mapping[str, str] | None = None,
    translation: PerAxis | None = None,
    chunks: Extents | None = None,
    shards: Extents | None = None,
    codec: object = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    omero: Mapping[str, object] | Sequence[str] | bool | None = None,
    if_exists: IfExists = "raise",
    memory: int | None = None,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[Multiscale]:
    """Make an OME-Zarr image: the source, and smaller and smaller levels of it, in one pass.

    Each chunk of the source is decoded once, if memory has room for whole chunks of the source and
    of the target together. Each level is what `ts.downsample` makes of the level above it; what is
    left over at the end of an axis makes one more pixel. The last levels, for which regions of the
    source would be too large to be shared out, are made of a level that was just written.

    Args:
        source: whatever `ts.open` takes, a `TensorStore`, an array of NumPy, dask or whoever else
            has a shape, a type and slices, or an image, whose largest level is taken, with its
            axes, pixel size, units, name and omero.
        target: where the image is made: a URL, a local path, a spec, a `KvStore` or a `Group`.
        axes: their names, such as `"zyx"`; or mappings with name, type and unit. By default the
            source's labels, or the last of `"tczyx"`.
        levels: how many, the first included; by default until the last is at most 256 pixels, or
            one chunk, along the axes that become smaller.
        scale: how many pixels make one of the next level: a number for the axes of space, one for
            each axis, or by name; or a list of these, one for each level but the first.
        method: how a pixel is made of many, as for `ts.downsample`; `"mode"` or `"stride"` for
            label images.
        version: of OME-Zarr; 0.5 is stored as Zarr version 3, 0.4 as version 2.
        pixel_size: of the first level. By default that of the source's units, or 1.
        units: of the axes of space, such as `"um"` or `"micrometer"`, of each axis, or by name.
        translation: where the first pixel's centre is. By default that of the source: a view that
            begins at another position than 0 stays where it is.
        chunks: extents of chunks, along the axes of space, each axis, or by name; -1: all of it.
            By default the source's chunks, or parts or multiples of these.
        shards: extents of shards (version 0.5), likewise; by default there are none.
        codec: how chunks are encoded: a `ts.CodecSpec`, its JSON, or a name such as `"zstd"`. By
            default blosc with lz4.
        dtype: data type, to which every value must convert without loss.
        name: of the image.
        omero: how to show it: names of channels, or True; windows are then those of the data. Or
            the metadata itself.
        if_exists: what to do about levels that are there: `"raise"` or `"replace"`.
        memory: how many bytes to use at most, about; by default the context's limit, and little of
            it. Chunks of the target that are larger are nevertheless made.
        progress: called with a `Progress`; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of the `ts.multiscale.Multiscale`.

    Raises:
        SpecError: (at once, or by the Future) an argument is wrong; names it.
        NotFoundError: (by the Future) nothing is at the source.
        AlreadyExistsError: (by the Future) a level is at the target.
        MismatchError: (by the Future) elements cannot be converted without loss; the target is an
            array.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> volume = np.arange(40 * 600 * 600, dtype="uint32").reshape(40, 600, 600)
        >>> image = ts.pyramid(
        ...     volume, "memory://volume/", axes="zyx", pixel_size=(2, 0.5, 0.5), units="um"
        ... ).result()
        >>> [level.shape for level in image.levels]
        [(40, 600, 600), (20, 300, 300), (10, 150, 150)]
        >>> image.scale(1), image.translation(1)
        ({'z': 4.0, 'y': 1.0, 'x': 1.0}, {'z': 1.0, 'y': 0.25, 'x': 0.25})
    """
    if version not in VERSIONS:
        raise SpecError(f'expected "0.4" or "0.5", not {version!r}', ("version",))
    if method not in get_args(DownsampleMethod):
        hint = did_you_mean(str(method), get_args(DownsampleMethod))
        raise SpecError(f"there is no method {method!r}{hint}", ("method",))
    if if_exists not in get_args(IfExists):
        raise SpecError(f'expected "raise" or "replace", not {if_exists!r}', ("if_exists",))
    if shards is not None and version == "0.4":
        raise SpecError('version 0.4 has no shards; leave it out, or say version="0.5"',
                        ("shards",))  # fmt: skip
    shared = _limited(as_context(context), memory)
    source_inline, find = pyramid_source(source, shared)
    to = destination(target, shared, VERSIONS[version])
    asked = _Asked(axes, levels, scale, method, version, pixel_size, units, translation, chunks,
                   shards, codec, dtype, name, omero)  # fmt: skip
    told = Told(progress, "pyramid")
    inline = source_inline and to.inline

    async def body() -> Multiscale:
        found = await within(inline, source_inline, find)
        new = asked.image(found)
        async def make():
            return await new.make(await to.find(None), if_exists)
        group, stores = await within(inline, to.inline, make)
        await _filled(inline, found.store, stores, new.forms, method, memory, told)
        image = Multiscale(group, new.metadata)
        if omero is not None and new.metadata.omero is not None:
            await within(inline, to.inline, lambda: _window(image, stores[-1], new))
        return image

    return told.until(start(inline, body, when_left=WhenLeft.STOPS))


class _Asked(NamedTuple):
    """What a caller asks for."""

    axes: object
    levels: int | None
    scale: object
    method: str
    version: str
    pixel_size: object
    units: object
    translation: object
    chunks: object
    shards: object
    codec: object
    dtype: DTypeLike | None
    name: str | None
    omero: object

    def image(self, source: PyramidSource) -> NewImage:
        """The image that is to be made of a source."""
        store, present = source
        data_type = store.dtype if self.dtype is None else DType(self.dtype)
        check_types(store.dtype, data_type)
        check_method(self.method, data_type)
        axes, size, moved = self._placed(source)
        forms = level_forms(
            tuple(store.shape), axes, data_type.array_dtype.itemsize,
            store.chunk_layout.read_chunk.shape,
            levels=self.levels, scale=self.scale, chunks=self.chunks, shards=self.shards,
        )  # fmt: skip
        omero = None if present is None else present.omero
        if self.omero is not None and self.omero is not False:
            omero = omero_of(self.omero, axes, tuple(store.shape))
        name = self.name if self.name is not None or present is None else present.name
        metadata = ImageMetadata(
            self.version, axes, _datasets(forms, size, moved, self.method), name,
            self.method, omero,
        )  # fmt: skip
        more = {"metadata": _described(self.method, forms)}
        return NewImage(metadata, more, forms, data_type, store.fill_value, self.codec)

    def _placed(
        self, source: PyramidSource
    ) -> tuple[tuple[Axis, ...], tuple[float, ...], tuple[float, ...]]:
        """The axes, the size of a pixel, and where the first one is."""
        store, present = source
        rank, labels = store.rank, store.domain.labels
        if self.axes is not None:
            axes = as_axes(self.axes, rank)
        elif present is not None:
            axes = present.axes
        else:
            axes = as_axes(labels if all(labels) else "tczyx"[-rank:], rank)
        size = (1.0,) * rank
        moved: tuple[float, ...] = (0.0,) * rank
        if present is not None:
            size, moved = present.datasets[0].scale, present.datasets[0].translation
        else:
            stored = [None if unit is None else unit for unit in store.dimension_units]
            size = tuple(1.0 if unit is None else unit.multiplier for unit in stored)
            axes = tuple(
                axis if axis.unit or unit is None or not unit.base_unit
                else axis._replace(unit=full_unit(unit.base_unit))
                for axis, unit in zip(axes, stored, strict=True)
            )  # fmt: skip
        names = by_axis(self.units, axes, "units", tuple(axis.unit for axis in axes))
        for unit in names:
            if unit is not None and not isinstance(unit, str):
                raise SpecError(f"expected names of units, but found {unit!r:.60}", ("units",))
        axes = tuple(
            axis._replace(unit=full_unit(unit))  # type: ignore[arg-type]  # it is a text
            for axis, unit in zip(axes, names, strict=True)
        )
        size = _numbers(by_axis(self.pixel_size, axes, "pixel_size", size), "pixel_size")
        if not all(each > 0 for each in size):
            raise SpecError("expected positive numbers", ("pixel_size",))
        origin = store.domain.inclusive_min
        moved = tuple(a + low * each for a, low, each in zip(moved, origin, size, strict=True))
        given = by_axis(self.translation, axes, "translation", moved)
        return axes, size, _numbers(given, "translation")


def _numbers(given: tuple[object, ...], name: str) -> tuple[float, ...]:
    for each in given:
        if not isinstance(each, int | float | np.integer | np.floating) or isinstance(each, bool):
            raise SpecError(f"expected numbers, but found {each!r:.60}", (name,))
    return tuple(float(each) for each in given)  # type: ignore[arg-type]  # they are numbers


def _datasets(
    forms: Forms, size: tuple[float, ...], moved: tuple[float, ...], method: str
) -> tuple[Dataset, ...]:
    """The levels, with where their pixels are.

    A pixel that stands for several lies in the middle of them, but for the method "stride", where
    it is the first of them.
    """
    return tuple(
        Dataset(
            str(number),
            tuple(each * factor for each, factor in zip(size, factors, strict=True)),
            tuple(
                at + (0.0 if method == "stride" else (factor - 1) / 2 * each)
                for at, each, factor in zip(moved, size, factors, strict=True)
            ),
        )
        for number, factors in enumerate(forms.factors)
    )


def _described(method: str, forms: Forms) -> dict[str, Any]:
    """How levels were made, for people."""
    return {
        "description": f"each level is the {method} of blocks of the level above it",
        "method": "tensorstore_py.pyramid",
        "kwargs": {"method": method, "scale": [list(form.factors) for form in forms.levels[1:]]},
    }


def _limited(context: Context, memory: int | None) -> Context:
    if memory is None:
        return context
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 1:
        raise SpecError(f"expected a number of bytes, not {memory!r}", ("memory",))
    return Context({"memory_limit": {"limit_bytes": memory}}, context)


async def _filled(
    inline: bool,
    source: TensorStore,
    stores: list[TensorStore],
    forms: Forms,
    method: str,
    memory: int | None,
    told: Told,
) -> None:
    """Compute and store all levels, step by step."""
    base = source._driver
    seen = propagate_bounds(base.domain.mark_bounds_implicit[False], source._transform)
    seen = seen[d[:].translate_to[0]] if seen.input_rank else seen
    first = stores[0]._driver
    item_bytes = first.data_type.array_dtype.itemsize
    sizes = limits(item_bytes, first.memory)
    if memory is not None:
        sizes["most"] = max(1, memory // 4 // item_bytes)
    whole = identity(first.domain.mark_bounds_implicit[False])
    blocks = Blocks.of_copy(first, whole, base, seen, least=1, most=sizes["most"])
    leaf = next((block.bounds for block in blocks), ())
    steps = pyramid_steps(forms.levels, tuple(high - low for low, high in leaf), item_bytes)
    told.begin(sum(item_bytes * step.blocks.size for step in steps), 0)
    for step in steps:
        driver = base if step.base < 0 else stores[step.base]._driver
        view = seen if step.base < 0 else identity(driver.domain.mark_bounds_implicit[False])
        made = [
            (stores[number]._driver, (1,) * len(leaf) if number == 0 else forms.levels[number].factors)
            for number in range(step.first, step.last + 1)
        ]
        part = PyramidPart.of(step, driver, view, made, method)
        await each_block(
            inline,
            part.blocks,
            part.run,
            item_bytes=part.item_bytes,
            memory=part.memory,
            told=ToldOfPart(told),
            told_bytes=item_bytes,
        )


async def _window(image: Multiscale, smallest: TensorStore, new: NewImage) -> None:
    """Store how to show the values that there are."""
    driver = smallest._driver
    values = await driver.read(identity(driver.domain.mark_bounds_implicit[False]), "C")
    assert new.metadata.omero is not None
    omero = with_windows(new.metadata.omero, new.metadata.axes, values)
    image.metadata = new.metadata._replace(omero=omero)
    await store_metadata(image.group, image.metadata, new.more)
