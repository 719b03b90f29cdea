"""`MigrateCall`: a migration to somewhere else as a plan, which is that of a copy.

A migration in place is no plan: what it stores is nearly all metadata, in an order that lets the
hierarchy be read at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._conversion.copy_call import CopyCall
from tensorstore_py._conversion.migration import Migration, MigrationStep
from tensorstore_py._conversion.tree_copy import TreeCopy
from tensorstore_py._plan.call import Call
from tensorstore_py._runtime.fan_out import within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from tensorstore_py._conversion.copy_plan import Request
    from tensorstore_py._conversion.summary import CopySummary
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._plan.tasks import Outcome
    from tensorstore_py._runtime.progress import Told

__all__ = ["MigrateCall"]


class MigrateCall(Call[Migration]):
    """A migration to somewhere else that is asked for.

    Args:
        request: the copy.
        to: the version.
        look: finds out how to name what is migrated, and of which version each node is, by its
            path; in the temperament of the source.
        arguments: makes the call's arguments as JSON.
    """

    operation = "migrate"

    def __init__(
        self,
        request: Request,
        to: int,
        look: Callable[[], Coroutine[Any, Any, tuple[str, dict[str, int]]]],
        arguments: Callable[[], JsonObject],
    ) -> None:
        self._copy = CopyCall("migrate", request, arguments)
        self._request = request
        self._to = to
        self._look = look
        self._name = request.source.described
        self._versions: dict[str, int] = {}

    @property
    def inline(self) -> bool:
        """The temperament of `copied`."""
        return self._request.inline

    async def copied(self, told: Told, *, dry_run: bool) -> Migration:
        """Copy in this process, without a plan, or see what would be copied."""
        source = self._request.source
        self._name, self._versions = await within(self.inline, source.inline, self._look)
        return self._migration(await TreeCopy(self._request, told).run(dry_run=dry_run))

    def request(self) -> JsonObject:
        """See `Call`."""
        return self._copy.request()

    def identity(self) -> JsonObject:
        """See `Call`."""
        return {**self._copy.identity(), "to": self._to}

    def resume(self, forms: Mapping[str, str]) -> None:
        """See `Call`."""
        self._copy.resume(forms)

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        stages = await self._copy.stages()
        self._name, self._versions = await within(False, self._request.source.inline, self._look)
        for stage in stages:
            for step in stage.steps:
                if self._versions.get(step.name) == 1:
                    step.stay(
                        f'"/{step.name}" is of version 1 of Zarr, which other processes cannot '
                        "open; migrate in this process"
                    )
        return stages

    async def begin(self, again: bool) -> None:
        """See `Call`."""
        await self._copy.begin(again)

    async def check_begun(self) -> None:
        """See `Call`."""
        await self._copy.check_begun()

    async def end(self) -> None:
        """See `Call`."""
        await self._copy.end()

    def result(self, outcomes: list[Outcome]) -> Migration:
        """What was migrated."""
        return self._migration(self._copy.result(outcomes))

    def _migration(self, done: CopySummary) -> Migration:
        steps = [
            MigrationStep(
                each.path, each.kind, self._versions.get(each.path, self._to), "chunks", each.how
            )
            for each in done.members
        ]
        dest = self._request.destination.described
        return Migration(self._to, self._name, done.dry_run, tuple(steps), dest)
