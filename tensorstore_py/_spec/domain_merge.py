"""Domains merged and moved, where two parts of a spec each say something of the domain.

Nothing is guessed: what the parts do not agree on is an error that names the dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._index import Dim, IndexDomain
from tensorstore_py._index import inf as INFINITY  # noqa: N812 - a constant
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from tensorstore_py._index import IndexTransform

__all__ = ["domain_to_output", "merge_domains"]


def merge_domains(mine: IndexDomain | None, theirs: IndexDomain | None) -> IndexDomain | None:
    """The domain that satisfies both; None is unconstrained.

    An implicit infinite bound and an empty label are unconstrained; whatever else both state must
    agree. A bound is implicit if both say so.

    Raises:
        MismatchError: rank, a label or a bound differs.
    """
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    prefix = f"Cannot merge index domain {mine} with index domain {theirs}: "
    if mine.rank != theirs.rank:
        raise MismatchError(prefix + "Ranks do not match")
    dims = []
    for position, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        try:
            dims.append(_merge_dims(a, b))
        except MismatchError as error:
            raise MismatchError(f"{prefix}Mismatch in dimension {position}: {error}") from None
    return IndexDomain(dims)


def _merge_dims(a: Dim, b: Dim) -> Dim:
    if a.label and b.label and a.label != b.label:
        raise MismatchError("Dimension labels do not match")
    lower, implicit_lower = _merge_bound(
        (a.inclusive_min, a.implicit_lower), (b.inclusive_min, b.implicit_lower), -INFINITY, "Lower"
    )
    upper, implicit_upper = _merge_bound(
        (a.inclusive_max, a.implicit_upper), (b.inclusive_max, b.implicit_upper), INFINITY, "Upper"
    )
    return Dim(
        inclusive_min=lower,
        inclusive_max=upper,
        label=a.label or b.label,
        implicit_lower=implicit_lower,
        implicit_upper=implicit_upper,
    )


def _merge_bound(
    a: tuple[int, bool], b: tuple[int, bool], unbounded: int, which: str
) -> tuple[int, bool]:
    if a == (unbounded, True):
        return b
    if b == (unbounded, True):
        return a
    if a[0] != b[0]:
        raise MismatchError(f"{which} bounds do not match")
    return a[0], a[1] and b[1]


def domain_to_output(domain: IndexDomain, transform: IndexTransform) -> IndexDomain:
    """The domain of a transform's output space, given that of its input space.

    Raises:
        MismatchError: an output dimension does not follow one input dimension of its own, or
            a bounded one does so with a stride.
    """
    dims = []
    seen: set[int] = set()
    for each in transform.maps:
        source = each.input_dimension
        if source is None or each.stride is None:
            raise MismatchError(
                f"Cannot specify domain through a transform with a {each.method.name} "
                f"output index map"
            )
        if source in seen:
            raise MismatchError(
                "Cannot specify domain through a transform with multiple output dimensions "
                "mapping to the same input dimension"
            )
        seen.add(source)
        dims.append(_moved(domain[source], each.offset, each.stride))
    return IndexDomain(dims)


def _moved(dim: Dim, offset: int, stride: int) -> Dim:
    bounds = [
        (dim.inclusive_min, dim.implicit_lower, -INFINITY),
        (dim.inclusive_max, dim.implicit_upper, INFINITY),
    ]
    if abs(stride) != 1:
        if any(bound != unbounded for bound, _, unbounded in bounds):
            raise MismatchError(
                "Cannot specify finite domain through a transform with non-unit-stride "
                "output index map"
            )
        stride = 1 if stride > 0 else -1
    moved = [
        (stride * unbounded if bound == unbounded else stride * bound + offset, implicit)
        for bound, implicit, unbounded in bounds
    ]
    (lower, implicit_lower), (upper, implicit_upper) = moved if stride > 0 else moved[::-1]
    return Dim(
        inclusive_min=lower,
        inclusive_max=upper,
        label=dim.label,
        implicit_lower=implicit_lower,
        implicit_upper=implicit_upper,
    )
