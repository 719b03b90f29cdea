"""`ts.diff`: where two arrays or trees differ, block by block.

What is there on both sides is found first; then the arrays that both have are compared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._compute.arrays import contents, end_of
from tensorstore_py._compute.comparison import Tolerance, comparable
from tensorstore_py._compute.diff_operation import DiffArrays, Findings
from tensorstore_py._compute.difference import Difference, DifferingMember
from tensorstore_py._compute.run import merged
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.progress import Told, ToldOfPart
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._compute.arrays import Contents
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["diff", "member_differences"]

_TOGETHER = 4


def diff(
    a: object,
    b: object,
    *,
    equal_nan: bool = True,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_blocks: int = 100,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[Difference]:
    """Where two arrays, or two groups with everything in them, differ.

    Chunks, codecs, stores and formats make no difference. Data type and shape do, and elements, by
    value: -0.0 is 0.0. Numbers of two data types are compared, too; nothing is broadcast. Where
    domains begin does not count. In groups, members and attributes are compared as well.

    Both sides are read block by block, and only a few blocks are in memory at a time.

    Args:
        a: an open array or a view of one, a `Group`, or whatever `ts.copy` takes.
        b: the same.
        equal_nan: whether NaN equals NaN, and NaT equals NaT.
        rtol: numbers may be apart by this in proportion to `b`, as `numpy.isclose` has it.
        atol: and by this in any case.
        max_blocks: of how many blocks of each array to tell; all are counted.
        progress: called with a `Progress`; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `Difference`, which is true if there is one, and prints as a list.

    Raises:
        SpecError: (at once) a tolerance or `max_blocks` is negative.
        NotFoundError: (by the Future) nothing is on one side.
        DataLossError: (by the Future) a chunk is corrupt, twice; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.array([[1, 2], [3, 4]], dtype="int16")
        >>> print(ts.diff(old, ts.array([[1, 2], [3, 9]], dtype="int16")).result())
        1 of 4 elements differs, in 1 block
         array /, [0:2, 0:2]: 1 element in [1:2, 1:2], first at (1, 1): 4 and 9; at most 5 apart
    """
    for name, value in (("rtol", rtol), ("atol", atol), ("max_blocks", max_blocks)):
        if not value >= 0:
            raise SpecError(f"expected 0 or more, not {value!r}", (name,))
    tolerance = Tolerance(bool(equal_nan), float(rtol), float(atol))
    shared = as_context(context)
    ends = end_of(a, shared), end_of(b, shared)
    inline = all(end.inline for end in ends)
    told = Told(progress, "diff")

    async def body() -> Difference:
        one, other = [await contents(inline, end) for end in ends]
        members = member_differences(one, other)
        found = await _compared(inline, one, other, tolerance, int(max_blocks), told)
        return Difference(
            tuple(members),
            tuple(block for path in sorted(found) for block in found[path].blocks.values()),
            sum(each.differing_blocks for each in found.values()),
            sum(each.differing for each in found.values()),
            sum(each.elements for each in found.values()),
            len(found),
        )

    return told.until(start(inline, body, when_left=WhenLeft.STOPS))


async def _compared(
    inline: bool, one: Contents, other: Contents, tolerance: Tolerance, most: int, told: Told
) -> dict[str, Findings]:
    """What is found in the arrays that both have, by path."""
    operations = {
        path: DiffArrays(
            one.arrays[path].driver, one.arrays[path].array._transform,
            other.arrays[path].driver, other.arrays[path].array._transform,
            tolerance, most, path,
        )
        for path in _alike(one, other)
    }  # fmt: skip
    found: dict[str, Findings] = {}
    size = sum(each.regions.size * each.told_bytes for each in operations.values())
    told.begin(size, 0, len(operations))

    async def compare(path: str) -> None:
        outcome = await merged(operations[path], ToldOfPart(told))
        found[path] = outcome or Findings({}, 0, 0, 0)
        told.advance(0, 0, 1)

    # An operation of another temperament than this body's finds its own way within.
    await fan_out(inline, operations, compare, count=len(operations), width=_TOGETHER)
    return found


def _alike(one: Contents, other: Contents) -> Iterable[str]:
    """The paths of arrays whose elements can be compared."""
    for path, here in one.arrays.items():
        there = other.arrays.get(path)
        if (
            there is not None
            and here.shape == there.shape
            and comparable(here.array.dtype.array_dtype, there.array.dtype.array_dtype)
        ):
            yield path


def member_differences(one: Contents, other: Contents) -> list[DifferingMember]:
    """What differs between two places, but for elements."""
    found: list[DifferingMember] = []
    kinds = [
        {**dict.fromkeys(side.groups, "group"), **dict.fromkeys(side.arrays, "array")}
        for side in (one, other)
    ]
    for path in sorted({*kinds[0], *kinds[1]}):
        here, there = (side.get(path) for side in kinds)
        if here is None or there is None:
            found.append(DifferingMember(path, "only in one", here, there))
            continue
        if here != there:
            found.append(DifferingMember(path, "kind", here, there))
            continue
        if here == "array":
            left, right = one.arrays[path], other.arrays[path]
            if left.array.dtype is not right.array.dtype:
                names = left.array.dtype.name, right.array.dtype.name
                found.append(DifferingMember(path, "dtype", *names))
            if left.shape != right.shape:
                found.append(DifferingMember(path, "shape", left.shape, right.shape))
        if one.is_tree and other.is_tree:
            found += _attribute_differences(path, one, other)
    return found


def _attribute_differences(path: str, one: Contents, other: Contents) -> list[DifferingMember]:
    here, there = one.attributes(path), other.attributes(path)
    names = [
        name
        for name in sorted({*here, *there})
        if (name in here) != (name in there) or _text(here[name]) != _text(there[name])
    ]
    if not names:
        return []
    sides = ({name: side[name] for name in names if name in side} for side in (here, there))
    return [DifferingMember(path, "attributes", *sides)]


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
