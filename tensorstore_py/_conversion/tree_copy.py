"""Copying whatever is at one end to the other, as planned.

Groups are made first, then arrays, and consolidated metadata last, as it tells of all that is
there. Small arrays go together, large ones one after the other: these keep everything busy.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.group_spec import NewArray
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._conversion.array_copy import copy_blocks
from tensorstore_py._conversion.copy_plan import Planned, PlannedArray, PlannedGroup
from tensorstore_py._conversion.summary import CopiedMember, CopySummary
from tensorstore_py._hierarchy.changes import consolidate, create_group, make_parents
from tensorstore_py._hierarchy.document import AttributesFile
from tensorstore_py._hierarchy.path import join
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._plan.tasks import StageOutcome
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.lifetime import Lifetime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.copy_plan import Request
    from tensorstore_py._conversion.endpoints import FoundEndpoint
    from tensorstore_py._plan.tasks import DamagedTask
    from tensorstore_py._runtime.progress import Reporter

__all__ = ["TreeCopy", "arrays", "summary"]

#: Arrays of fewer bytes are copied together, so many at a time.
_SMALL_BYTES = 2**22
_TOGETHER = 16


class TreeCopy(NamedTuple):
    """The copying."""

    request: Request
    reporter: Reporter

    async def run(self, *, dry_run: bool) -> CopySummary:
        """Copy, or see what would be copied."""
        to, plan = await self.look()
        members = [_member(each) for each in plan]
        if dry_run:
            return CopySummary.of(members, dry_run=True)
        left = arrays(plan)
        self.reporter.begin(sum(each.size_bytes for each in left), 0, len(left))
        await self.make_groups(to, plan)
        outcome = StageOutcome({}, [])
        done = await self._copy_arrays(to, left, outcome.damaged)
        await self.consolidate(to, plan)
        outcome.check()
        return summary(plan, done, verified=self.request.verify)

    async def look(self) -> tuple[FoundEndpoint, list[Planned]]:
        """What is at the destination, and what becomes of each member."""
        request, inline = self.request, self.request.inline
        source, destination = request.source, request.destination
        from_ = await within(inline, source.inline, source.find)
        form = None if from_.tree is None else from_.tree.form
        to = await within(inline, destination.inline, lambda: destination.find(form))
        return to, await request.plan(from_, to)

    async def make_groups(self, to: FoundEndpoint, plan: list[Planned]) -> None:
        """Make all groups, or change those that are there."""
        tree = to.tree
        groups = [each for each in plan if isinstance(each, PlannedGroup)]
        if tree is None or not groups:
            return

        async def make(group: PlannedGroup) -> None:
            path = join(to.path, group.path)
            if group.action == "keep":
                if group.attributes and self.request.if_exists == "replace":
                    file = AttributesFile(tree.store, tree.below(path), tree.form)
                    await file.change(lambda stored: {**stored, **group.attributes})
                return
            if group.action == "replace":
                await tree.store.delete_range(KeyRange.prefix(tree.below(path)))
            await make_parents(tree, path)
            await create_group(tree, path, group.attributes, may_exist=True)

        async def make_all() -> None:
            for depth in sorted({each.path.count("/") + bool(each.path) for each in groups}):
                level = [each for each in groups if each.path.count("/") + bool(each.path) == depth]
                await fan_out(
                    tree.store.inline, level, make, count=len(level), width=tree.store.width
                )

        await within(self.request.inline, tree.store.inline, make_all)

    async def _copy_arrays(
        self, to: FoundEndpoint, left: list[PlannedArray], damaged: list[DamagedTask]
    ) -> dict[str, tuple[int, int]]:
        done: dict[str, tuple[int, int]] = {}

        async def copy(each: PlannedArray) -> None:
            target = await self.target(to, each)
            done[each.source.path] = await copy_blocks(
                each.source, target, each.form, self.reporter, damaged, verify=self.request.verify
            )
            self.reporter.advance(0, 0, 1)

        small = [each for each in left if each.size_bytes < _SMALL_BYTES]
        await fan_out(self.request.inline, small, copy, count=len(small), width=_TOGETHER)
        for each in left:
            if each.size_bytes >= _SMALL_BYTES:
                await copy(each)
        return done

    async def target(self, to: FoundEndpoint, each: PlannedArray) -> TensorStore:
        """The array that is copied to, made if it is not there."""
        inline = self.request.destination.inline

        async def make() -> TensorStore:
            if to.place is None:
                return to.array if to.array is not None else await self._by_itself(each)
            assert to.tree is not None
            path = join(to.path, each.source.path)
            if each.action == "replace":
                await to.tree.store.delete_range(KeyRange.prefix(to.tree.below(path)))
            new = NewArray.of(
                to.place, path, each.form.attributes, each.form.options,
                may_exist=False, deletes=False,
            )  # fmt: skip
            above = to.path if each.source.path else ""
            return await new.make(to.tree, above, to.transaction, Lifetime("TensorStore"))

        return await within(self.request.inline, inline, make)

    async def _by_itself(self, each: PlannedArray) -> TensorStore:
        """The array of a driver without hierarchies."""
        model = self.request.destination.array
        assert model is not None
        mode = {"create": True, "open": False, "delete_existing": each.action == "replace"}
        asked = updated(model, {**each.form.options, **mode})
        return opened(await asked.open(), asked, readable=True, writable=True)

    async def assumed(self, to: FoundEndpoint, each: PlannedArray) -> TensorStore:
        """The array that is to be copied to, as it will be; nothing is read or stored."""
        mode = {"create": False, "open": True, "delete_existing": False, "assume_metadata": True}
        if to.place is None:
            if to.array is not None:
                return to.array
            model = self.request.destination.array
            assert model is not None
            asked = updated(model, {**each.form.options, **mode})
        else:
            new = NewArray.of(
                to.place, join(to.path, each.source.path), each.form.attributes,
                each.form.options, may_exist=False, deletes=False,
            )  # fmt: skip
            asked = updated(new.spec, mode)
        inline = self.request.destination.inline
        driver = await within(
            self.request.inline, inline, lambda: asked.open_within(to.transaction)
        )
        return opened(driver, asked, readable=True, writable=True)

    async def consolidate(self, to: FoundEndpoint, plan: list[Planned]) -> None:
        """Write consolidated metadata for each group whose source has it."""
        tree = to.tree
        if tree is None or tree.form.consolidated_key is None:
            return
        for each in plan:
            if isinstance(each, PlannedGroup) and each.consolidated:
                where = join(to.path, each.path)
                await within(
                    self.request.inline, tree.store.inline, partial(consolidate, tree, where)
                )


def arrays(plan: list[Planned]) -> list[PlannedArray]:
    """The arrays that have to be copied."""
    return [each for each in plan if isinstance(each, PlannedArray) and each.action != "skip"]


def summary(
    plan: list[Planned], done: Mapping[str, tuple[int, int]], *, verified: bool
) -> CopySummary:
    """What became of all members; `done`: how many bytes and chunks of each array were copied."""
    members = [_member(each) for each in plan]
    finished = [
        member._replace(bytes=done[member.path][0], chunks=done[member.path][1])
        if member.kind == "array" and member.path in done
        else member
        for member in members
    ]
    return CopySummary.of(finished, dry_run=False, verified=verified)


def _member(each: PlannedGroup | PlannedArray) -> CopiedMember:
    if isinstance(each, PlannedGroup):
        return CopiedMember(each.path, "group", each.action, "")
    return CopiedMember(each.source.path, "array", each.action, each.form.how, each.size_bytes)
