"""Many parts of one value in few requests.

Parts that lie close together are fetched as one, with what is between them. Pure planning first,
then a small executor that is given how to read one range. The invariant: all results are of one
generation of the value; if it is replaced while its parts are on their way, all are read again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import AbortedError

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["GAP_BYTES", "RangeGroup", "coalesce", "read_coalesced"]

#: The reference's: what lies between two parts that are still fetched together.
GAP_BYTES: Final = 4095
_GROUP_BYTES: Final = 2**27
_ROUNDS: Final = 8


class RangeGroup(NamedTuple):
    """Ranges that are fetched together.

    Attributes:
        byte_range: what is fetched.
        members: which of the ranges it serves, by number.
    """

    byte_range: ByteRange
    members: list[int]


def coalesce(
    ranges: Sequence[ByteRange], gap: int = GAP_BYTES, limit: int = _GROUP_BYTES
) -> list[RangeGroup]:
    """The fewest requests that fetch all ranges without fetching much that was not asked for.

    Ranges without an end, and suffixes, go by themselves: where they are is not known.

    Args:
        ranges: in any order; they may overlap.
        gap: how many bytes may lie between two that are fetched together.
        limit: how long a group may get by merging.

    Example:
        >>> for group in coalesce([ByteRange(0, 10), ByteRange(9000, 9010), ByteRange(12, 20)]):
        ...     print(group.byte_range, group.members)
        ByteRange(start=0, stop=20) [0, 2]
        ByteRange(start=9000, stop=9010) [1]
    """
    bounded = []
    groups = []
    for number, byte_range in enumerate(ranges):
        if byte_range.stop is None:
            groups.append(RangeGroup(byte_range, [number]))
        else:
            bounded.append((byte_range.start, byte_range.stop, number))
    bounded.sort()
    members: list[int] = []
    first = last = 0
    for start, stop, number in bounded:
        if members and start - last <= gap and max(stop, last) - first <= limit:
            members.append(number)
            last = max(stop, last)
            continue
        if members:
            groups.append(RangeGroup(ByteRange(first, last), members))
        members, first, last = [number], start, stop
    if members:
        groups.append(RangeGroup(ByteRange(first, last), members))
    return groups


async def read_coalesced(
    read: Callable[[ByteRange], Awaitable[ReadResult]],
    ranges: Sequence[ByteRange],
    *,
    gap: int = GAP_BYTES,
    limit: int = _GROUP_BYTES,
    width: int = 32,
    inline: bool = False,
) -> list[ReadResult]:
    """The results for all ranges, in their order, of one generation or all missing.

    Args:
        read: reads one range of the value.
        ranges: which parts.
        gap: see `coalesce`.
        limit: see `coalesce`.
        width: how many requests to have under way.
        inline: whether `read` never suspends, see `KvStore`.

    Raises:
        OutOfRangeError: a range reaches outside the value.
        AbortedError: the value was replaced again and again.
    """
    groups = coalesce(ranges, gap, limit)
    for _ in range(_ROUNDS):
        found: list[ReadResult] = [ReadResult()] * len(groups)

        async def fetch(number: int, found: list[ReadResult] = found) -> None:
            found[number] = await read(groups[number].byte_range)

        await fan_out(inline, range(len(groups)), fetch, count=len(groups), width=width)
        if len({(result.state, result.stamp.generation) for result in found}) <= 1:
            return _shared_out(ranges, groups, found)
    raise AbortedError(
        f"the value was replaced {_ROUNDS} times while {len(ranges)} parts of it were read; read "
        f"again when its writer is done"
    )


def _shared_out(
    ranges: Sequence[ByteRange], groups: Sequence[RangeGroup], found: Sequence[ReadResult]
) -> list[ReadResult]:
    results: list[ReadResult] = [ReadResult()] * len(ranges)
    for group, result in zip(groups, found, strict=True):
        for number in group.members:
            value: Buffer = result.value
            if len(group.members) > 1 and result.state == "value":
                start, stop = ranges[number].start, ranges[number].stop
                assert stop is not None
                offset = group.byte_range.start
                value = memoryview(value)[start - offset : stop - offset]
            results[number] = ReadResult(result.state, value, result.stamp.copy())
    return results
