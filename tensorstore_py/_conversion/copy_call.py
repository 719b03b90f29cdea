"""`CopyCall`: a copy as a plan: what is made before, the blocks of each array, and what comes last.

What a step of it does is `ArrayCopy`, or `ChunkCopy` where chunks stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._api.blockwise import ArrayCopy
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._conversion.array_copy import ChunkCopy, form_digest, way
from tensorstore_py._conversion.copy_plan import PlannedArray
from tensorstore_py._conversion.summary import CopySummary
from tensorstore_py._conversion.tree_copy import TreeCopy, arrays, summary
from tensorstore_py._plan.arrays import array_json, open_json
from tensorstore_py._plan.call import FoundCall
from tensorstore_py._plan.steps import Stage, Step, register
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py.errors import FailedPreconditionError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorstore_py._api.blocks import Blocks
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.copy_plan import Planned, Request
    from tensorstore_py._conversion.endpoints import FoundEndpoint
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.steps import Operation
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._spec.context import Context

__all__ = ["CopyCall"]

#: So many arrays are made at a time.
_TOGETHER = 16


class CopyCall(FoundCall[CopySummary, "tuple[FoundEndpoint, list[Planned]]"]):
    """A copy that is asked for."""

    def __init__(
        self, operation: str, request: Request, arguments: Callable[[], JsonObject]
    ) -> None:
        self.operation = operation
        self._tree = TreeCopy(request._replace(inline=False), Reporter(None))
        self._arguments = arguments

    def resume(self, forms: Mapping[str, str]) -> None:
        """See `Call`."""
        self._tree = self._tree._replace(request=self._tree.request._replace(begun=forms))
        self._found = None

    def request(self) -> JsonObject:
        """See `Call`."""
        return self._arguments()

    def identity(self) -> JsonObject:
        """See `Call`."""
        return dict(self._tree.request.identity)

    async def _find(self) -> tuple[FoundEndpoint, list[Planned]]:
        return await self._tree.look()

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        to, plan = await self.found()
        steps = [await self._step(to, each) for each in arrays(plan)]
        return (Stage(tuple(steps)),)

    async def _step(self, to: FoundEndpoint, each: PlannedArray) -> Step:
        target = await self._tree.assumed(to, each)
        verify = self._tree.request.verify
        operation = way(each.source, target, each.form, verify=verify)
        source, as_they_are = each.source.array, isinstance(operation, ChunkCopy)

        def arguments() -> JsonObject:
            return {
                "source": array_json(source, f'the source "/{each.path}"'),
                "target": array_json(target, f'the target "/{each.path}"'),
                "chunks_as_they_are": as_they_are,
                "verify": verify,
            }

        form = form_digest(each.source, each.form)
        return Step.of("copy", each.path, arguments, operation, form)

    async def begin(self, again: bool) -> None:
        """Make groups and arrays.

        Raises FailedPreconditionError: another process has made one since this was planned.
        """
        to, plan = await self.found()
        left = arrays(plan)
        replaced = again or self._tree.request.if_exists == "replace"
        for each in left:
            if each.action == "resume" and not replaced:
                raise FailedPreconditionError(
                    f'"/{each.path}" was made at the destination by somebody else since this was '
                    "planned; plan again"
                )
        await self._tree.make_groups(to, plan)

        failed: list[Exception] = []

        async def make(each: PlannedArray) -> None:
            if failed:
                return
            there = each.action == "resume"
            try:
                await self._tree.target(to, each._replace(action="replace") if there else each)
            except Exception as error:  # noqa: BLE001 - raised below
                failed.append(error)

        # Those that are being made when one fails are waited for: what is cancelled in another
        # thread goes on, and might make an array that whoever tries again has not found yet.
        await fan_out(False, left, make, count=len(left), width=_TOGETHER)
        if failed:
            raise failed[0]

    async def check_begun(self) -> None:
        """See `Call`."""
        _, plan = await self.found()
        for each in arrays(plan):
            if each.action == "create" and each.path in (self._tree.request.begun or ()):
                raise FailedPreconditionError(
                    f'"/{each.path}" was deleted at the destination since this began; delete the '
                    "manifest to begin anew"
                )

    async def end(self) -> None:
        """Write consolidated metadata where the source has it."""
        to, plan = await self.found()
        await self._tree.consolidate(to, plan)

    def result(self, outcomes: list[StageOutcome]) -> CopySummary:
        """What was copied."""
        _, plan = self.known
        done: dict[str, tuple[int, int]] = {}
        left = arrays(plan)
        for outcome in outcomes:
            for number, each in outcome.steps.items():
                done[left[number].path] = each.bytes, each.chunks
        before = {each.path for each in left if each.action == "resume"} - set(done)
        plan = [_done_before(each) if each.path in before else each for each in plan]
        return summary(plan, done, verified=self._tree.request.verify)


def _done_before(each: Planned) -> Planned:
    assert isinstance(each, PlannedArray)
    form = each.form._replace(how="done by an earlier copy")
    return each._replace(action="skip", form=form, size_bytes=0)


async def _open(arguments: JsonObject, context: Context, blocks: Blocks) -> Operation:
    source = await open_json(arguments["source"], context, "the source of a copy")
    target = await open_json(arguments["target"], context, "the target of a copy")
    verify = bool(arguments.get("verify"))
    if arguments.get("chunks_as_they_are"):
        return _chunks(source, target, blocks)._replace(verify=verify)
    copy = ArrayCopy.of(source._driver, source._transform, target._driver, target._transform)
    return copy._replace(blocks=blocks, verify=verify)


def _chunks(source: TensorStore, target: TensorStore, blocks: Blocks) -> ChunkCopy:
    from_, to = source._driver, target._driver
    if not isinstance(from_, ChunkedDriver) or not isinstance(to, ChunkedDriver):
        raise SpecError("chunks can stay as they are only between arrays that have them",
                        ("chunks_as_they_are",))  # fmt: skip
    return ChunkCopy.of(from_, to)._replace(blocks=blocks)


register("copy", _open)
