"""What can be asked of `ts.reduce`, by name: for which data types, and what it is made of.

Several reductions are made of the same measures (`measure`), so each measure is taken once whatever
is asked for. Nothing here reads; states come in, and results go out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from tensorstore_py._compute.distribution import Bins, Buckets, Histogram, edges_of, quantiles
from tensorstore_py._compute.measure import (
    Counts,
    ExactTotal,
    Extreme,
    FillCount,
    FloatTotal,
    Measure,
    Spread,
    computable,
    equal_to,
    exact_sums,
    float_sums,
    narrow_sums,
    variances,
)
from tensorstore_py.errors import MismatchError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._compute.measure import Array, State
    from tensorstore_py._spec.dtype import dtype

__all__ = ["MEASURES", "Reduction", "ReductionRequest", "Reductions"]

#: What can be asked for.
Reduction: TypeAlias = Literal[
    "min", "max", "sum", "mean", "std", "var", "median", "quantiles", "histogram", "count",
    "fill_count",
]  # fmt: skip

#: What makes one of two states of a measure.
MEASURES: Final[Mapping[str, type[Measure]]] = {
    "min": Extreme,
    "max": Extreme,
    "exact_total": ExactTotal,
    "float_total": FloatTotal,
    "spread": Spread,
    "buckets": Buckets,
    "bins": Bins,
    "counts": Counts,
    "fill": FillCount,
}
_COUNTS: Final = ("count", "fill_count")
#: What goes, by kind of data type; for any other only counting does.
_DEFINED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys("biuf", get_args(Reduction)),
    "c": ("sum", "mean", "std", "var", *_COUNTS),
    "M": ("min", "max", "mean", *_COUNTS),
    "m": ("min", "max", "sum", "mean", *_COUNTS),
}
_MADE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "min": ("min", "counts"),
    "max": ("max", "counts"),
    "sum": ("total", "counts"),
    "mean": ("total", "counts"),
    "std": ("spread",),
    "var": ("spread",),
    "median": ("buckets", "counts"),
    "quantiles": ("buckets", "counts", "min", "max"),
    "histogram": ("bins",),
    "count": ("counts",),
    "fill_count": ("fill",),
}


@dataclass(frozen=True)
class ReductionRequest:
    """What is asked for.

    Attributes:
        skipna: whether NaN is passed over.
        ddof: what is taken off the count of elements for variances.
    """

    names: tuple[str, ...]
    skipna: bool = False
    bins: int | tuple[float, ...] = 256
    range: tuple[float, float] | None = None
    q: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    ddof: int = 0

    def to_json(self) -> dict[str, Any]:
        """What is asked for as JSON."""
        return {
            name: list(each) if isinstance(each, tuple) else each
            for name, each in asdict(self).items()
        }

    @staticmethod
    def from_json(json: Mapping[str, Any]) -> ReductionRequest:
        """What `to_json` gave."""
        known: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each for name, each in json.items()
        }
        return ReductionRequest(**known)


class Reductions:
    """What is asked for of the elements of one type.

    Raises:
        UnsupportedError: a reduction is not for that type; names those that are.
        SpecError: the histogram's range is not known.
    """

    def __init__(self, asked: ReductionRequest, data_type: dtype, fill: Array | None) -> None:
        kind = data_type.kind
        defined = _DEFINED.get(kind, _COUNTS)
        for name in asked.names:
            if name not in defined:
                raise UnsupportedError(
                    f'"{name}" is not defined for {data_type.name} elements; of these there are '
                    + ", ".join(f'"{each}"' for each in defined)
                )
        self.asked = asked
        self._kind = kind
        self._dtype = data_type.array_dtype
        self._fill = _one_value(np.zeros((), self._dtype) if fill is None else fill)
        self._total_name = "float_total" if computable(self._dtype).kind in "fc" else "exact_total"
        needed = dict.fromkeys(
            self._total_name if part == "total" else part
            for name in asked.names
            for part in _MADE_OF[name]
        )
        self.measures: dict[str, Measure] = {name: self._measure(name) for name in needed}

    def _measure(self, name: str) -> Measure:
        asked, numpy_type = self.asked, self._dtype
        if name in ("min", "max"):
            return Extreme(numpy_type, greatest=name == "max", skips=asked.skipna)
        if name == "float_total":
            return FloatTotal(numpy_type)
        if name == "exact_total":
            return ExactTotal()
        if name == "spread":
            return Spread(numpy_type)
        if name == "buckets":
            return Buckets(numpy_type)
        if name == "bins":
            return Bins(edges_of(numpy_type, _plain(asked.bins), asked.range), numpy_type)
        if name == "counts":
            return Counts()
        if self._fill is None:
            raise UnsupportedError(
                "the fill value of this array is not the same for all elements, so it cannot be "
                'counted; leave "fill_count" out'
            )
        return FillCount(self._fill)

    def result(self, name: str, states: Mapping[str, State], rows: int) -> Array | Histogram:
        """A reduction of each of the rows.

        Raises MismatchError: a sum does not fit 64 bits; or there is no least of no elements.
        """
        if name in ("min", "max"):
            return self._extreme(name, states)
        if name in ("sum", "mean"):
            return self._total(name, states)
        if name in ("std", "var"):
            found = variances(states["spread"], self.asked.ddof)
            return np.sqrt(found) if name == "std" else found
        if name in ("median", "quantiles"):
            return self._quantiles(name, states, rows)
        if name == "histogram":
            bins = self.measures["bins"]
            assert isinstance(bins, Bins)
            return Histogram(states["bins"]["counts"], bins.edges)
        if name == "fill_count":
            return states["fill"]["count"]
        counts = states["counts"]
        # NaT is no number, so it is never taken; but it is an element.
        nat = self._kind in "mM" and not self.asked.skipna
        return counts["valid"] + counts["missing"] if nat else counts["valid"]

    def _extreme(self, name: str, states: Mapping[str, State]) -> Array:
        (value,), counts = states[name].values(), states["counts"]
        if not (counts["valid"] + counts["missing"]).all():
            raise MismatchError(f'there is no "{name}" of no elements; select some')
        if self._kind in "mM":
            return self._times(value, states)
        found: Array = value.astype(self._dtype, copy=False)
        return found

    def _times(self, numbers: Array, states: Mapping[str, State]) -> Array:
        """Times of their numbers; NaT where there is one, or where there is nothing else."""
        counts = states["counts"]
        lost = counts["valid"] == 0
        if not self.asked.skipna:
            lost |= counts["missing"] > 0
        found = numbers.astype(np.int64).view(self._dtype).copy()
        found[lost] = np.array("NaT", self._dtype)
        return found

    def _total(self, name: str, states: Mapping[str, State]) -> Array:
        count = states["counts"]["valid"]
        total_state = states[self._total_name]
        if self._total_name == "float_total":
            total = float_sums(total_state)
            if name == "sum":
                return total
            with np.errstate(all="ignore"):
                mean: Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
            return mean
        narrow = narrow_sums(total_state)
        if narrow is not None and self._kind not in "mM":  # as nearly always
            if name == "sum":
                return narrow.astype(np.uint64 if self._kind == "u" else np.int64)
            return np.where(count > 0, narrow / np.maximum(count, 1), np.nan)
        sums = exact_sums(total_state)
        if name == "sum":
            return self._fitting(sums, states)
        if self._kind in "mM":
            exact = [
                (2 * total + each) // (2 * each) if each else 0
                for total, each in zip(sums, count.tolist(), strict=True)
            ]
            return self._times(np.array(exact, np.int64), states)
        return np.array(
            [
                total / each if each else np.nan
                for total, each in zip(sums, count.tolist(), strict=True)
            ],
            np.float64,
        )

    def _fitting(self, sums: Array, states: Mapping[str, State]) -> Array:
        dtype = np.dtype(np.uint64 if computable(self._dtype).kind == "u" else np.int64)
        if self._kind == "b":
            dtype = np.dtype(np.int64)
        limits = np.iinfo(dtype)
        if len(sums) and not (limits.min <= sums.min() and sums.max() <= limits.max):
            far = max(sums.min(), sums.max(), key=abs)
            raise MismatchError(
                f"a sum of {self._dtype} elements is {far}, which does not fit {dtype}; ask for "
                '"mean", or reduce ts.cast(source, "float64")'
            )
        found: Array = sums.astype(dtype)
        return self._times(found, states) if self._kind == "m" else found

    def _quantiles(self, name: str, states: Mapping[str, State], rows: int) -> Array:
        sketch = self.measures["buckets"]
        assert isinstance(sketch, Buckets)
        asked: Sequence[float] = (0.5,) if name == "median" else self.asked.q
        found = quantiles(sketch, states["buckets"], rows, asked)
        for share, end in ((0.0, "min"), (1.0, "max")):  # these are known exactly
            if name == "quantiles" and share in asked:
                there = states["counts"]["valid"] > 0
                for column in np.nonzero(np.equal(asked, share))[0]:
                    (extreme,) = states[end].values()
                    found[there, column] = extreme[there]
        if not self.asked.skipna:
            found[states["counts"]["missing"] > 0] = np.nan
        return found[:, 0] if name == "median" else found


def _one_value(fill: Array) -> Array | None:
    """The value that all elements of a fill value have; None: they have several."""
    if not fill.ndim:
        return fill
    first: Array = fill.reshape(-1)[:1].reshape(())
    return first if equal_to(fill, first).all() else None


def _plain(bins: int | tuple[float, ...]) -> int | Sequence[float]:
    return bins if isinstance(bins, int) else list(bins)
