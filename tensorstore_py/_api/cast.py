"""`ts.cast`: a view with another data type.

The work is `TensorStore.astype`'s; specs are taken, too, as by the reference.
"""

from __future__ import annotations

from typing import overload

from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame

__all__ = ["cast"]


@overload
def cast(base: TensorStore, dtype: DTypeLike) -> TensorStore: ...
@overload
def cast(base: Spec, dtype: DTypeLike) -> Spec: ...
def cast(base: TensorStore | Spec, dtype: DTypeLike) -> TensorStore | Spec:
    """`base` with its elements converted to another data type, both ways.

    Args:
        base: an open array, or a Spec.
        dtype: the data type to read and write as.

    Raises:
        SpecError: no such data type, or no conversion to or from it.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.cast(ts.array([0, 1, 2], dtype="uint8"), "bool").read().result()
        array([False,  True,  True])
    """
    if isinstance(base, TensorStore):
        return base.astype(dtype)
    json = {"driver": "cast", "base": base.model, "dtype": DType(dtype)}
    return Spec.of(parse_spec(json))
