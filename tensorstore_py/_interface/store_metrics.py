"""What is asked of each kind of store: counted, timed and logged at one place for all of them.

Every class of stores has its operations wrapped when it is made (`KvStore.__init_subclass__`), and
every open store is told whose counts are its own (`KvStoreSpec.open`): those of its `driver`. So
built-in stores and those of plug-ins are counted alike, and none of them counts by itself. An
operation that a class says is made of others of the same store (`made_of_others`) is counted as
these.

A store over other stores moves no bytes itself: those are its bases' (`KvStoreSpec.keeps_values`).
"""

from __future__ import annotations

from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py._runtime.metrics import (
    Collected,
    Metric,
    Point,
    Spread,
    note,
    register,
)
from tensorstore_py._runtime.verbose_logging import verbose_flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tensorstore_py._interface.byte_range import ByteRange
    from tensorstore_py._interface.generation import TimestampedStorageGeneration
    from tensorstore_py._interface.key_range import KeyRange

    Buffer: TypeAlias = bytes | bytearray | memoryview
    #: What a call of an operation was about: values asked for, those of them that were found or
    #: stored, and their bytes. None if it did nothing.
    Extent: TypeAlias = tuple[int, int, int] | None

__all__ = ["Request", "StoreMetrics", "count_operations", "metrics_of"]

#: The kind of an operation, its extent, and how long it took in s.
Request: TypeAlias = "tuple[str, int, int, int, float]"

#: Other segments of a new value are copied from the old one.
_BUFFERS: Final = (bytes, bytearray, memoryview)
_WHAT: Final = {
    "read": "values and parts of values asked for",
    "write": "values to be stored or deleted",
    "delete_range": "ranges to be deleted",
    "list": "listings",
    "copy": "values copied without moving their bytes through the process",
}


class Counted(Protocol):
    """A store, as far as its operations are counted here."""

    metrics: StoreMetrics | None
    made_of_others: ClassVar[frozenset[str]]
    read: Callable[..., Any]

    def describe_key(self, key: str) -> str: ...


class Found(Protocol):
    """The result of a read."""

    @property
    def state(self) -> str: ...

    @property
    def value(self) -> Buffer: ...


class StoreMetrics(Metric):
    """What was asked of the stores of one kind.

    Args:
        driver: the kind.
        flag: the verbose flag of its log.
        keeps_values: whether bytes and times are its own.
    """

    def __init__(self, driver: str, flag: str, *, keeps_values: bool) -> None:
        self._driver = driver
        self._keeps_values = keeps_values
        self.verbose = verbose_flag(flag)
        self.clear()

    def clear(self) -> None:
        self._asked = dict.fromkeys(_WHAT, 0)
        self._moved = dict.fromkeys(_WHAT, 0)
        self._bytes = dict.fromkeys(_WHAT, 0)
        self._latency_ms = {"read": Spread(), "write": Spread()}

    def add(self, notes: Sequence[Request]) -> None:
        by_kind: dict[str, list[Request]] = {}
        for each in notes:
            by_kind.setdefault(each[0], []).append(each)
        for kind, requests in by_kind.items():
            _, asked, moved, sizes, seconds = zip(*requests, strict=True)
            self._asked[kind] += sum(asked)
            self._moved[kind] += sum(moved)
            self._bytes[kind] += sum(sizes)
            if kind in self._latency_ms and any(moved):
                # A call that moved several values took each of them a part of its time.
                shares = [
                    (1000 * time / times, times)
                    for time, times in zip(seconds, moved, strict=True)
                    if times
                ]
                self._latency_ms[kind].add(*zip(*shares, strict=True))

    def collect(self) -> Iterable[Collected]:
        return list(self._collected())

    def _collected(self) -> Iterator[Collected]:
        driver = self._driver
        begin = f"/tensorstore/kvstore/{driver}/"

        def counted(name: str, what: str, value: float, unit: str = "") -> Collected:
            return Collected(begin + name, f"{driver}: {what}", unit, "counter", [Point({}, value)])

        for kind, asked in self._asked.items():
            yield counted(kind, _WHAT[kind], asked)
        if not self._keeps_values:
            return
        yield counted("batch_read", "values and parts of values found", self._moved["read"])
        yield counted("bytes_read", "bytes read", self._bytes["read"], "bytes")
        yield counted("bytes_written", "bytes written", self._bytes["write"], "bytes")
        for kind, spread in self._latency_ms.items():
            points = [Point({}, spread.copy())]
            what = f"{driver}: how long it took to {kind} a value"
            yield Collected(f"{begin}{kind}_latency_ms", what, "milliseconds", "histogram", points)


_by_driver: dict[str, StoreMetrics] = {}


def metrics_of(driver: str, flag: str | None = None, *, keeps_values: bool = True) -> StoreMetrics:
    """The counts of a kind of store; arguments as for `StoreMetrics`, where it has none yet."""
    found = _by_driver.get(driver)
    if found is None:
        found = _by_driver[driver] = StoreMetrics(driver, flag or driver, keeps_values=keeps_values)
        register(found)
    return found


# ---------------------------------------------------------------------------------- what calls do


def _size(value: Buffer) -> int:
    return len(value) if type(value) is bytes else memoryview(value).nbytes


def _one(*_: object, **__: object) -> int:
    return 1


def _read(result: Found, *_: object, **__: object) -> Extent:
    return (1, 1, _size(result.value)) if result.state == "value" else (1, 0, 0)


def _read_ranges(results: Sequence[Found], *_: object, **__: object) -> Extent:
    sizes = [_size(result.value) for result in results if result.state == "value"]
    return len(results), len(sizes), sum(sizes)


def _read_several(values: Sequence[Buffer | None] | None, *_: object, **__: object) -> Extent:
    if values is None:
        return None  # it could not be told: then the whole value is read
    moved = size = 0
    for value in values:
        if value is not None:
            moved += 1
            size += len(value) if type(value) is bytes else memoryview(value).nbytes
    return len(values), moved, size


def _written(
    stamp: TimestampedStorageGeneration, _key: str, value: Buffer | None, **_: object
) -> Extent:
    if value is None or stamp.generation == UNKNOWN:
        return 1, 0, 0
    return 1, 1, _size(value)


def _written_parts(stamp: TimestampedStorageGeneration, _key: str, size: int, *_: object) -> Extent:
    return (1, 1, size) if stamp.generation else (1, 0, 0)


def _written_segments(
    stamp: TimestampedStorageGeneration, _key: str, segments: Sequence[object], **_: object
) -> Extent:
    if stamp.generation == UNKNOWN:
        return 1, 0, 0
    return 1, 1, sum([_size(each) for each in segments if isinstance(each, _BUFFERS)])


def _written_several(
    _: None, keys: Sequence[str], values: Sequence[Buffer | None], **__: object
) -> Extent:
    sizes = [_size(value) for value in values if value is not None]
    return len(keys), len(sizes), sum(sizes)


def _written_batch(
    failed: str | None, values: Mapping[str, object], *_: object, **__: object
) -> Extent:
    if failed is not None:
        return len(values), 0, 0
    # Others are stored already, and get one more key.
    given = values.values()
    some = any(issubclass(kind, _BUFFERS) for kind in set(map(type, given)))
    sizes = [_size(value) for value in given if isinstance(value, _BUFFERS)] if some else []
    return len(values), len(sizes), sum(sizes)


def _copied(done: bool, *_: object, **__: object) -> Extent:
    return (1, 1, 0) if done else None


def _deleted(*_: object, **__: object) -> Extent:
    return 1, 0, 0


def _number(several: Sequence[object] | Mapping[str, object], *_: object, **__: object) -> int:
    return len(several)


def _number_of_ranges(_key: str, ranges: Sequence[object], *_: object, **__: object) -> int:
    return len(ranges)


class _Measure(NamedTuple):
    """How the calls of one operation are counted.

    Attributes:
        kind: of the request.
        asked: how many values a call with these arguments is about; for one that failed.
        extent: what one did that returned that, with these arguments.
    """

    kind: str
    asked: Callable[..., int]
    extent: Callable[..., Extent]


_MEASURES: Final = {
    "read": _Measure("read", _one, _read),
    "read_as_of": _Measure("read", _one, _read),
    "read_ranges": _Measure("read", _number_of_ranges, _read_ranges),
    "read_parts": _Measure("read", _number_of_ranges, _read_several),
    "read_values": _Measure("read", _number, _read_several),
    "write": _Measure("write", _one, _written),
    "write_segments": _Measure("write", _one, _written_segments),
    "write_parts": _Measure("write", _one, _written_parts),
    "splice": _Measure("write", _one, _written_segments),
    "write_values": _Measure("write", _number, _written_several),
    "write_batch": _Measure("write", _number, _written_batch),
    "delete_range": _Measure("delete_range", _one, _deleted),
    "copy_to": _Measure("copy", _one, _copied),
}
#: What is counted when it begins, by the kind: nobody waits for it here.
_BEGUN: Final = {
    "list": "list",
    "list_directory": "list",
    "list_keys": "list",
    "register_write": "write",
}

# ---------------------------------------------------------------------------------- the operations


def count_operations(cls: type[Any], promise: type[Any]) -> None:
    """Have a class that keeps a promise count what is asked of it."""
    for name in (*_MEASURES, *_BEGUN):
        method = getattr(cls, name, None)
        if (
            method is None
            or name in cls.made_of_others
            or hasattr(method, "is_counted")
            or getattr(method, "__isabstractmethod__", False)
            # By these one tells what a store cannot do.
            or (name in ("write", "list") and method is getattr(promise, name))
        ):
            continue
        if name == "read":
            counted = _counted_read(method)
        elif name in _BEGUN:
            counted = _counted_beginning(name, method)
        else:
            counted = _counted(name, method, _MEASURES[name])
        counted.is_counted = True  # type: ignore[attr-defined]
        setattr(cls, name, counted)


def _counted(name: str, method: Callable[..., Any], measure: _Measure) -> Callable[..., Any]:
    """The method, which notes all calls but those of the method that overrides it."""
    kind, asked, extent = measure

    @wraps(method)
    async def operation(self: Counted, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        metrics = self.metrics
        if metrics is None or getattr(type(self), name) is not operation:
            return await method(self, *args, **options)
        began = perf_counter()
        try:
            result = await method(self, *args, **options)
        except BaseException as error:
            metrics.note((kind, asked(*args, **options), 0, 0, 0.0))
            if metrics.verbose.level >= 0:
                _log(self, name, args, type(error).__name__, began)
            raise
        found = extent(result, *args, **options)
        if found is not None:
            note((metrics, (kind, *found, perf_counter() - began)))
            if metrics.verbose.level >= 0:
                _log(self, name, args, f"{found[1]} of {found[0]} values, {found[2]} bytes", began)
        return result

    return operation


def _counted_read(method: Callable[..., Any]) -> Callable[..., Any]:
    """What `_counted` makes of `read`, the operation that there is most of, in fewer steps."""

    @wraps(method)
    async def read(
        self: Counted,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> Found:
        metrics = self.metrics
        began = perf_counter()
        try:
            result: Found = await method(
                self, key, byte_range, if_equal=if_equal, if_not_equal=if_not_equal
            )
        except BaseException as error:
            if metrics is not None and type(self).read is read:
                metrics.note(("read", 1, 0, 0, 0.0))
                if metrics.verbose.level >= 0:
                    _log(self, "read", (key,), type(error).__name__, began)
            raise
        if metrics is not None and type(self).read is read:
            size, found = 0, result.state == "value"
            if found:
                value = result.value
                size = len(value) if type(value) is bytes else memoryview(value).nbytes
            note((metrics, ("read", 1, found, size, perf_counter() - began)))
            if metrics.verbose.level >= 0:
                _log(self, "read", (key,), f"{result.state}, {size} bytes", began)
        return result

    return read


def _counted_beginning(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    kind = _BEGUN[name]

    @wraps(method)
    def operation(self: Counted, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the method
        metrics = self.metrics
        begun = method(self, *args, **options)
        if metrics is not None and begun is not None and getattr(type(self), name) is operation:
            metrics.note((kind, 1, 0, 0, 0.0))
            if metrics.verbose.level >= 0:
                _log(self, name, args, "begun", perf_counter())
        return begun

    return operation


def _log(store: Counted, name: str, args: Sequence[Any], outcome: str, began: float) -> None:
    """Tell of one operation; what it was about is named as in errors, without secrets."""
    assert store.metrics is not None
    about: str | KeyRange | Sequence[str] = args[0] if args else ""
    if isinstance(about, str):
        where = store.describe_key(about)
    else:
        keys = list(about) if isinstance(about, list | tuple | dict) else []
        where = f"{store.describe_key(keys[0])} and others" if keys else store.describe_key("")
    elapsed_ms = 1000 * (perf_counter() - began)
    store.metrics.verbose.log("%s %s: %s in %.3f ms", name, where, outcome, elapsed_ms)
