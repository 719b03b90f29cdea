"""Dimension expressions: `d["x", "y"].translate_to[0][2:5]` and the like.

An expression is a selection of dimensions and a chain of operations. It is applied by indexing
with it: each operation gets a frame and the dimensions selected so far, and returns both anew.

Invariant: expressions are values; every operation that is added gives a new one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

from tensorstore_py._display.public_name import public
from tensorstore_py._index.dim import escape
from tensorstore_py._index.frame import Frame
from tensorstore_py._index.numpy_style import IndexTerm, index_selected, index_selected_first
from tensorstore_py._index.numpy_terms import IndexMode, IndexSpec, SpecUse, parse_index
from tensorstore_py._index.operations import (
    IndexVector,
    Subscript,
    TranslateKind,
    diagonal,
    label,
    mark_bounds_implicit,
    parse_implicit,
    parse_index_vector,
    parse_labels,
    stride,
    translate,
    transpose_to,
)
from tensorstore_py._index.selection import (
    DimSpec,
    format_specs,
    parse_specs,
    require_distinct,
    resolve,
)
from tensorstore_py.errors import IndexingError

__all__ = ["DimExpression", "DimSelection", "d"]

Selected: TypeAlias = tuple[Frame, list[int]]


def _format_vector(values: IndexVector) -> str:
    if not isinstance(values, tuple):
        return str(values)
    if not values:
        return "()"
    return ",".join(map(str, values)) + ("," if len(values) == 1 else "")


class _Operation(ABC):
    """One link of the chain; its str is what was written."""

    @abstractmethod
    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        """The frame after the operation and the dimensions selected from then on."""


@dataclass(frozen=True)
class _Translate(_Operation):
    values: IndexVector
    kind: TranslateKind

    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return translate(frame, dims, self.values, self.kind), dims

    def __str__(self) -> str:
        return f".translate_{self.kind}[{_format_vector(self.values)}]"


@dataclass(frozen=True)
class _Stride(_Operation):
    values: IndexVector

    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return stride(frame, dims, self.values), dims

    def __str__(self) -> str:
        return f".stride[{_format_vector(self.values)}]"


@dataclass(frozen=True)
class _Label(_Operation):
    labels: tuple[str, ...]

    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return label(frame, dims, self.labels), dims

    def __str__(self) -> str:
        quoted = ",".join(f"'{escape(text)}'" for text in self.labels)
        return f".label[{quoted}]"


@dataclass(frozen=True)
class _Diagonal(_Operation):
    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return diagonal(frame, dims)

    def __str__(self) -> str:
        return ".diagonal"


@dataclass(frozen=True)
class _Transpose(_Operation):
    targets: tuple[DimSpec, ...]

    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return transpose_to(frame, dims, self.targets)

    def __str__(self) -> str:
        return f".transpose[{format_specs(self.targets)}]"


@dataclass(frozen=True)
class _MarkImplicit(_Operation):
    lower: bool | None
    upper: bool | None

    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return mark_bounds_implicit(frame, dims, self.lower, self.upper), dims

    def __str__(self) -> str:
        lower = "" if self.lower is None else str(self.lower)
        upper = "" if self.upper is None else str(self.upper)
        both = lower if lower and lower == upper else f"{lower}:{upper}"
        return f".mark_bounds_implicit[{both}]"


@dataclass(frozen=True)
class _Index(_Operation):
    spec: IndexSpec

    def apply(self, frame: Frame, dims: list[int]) -> Selected:
        return index_selected(frame, self.spec, dims)

    def __str__(self) -> str:
        mode = "" if self.spec.mode == "default" else f".{self.spec.mode}"
        return f"{mode}[{self.spec}]"


@public
class DimExpression(IndexTerm):
    """A selection of dimensions and the operations to apply to them.

    Start with `d[...]`, chain operations, and index a transform, domain, store, spec or schema
    with the result.

    Example:
        >>> from tensorstore_py._index import IndexDomain
        >>> domain = IndexDomain(shape=[10, 20], labels=["y", "x"])
        >>> domain[d["x", "y"].translate_to[5, None].transpose[:]]
        { "x": [5, 25), "y": [0, 10) }
    """

    __slots__ = ("_operations", "_specs")
    __hash__ = None  # type: ignore[assignment]
    __iter__ = None

    _specs: tuple[DimSpec, ...]
    _operations: tuple[_Operation, ...]

    @classmethod
    def _make(
        cls, specs: tuple[DimSpec, ...], operations: tuple[_Operation, ...] = ()
    ) -> DimExpression:
        self = cls.__new__(cls)
        self._specs = specs
        self._operations = operations
        return self

    def _then(self, operation: _Operation) -> DimExpression:
        return DimExpression._make(self._specs, (*self._operations, operation))

    def _index_into(self, frame: Frame) -> Frame:
        if not self._operations:
            raise IndexingError("Must specify at least one operation in dimension expression")
        first, *rest = self._operations
        if isinstance(first, _Index):
            frame, dims = index_selected_first(frame, first.spec, self._specs)
        else:
            dims = require_distinct(resolve(self._specs, frame.labels), frame.rank)
            frame, dims = first.apply(frame, dims)
        for operation in rest:
            frame, dims = operation.apply(frame, dims)
        return frame

    def __getitem__(self, index: object) -> DimExpression:
        return self._index(index, "default")

    def _index(self, index: object, mode: IndexMode) -> DimExpression:
        use: SpecUse = "chained" if self._operations else "initial"
        return self._then(_Index(parse_index(index, mode, use)))

    @property
    def oindex(self) -> Subscript[DimExpression]:
        """Indexing where each index array has its own dimensions (outer product)."""
        return Subscript(self, "oindex", lambda index: self._index(index, "oindex"))

    @property
    def vindex(self) -> Subscript[DimExpression]:
        """Indexing where index arrays are used jointly and their dimensions come first."""
        return Subscript(self, "vindex", lambda index: self._index(index, "vindex"))

    @property
    def translate_to(self) -> Subscript[DimExpression]:
        """`.translate_to[origins]` moves the origin; None leaves a dimension alone."""
        return self._translation("to")

    @property
    def translate_by(self) -> Subscript[DimExpression]:
        """`.translate_by[offsets]` moves the domain up."""
        return self._translation("by")

    @property
    def translate_backward_by(self) -> Subscript[DimExpression]:
        """`.translate_backward_by[offsets]` moves the domain down."""
        return self._translation("backward_by")

    def _translation(self, kind: TranslateKind) -> Subscript[DimExpression]:
        return Subscript(
            self,
            f"translate_{kind}",
            lambda key: self._then(_Translate(parse_index_vector(key), kind)),
        )

    @property
    def stride(self) -> Subscript[DimExpression]:
        """`.stride[steps]` keeps the multiples of the step and divides positions by it."""
        return Subscript(self, "stride", lambda key: self._then(_Stride(parse_index_vector(key))))

    @property
    def label(self) -> Subscript[DimExpression]:
        """`.label["a", "b"]` renames the selected dimensions."""
        return Subscript(self, "label", lambda key: self._then(_Label(parse_labels(key))))

    @property
    def transpose(self) -> Subscript[DimExpression]:
        """`.transpose[targets]` moves the selected dimensions to these positions."""
        return Subscript(self, "transpose", lambda key: self._then(_Transpose(parse_specs(key))))

    @property
    def mark_bounds_implicit(self) -> Subscript[DimExpression]:
        """`.mark_bounds_implicit[lower:upper]` sets whether resizing may move the bounds."""
        return Subscript(
            self,
            "mark_bounds_implicit",
            lambda key: self._then(_MarkImplicit(*parse_implicit(key))),
        )

    @property
    def diagonal(self) -> DimExpression:
        """Walk the selected dimensions in step, as one new first dimension."""
        return self._then(_Diagonal())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DimExpression):
            return NotImplemented
        return self._specs == other._specs and self._operations == other._operations

    def __repr__(self) -> str:
        return f"d[{format_specs(self._specs)}]" + "".join(map(str, self._operations))

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (type(self), self._specs, self._operations)


def _unpickle(
    cls: type[DimExpression], specs: tuple[DimSpec, ...], operations: tuple[_Operation, ...]
) -> DimExpression:
    return cls._make(specs, operations)


@public
class DimSelection(DimExpression):
    """A dimension expression without operations: just the selection.

    Example:
        >>> d[0, "x", 2:]
        d[0,'x',2:]
    """

    __slots__ = ()
    __hash__ = None

    @property
    def dim_specs(self) -> tuple[DimSpec, ...]:
        """The terms of the selection, in order."""
        return self._specs


class _DimSelectionFactory:
    """The type of `d`."""

    __slots__ = ()
    __iter__ = None

    def __getitem__(self, selection: object) -> DimSelection:
        new = DimSelection._make(parse_specs(selection))
        assert isinstance(new, DimSelection)
        return new

    def __repr__(self) -> str:
        return "d"

    def __reduce__(self) -> str:
        return "d"


d = _DimSelectionFactory()
"""Starts a dimension expression: `d[0]`, `d["x", "y"]`, `d[2:]`."""
