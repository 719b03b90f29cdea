"""`Indexable`: how transforms, stores, specs and schemas are indexed; `Reshapable`: domains, too.

A subclass of `Indexable` gives two hooks, `_get_transform` and `_with_transform`; everything else
follows. Subclasses that can be written to also give `_assign`.

Invariant: no method here touches data; each returns a new view.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from tensorstore_py._display.public_name import public
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.numpy_style import index_into
from tensorstore_py._index.numpy_terms import IndexMode
from tensorstore_py._index.operations import (
    IndexSubscript,
    Subscript,
    TranslateKind,
    label,
    mark_bounds_implicit,
    parse_implicit,
    parse_index_vector,
    parse_labels,
    translate,
    transpose,
)
from tensorstore_py._index.selection import DimSelectionLike, parse_specs, resolve
from tensorstore_py.errors import IndexingError

if TYPE_CHECKING:
    from tensorstore_py._index.domain import IndexDomain
    from tensorstore_py._index.transform import IndexTransform

__all__ = ["Indexable", "Reshapable", "apply_index"]


def apply_index(
    transform: IndexTransform, term: object, mode: IndexMode = "default"
) -> IndexTransform:
    """The transform that `transform[term]` (or `.oindex[term]`, `.vindex[term]`) means.

    Raises:
        OutOfRangeError: the term leaves the domain.
        IndexError: the term does not fit the domain.
    """
    return transform._from_frame(index_into(transform._frame, term, mode))


def _permutation(frame: Frame, axes: DimSelectionLike | None) -> list[int]:
    """The dimension order that `transpose(axes)` asks for; None reverses.

    Raises IndexingError: `axes` names some dimension twice or not at all.
    """
    rank = frame.rank
    if axes is None:
        return list(range(rank - 1, -1, -1))
    dims = resolve(parse_specs(axes), frame.labels)
    if sorted(dims) != list(range(rank)):
        listed = ", ".join(map(str, dims))
        raise IndexingError(
            f"Source dimension list {{{listed}}} is not a valid dimension permutation for rank "
            f"{rank}"
        )
    return dims


class Reshapable(ABC):
    """What has dimensions to be moved, named and reordered: domains, and what is `Indexable`."""

    __slots__ = ()

    @abstractmethod
    def _get_frame(self) -> Frame:
        """The bounds and labels of the dimensions, and where they lead."""

    @abstractmethod
    def _with_frame(self, frame: Frame) -> Self:
        """The same object with another frame."""

    @property
    def translate_to(self) -> Subscript[Self]:
        """`x.translate_to[origins]` moves the origin; None leaves a dimension alone."""
        return self._translation("to")

    @property
    def translate_by(self) -> Subscript[Self]:
        """`x.translate_by[offsets]` moves the domain up."""
        return self._translation("by")

    @property
    def translate_backward_by(self) -> Subscript[Self]:
        """`x.translate_backward_by[offsets]` moves the domain down."""
        return self._translation("backward_by")

    def _translation(self, kind: TranslateKind) -> Subscript[Self]:
        return Subscript(self, f"translate_{kind}", lambda key: self._translated(key, kind))

    def _translated(self, key: object, kind: TranslateKind) -> Self:
        frame = self._get_frame()
        dims = list(range(frame.rank))
        return self._with_frame(translate(frame, dims, parse_index_vector(key), kind))

    @property
    def label(self) -> Subscript[Self]:
        """`x.label["a", "b"]` names all dimensions."""
        return Subscript(self, "label", self._labeled)

    def _labeled(self, key: object) -> Self:
        frame = self._get_frame()
        return self._with_frame(label(frame, list(range(frame.rank)), parse_labels(key)))

    @property
    def mark_bounds_implicit(self) -> Subscript[Self]:
        """`x.mark_bounds_implicit[lower:upper]` sets whether resizing may move the bounds."""
        return Subscript(self, "mark_bounds_implicit", self._marked)

    def _marked(self, key: object) -> Self:
        frame = self._get_frame()
        dims = list(range(frame.rank))
        return self._with_frame(mark_bounds_implicit(frame, dims, *parse_implicit(key)))

    def transpose(self, axes: DimSelectionLike | None = None) -> Self:
        """A view with the dimensions in another order.

        Args:
            axes: dimension i of the result is dimension `axes[i]`; reversed order by default.

        Raises:
            ValueError: `axes` is no permutation of the dimensions.

        Example:
            >>> from tensorstore_py._index import IndexTransform
            >>> IndexTransform(input_shape=[2, 3, 4]).transpose([2, 0, 1]).shape
            (4, 2, 3)
        """
        frame = self._get_frame()
        return self._with_frame(transpose(frame, _permutation(frame, axes)))

    @property
    def T(self) -> Self:  # noqa: N802 - NumPy's name
        """A view with the dimensions reversed."""
        return self.transpose()


@public
class Indexable(Reshapable):
    """Anything that has an index domain and is indexed lazily.

    Example:
        >>> from tensorstore_py._index import IndexTransform
        >>> view = IndexTransform(input_shape=[4, 6])[1:3, 2]
        >>> view.origin, view.shape
        ((1,), (2,))
    """

    __slots__ = ()
    __iter__ = None
    """A view is not a sequence: iterating it by index would hide one read per element."""

    @abstractmethod
    def _get_transform(self) -> IndexTransform:
        """From the positions of this object to those of what it is a view of."""

    @abstractmethod
    def _with_transform(self, transform: IndexTransform) -> Self:
        """The same object seen through another transform."""

    def _assign(self, transform: IndexTransform, source: object) -> None:
        """Write `source` to the positions of `transform`."""
        raise TypeError(f"{type(self).__name__!r} object does not support item assignment")

    def _assign_index(self, index: object, mode: IndexMode, source: object) -> None:
        self._assign(apply_index(self._get_transform(), index, mode), source)

    def _get_frame(self) -> Frame:
        return self._get_transform()._frame

    def _with_frame(self, frame: Frame) -> Self:
        return self._with_transform(self._get_transform()._from_frame(frame))

    def __getitem__(self, index: object) -> Self:
        return self._with_transform(apply_index(self._get_transform(), index))

    @property
    def oindex(self) -> IndexSubscript[Self]:
        """Indexing where each index array has its own dimensions (outer product)."""
        return IndexSubscript(self, "oindex", lambda index: self._index(index, "oindex"))

    @property
    def vindex(self) -> IndexSubscript[Self]:
        """Indexing where index arrays are used jointly and their dimensions come first."""
        return IndexSubscript(self, "vindex", lambda index: self._index(index, "vindex"))

    def _index(self, index: object, mode: IndexMode) -> Self:
        return self._with_transform(apply_index(self._get_transform(), index, mode))

    @property
    def domain(self) -> IndexDomain:
        """The positions that can be indexed."""
        return self._get_transform().domain

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return self._get_transform()._frame.rank

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._get_transform()._frame.rank

    @property
    def origin(self) -> tuple[int, ...]:
        """First position along each dimension."""
        return self._get_transform()._frame.lower

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of positions along each dimension."""
        return self._get_transform().input_shape

    @property
    def size(self) -> int:
        """Number of positions in total."""
        return self._get_transform().domain.size
