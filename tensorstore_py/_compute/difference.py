"""`Difference`: where two arrays or trees differ, what `ts.diff` gives.

Nothing here compares; it holds, counts and shows. Counts are complete, lists are bounded.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tensorstore_py._display.public_name import public

__all__ = ["Difference", "DifferingBlock", "DifferingMember"]

_SHOWN = 20
_SHOWN_VALUE = 60


@public
class DifferingBlock(NamedTuple):
    """Elements that differ in one block.

    Attributes:
        path: of the array; `""` is what was compared itself.
        bounds: of the block: lower and upper bound along each dimension, in the first array's
            positions.
        box: of the smallest part of it that has all the elements that differ.
        elements: how many elements differ.
        first: the position of the first one, in C order.
        values: the element there, in the first array and in the second one.
        largest: the largest absolute difference of numbers or times; None: there is none.

    Example:
        >>> import tensorstore_py as ts
        >>> found = ts.diff(ts.array([1, 2, 3]), ts.array([1, 5, 4])).result()
        >>> print(found.blocks[0])
        array /, [0:3]: 2 elements in [1:3], first at (1,): 2 and 5; at most 3 apart
    """

    path: str
    bounds: tuple[tuple[int, int], ...]
    box: tuple[tuple[int, int], ...]
    elements: int
    first: tuple[int, ...]
    values: tuple[Any, Any]
    largest: Any = None

    def __str__(self) -> str:
        far = "" if self.largest is None else f"; at most {_shown(self.largest)} apart"
        one, other = (_shown(value) for value in self.values)
        return (
            f"array /{self.path}, {_box(self.bounds)}: {_counted(self.elements, 'element')} in "
            f"{_box(self.box)}, first at {self.first}: {one} and {other}{far}"
        )


@public
class DifferingMember(NamedTuple):
    """What differs of a member, but for elements.

    Attributes:
        path: of the member; `""` is what was compared itself.
        what: `"only in one"`, `"kind"`, `"dtype"`, `"shape"` or `"attributes"`.
        one: what it is on the first side; None: nothing. Of attributes those that differ.
        other: on the second one.

    Example:
        >>> print(DifferingMember("a/b", "dtype", "int8", "int16"))
        /a/b: dtype is int8, and int16
        >>> print(DifferingMember("a", "only in one", "group", None))
        /a: group, only in the first
    """

    path: str
    what: Literal["only in one", "kind", "dtype", "shape", "attributes"]
    one: Any
    other: Any

    def __str__(self) -> str:
        if self.what == "only in one":
            side = "first" if self.other is None else "second"
            return f"/{self.path}: {self.one or self.other}, only in the {side}"
        verb = "are" if self.what == "attributes" else "is"
        one, other = (_cut(str(value)) for value in (self.one, self.other))
        return f"/{self.path}: {self.what} {verb} {one}, and {other}"


@public
class Difference(NamedTuple):
    """Where two arrays or trees differ; true if they do.

    Attributes:
        members: what differs, but for elements.
        blocks: the blocks with elements that differ, the first of each array.
        differing_blocks: how many there are.
        differing_elements: how many elements differ.
        elements: how many were compared.
        arrays: how many arrays were compared.

    Example:
        >>> import tensorstore_py as ts
        >>> bool(ts.diff(ts.array([1, 2]), ts.array([1, 2])).result())
        False
        >>> print(ts.diff(ts.array([1, 2]), ts.array([1.0, 2.5])).result())
        1 of 2 elements differs, in 1 block; 1 other difference
         /: dtype is int64, and float64
         array /, [0:2]: 1 element in [1:2], first at (1,): 2 and 2.5; at most 0.5 apart
    """

    members: tuple[DifferingMember, ...]
    blocks: tuple[DifferingBlock, ...]
    differing_blocks: int
    differing_elements: int
    elements: int
    arrays: int

    def __bool__(self) -> bool:
        return bool(self.members or self.differing_elements)

    def __str__(self) -> str:
        lines = [self._headline()]
        lines += [f" {each}" for each in self.members[:_SHOWN]]
        if len(self.members) > _SHOWN:
            lines.append(f" and {len(self.members) - _SHOWN} more differences of members")
        lines += [f" {each}" for each in self.blocks[:_SHOWN]]
        if self.differing_blocks > min(_SHOWN, len(self.blocks)):
            more = self.differing_blocks - min(_SHOWN, len(self.blocks))
            lines.append(f" and {_counted(more, 'more block')}")
        return "\n".join(lines)

    def _headline(self) -> str:
        elements = _counted(self.elements, "element")
        if not self:
            return f"no difference in {elements} of {_counted(self.arrays, 'array')}"
        verb = "differs" if self.differing_elements == 1 else "differ"
        text = f"{self.differing_elements:,} of {elements} {verb}"
        if self.differing_blocks:
            text += f", in {_counted(self.differing_blocks, 'block')}"
        if self.members:
            text += f"; {_counted(len(self.members), 'other difference')}"
        return text


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _box(bounds: tuple[tuple[int, int], ...]) -> str:
    return f"[{', '.join(f'{low}:{high}' for low, high in bounds)}]"


def _shown(value: Any) -> str:  # noqa: ANN401 - of whichever type
    return _cut(repr(value) if isinstance(value, bytes | str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_VALUE else f"{text[: _SHOWN_VALUE - 1]}…"
