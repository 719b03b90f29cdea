"""`ts.map_blocks`: the user's function on aligned blocks of any number of arrays.

What callers say becomes a `MapRequest`, and that a `MapBlocksCall`, which runs as any plan does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tensorstore_py._api.array import array
from tensorstore_py._api.begin import as_context
from tensorstore_py._compute.block_function import BlockFunction
from tensorstore_py._compute.map_blocks_call import MapBlocksCall, MapRequest
from tensorstore_py._compute.map_blocks_options import MapOptions
from tensorstore_py._conversion.copy import as_chunks
from tensorstore_py._conversion.endpoints import destination, source
from tensorstore_py._conversion.target_metadata import Chunks, RequestedMetadata
from tensorstore_py._plan.call import register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.errors import SpecError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias, TypeVar

    from numpy.typing import ArrayLike

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._compute.map_blocks_options import Boundary
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._runtime.future import Future, FutureLike
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

    T = TypeVar("T")
    #: By label or number of a dimension.
    ByDimension: TypeAlias = Mapping[str, T] | Mapping[int, T] | Mapping[int | str, T]
    #: A number of elements, or those before and those after.
    Reach: TypeAlias = int | tuple[int, int]

__all__ = ["map_blocks"]


def map_blocks(
    function: Callable[..., ArrayLike | FutureLike[ArrayLike]] | str,
    *sources: object,
    target: object,
    halo: Reach | Sequence[Reach] | ByDimension[Reach] = 0,
    boundary: Boundary | ByDimension[Boundary] = "none",
    drop: int | str | Sequence[int | str] | None = None,
    new: ByDimension[int] | None = None,
    dtype: object = None,
    chunks: Chunks | None = None,
    shards: Chunks | None = None,
    chunk_layout: object = None,
    codec: object = None,
    fill_value: object = None,
    kwargs: Mapping[str, object] | None = None,
    if_exists: Literal["raise", "replace"] = "raise",
    loop: asyncio.AbstractEventLoop | None = None,
    manifest: object = None,
    executor: object = None,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[TensorStore]:
    """Call a function on aligned blocks of arrays, and store what it gives.

    A block is one or more write chunks (shards, where there are some) of the target, so no two
    tasks write the same one. The function gets the same block of each source, and gives that block
    of the target. Dimensions are the same if they have the same label, or else counted from the
    last one back, and extents of 1 are broadcast, all as in `copy`. The blocks' dimensions come in
    the order of the first source that has the most, and so must those of the result.

    Args:
        function: takes a NumPy array of each source, and gives one. It may be a coroutine function.
            If it has another parameter called `domain`, it is told there which part of the target
            it makes (a `ts.IndexDomain` with labels). Or its name, `"module:function"`.
        *sources: each a TensorStore, which may be a view, a URL, a local path (`os.PathLike`), a
            spec, a `KvStore`, or a NumPy array.
        target: a TensorStore, which may be a view; or a place as above, where an array is made like
            the sources.
        halo: by how many elements blocks overlap: a number for all dimensions, numbers for each, or
            by label or number of a dimension; a pair is what is before and after. The function
            gives the block with its halo, which is cut off, or without it.
        boundary: what is beyond the ends of a source: `"none"`: nothing, so that blocks are smaller
            there; `"reflect"`; `"nearest"`; `"periodic"`; or a number. For all dimensions, or by
            label or number.
        drop: dimensions that the target lacks, by label or number: each block has all of them. A
            target that is there, and has labels, tells by itself.
        new: dimensions that the function makes, with their extents: by label, after all others, or
            by number, there. A target that is there tells by itself.
        dtype: of a new target. By default the function is called once with a block of ones, of
            at most 8 elements along each dimension besides the halo and what is dropped.
        chunks: extents of a new target's chunks, as in `copy`; by default the sources'.
        shards: extents of its shards, likewise.
        chunk_layout: both in full: a `ts.ChunkLayout`.
        codec: how its chunks are encoded: a `ts.CodecSpec`, its JSON, or a name such as `"zstd"`.
        fill_value: what is not stored reads as.
        kwargs: with what keyword arguments the function is called, too.
        if_exists: what to do about an array that is at the target's place: `"raise"` before
            anything is done, or `"replace"`.
        loop: the event loop on which a coroutine function runs; by default the library's own.
        manifest: where to keep what is done, so that the same call after a crash goes on from
            there: a local path, a URL or a `KvStore` with the path of a JSON document.
        executor: who calls the function: an executor of `concurrent.futures` or one with its
            methods, a `dask.distributed.Client`, or `"ray"`. To other processes go the names of
            functions that can be imported there; others are pickled, by cloudpickle if installed.
        progress: called with a `Progress`, of bytes and chunks of the target; True: draws a bar.
        context: shared resources, which limit memory; a fresh default `Context` if not given. What
            the function takes besides its blocks and its result is not counted.

    Returns:
        A Future of the target, open.

    Raises:
        SpecError: (at once) an argument is wrong; (by the Future) there is no such dimension; the
            target is a source, or a view that tasks would write twice.
        MismatchError: (by the Future) shapes do not fit together; the function gives an array of
            another shape, or of a type whose values the target cannot hold.
        AlreadyExistsError: (by the Future) an array is at the target's place.
        DataLossError: (by the Future) chunks of a source are damaged; all else is done.
        UnsupportedError: (by the Future) the function, or an array, cannot go to other processes.
        Whatever the function raises, with a note that names the block. (by the Future)

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> image = ts.array(np.arange(12, dtype="int16").reshape(3, 4))
        >>> dark = ts.array(np.arange(4, dtype="int16"))
        >>> bright = ts.map_blocks(np.subtract, image, dark, target="memory://|zarr3:").result()
        >>> bright.read().result()
        array([[0, 0, 0, 0],
               [4, 4, 4, 4],
               [8, 8, 8, 8]], dtype=int16)
        >>> rows = ts.map_blocks(
        ...     lambda block: block.sum(axis=1), image, target="memory://|zarr3:", drop=1
        ... ).result()
        >>> rows.read().result()
        array([ 6, 22, 38])
    """
    call = _call(
        function, sources, target, halo, boundary, drop, new, kwargs, loop, if_exists,
        RequestedMetadata(chunks, shards, None, codec, dtype, fill_value), chunk_layout, context,
    )  # fmt: skip
    where = None if manifest is None else document_place(manifest, as_context(context))
    return run_call(call, executor, Reporter(progress, "map_blocks"), where)


def _call(
    function: Any,  # noqa: ANN401
    sources: Sequence[object],
    target: object,
    halo: object,
    boundary: object,
    drop: object,
    new: object,
    kwargs: Mapping[str, object] | None,
    loop: asyncio.AbstractEventLoop | None,
    if_exists: Literal["raise", "replace"],
    wanted: RequestedMetadata,
    chunk_layout: object,
    context: Context | None,
) -> MapBlocksCall:
    """What is asked for, checked.

    Raises:
        SpecError, TypeError: an argument is wrong; names it.
    """
    if not sources:
        raise SpecError("give at least one source", ("sources",))
    if if_exists not in ("raise", "replace"):
        raise SpecError(f'expected "raise" or "replace", not {if_exists!r}', ("if_exists",))
    shared = as_context(context)
    called = BlockFunction(function, len(sources), kwargs or {}, loop)
    options = MapOptions.of(drop, new, halo, boundary)
    wanted = wanted._replace(
        chunks=as_chunks(wanted.chunks),
        shards=as_chunks(wanted.shards),
        chunk_layout=None if chunk_layout is None else ChunkLayout(chunk_layout),
        dtype=None if wanted.dtype is None else DType(wanted.dtype),  # type: ignore[arg-type]
    )
    ends = tuple(
        source(array(each) if isinstance(each, np.ndarray) else each, shared) for each in sources
    )
    to = destination(target, shared, None)
    identity: JsonObject = {
        "function": called.name,
        "kwargs": repr(called.kwargs),
        "sources": [end.described for end in ends],
        "target": to.described,
        **options.to_json(),
        **{name: repr(getattr(wanted, name)) for name in wanted.changes},
    }
    request = MapRequest(called, ends, to, options, wanted, if_exists, identity)

    def arguments() -> JsonObject:
        said: JsonObject = {
            "function": called.to_json(),
            "kwargs": _checked_json(called.kwargs) or None,
            "sources": [end.to_json() for end in ends],
            "target": to.to_json(),
            **options.to_json(),
            **_wanted_json(wanted),
            "if_exists": if_exists,
        }
        return {name: value for name, value in said.items() if value is not None}

    return MapBlocksCall(request, arguments)


def _checked_json(kwargs: Mapping[str, object]) -> Mapping[str, object]:
    """The function's arguments, if a document can hold them.

    Raises UnsupportedError: it can't.
    """
    try:
        json.dumps(kwargs)
    except (TypeError, ValueError) as error:
        raise UnsupportedError(
            f"kwargs cannot be part of a document: {error}; pass what JSON can say"
        ) from error
    return kwargs


def _wanted_json(wanted: RequestedMetadata) -> JsonObject:
    """How a new target is to be, as arguments; None: as the sources."""
    codec, layout, fill = wanted.codec, wanted.chunk_layout, wanted.fill_value
    said = {
        "chunks": wanted.chunks,
        "shards": wanted.shards,
        "chunk_layout": None if layout is None else layout.to_json(),
        "codec": codec.to_json() if isinstance(codec, CodecSpec) else codec,
        "dtype": None if wanted.dtype is None else DType(wanted.dtype).name,  # type: ignore[arg-type]
        "fill_value": fill.tolist() if isinstance(fill, np.generic | np.ndarray) else fill,
    }
    return {name: list(each) if isinstance(each, tuple) else each for name, each in said.items()}


def _planned(
    function: object,
    *given: object,
    sources: Sequence[object] = (),
    target: object,
    **options: Any,
) -> MapBlocksCall:
    """The call; a document names its sources."""
    names = ("chunks", "shards", "codec", "dtype", "fill_value")
    wanted = RequestedMetadata(**{name: options.pop(name, None) for name in names})
    known = {
        "halo": 0, "boundary": "none", "drop": None, "new": None, "kwargs": None, "loop": None,
        "if_exists": "raise", "chunk_layout": None, "context": None,
    }  # fmt: skip
    for name in options:
        if name not in known:
            hint = did_you_mean(name, [*known, *names])
            raise SpecError(f"there is no such argument{hint}", (name,))
    all_of: dict[str, Any] = {**known, **options}
    return _call(function, (*given, *sources), target, wanted=wanted, **all_of)


register_call(map_blocks, _planned)
