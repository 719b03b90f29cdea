"""Metrics: what the library did, as numbers that any thread notes and nobody waits for.

To note something is to append it to a queue of the thread, so threads share nothing until notes are
added up: when somebody collects the metrics, or when a thread has many of them, by whoever gets the
lock; a thread that does not get it goes on. Notes of one thread are added up in their order.

A metric is whatever has a `collect` and is registered: a `Counter`, a `Gauge`, a `Distribution`, a
family of these by a label, or an object of a higher floor that adds up several at once. Counts are
those of this process: a forked child begins at zero, since its parent goes on counting for itself.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter as Totals
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from threading import local
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar
from weakref import ref

import numpy as np

from tensorstore_py._runtime.fork import on_fork
from tensorstore_py._runtime.keyed_lock import Mutex

__all__ = [
    "MANY",
    "Collected",
    "Counter",
    "Family",
    "Gauge",
    "Histogram",
    "Kind",
    "Metric",
    "Point",
    "Spread",
    "Sums",
    "collected",
    "counter",
    "histogram",
    "note",
    "register",
]

Kind = Literal["counter", "gauge", "histogram"]
M = TypeVar("M", bound="Metric")

#: So many notes are added up by the thread that makes one more.
MANY: Final = 1024
#: Of a histogram: below zero, below one, below each power of two, and above all of them.
_BUCKETS: Final = 66


class Spread:
    """The distribution of what was observed: how much, its mean, and how many of which size.

    Bucket 0 is for what is negative, bucket 1 for what is below 1, and each further one for twice
    as much.

    Example:
        >>> spread = Spread()
        >>> spread.add([0.5, 3, 3.5])
        >>> spread.count, round(spread.mean, 3), spread.buckets[:5]
        (3, 2.333, [0, 1, 0, 2, 0])
        >>> [Spread.limit(number) for number in range(4)]
        [0, 1, 2, 4]
    """

    __slots__ = ("buckets", "count", "deviation", "mean")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.deviation = 0.0
        self.buckets = [0] * _BUCKETS

    def add(self, values: Sequence[float], times: Sequence[int] | None = None) -> None:
        """Observe some values, each so many times; `deviation` is that from the mean, squared."""
        found = np.asarray(values, np.float64)
        weights = np.ones(len(found), np.int64) if times is None else np.asarray(times)
        count = int(weights.sum())
        mean = float(found @ weights) / count
        apart = mean - self.mean
        total = self.count + count
        self.deviation += float(weights @ (found - mean) ** 2)
        self.deviation += apart * apart * self.count * count / total
        self.mean += apart * count / total
        self.count = total
        exponents = np.maximum(np.frexp(found)[1], 0)
        numbers = np.where(found < 0, 0, np.minimum(exponents + 1, _BUCKETS - 1))
        more = np.bincount(numbers, weights, _BUCKETS)
        self.buckets = [int(old + new) for old, new in zip(self.buckets, more, strict=True)]

    @staticmethod
    def limit(number: int) -> int:
        """What all values of a bucket are below."""
        return 1 << (number - 1) if number else 0

    def copy(self) -> Spread:
        """The same, which goes on no more."""
        other = Spread()
        other.count, other.mean, other.deviation = self.count, self.mean, self.deviation
        other.buckets = list(self.buckets)
        return other


class Point(NamedTuple):
    """One value of a metric.

    Attributes:
        labels: which of its values.
        value: a number, or a distribution.
        most: the largest value there was; None if the metric does not keep it.
    """

    labels: Mapping[str, str]
    value: float | Spread
    most: float | None = None

    @property
    def is_zero(self) -> bool:
        """Whether nothing was counted."""
        if isinstance(self.value, Spread):
            return not self.value.count
        return not self.value and not self.most


class Collected(NamedTuple):
    """One metric at some moment.

    Attributes:
        name: as a path.
        help: what it counts, in a few words.
        unit: of its values, in the plural; may be empty.
        kind: what its values mean.
        points: its values.
    """

    name: str
    help: str
    unit: str
    kind: Kind
    points: list[Point]


class Metric(ABC):
    """Something that is counted."""

    def note(self, found: object) -> None:
        """Note something, on any thread, whatever it holds."""
        note((self, found))

    @abstractmethod
    def add(self, notes: Sequence[Any]) -> None:
        """Add up some notes; on one thread at a time, like `clear` and `collect`."""

    @abstractmethod
    def clear(self) -> None:
        """Begin at zero."""

    @abstractmethod
    def collect(self) -> Iterable[Collected]:
        """Its values now."""


class _Alive:
    """As long as it is there, its thread is."""

    __slots__ = ("__weakref__",)


_Notes: TypeAlias = deque[tuple[Metric, Any]]

#: Of each thread what is not added up yet, and whether it is still there.
_noted: list[tuple[ref[_Alive], _Notes]] = []
_mutex: Final = Mutex()
_metrics: list[Metric] = []


class _Here(local):
    """What this thread noted."""

    def __init__(self) -> None:
        self.notes: _Notes = deque()
        self.alive = _Alive()
        _noted.append((ref(self.alive), self.notes))


_here = _Here()


def note(found: tuple[Metric, Any]) -> None:
    """Note something of a metric: `note((metric, found))`, in fewer steps than by its method."""
    notes = _here.notes
    notes.append(found)
    # Code of a finalizer may run while its thread is adding up: it must not wait.
    if len(notes) >= MANY and _mutex.lock.acquire(blocking=False):
        try:
            _add_up()
        finally:
            _mutex.lock.release()


def _add_up() -> None:
    """Add up what all threads noted; under the mutex."""
    by_metric: dict[Metric, list[object]] = {}
    for each in _noted.copy():
        alive, notes = each
        ended = alive() is None  # and if so, it notes no more
        for _ in range(len(notes)):
            metric, found = notes.popleft()
            of_metric = by_metric.get(metric)
            if of_metric is None:
                by_metric[metric] = [found]
            else:
                of_metric.append(found)
        if ended:
            _noted.remove(each)
    for metric, of_metric in by_metric.items():
        metric.add(of_metric)


def register(metric: M) -> M:
    """Have a metric collected from now on; the metric."""
    _metrics.append(metric)
    return metric


def collected(prefix: str = "", *, zeros: bool = True) -> list[Collected]:
    """All metrics whose names begin so, by name; without `zeros`, those that counted anything."""
    with _mutex:
        _add_up()
        found = [each for metric in _metrics for each in metric.collect()]
    wanted = (
        each
        for each in found
        if each.name.startswith(prefix)
        and (zeros or not all(point.is_zero for point in each.points))
    )
    return sorted(wanted, key=attrgetter("name"))


def _begin_at_zero() -> None:
    if not sys.is_finalizing():  # a child, and not the end of the process that counted
        for _, notes in _noted:
            notes.clear()
        _mutex.after_fork()
        for metric in _metrics:
            metric.clear()


on_fork(_begin_at_zero)


class _Single(Metric):
    """A metric of one value, with a name."""

    kind: Kind

    def __init__(self, name: str, help: str, unit: str = "") -> None:
        self.name, self.help, self.unit = name, help, unit
        self.clear()

    @abstractmethod
    def point(self, labels: Mapping[str, str]) -> Point:
        """Its value."""

    def collect(self) -> Iterator[Collected]:
        yield Collected(self.name, self.help, self.unit, self.kind, [self.point({})])


class Counter(_Single):
    """How often something happened, or how much of it there was.

    Example:
        >>> counter = Counter("/example/sent", "bytes sent", "bytes")
        >>> counter.add([5, 2])
        >>> [(each.name, each.points[0].value) for each in counter.collect()]
        [('/example/sent', 7)]
    """

    kind = "counter"
    total: float

    def add(self, notes: Sequence[float]) -> None:
        self.total += sum(notes)

    def clear(self) -> None:
        self.total = 0

    def point(self, labels: Mapping[str, str]) -> Point:
        return Point(labels, self.total)


class Gauge(_Single):
    """How much there is of something, and how much there was at most; notes say by how much.

    Example:
        >>> gauge = Gauge("/example/active", "requests under way")
        >>> gauge.add([1, 1, -1])
        >>> next(iter(gauge.collect())).points[0][1:]
        (1, 2)
    """

    kind = "gauge"
    now: float
    most: float

    def add(self, notes: Sequence[float]) -> None:
        self.most = max(self.most, *accumulate(notes, initial=self.now))
        self.now += sum(notes)

    def clear(self) -> None:
        self.now = self.most = 0

    def point(self, labels: Mapping[str, str]) -> Point:
        return Point(labels, self.now, self.most)


class Histogram(_Single):
    """How large the things are that were observed."""

    kind = "histogram"
    spread: Spread

    def add(self, notes: Sequence[float]) -> None:
        self.spread.add(notes)

    def clear(self) -> None:
        self.spread = Spread()

    def point(self, labels: Mapping[str, str]) -> Point:
        return Point(labels, self.spread.copy())


class Sums(Metric):
    """Several counters that are noted together.

    Args:
        counters: name, help and unit of each.

    Example:
        >>> sums = Sums(("/example/sent", "messages", ""), ("/example/sent_bytes", "", "bytes"))
        >>> sums.add([(1, 50), (1, 20)])
        >>> [each.points[0].value for each in sums.collect()]
        [2, 70]
    """

    def __init__(self, *counters: tuple[str, str, str]) -> None:
        self._counters = [Counter(*each) for each in counters]

    def add(self, notes: Sequence[tuple[int, ...]]) -> None:
        for counter, numbers in zip(self._counters, zip(*notes, strict=True), strict=True):
            counter.add(numbers)

    def clear(self) -> None:
        for counter in self._counters:
            counter.clear()

    def collect(self) -> Iterator[Collected]:
        for counter in self._counters:
            yield from counter.collect()


class Family(Metric):
    """A counter for each value of a label; notes are these values.

    Args:
        name: of the metric.
        help: what it counts.
        label: whose values tell the counters apart.
        known: values that are there from the beginning.

    Example:
        >>> family = Family("/example/answers", "answers", "code", ["200"])
        >>> family.add(["404"])
        >>> [(point.labels, point.value) for each in family.collect() for point in each.points]
        [({'code': '200'}, 0), ({'code': '404'}, 1)]
    """

    def __init__(
        self,
        name: str,
        help: str,
        label: str,
        known: Iterable[str] = (),
    ) -> None:
        self._name, self._help, self._label = name, help, label
        self._known = tuple(known)
        self.clear()

    def add(self, notes: Sequence[str]) -> None:
        self._totals.update(notes)

    def clear(self) -> None:
        self._totals = Totals(dict.fromkeys(self._known, 0))

    def collect(self) -> Iterator[Collected]:
        points = [
            Point({self._label: value}, total) for value, total in sorted(self._totals.items())
        ]
        yield Collected(self._name, self._help, "", "counter", points)


def counter(name: str, help: str, unit: str = "") -> Counter:
    """A counter that is collected."""
    return register(Counter(name, help, unit))


def histogram(name: str, help: str, unit: str = "") -> Histogram:
    """A histogram that is collected."""
    return register(Histogram(name, help, unit))
