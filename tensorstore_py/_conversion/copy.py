"""`ts.copy` and `ts.rechunk`: from any store, format, chunking and codec to any other.

What callers say is checked here, where the call is, and becomes one `TreeCopy`; that does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, get_args

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._conversion.copy_plan import IfExists, Request
from tensorstore_py._conversion.ends import destination, source
from tensorstore_py._conversion.manifest import Manifest
from tensorstore_py._conversion.member_paths import MemberPaths
from tensorstore_py._conversion.new_form import Chunks, Wanted
from tensorstore_py._conversion.tree_copy import TreeCopy
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._runtime.progress import Told
from tensorstore_py._runtime.progress_bar import Bar
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft
from tensorstore_py._spec.binding import bind
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._conversion.summary import CopySummary
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore as KvStorePromise
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["copy", "rechunk"]

Patterns = str | Iterable[str]


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
    manifest: object = None,
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
        manifest: where to keep what is done, so that the same call after a crash goes on from
            there: a local path, a URL or a `KvStore` with the path of a JSON document.
        dry_run: only find out what would be done.
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
    shared = as_context(context)
    if if_exists not in get_args(IfExists):
        hint = did_you_mean(str(if_exists), get_args(IfExists))
        raise SpecError(f"expected one of {get_args(IfExists)}, not {if_exists!r}{hint}",
                        ("if_exists",))  # fmt: skip
    if zarr_format not in (None, 2, 3):
        raise SpecError(f"expected 2 or 3, not {zarr_format!r}", ("zarr_format",))
    paths = MemberPaths.of(includes, excludes)
    layout = None if chunk_layout is None else ChunkLayout(chunk_layout)
    wanted = Wanted(_as_chunks(chunks), _as_chunks(shards), layout, codec, dtype, fill_value)
    from_ = _source(source, shared)
    to = destination(dest, shared, zarr_format)
    inline = from_.inline and to.inline
    kept = None
    if manifest is not None:
        where, store = _document(manifest, shared)
        inline = inline and store.inline
        request: JsonObject = {
            "source": from_.described,
            "dest": to.described,
            "includes": list(paths.includes),
            "excludes": list(paths.excludes),
            "zarr_format": zarr_format,
            **{name: repr(getattr(wanted, name)) for name in wanted.changes},
        }
        kept = Manifest(store, where.path, inline, request)
    asked = Request(from_, to, inline, paths, if_exists, wanted, kept)
    told = Told(progress, "copy")
    whole = TreeCopy(asked, told)
    return told.until(start(inline, lambda: whole.run(dry_run=dry_run), when_left=WhenLeft.STOPS))


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
    manifest: object = None,
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
    if chunks is None and shards is None and chunk_layout is None:
        raise SpecError("nothing says how chunks are to be; pass chunks, shards or chunk_layout")
    return copy(
        source,
        dest,
        includes=includes,
        excludes=excludes,
        if_exists=if_exists,
        chunks=chunks,
        shards=shards,
        chunk_layout=chunk_layout,
        codec=codec,
        manifest=manifest,
        dry_run=dry_run,
        progress=Bar("rechunk") if progress is True else progress,
        context=context,
    )


_source = source  # the argument has the better right to the name


def _as_chunks(given: object) -> Chunks | None:
    """What a caller says of chunks.

    Raises:
        TypeError: it is no extent, nor a list or mapping of such.
    """
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if isinstance(given, dict):
        return {str(name): int(size) for name, size in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(int(size) for size in given)
    raise TypeError(f"chunks are a number, a tuple or a dict, not {type(given).__name__}")


def _document(given: object, context: Context) -> tuple[KvStoreSpec, KvStorePromise]:
    """Where a document is: the bound spec with its path, and the store.

    Raises:
        SpecError: it is no place of one document.
    """
    if isinstance(given, KvStore):
        where, store = given.model, given.store
    else:
        if isinstance(given, str) and "://" not in given:
            raise SpecError(
                f"{given!r} is no URL; pass a local path as pathlib.Path({given!r})", ("manifest",)
            )
        if isinstance(given, os.PathLike):
            given = f"file://{os.path.abspath(given)}"  # noqa: PTH100 - of any path-like
        where = bind(KvStore.Spec(given).model, context)
        store = where.open()
    if not where.path or where.path.endswith("/"):
        raise SpecError(
            "a manifest is one document: give the path of one, such as file:///data/copy.json",
            ("manifest",),
        )
    return where, store
