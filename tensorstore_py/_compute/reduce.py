"""`ts.reduce`: what an array comes to, along dimensions or over all.

What callers say is checked here, where the call is; the work is `ReduceArray`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._compute.arrays import contents, end_of, one_array
from tensorstore_py._compute.reduce_operation import ReduceArray
from tensorstore_py._compute.reductions import Asked, Reduction, Reductions
from tensorstore_py._compute.run import merged
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.progress import Told
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["reduce"]


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
        DataLossError: (by the Future) a chunk is corrupt, twice; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> rows = ts.array([[1, 2, 6], [4, 5, 6]], dtype="int16")
        >>> ts.reduce(rows, ["min", "sum", "mean"]).result()
        {'min': np.int16(1), 'sum': np.int64(24), 'mean': np.float64(4.0)}
        >>> ts.reduce(rows, "max", dims=0).result()["max"]
        array([4, 5, 6], dtype=int16)
    """
    asked = Asked(
        _names(reductions),
        skipna=bool(skipna),
        bins=bins if isinstance(bins, int) else tuple(float(edge) for edge in bins),
        range=None if range is None else (float(range[0]), float(range[1])),
        q=_shares((q,) if isinstance(q, int | float) else q),
        ddof=int(ddof),
    )
    end = end_of(source, as_context(context))
    told = Told(progress, "reduce")

    async def body() -> dict[str, Any]:
        array = one_array(await contents(end.inline, end), "reduce").array
        driver = array._driver
        found = Reductions(asked, array.dtype, array.fill_value)
        operation = ReduceArray(driver, array._transform, found, dims)
        partial = await within(end.inline, driver.inline, lambda: merged(operation, told))
        return operation.result(partial)

    return told.until(start(end.inline, body, when_left=WhenLeft.STOPS))


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
