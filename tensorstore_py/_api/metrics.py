"""Metrics and verbose logging, as users ask for them: what the library did in this process.

What is counted, and where, is said in `docs/metrics.md`. Names are TensorStore's where the same
thing is counted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, Final

from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.loading import load
from tensorstore_py._runtime.metrics import Collected, Point, Spread, collected
from tensorstore_py._runtime.prometheus import exposition
from tensorstore_py._runtime.verbose_logging import update_verbose_logging
from tensorstore_py.errors import SpecError

__all__ = [
    "experimental_collect_matching_metrics",
    "experimental_collect_prometheus_format_metrics",
    "experimental_push_metrics_to_prometheus",
    "experimental_update_verbose_logging",
    "parse_tensorstore_flags",
]

_FLAG: Final = re.compile(r"--?tensorstore_verbose_logging(?:=(.*))?", re.DOTALL)


def experimental_collect_matching_metrics(
    metric_prefix: str = "", include_zero_metrics: bool = False
) -> list[dict[str, Any]]:  # JSON
    """What was counted in this process so far, as JSON; a forked child begins at zero.

    Args:
        metric_prefix: what the names of the metrics begin with.
        include_zero_metrics: also those that counted nothing yet.

    Returns:
        An object for each metric, by name: `name`, and `values`, a list of objects with the labels
        of the value, if there are any, and the `value`. A gauge also has its `max_value`. A
        histogram has `count`, `mean`, `sum_of_squared_deviation`, and the number of observations
        in each bucket, by the limit that these are below.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.KvStore.open("memory://metrics/").result().write("key", b"value").result()
        KvStore.TimestampedStorageGeneration(...)
        >>> (found,) = ts.experimental_collect_matching_metrics(
        ...     "/tensorstore/kvstore/memory/write"
        ... )[:1]
        >>> found["name"], found["values"][0]["value"] > 0
        ('/tensorstore/kvstore/memory/write', True)
    """
    found = collected(metric_prefix, zeros=include_zero_metrics)
    return [_json(metric) for metric in found]


def _json(metric: Collected) -> dict[str, Any]:
    return {"name": metric.name, "values": [_json_value(point) for point in metric.points]}


def _json_value(point: Point) -> dict[str, object]:
    value: dict[str, object] = dict(point.labels)
    if not isinstance(point.value, Spread):
        value["value"] = point.value
        if point.most is not None:
            value["max_value"] = point.most
        return value
    spread = point.value
    value.update(count=spread.count, mean=spread.mean, sum_of_squared_deviation=spread.deviation)
    last = max((number for number, count in enumerate(spread.buckets) if count), default=-1)
    for number in range(last + 1):
        value[str(Spread.limit(number))] = spread.buckets[number]
    return value


def experimental_collect_prometheus_format_metrics(metric_prefix: str = "") -> list[str]:
    """What was counted in this process so far, in the text format of Prometheus (0.0.4).

    Args:
        metric_prefix: what the names of the metrics begin with, as for
            `experimental_collect_matching_metrics`.

    Returns:
        Lines without line ends: also of metrics that counted nothing yet.

    Source: https://prometheus.io/docs/instrumenting/exposition_formats/

    Example:
        >>> import tensorstore_py as ts
        >>> ts.experimental_collect_prometheus_format_metrics("/tensorstore/group_commit/com")[-2]
        '# TYPE tensorstore_group_commit_commits counter'
    """
    return list(exposition(collected(metric_prefix)))


def experimental_push_metrics_to_prometheus(
    pushgateway: str = "", job: str = "", instance: str = "", metric_prefix: str = ""
) -> Future[int]:
    """Send what was counted to a push gateway of Prometheus, in place of what it has of this job.

    Args:
        pushgateway: the URL of the gateway.
        job: the name of the job there.
        instance: which of the job's instances this is; none by default.
        metric_prefix: what the names of the metrics begin with.

    Returns:
        A Future of the status that the gateway answers with.

    Raises:
        SpecError: the URL is none of HTTP, or there is no job.
        UnavailableError: there is no answer; from the Future.

    Source: https://github.com/prometheus/pushgateway

    Example:
        >>> import tensorstore_py as ts
        >>> ts.experimental_push_metrics_to_prometheus("http://localhost:9091/")
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.SpecError: "job" is empty: name the job whose metrics these are
    """
    if not pushgateway.startswith(("http://", "https://")):
        raise SpecError('"pushgateway" must be a URL that begins with http:// or https://')
    if not job:
        raise SpecError('"job" is empty: name the job whose metrics these are')
    url = f"{pushgateway.rstrip('/')}/metrics{_grouping('job', job)}"
    if instance:
        url += _grouping("instance", instance)
    lines = experimental_collect_prometheus_format_metrics(metric_prefix)
    body = "".join(f"{line}\n" for line in lines).encode()
    # At first use: most programs need no HTTP.
    push_gateway: Any = load("tensorstore_py._net.push_gateway")
    return start(False, lambda: push_gateway.push(url, body))


def _grouping(label: str, value: str) -> str:
    """A part of the path; in base64 where it could not be one."""
    if re.fullmatch(r"[A-Za-z0-9\-_.~()]+", value):
        return f"/{label}/{value}"
    return f"/{label}@base64/{base64.urlsafe_b64encode(value.encode()).decode()}"


def experimental_update_verbose_logging(flags: str = "", overwrite: bool = False) -> None:
    """Have subsystems tell what they do, as records of Python's `logging`.

    The logger of a subsystem is `tensorstore_py.verbose.<flag>`. What no handler is configured for
    is written to the standard error stream. No record has a header or the query of a URL.

    Args:
        flags: separated by commas: the name of a kind of store (`file`, `s3`, `ocdbt`, ...;
            `http_kvstore`, `gcs_http`), `http_transport`, or `all` for those that are not named;
            each with `=level`, or at level 0. A level of -1 switches off. The environment variable
            `TENSORSTORE_VERBOSE_LOGGING` has the flags that the program begins with.
        overwrite: forget the flags that were set before.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.experimental_update_verbose_logging("memory=1,http_transport")
        >>> ts.experimental_update_verbose_logging("", overwrite=True)
    """
    update_verbose_logging(flags, overwrite=overwrite)


def parse_tensorstore_flags(argv: Sequence[str]) -> None:
    """Heed the flags of a command line: `--tensorstore_verbose_logging=FLAGS`; the last one counts.

    Args:
        argv: the words of the command line, the first of them the program. What is no flag of this
            library is left alone, and so is all behind `--`.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.parse_tensorstore_flags(["program", "--tensorstore_verbose_logging=memory=-1"])
    """
    words = iter(argv[1:])
    for word in words:
        if word == "--":
            return
        found = _FLAG.fullmatch(word)
        if found is not None:
            flags = next(words, "") if found[1] is None else found[1]
            update_verbose_logging(flags, overwrite=True)
