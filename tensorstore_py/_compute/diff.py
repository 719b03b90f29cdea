"""`ts.diff`: where two arrays or trees differ, block by block.

What is there on both sides is found first; then the arrays that both have are compared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tensorstore_py._api.begin import as_context
from tensorstore_py._compute.arrays import array_arguments, contents, end_of
from tensorstore_py._compute.diff_operation import (
    DiffArrays,
    Findings,
    MergeFindings,
    Tolerance,
    comparable,
)
from tensorstore_py._compute.difference import Difference, DifferingMember
from tensorstore_py._plan.arrays import open_json
from tensorstore_py._plan.call import FoundCall, register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._plan.steps import Stage, Step, register
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._api.blocks import Blocks
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._compute.arrays import Contents
    from tensorstore_py._conversion.endpoints import SourceEndpoint
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["DiffCall", "diff", "member_differences"]


def diff(
    a: object,
    b: object,
    *,
    equal_nan: bool = True,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_blocks: int = 100,
    manifest: object = None,
    executor: object = None,
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
        manifest: where to keep what is done, as for `ts.copy`: the same call goes on from there
            after a crash, and any number of them, on any machines, share the work.
        executor: who reads and compares, as for `ts.copy`; None: this process.
        progress: called with a `Progress`; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `Difference`, which is true if there is one, and prints as a list.

    Raises:
        SpecError: (at once) a tolerance or `max_blocks` is negative.
        NotFoundError: (by the Future) nothing is on one side.
        FailedPreconditionError: (by the Future) the manifest is that of another call, or the source
            has changed since it began.
        DataLossError: (by the Future) a chunk is corrupt, twice; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.array([[1, 2], [3, 4]], dtype="int16")
        >>> print(ts.diff(old, ts.array([[1, 2], [3, 9]], dtype="int16")).result())
        1 of 4 elements differs, in 1 block
         array /, [0:2, 0:2]: 1 element in [1:2, 1:2], first at (1, 1): 4 and 9; at most 5 apart
    """
    call = _call(
        a, b, equal_nan=equal_nan, rtol=rtol, atol=atol, max_blocks=max_blocks, context=context
    )
    where = None if manifest is None else document_place(manifest, as_context(context))
    return run_call(call, executor, Reporter(progress, "diff"), where)


def _call(
    a: object,
    b: object,
    *,
    equal_nan: bool = True,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_blocks: int = 100,
    context: Context | None = None,
) -> DiffCall:
    for name, value in (("rtol", rtol), ("atol", atol), ("max_blocks", max_blocks)):
        if not value >= 0:
            raise SpecError(f"expected 0 or more, not {value!r}", (name,))
    tolerance = Tolerance(bool(equal_nan), float(rtol), float(atol))
    shared = as_context(context)
    return DiffCall((end_of(a, shared), end_of(b, shared)), tolerance, int(max_blocks))


class DiffCall(FoundCall[Difference, "tuple[Contents, Contents]"]):
    """A comparison that is asked for; `most` is of how many blocks of an array to tell."""

    operation = "diff"

    def __init__(
        self, ends: tuple[SourceEndpoint, SourceEndpoint], tolerance: Tolerance, most: int
    ) -> None:
        self._ends, self._tolerance, self._most = ends, tolerance, most

    def request(self) -> JsonObject:
        """See `Call`."""
        one, other = self._ends
        return {"a": one.to_json(), "b": other.to_json(), **self._options()}

    def identity(self) -> JsonObject:
        """See `Call`."""
        one, other = self._ends
        return {"a": one.described, "b": other.described, **self._options()}

    def _options(self) -> JsonObject:
        return {**self._tolerance._asdict(), "max_blocks": self._most}

    async def _find(self) -> tuple[Contents, Contents]:
        one, other = self._ends
        return await contents(False, one), await contents(False, other)

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        one, other = await self.found()
        return (Stage(tuple(self._step(path, one, other) for path in _alike(one, other))),)

    def _step(self, path: str, one: Contents, other: Contents) -> Step:
        here, there = one.arrays[path].array, other.arrays[path].array
        operation = _operation(here, there, self._tolerance, self._most, path)

        def arguments() -> JsonObject:
            return {
                "a": array_arguments(here, path),
                "b": array_arguments(there, path),
                "path": path,
                **self._options(),
            }

        return Step.of("diff", path, arguments, operation)

    def result(self, outcomes: list[StageOutcome]) -> Difference:
        """Where the two sides differ."""
        one, other = self.known
        paths = list(_alike(one, other))
        found: dict[str, Findings] = {}
        for outcome in outcomes:
            for number, done in outcome.steps.items():
                assert isinstance(done.result, Findings)
                found[paths[number]] = done.result
        return Difference(
            tuple(member_differences(one, other)),
            tuple(block for path in sorted(found) for block in found[path].blocks.values()),
            sum(each.differing_blocks for each in found.values()),
            sum(each.differing for each in found.values()),
            sum(each.elements for each in found.values()),
            len(paths),
        )


def _operation(
    one: TensorStore, other: TensorStore, tolerance: Tolerance, most: int, path: str
) -> DiffArrays:
    return DiffArrays(
        one._driver, one._transform, other._driver, other._transform, tolerance, most, path
    )


async def _open(arguments: JsonObject, context: Context, blocks: Blocks) -> DiffArrays:
    one = await open_json(arguments["a"], context, "the first side of a comparison")
    other = await open_json(arguments["b"], context, "the second side of a comparison")
    known = {name: arguments[name] for name in Tolerance._fields}
    most, path = arguments["max_blocks"], arguments["path"]
    assert isinstance(most, int)
    operation = _operation(one, other, Tolerance(**known), most, str(path))  # type: ignore[arg-type]
    operation.blocks = blocks
    return operation


register("diff", _open, MergeFindings())
register_call(diff, _call)


def _alike(one: Contents, other: Contents) -> Iterable[str]:
    """The paths of arrays whose elements can be compared."""
    for path, here in sorted(one.arrays.items()):
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
