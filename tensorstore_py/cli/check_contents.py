"""Checks of what is in a store: documents that contradict each other, leftovers, sizes of chunks.

However much is there, so many keys are listed and so many arrays are looked at, at most, and it is
told where that was not all. Advice is a command that can be typed, with numbers for that array.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py import ocdbt
from tensorstore_py._api.group import Group
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._display.info import human_size
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py.cli.check_store import Result
from tensorstore_py.cli.found import arrays
from tensorstore_py.cli.keys import Keys, entries_in, local_path
from tensorstore_py.errors import TensorStoreError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py.cli.check_store import CheckedStore
    from tensorstore_py.cli.found import Found

__all__ = ["check_chunks", "check_leftovers", "check_metadata"]

_MOST_KEYS: Final = 200_000
_MOST_NODES: Final = 2_000
_MOST_ARRAYS: Final = 200
_TOLD: Final = 5
#: A temporary file of a writer that is alive is younger than this.
_OLD_S: Final = 3600.0
_TEMPORARY: Final = (".__lock", ".tensorstore-part")

#: What one request should be worth: more keys of fewer bytes than this are too many.
_MANY_KEYS: Final = 10_000
_SMALL_KEY: Final = 2**20
_SHARD: Final = 2**26
#: So small a chunk is mostly overhead, and so large a one is mostly read in vain.
_SMALL_CHUNK: Final = 2**14
_LARGE_CHUNK: Final = 2**27
_CHUNK: Final = 2**22
#: Of smaller arrays neither chunks nor codecs matter.
_LARGE_ARRAY: Final = 2**26
#: Names of codecs that make nothing smaller.
_NO_COMPRESSION: Final = frozenset(
    {"bytes", "crc32c", "index", "raw", "sharding_indexed", "transpose", "vlen-bytes", "vlen-utf8"}
)


def check_metadata(checked: CheckedStore, found: Found) -> Iterator[Result]:
    """Whether documents can be read, and do not contradict each other."""
    problems = list(_two_formats(checked))
    nodes = 0
    for entry in islice(arrays(found), _MOST_NODES):
        nodes += 1
        if entry.kind == "unreadable":
            problems.append(Result("metadata", "fail", f"{entry.name}: {entry.problem}"))
    if isinstance(found, Group) and found.consolidated and nodes < _MOST_NODES:
        problems += _stale(checked, found)
    yield from problems
    if not problems:
        many = "the first " * (nodes == _MOST_NODES)
        yield Result("metadata", "ok", f"documents agree, of {many}{_counted(nodes, 'array')}")


def _two_formats(checked: CheckedStore) -> Iterator[Result]:
    """Directories that are nodes of two formats at once."""
    keys = {key: form for form in formats() for key in form.node_keys}
    known: dict[str, set[str]] = {}
    seen = 0
    try:
        for page in Keys("", checked.store, tree=True).pages():
            for entry in page:
                above, _, name = entry.key.rpartition("/")
                if name in keys:
                    known.setdefault(above, set()).add(keys[name].format_id)
            seen += len(page)
            if seen >= _MOST_KEYS:
                break
    except UnsupportedError:
        return
    torn = sorted(above for above, ids in known.items() if len(ids) > 1)
    if torn:
        both = " and ".join(sorted(known[torn[0]]))
        yield Result(
            "metadata", "warn", f"{both} side by side: {_some(torn, checked)}",
            "programs see one or the other: delete the documents that are out of date, or run "
            "tspy migrate",
        )  # fmt: skip


def _stale(checked: CheckedStore, found: Group) -> Iterator[Result]:
    """Differences between consolidated metadata and what is there."""
    try:
        fresh = Group.open(found.kvstore, consolidated=False).result()
        there = fresh.nodes(max_depth=None).result()
    except TensorStoreError as error:
        yield Result("metadata", "fail", str(error))
        return
    told = found.nodes(max_depth=None).result()
    gone, new = sorted(told.keys() - there.keys()), sorted(there.keys() - told.keys())
    other = sorted(
        path
        for path in told.keys() & there.keys()
        if (told[path].metadata, told[path].attributes)
        != (there[path].metadata, there[path].attributes)
    )
    parts = [
        f"{word} {_listed(paths)}"
        for word, paths in (("lacks", new), ("has still", gone), ("tells old things of", other))
        if paths
    ]
    if parts:
        yield Result(
            "metadata", "warn", f"consolidated metadata is out of date: it {'; '.join(parts)}",
            f"consolidate again: ts.Group.open({_opened(checked)}).result().consolidate().result()",
        )  # fmt: skip


def _opened(checked: CheckedStore) -> str:
    """The place, as `ts.Group.open` takes it."""
    name = repr(checked.name)
    return name if "://" in checked.name else f"pathlib.Path({name})"


def check_leftovers(checked: CheckedStore, found: Found) -> Iterator[Result]:  # noqa: ARG001 - as all
    """What writers left that were killed."""
    results = [*_temporary_files(checked), *_uploads(checked), *_unreached(checked)]
    yield from results
    if not results:
        yield Result("leftovers", "ok", "none")


def _temporary_files(checked: CheckedStore) -> Iterator[Result]:
    folder = local_path(checked.store)
    if folder is None:
        return
    old: list[str] = []
    seen = size = 0
    for above, _, names in os.walk(folder):
        seen += len(names)
        for name in names:
            if not name.endswith(_TEMPORARY):
                continue
            try:
                status = Path(above, name).stat()
            except OSError:  # it is gone, so its writer is alive
                continue
            if time.time() - status.st_mtime > _OLD_S:
                old.append(f"{above}/{name}")
                size += status.st_size
        if seen > _MOST_KEYS:
            break
    if old:
        yield Result(
            "leftovers", "warn", f"{_counted(len(old), 'temporary file')} of killed writers, "
            f"{human_size(size)}: {_listed(old)}",
            f"if no program writes there: find {folder} -name '*.__lock' -mmin +60 -delete",
        )  # fmt: skip


def _uploads(checked: CheckedStore) -> Iterator[Result]:
    if checked.unfinished:
        yield Result(
            "leftovers", "warn",
            f"{_counted(len(checked.unfinished), 'unfinished upload')}: "
            f"{_listed(checked.unfinished)}; their parts are stored, and paid for",
            "give the bucket a lifecycle rule (AbortIncompleteMultipartUpload)",
        )  # fmt: skip


def _unreached(checked: CheckedStore) -> Iterator[Result]:
    for each in checked.services:
        if each.spec().model.driver != "ocdbt":
            continue
        base = each.base
        assert base is not None
        report = ocdbt.check(base).result()
        if not report.ok:
            yield Result("database", "fail", f"{_counted(report.problem_count, 'problem')}",
                         f"tspy ocdbt check {base.url}; tspy ocdbt repair {base.url}")  # fmt: skip
        if report.unreached_bytes > report.file_bytes // 2:
            yield Result(
                "leftovers", "warn",
                f"{human_size(report.unreached_bytes)} of {human_size(report.file_bytes)} belong "
                "to no key of the latest version",
                f"tspy ocdbt compact {base.url} --keep-last 1",
            )  # fmt: skip


class _Array(NamedTuple):
    """What matters of an array's chunks; sizes in bytes of elements, but for `stored`."""

    name: str
    array: TensorStore
    chunk: tuple[int, ...]
    key: tuple[int, ...]
    keys: int
    item: int
    stored: int | None

    @property
    def size(self) -> int:
        return self.array.size * self.item


def check_chunks(checked: CheckedStore, found: Found) -> Iterator[Result]:
    """Advice on chunks, shards and codecs of large arrays."""
    count, results = 0, list[Result]()
    for entry in islice(arrays(found), _MOST_ARRAYS):
        if isinstance(entry.found, TensorStore):
            count += 1
            about = _about(entry.name, entry.found)
            if about is not None:
                results += _advice(checked, about)
    yield from results
    if count and not results:
        yield Result("chunks", "ok", f"of {_counted(count, 'array')}: sizes and codecs are fine")


def _about(name: str, array: TensorStore) -> _Array | None:
    driver, layout = array._driver, array.chunk_layout
    chunk, key = layout.read_chunk.shape, layout.write_chunk.shape
    if not isinstance(driver, ChunkedDriver) or chunk is None or key is None:
        return None
    item = max(1, array.dtype.numpy_dtype.itemsize)
    keys = prod(driver.chunk_counts())
    extents = [tuple(size or 1 for size in each) for each in (chunk, key)]
    return _Array(name or ".", array, extents[0], extents[1], keys, item, _stored(array, driver))


def _stored(array: TensorStore, driver: ChunkedDriver[Any]) -> int | None:
    """How many bytes a stored chunk has, by those that are listed first; None: not known."""
    where = array.kvstore
    if where is None:
        return None
    try:
        page = next(entries_in(where, Keys("", where, tree=True).range), [])
    except UnsupportedError:
        return None
    sizes = [each.size for each in page if each.size >= 0 and driver.cell_of(each.key) is not None]
    return sum(sizes) // len(sizes) if sizes else None


def _advice(checked: CheckedStore, about: _Array) -> Iterator[Result]:
    chunk, key = prod(about.chunk) * about.item, prod(about.key) * about.item
    source = checked.name if about.name == "." else f"{checked.name.rstrip('/')}/{about.name}"
    stored = key if about.stored is None else about.stored
    zarr3 = about.array.spec().model.driver == "zarr3"
    how = f"tspy {'rechunk' if zarr3 else 'copy'} {source} TARGET" + " --zarr-format 3" * (
        not zarr3
    )
    shape = tuple(about.array.shape)
    small = about.size > _LARGE_ARRAY and chunk < _SMALL_CHUNK
    larger = _grown(about.chunk, shape, _CHUNK // about.item) if small else list(about.chunk)
    if about.keys > _MANY_KEYS and stored < _SMALL_KEY:
        shards = _grown(larger if small else about.key, shape, _SHARD // about.item)
        yield Result(
            "chunks", "warn",
            f"{about.name}: up to {about.keys:,} keys of about {human_size(stored)}",
            f"{how} --chunks {_extents(larger)} --shards {_extents(shards)}",
        )  # fmt: skip
    elif small:
        yield Result("chunks", "warn", f"{about.name}: chunks of {human_size(chunk)} are small",
                     f"tspy rechunk {source} TARGET --chunks {_extents(larger)}")  # fmt: skip
    if chunk > _LARGE_CHUNK:
        smaller = _shrunk(about.chunk, _CHUNK // about.item)
        yield Result(
            "chunks", "warn",
            f"{about.name}: to read one element reads a chunk of {human_size(chunk)}",
            f"{how} --chunks {_extents(smaller)} --shards {_extents(about.key)}",
        )  # fmt: skip
    if about.size > _LARGE_ARRAY and not _compressed(about.array):
        yield Result("codec", "warn", f"{about.name}: chunks are not compressed",
                     f"tspy copy {source} TARGET --codec zstd")  # fmt: skip


def _grown(extents: Sequence[int], shape: Sequence[int], most: int) -> list[int]:
    """A multiple of some extents that has about so many elements, within the shape."""
    found = list(extents)
    while prod(found) * 2 <= most:
        fitting = [at for at, size in enumerate(found) if size < shape[at]]
        if not fitting:
            break
        at = min(fitting, key=lambda at: found[at] / extents[at])
        found[at] *= 2
    return found


def _shrunk(extents: Sequence[int], most: int) -> list[int]:
    found = list(extents)
    while prod(found) > most:
        at = max(range(len(found)), key=lambda at: found[at])
        if found[at] == 1:
            break
        # Shards are whole chunks, so only what divides the extent will do.
        divisor = next(each for each in range(2, found[at] + 1) if found[at] % each == 0)
        found[at] //= divisor
    return found


def _compressed(array: TensorStore) -> bool:
    codec = array.codec
    return codec is None or bool(_names(codec.to_json()) - _NO_COMPRESSION)


def _names(json: Any) -> set[str]:  # noqa: ANN401 - JSON
    """The names of all codecs that a spec names, in any format."""
    if isinstance(json, Mapping):
        own = {value for name, value in json.items()
               if name in ("name", "id", "type") and isinstance(value, str)}  # fmt: skip
        return own.union(*map(_names, json.values()))
    if isinstance(json, list | tuple):
        return {each for each in json if isinstance(each, str)}.union(*map(_names, json))
    return set()


def _extents(extents: Sequence[int]) -> str:
    return ",".join(map(str, extents))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _TOLD:,} more" if len(names) > _TOLD else ""
    return ", ".join(names[:_TOLD]) + more


def _some(paths: Sequence[str], checked: CheckedStore) -> str:
    start = len(checked.store.path)
    return _listed([path[start:] or "." for path in paths])
