"""`ts.downsample`: a smaller view of an array.

The work is the `downsample` driver's; an open array is handed to it as it is, so nothing has to be
awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from tensorstore_py._api.open import open_now
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._api.tensorstore import TensorStore, as_spec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DownsampleMethod", "downsample"]

DownsampleMethod: TypeAlias = Literal["stride", "mean", "median", "mode", "min", "max"]


@overload
def downsample(
    base: TensorStore, downsample_factors: Iterable[int], method: DownsampleMethod
) -> TensorStore: ...
@overload
def downsample(base: Spec, downsample_factors: Iterable[int], method: DownsampleMethod) -> Spec: ...
def downsample(
    base: TensorStore | Spec, downsample_factors: Iterable[int], method: DownsampleMethod
) -> TensorStore | Spec:
    """A smaller view, for reading: one element for each block of elements.

    Element `i` of a dimension with factor `f` stands for positions `[i * f, (i + 1) * f)`, as far
    as the array has them. What is read is made block by block, along the chunks of the array.

    Args:
        base: an open array, or a Spec. What is made of one that is seen through a transaction is
            seen through it, too.
        downsample_factors: for each dimension, at least 1.
        method: `"stride"` takes the element at `i * f`, `"mean"` rounds to the nearest (a half to
            the even one), `"median"` takes the lower one of two, `"mode"` the least of several
            that are as frequent, `"min"` and `"max"` pass over NaN.

    Raises:
        SpecError: not one factor a dimension, or the method is not for the data type.
        PermissionDeniedError: the array cannot be read.
        TypeError: `base` is neither an open array nor a Spec.

    Example:
        >>> import tensorstore_py as ts
        >>> store = ts.array([[1, 2, 3], [5, 6, 7]], dtype="uint8")
        >>> ts.downsample(store, [2, 2], "mean").read().result()
        array([[4, 5]], dtype=uint8)
    """
    if not isinstance(base, TensorStore | Spec):
        raise TypeError(f"expected a TensorStore or a Spec, but found {base!r}")
    model = as_spec(base) if isinstance(base, TensorStore) else base.model
    members = {
        "driver": "downsample",
        "base": model,
        "downsample_factors": list(downsample_factors),
        "downsample_method": method,
    }
    spec = parse_spec(members)
    if isinstance(base, TensorStore):
        return open_now(spec, None, None, base.transaction)
    return Spec.of(spec)
