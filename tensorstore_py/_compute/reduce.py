"""`ts.reduce`: what an array comes to, along dimensions or over all.

What callers say is checked here, where the call is; the work is `ReduceArray`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from tensorstore_py._api.begin import as_context
from tensorstore_py._compute.arrays import array_arguments, contents, end_of, one_array
from tensorstore_py._compute.reduce_operation import MergeRows, ReduceArray, RowStates
from tensorstore_py._compute.reductions import Reduction, ReductionRequest, Reductions
from tensorstore_py._plan.arrays import open_json
from tensorstore_py._plan.call import FoundCall, register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._plan.steps import Stage, Step, register
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._api.blocks import Blocks
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.endpoints import SourceEndpoint
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["ReduceCall", "reduce"]

Dims = Iterable[int | str] | int | str | None


def reduce(
    source: object,
    reductions: Reduction | Iterable[Reduction],
    dims: Iterable[int | str] | int | str | None = None,
    *,
    skipna: bool = False,
    bins: int | Sequence[float] = 256,
    range: tuple[float, float] | None = None,
    q: float | Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    ddof: int = 0,
    manifest: object = None,
    executor: object = None,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[dict[str, Any]]:
    """Reduce an array, along dimensions or over all, reading each chunk once.

    Only a few blocks of whole chunks are in memory at a time. Results are those of NumPy, whatever
    the chunks are: equal for whole numbers; of floating-point sums and variances, which are all
    kept in double precision, up to the last bits.

    | name | for | gives |
    |---|---|---|
    | `"min"`, `"max"` | numbers, times | an element |
    | `"sum"` | numbers, `timedelta64` | 64 bits: whole numbers exactly, or an error |
    | `"mean"` | numbers, times | `float64`, `complex128`, a time to its nearest unit |
    | `"std"`, `"var"` | numbers | `float64` |
    | `"median"`, `"quantiles"` | real numbers | `float64`; `q` is the last dimension |
    | `"histogram"` | real numbers | a `Histogram`; bins are the last dimension |
    | `"count"` | all | how many elements; with `skipna` those that are not NaN |
    | `"fill_count"` | all | how many are equal to the fill value |

    Quantiles are exact for numbers of 8 and 16 bits. For others the two elements that NumPy would
    interpolate between are each known to a relative error below 2^-11 (0.05 %), towards zero; with
    up to 12 significant bits they are exact. (C. Masson, J. E. Rim, H. K. Lee: DDSketch, VLDB 2019,
    with buckets even between powers of two.)

    Args:
        source: an open array or a view of one, or whatever `ts.open` takes: a URL, a path, a spec.
        reductions: names, see above; one or several.
        dims: along which dimensions, by number or label; None: all.
        skipna: pass over NaN and NaT. Without, a row that has one reduces to it.
        bins: of the histogram: how many, or their edges.
        range: of the histogram; may be left out for 8 and 16 bits: then it is that of the type.
        q: which quantiles, from 0 to 1.
        ddof: what is taken off the number of elements for `"std"` and `"var"`.
        manifest: where to keep what is done, as for `ts.copy`: the same call goes on from there
            after a crash, and any number of them, on any machines, share the work.
        executor: who reads and computes, as for `ts.copy`; None: this process.
        progress: called with a `Progress`; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a dict by name: NumPy scalars, or arrays over the dimensions that are left.

    Raises:
        SpecError: (at once) there is no such reduction; (by the Future) the histogram has no range.
        UnsupportedError: (by the Future) a reduction is not for the data type.
        MismatchError: (by the Future) a group is there; `"min"` or `"max"` of no elements; a sum
            that does not fit 64 bits.
        IndexingError: (by the Future) there is no such dimension.
        FailedPreconditionError: (by the Future) the manifest is that of another call, or the source
            has changed since it began.
        DataLossError: (by the Future) a chunk is corrupt, twice; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> rows = ts.array([[1, 2, 6], [4, 5, 6]], dtype="int16")
        >>> ts.reduce(rows, ["min", "sum", "mean"]).result()
        {'min': np.int16(1), 'sum': np.int64(24), 'mean': np.float64(4.0)}
        >>> ts.reduce(rows, "max", dims=0).result()["max"]
        array([4, 5, 6], dtype=int16)
    """
    call = _call(
        source, reductions, dims, skipna=skipna, bins=bins, range=range, q=q, ddof=ddof,
        context=context,
    )  # fmt: skip
    where = None if manifest is None else document_place(manifest, as_context(context))
    return run_call(call, executor, Reporter(progress, "reduce"), where)


def _call(
    source: object,
    reductions: Reduction | Iterable[Reduction],
    dims: Dims = None,
    *,
    skipna: bool = False,
    bins: int | Sequence[float] = 256,
    range: tuple[float, float] | None = None,
    q: float | Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    ddof: int = 0,
    context: Context | None = None,
) -> ReduceCall:
    asked = ReductionRequest(
        _names(reductions),
        skipna=bool(skipna),
        bins=bins if isinstance(bins, int) else tuple(float(edge) for edge in bins),
        range=None if range is None else (float(range[0]), float(range[1])),
        q=_shares((q,) if isinstance(q, int | float) else q),
        ddof=int(ddof),
    )
    known = dims if dims is None or isinstance(dims, int | str) else tuple(dims)
    return ReduceCall(end_of(source, as_context(context)), asked, known)


class ReduceCall(FoundCall[dict[str, Any], "tuple[TensorStore, ReduceArray]"]):
    """A reduction that is asked for."""

    operation = "reduce"

    def __init__(
        self,
        end: SourceEndpoint,
        asked: ReductionRequest,
        dims: int | str | tuple[int | str, ...] | None,
    ) -> None:
        self._end, self._asked, self._dims = end, asked, dims

    def request(self) -> JsonObject:
        """See `Call`."""
        said = self._asked.to_json()
        said["reductions"] = said.pop("names")
        return {"source": self._end.to_json(), "dims": _dims_json(self._dims), **said}

    def identity(self) -> JsonObject:
        """See `Call`."""
        dims = _dims_json(self._dims)
        return {"source": self._end.described, "dims": dims, **self._asked.to_json()}

    async def _find(self) -> tuple[TensorStore, ReduceArray]:
        array = one_array(await contents(False, self._end), "reduce").array
        return array, _operation(array, self._asked, self._dims)

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        array, operation = await self.found()

        def arguments() -> JsonObject:
            return {
                "source": array_arguments(array, ""),
                "asked": self._asked.to_json(),
                "dims": _dims_json(self._dims),
            }

        return (Stage((Step.of("reduce", "", arguments, operation),)),)

    def result(self, outcomes: list[StageOutcome]) -> dict[str, Any]:
        """What was asked for, by name."""
        found = [done.result for outcome in outcomes for done in outcome.steps.values()]
        known = found[0] if found else None
        assert known is None or isinstance(known, RowStates)
        return self.known[1].result(known)


def _operation(array: TensorStore, asked: ReductionRequest, dims: Dims) -> ReduceArray:
    found = Reductions(asked, array.dtype, array.fill_value)
    return ReduceArray(array._driver, array._transform, found, dims)


async def _open(arguments: JsonObject, context: Context, blocks: Blocks) -> ReduceArray:
    array = await open_json(arguments["source"], context, "the source of a reduction")
    asked, dims = arguments["asked"], arguments["dims"]
    assert isinstance(asked, dict)
    operation = _operation(array, ReductionRequest.from_json(asked), dims)  # type: ignore[arg-type]
    operation.blocks = blocks
    return operation


register("reduce", _open, MergeRows())
register_call(reduce, _call)


def _dims_json(dims: object) -> object:
    return list(dims) if isinstance(dims, tuple) else dims


def _names(given: Reduction | Iterable[Reduction]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in get_args(Reduction):
            hint = did_you_mean(str(name), get_args(Reduction))
            raise SpecError(f"{name!r} is no reduction{hint}", ("reductions",))
    if not names:
        raise SpecError("nothing is asked for; name a reduction", ("reductions",))
    return tuple(dict.fromkeys(names))


def _shares(given: Sequence[float]) -> tuple[float, ...]:
    found = tuple(float(each) for each in given)
    for each in found:
        if not 0 <= each <= 1:
            raise SpecError(f"quantiles are from 0 to 1, not {each:g}", ("q",))
    return found
