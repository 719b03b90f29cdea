"""`ts.pyramid`: an OME-Zarr image with all its levels, made in one pass.

What a caller says is checked here, where the call is; what the source says besides is found by the
Future. How levels are computed is `_compute`'s matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.views import DownsampleMethod
from tensorstore_py._conversion.endpoints import destination
from tensorstore_py._plan.call import register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError
from tensorstore_py.multiscale.axes import Axis
from tensorstore_py.multiscale.making import IfExists
from tensorstore_py.multiscale.metadata import VERSIONS
from tensorstore_py.multiscale.pyramid_call import PyramidArguments, PyramidCall
from tensorstore_py.multiscale.sources import pyramid_source

if TYPE_CHECKING:
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py.multiscale.image import Multiscale

__all__ = ["pyramid"]

#: One value for all axes of space, one for each axis in turn, or by axis name.
PerAxis: TypeAlias = float | Sequence[float] | Mapping[str, float]
Extents: TypeAlias = int | Sequence[int] | Mapping[str, int]

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
    manifest: object = None,
    executor: object = None,
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
        manifest: where to keep what is done, so that the same call after a crash goes on from
            there: a local path, a URL or a `KvStore` with the path of a JSON document.
        executor: who runs the tasks: None: this process; a `concurrent.futures.Executor`, a
            `dask.distributed.Client`, or the module `ray`.
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
    reporter = Reporter(progress, "pyramid")
    call = _call(
        source, target, axes, levels=levels, scale=scale, method=method, version=version,
        pixel_size=pixel_size, units=units, translation=translation, chunks=chunks, shards=shards,
        codec=codec, dtype=dtype, name=name, omero=omero, if_exists=if_exists, memory=memory,
        context=context,
    )  # fmt: skip
    where = None if manifest is None else document_place(manifest, as_context(context))
    return run_call(call, executor, reporter, where)


def _call(
    source: object,
    target: object,
    axes: object = None,
    *,
    if_exists: IfExists = "raise",
    memory: int | None = None,
    manifest: object = None,
    executor: object = None,
    progress: ProgressLike = None,
    context: Context | None = None,
    **said: Any,
) -> PyramidCall:
    """The call; how it is run makes no difference to its plan."""
    del manifest, executor, progress
    asked = PyramidArguments(axes, **said)
    asked.check()
    if if_exists not in get_args(IfExists):
        raise SpecError(f'expected "raise" or "replace", not {if_exists!r}', ("if_exists",))
    shared = _limited(as_context(context), memory)
    to = destination(target, shared, VERSIONS[asked.version])
    return PyramidCall(asked, pyramid_source(source, shared), to, if_exists, memory)


register_call(pyramid, _call)


def _limited(context: Context, memory: int | None) -> Context:
    if memory is None:
        return context
    if isinstance(memory, bool) or memory < 1:
        raise SpecError(f"expected a number of bytes, not {memory!r}", ("memory",))
    return Context({"memory_limit": {"limit_bytes": memory}}, context)
