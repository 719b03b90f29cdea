"""Application of any index term to a frame: the one dispatch point.

Terms that are no NumPy-style expression (transforms, domains, dimension expressions) are
`IndexTerm`s and know how to apply themselves; everything else is parsed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from tensorstore_py._index.fast_slice import try_basic_index
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.numpy_style import index_frame
from tensorstore_py._index.numpy_terms import IndexMode, parse_index

__all__ = ["IndexTerm", "index_into"]


class IndexTerm(ABC):
    """Something that can stand between the brackets and is no NumPy-style expression."""

    __slots__ = ()

    @abstractmethod
    def _index_into(self, frame: Frame) -> Frame:
        """Apply this term to a frame (without maps: to a domain)."""


def index_into(frame: Frame, term: object, mode: IndexMode) -> Frame:
    """Apply an index term of any kind.

    Raises:
        IndexError: the term does not fit, or leaves the domain.
        TypeError: a slice with bounds that are no integers.
    """
    result = try_basic_index(frame, term)
    if result is not None:
        return result
    if mode == "default" and isinstance(term, IndexTerm):
        return term._index_into(frame)
    return index_frame(frame, parse_index(term, mode, "direct"))
