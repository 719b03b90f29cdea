"""Prometheus: metrics in its text format (version 0.0.4).

A name is that of the metric with underscores for slashes. Buckets count all that is below their
limit, as Prometheus takes them; what a gauge was at most is a gauge of its own (`_max`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tensorstore_py._runtime.metrics import Collected, Point, Spread

__all__ = ["exposition"]

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


def exposition(metrics: Iterable[Collected]) -> Iterator[str]:
    r"""The lines of the metrics, without line ends.

    Example:
        >>> from tensorstore_py._runtime.metrics import Counter
        >>> print(*exposition(Counter("/example/sent", "bytes sent", "bytes").collect()), sep="\n")
        # HELP example_sent bytes sent
        # UNIT example_sent bytes
        # TYPE example_sent counter
        example_sent 0
    """
    for metric in metrics:
        name = re.sub(r"[^a-zA-Z0-9_:]", "_", metric.name.strip("/"))
        yield f"# HELP {name} {metric.help.translate(_HELP_ESCAPES)}"
        if metric.unit:
            yield f"# UNIT {name} {metric.unit}"
        yield f"# TYPE {name} {metric.kind}"
        for point in metric.points:
            if isinstance(point.value, Spread):
                yield from _histogram(name, point.labels, point.value)
            else:
                yield f"{name}{_labels(point.labels)} {_number(point.value)}"
        yield from _most(name, metric.points)


def _histogram(name: str, labels: Mapping[str, str], spread: Spread) -> Iterator[str]:
    below = 0
    *finite, _ = spread.buckets
    while finite and not finite[-1]:
        finite.pop()
    for number, count in enumerate(finite):
        below += count
        bucket = _labels({**labels, "le": str(Spread.limit(number))})
        yield f"{name}_bucket{bucket} {below}"
    yield f"{name}_bucket{_labels({**labels, 'le': '+Inf'})} {spread.count}"
    yield f"{name}_sum{_labels(labels)} {_number(spread.mean * spread.count)}"
    yield f"{name}_count{_labels(labels)} {spread.count}"


def _most(name: str, points: Iterable[Point]) -> Iterator[str]:
    lines = [
        f"{name}_max{_labels(point.labels)} {_number(point.most)}"
        for point in points
        if point.most is not None
    ]
    if lines:
        yield f"# TYPE {name}_max gauge"
        yield from lines


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
