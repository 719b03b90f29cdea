"""Restriction of a frame to a domain: what indexing with an `IndexDomain` means.

Dimensions are matched by label where both sides have labels, else by position; the ones that the
domain does not name stay as they are.

Invariant: coordinates are kept, so index arrays are only cropped.
"""

from __future__ import annotations

from tensorstore_py._index.frame import Frame
from tensorstore_py._index.interval import format_interval
from tensorstore_py._index.labels import find_label, quote
from tensorstore_py._index.maps import OutputIndexMap, array_map
from tensorstore_py.errors import IndexingError, OutOfRangeError

__all__ = ["restrict"]


def restrict(frame: Frame, domain: Frame) -> Frame:
    """Restrict a frame to a domain whose dimensions are matched by label, else by position.

    Raises:
        OutOfRangeError: the domain is not contained in the frame's.
        IndexingError: the dimensions cannot be matched.
    """
    dims, labels = _match(frame, domain)
    lower, upper = list(frame.lower), list(frame.upper)
    implicit_lower, implicit_upper = list(frame.implicit_lower), list(frame.implicit_upper)
    is_empty = False
    for position, dim in enumerate(dims):
        low, up = domain.lower[position], domain.upper[position]
        allowed_low, allowed_up = frame.effective(dim)
        if low == up:
            is_empty = True
        elif low < allowed_low or up > allowed_up:
            raise OutOfRangeError(
                f"Cannot slice target dimension {dim} {{{_describe(frame, dim)}}} with index "
                f"domain dimension {position} {{{_describe(domain, position)}}}"
            )
        lower[dim], upper[dim] = low, up
        implicit_lower[dim] = implicit_upper[dim] = False
    result = Frame(
        tuple(lower),
        tuple(upper),
        tuple(implicit_lower),
        tuple(implicit_upper),
        labels,
        frame.maps,
    )
    if is_empty:
        return result.without_arrays()
    return result.with_maps(tuple(_cropped(frame, result, m) for m in frame.maps))


def _describe(frame: Frame, dim: int) -> str:
    prefix = f"{quote(frame.labels[dim])}: " if frame.labels[dim] else ""
    return prefix + format_interval(*frame.bounds(dim))


def _match(frame: Frame, domain: Frame) -> tuple[list[int], tuple[str, ...]]:
    """The frame's dimension for each of the domain's, and the labels of the result."""
    has_labels = any(domain.labels)
    if not has_labels or not any(frame.labels):
        if domain.rank != frame.rank:
            raise IndexingError(
                f"Rank of index domain ({domain.rank}) must match rank of slice target "
                f"({frame.rank}) when the index domain or slice target is unlabeled"
            )
        return list(range(frame.rank)), domain.labels if has_labels else frame.labels
    unlabeled = iter([dim for dim, text in enumerate(frame.labels) if not text])
    dims: list[int] = []
    for text in domain.labels:
        dim = find_label(text, frame.labels) if text else next(unlabeled, None)
        if dim is None:
            raise IndexingError(
                "Number of unlabeled dimensions in index domain exceeds number of unlabeled "
                "dimensions in slice target"
            )
        dims.append(dim)
    if not all(domain.labels) and frame.rank != domain.rank:
        raise IndexingError(
            f"Rank ({domain.rank}) of index domain containing unlabeled dimensions must equal "
            f"slice target rank ({frame.rank})"
        )
    return dims, frame.labels


def _cropped(old: Frame, new: Frame, index_map: OutputIndexMap) -> OutputIndexMap:
    values = index_map.index_array
    if values is None or index_map.stride is None:
        return index_map
    window: list[slice] = []
    for dim, size in enumerate(values.shape):
        start = new.lower[dim] - old.lower[dim] if size != 1 else 0
        count = new.upper[dim] - new.lower[dim] if size != 1 else 1
        window.append(slice(start, start + count))
    return array_map(
        index_map.offset, index_map.stride, values[tuple(window)], index_map.value_range
    )
