"""A trial: something stored is opened, shown, read and changed, whatever is wrong with it.

`attempt(seed)` does all that and returns the errors that it met, which are all of this package's
classes. Anything else is raised as `UntypedError`, and more memory than `MOST_BYTES` as
`MemoryTakenError`; both say what was done. Memory is what Python and NumPy were asked for
(`tracemalloc`), beyond what the trial began with; pages that are never written to count, too.
"""

from __future__ import annotations

import tracemalloc
import warnings
from functools import partial
from typing import TYPE_CHECKING

import tensorstore_py as ts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.seeds import Seed

__all__ = ["MOST_BYTES", "MemoryTakenError", "UntypedError", "attempt"]

#: As much as the limit for data of variable length lets through, as Python objects, and then some.
MOST_BYTES = 512 * 2**20
#: Elements that are read at most, of arrays that say that they are large.
_MOST_READ = 2**16


class UntypedError(AssertionError):
    """An error that is none of this package's."""


class MemoryTakenError(AssertionError):
    """More memory than stored data and metadata justify."""


def attempt(seed: Seed, *, measure: bool = True) -> list[ts.TensorStoreError]:
    """Open what is stored, and do to it what can be done.

    Args:
        seed: what is stored; it stays as it is.
        measure: measure memory, which takes twice the time.

    Raises:
        UntypedError, MemoryTakenError: see the head of this file.
    """
    context = ts.Context()
    store = ts.KvStore.open("memory://", context=context).result()
    for key, value in seed.files.items():
        store[key] = value
    errors: list[ts.TensorStoreError] = []
    if measure:
        tracemalloc.start()
    try:
        with warnings.catch_warnings():
            # Consolidated metadata is behind what is changed here, as it says.
            warnings.simplefilter("ignore", UserWarning)
            _run(seed, context, errors)
        most = tracemalloc.get_traced_memory()[1] if measure else 0
    finally:
        if measure:
            tracemalloc.stop()
    if most > MOST_BYTES:
        raise MemoryTakenError(f"{seed.name}: {most} bytes were taken")
    return errors


def _run(seed: Seed, context: ts.Context, errors: list[ts.TensorStoreError]) -> None:
    def do(what: str, action: Callable[[], object]) -> object:
        try:
            return action()
        except ts.UnsupportedError:  # a driver without attributes, say
            pass
        except ts.TensorStoreError as error:
            str(error).encode("utf-8", "surrogatepass")
            errors.append(error)
        except Exception as error:
            raise UntypedError(f"{seed.name}: {what}: {type(error).__name__}: {error}") from error
        return None

    if seed.driver == "ocdbt":
        _try_database(context, do, errors)
        return
    if seed.driver == "group":
        group = do("open", lambda: ts.Group.open("memory://", context=context).result())
        if isinstance(group, ts.Group):
            _try_group(group, do)
        return
    array = do("open", lambda: ts.open(seed.spec(), context=context).result())
    if isinstance(array, ts.TensorStore):
        _try_array(array, do)


def _try_group(group: ts.Group, do: Callable[[str, Callable[[], object]], object]) -> None:
    do("show", lambda: repr(group))
    do("attributes", lambda: group.attrs.read().result())
    do("members", lambda: group.members().result())
    do("tree", lambda: str(group.tree().result()))
    array = do("member", lambda: group.open("x").result())
    if isinstance(array, ts.TensorStore):
        _try_array(array, do)
    do("set", lambda: group.attrs.update(b=2).result())


def _try_database(
    context: ts.Context,
    do: Callable[[str, Callable[[], object]], object],
    errors: list[ts.TensorStoreError],
) -> None:
    """Read all versions, then change it; what is wrong is said of a file."""

    def opened(**members: object) -> ts.KvStore:
        spec = {"driver": "ocdbt", "base": "memory://", **members}
        return ts.KvStore.open(spec, context=context).result()

    kv = opened()
    keys = do("list", lambda: kv.list().result())
    known = keys[:60] if isinstance(keys, list) else [b"k/003/xxx", b"k/030/"]
    for key in [*known, b"", b"k", b"k/030/", b"~~", b"\xff"]:
        do("read", partial(_read, kv, key))
    do("list some", lambda: kv.list(ts.KvStore.KeyRange("k/01", "k/02")).result())
    for version in (1, 2, 5, 9, 10, 40, "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"):
        old = opened(version=version)
        do("read a version", partial(_read, old, "k/030/"))
        do("list a version", partial(_list, old))
    found = list(errors)
    do("write", lambda: kv.write("k/015/", b"new").result())
    do("read again", lambda: kv.read("k/015/").result())
    do("delete", lambda: kv.delete_range(ts.KvStore.KeyRange("k/02", "k/03")).result())
    do("list again", lambda: kv.list().result())
    for error in [*found, *errors[len(found) :]]:
        named = "manifest" in str(error) or "bytes" in str(error)
        if not (named or isinstance(error, ts.NotFoundError)):
            raise UntypedError(f"{type(error).__name__}: {error}: names no file")


def _read(kv: ts.KvStore, key: bytes | str) -> object:
    return kv.read(key).result()


def _list(kv: ts.KvStore) -> object:
    return kv.list().result()


def _try_array(array: ts.TensorStore, do: Callable[[str, Callable[[], object]], object]) -> None:
    do("show", lambda: repr(array))
    do("spec", lambda: ts.Spec(array.spec().to_json()))
    do("schema", lambda: repr(array.schema))
    part = array
    while part.size > _MOST_READ or part.dtype.numpy_dtype.itemsize * part.size > 2**26:
        shape = part.shape
        if max(shape, default=0) <= 1:
            break
        dim = shape.index(max(shape))
        part = part[ts.d[dim][part.domain.inclusive_min[dim] : part.domain.inclusive_min[dim] + 1]]
    for what in ("read", "read again"):
        do(what, lambda: part.read().result())
    if array.shape and array.size:
        first = array[tuple(array.domain.inclusive_min)]
        do("element", lambda: first.read().result())
        value = do("fill value", lambda: array.fill_value)
        do("write", lambda: first.write(first.read().result()).result())
        del value
    do("attributes", lambda: array.attrs.read().result())
    do("statistics", lambda: part.storage_statistics(query_not_stored=True).result())
    # Last: readers of this array find its metadata changed.
    do("set", lambda: array.attrs.update(b=2).result())
