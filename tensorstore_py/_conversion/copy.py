"""`ts.copy` and `ts.rechunk`: from any store, format, chunking and codec to any other.

Arguments are checked at the call and become a `Request` (`CopyArguments`), and that a `TreeCopy`,
which does it in this process, or a `CopyCall`, which has it done by an executor.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from tensorstore_py._api.begin import as_context
from tensorstore_py._conversion.copy_call import CopyCall
from tensorstore_py._conversion.copy_plan import IfExists, MemberPaths, Request
from tensorstore_py._conversion.endpoints import destination, source
from tensorstore_py._conversion.target_metadata import Chunks, RequestedMetadata
from tensorstore_py._conversion.tree_copy import TreeCopy
from tensorstore_py._plan.call import register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorstore_py._conversion.summary import CopySummary
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["CopyArguments", "copy", "rechunk"]


Patterns = str | Iterable[str]


class CopyArguments(NamedTuple):
    """What is asked for, checked; `zarr_format` is that of a new hierarchy, if it was said."""

    request: Request
    zarr_format: int | None

    @staticmethod
    def of(
        from_: object,
        to: object,
        *,
        includes: Patterns | None = None,
        excludes: Patterns | None = None,
        if_exists: IfExists = "raise",
        zarr_format: int | None = None,
        chunks: Chunks | None = None,
        shards: Chunks | None = None,
        chunk_layout: object = None,
        codec: object = None,
        dtype: object = None,
        fill_value: object = None,
        verify: bool = False,
        context: Context | None = None,
    ) -> CopyArguments:
        """What the arguments of `ts.copy` say.

        Raises:
            SpecError: one of them is wrong; names it.
            TypeError: chunks are no numbers, or patterns no text.
        """
        shared = as_context(context)
        if if_exists not in get_args(IfExists):
            hint = did_you_mean(str(if_exists), get_args(IfExists))
            raise SpecError(f"expected one of {get_args(IfExists)}, not {if_exists!r}{hint}",
                            ("if_exists",))  # fmt: skip
        if zarr_format not in (None, 2, 3):
            raise SpecError(f"expected 2 or 3, not {zarr_format!r}", ("zarr_format",))
        paths = MemberPaths.of(includes, excludes)
        layout = None if chunk_layout is None else ChunkLayout(chunk_layout)
        wanted = RequestedMetadata(
            as_chunks(chunks), as_chunks(shards), layout, codec, dtype, fill_value
        )
        here = source(from_, shared)
        there = destination(to, shared, zarr_format)
        identity: JsonObject = {
            "source": here.described,
            "dest": there.described,
            "includes": list(paths.includes),
            "excludes": list(paths.excludes),
            "zarr_format": zarr_format,
            **_wanted_json(wanted),
        }
        inline = here.inline and there.inline
        request = Request(
            here, there, inline, paths, if_exists, wanted, None, identity, bool(verify)
        )
        return CopyArguments(request, zarr_format)

    def to_json(self) -> JsonObject:
        """The arguments of `ts.copy` as JSON, for another process.

        Raises UnsupportedError: an end is what only this process has.
        """
        request = self.request
        said: JsonObject = {
            "source": request.source.to_json(),
            "dest": request.destination.to_json(),
            "includes": list(request.paths.includes) or None,
            "excludes": list(request.paths.excludes) or None,
            "if_exists": request.if_exists,
            "zarr_format": self.zarr_format,
            **_wanted_json(request.wanted),
            "verify": request.verify or None,
        }
        return {name: value for name, value in said.items() if value is not None}


def as_chunks(given: object) -> Chunks | None:
    """What a caller says of chunks.

    Raises TypeError: it is no extent, nor a list or mapping of such.
    """
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if isinstance(given, dict):
        return {str(name): int(size) for name, size in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(int(size) for size in given)
    raise TypeError(f"chunks are a number, a tuple or a dict, not {type(given).__name__}")


def _wanted_json(wanted: RequestedMetadata) -> JsonObject:
    """What is to change, as JSON."""
    return {name: _as_json(name, getattr(wanted, name)) for name in wanted.changes}


def _as_json(name: str, value: object) -> object:
    if name == "dtype":
        return DType(value).name  # type: ignore[arg-type]
    if isinstance(value, CodecSpec | ChunkLayout):
        return value.to_json()
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def copy(
    source: object,
    dest: object,
    *,
    includes: Patterns | None = None,
    excludes: Patterns | None = None,
    if_exists: IfExists = "raise",
    zarr_format: Literal[2, 3] | None = None,
    chunks: Chunks | None = None,
    shards: Chunks | None = None,
    chunk_layout: object = None,
    codec: object = None,
    dtype: object = None,
    fill_value: object = None,
    verify: bool = False,
    manifest: object = None,
    executor: object = None,
    dry_run: bool = False,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[CopySummary]:
    """Copy an array, or a group with everything in it.

    What is not asked to change stays as it is, as far as the new format can say it: groups,
    attributes, names of dimensions, chunks, codecs; consolidated metadata is written anew if the
    source has any. Arrays of which nothing changes are copied chunk by chunk as bytes, by the store
    itself where it can; others element by element, in blocks of whole chunks, of which only a few
    are in memory at a time.

    Args:
        source: a URL, a local path (`os.PathLike`), a spec, a `KvStore`, a `Group`, or a
            `TensorStore`, which may be a view.
        dest: the same; what is not there is made. A TensorStore is written.
        includes: glob patterns of paths below the source, one or several: `"a/b"`, `"*/raw"`,
            `"**/mask"`. A group means everything in it. The groups above are copied, too.
        excludes: patterns of what is left out.
        if_exists: what to do about arrays that are at the destination: `"raise"` before anything
            is copied; `"skip"`: leave them, whatever is in them; `"replace"`. Groups are merged.
        zarr_format: version of a new hierarchy; by default the source's.
        chunks: extents of chunks: one number for all dimensions, one for each, or by dimension
            name; -1: the whole dimension.
        shards: extents of shards (version 3), likewise.
        chunk_layout: both in full: a `ts.ChunkLayout`.
        codec: how chunks are encoded: a `ts.CodecSpec`, its JSON, or a name such as `"zstd"`.
        dtype: data type, to which every value must convert without loss.
        fill_value: what is not stored reads as.
        verify: read each block again after it was written, past every cache, and compare it with
            what was to be written; chunks that are copied as bytes are compared as such.
        manifest: where to keep what is done, so that the same call after a crash goes on from
            there: a local path, a URL or a `KvStore` with the path of a JSON document.
        executor: who copies: an executor of `concurrent.futures` or one with its methods, a
            `dask.distributed.Client`, or `"ray"`. Each worker opens source and destination by
            itself, with the credentials that it has. None: this process.
        dry_run: only find out what would be done; `ts.plan` tells more.
        progress: called with a `Progress`, of bytes, chunks and arrays; True: draws a bar, with
            tqdm or rich if one is installed.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `CopySummary`.

    Raises:
        SpecError: (at once) an end, an option or a pattern is wrong; (by the Future) a chunk shape
            that does not fit; a destination inside the source.
        NotFoundError: (by the Future) nothing is at the source, or a pattern matches nothing.
        AlreadyExistsError: (by the Future) an array is at the destination already.
        MismatchError: (by the Future) elements cannot be converted without loss; an array is where
            a group would have to be.
        FailedPreconditionError: (by the Future) the manifest is that of another copy, or the
            source has changed since it began.
        DataLossError: (by the Future) what was verified is not as it should be; or chunks of the
            source are damaged. All else is copied, and each region that is not is named.
        UnsupportedError: (at once) the executor's library is not installed; (by the Future) an end
            is in this process's memory, and the executor has other processes.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.Group.open("memory://", create=True, zarr_format=2).result()
        >>> image = old.create_array("raw/image", dtype="uint16", shape=[100, 200]).result()
        >>> image[:10] = 7
        >>> new = ts.Group.open("memory://", create=True).result()
        >>> ts.copy(old, new, chunks=50, codec="zstd").result()
        CopySummary(arrays=1, groups=1, bytes=40000, chunks=8, skipped=0)
        >>> new["raw/image"].chunk_layout.read_chunk.shape, new["raw/image"][9, 9].read().result()
        ((50, 50), array(7, dtype=uint16))
    """
    options = {
        "includes": includes,
        "excludes": excludes,
        "if_exists": if_exists,
        "zarr_format": zarr_format,
        "chunks": chunks,
        "shards": shards,
        "chunk_layout": chunk_layout,
        "codec": codec,
        "dtype": dtype,
        "fill_value": fill_value,
        "verify": verify,
        "context": context,
    }
    return _copy(
        "copy", source, dest, options, manifest, executor, dry_run, Reporter(progress, "copy")
    )


def rechunk(
    source: object,
    dest: object,
    chunks: Chunks | None = None,
    *,
    shards: Chunks | None = None,
    chunk_layout: object = None,
    codec: object = None,
    includes: Patterns | None = None,
    excludes: Patterns | None = None,
    if_exists: IfExists = "raise",
    verify: bool = False,
    manifest: object = None,
    executor: object = None,
    dry_run: bool = False,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[CopySummary]:
    """Copy an array, or a group with everything in it, into chunks of another shape.

    Every chunk of the source is decoded once wherever memory allows it.

    Args are those of `copy`, of which this is a part; chunks, shards or a layout must be given.

    Raises:
        SpecError: (at once) nothing says how chunks are to be; and whatever `copy` raises.

    Example:
        >>> import tensorstore_py as ts
        >>> rows = ts.open(
        ...     "memory://|zarr3:",
        ...     create=True,
        ...     dtype="int16",
        ...     shape=[60, 60],
        ...     chunk_layout=ts.ChunkLayout(chunk_shape=[1, 60]),
        ... ).result()
        >>> ts.rechunk(rows, ts.KvStore.open("memory://").result(), chunks=(60, 1)).result()
        CopySummary(arrays=1, groups=0, bytes=7200, chunks=60, skipped=0)
    """
    _check_chunks(chunks, {"shards": shards, "chunk_layout": chunk_layout})
    options = {
        "includes": includes,
        "excludes": excludes,
        "if_exists": if_exists,
        "chunks": chunks,
        "shards": shards,
        "chunk_layout": chunk_layout,
        "codec": codec,
        "verify": verify,
        "context": context,
    }
    reporter = Reporter(progress, "rechunk")
    return _copy("rechunk", source, dest, options, manifest, executor, dry_run, reporter)


def _check_chunks(chunks: Chunks | None, options: Mapping[str, Any]) -> None:
    """Raises SpecError if nothing says how chunks are to be."""
    if chunks is None and options.get("shards") is None and options.get("chunk_layout") is None:
        raise SpecError("nothing says how chunks are to be; pass chunks, shards or chunk_layout")


def _copy(
    operation: str,
    source: object,
    dest: object,
    options: Mapping[str, Any],
    manifest: object,
    executor: object,
    dry_run: bool,
    reporter: Reporter,
) -> Future[CopySummary]:
    """Copy in this process, or by an executor."""
    asked = CopyArguments.of(source, dest, **options)
    where = None
    if manifest is not None:
        where = document_place(manifest, as_context(options["context"]))
    if not dry_run and (executor is not None or where is not None):
        return run_call(
            CopyCall(operation, asked.request, asked.to_json), executor, reporter, where
        )
    whole = TreeCopy(asked.request, reporter)
    body = partial(whole.run, dry_run=dry_run)
    return reporter.until(start(asked.request.inline, body, on_interrupt=OnInterrupt.CANCEL))


def _planner(operation: str) -> Callable[..., CopyCall]:
    def planned(
        source: object,
        dest: object,
        chunks: Chunks | None = None,
        **options: Any,
    ) -> CopyCall:
        if operation == "rechunk":
            _check_chunks(chunks, options)
        asked = CopyArguments.of(source, dest, chunks=chunks, **options)
        return CopyCall(operation, asked.request, asked.to_json)

    return planned


register_call(copy, _planner("copy"))
register_call(rechunk, _planner("rechunk"))
