"""`ts.migrate`: hierarchies of older versions of Zarr become ones of a newer version.

Arguments are checked here. `InPlaceMigration` migrates a hierarchy where it is, which is no plan:
what it stores is nearly all metadata, in an order that lets the hierarchy be read at any time. A
migration to somewhere else (`MigrateCall`) is a copy in the other version, and planned as one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.group_spec import Place, group_model, places
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._conversion.copy_call import CopyCall
from tensorstore_py._conversion.copy_plan import MemberPaths, Request
from tensorstore_py._conversion.endpoints import (
    FoundEndpoint,
    SourceEndpoint,
    described,
    destination,
)
from tensorstore_py._conversion.in_place import InPlaceMigration
from tensorstore_py._conversion.summary import Migration, MigrationStep
from tensorstore_py._conversion.target_metadata import RequestedMetadata
from tensorstore_py._conversion.translation import as_version2, find_nodes, open_as
from tensorstore_py._conversion.tree_copy import TreeCopy
from tensorstore_py._hierarchy.node import Node, read_node
from tensorstore_py._plan.arrays import portable_json
from tensorstore_py._plan.call import Call, register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.context import bind
from tensorstore_py.errors import NotFoundError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from tensorstore_py._conversion.summary import CopySummary
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["MigrateCall", "migrate"]


class MigrateCall(Call[Migration]):
    """A migration to somewhere else that is asked for.

    `look` finds out how to name what is migrated, and of which version each node is, by its path,
    in the execution mode of the source; `arguments` makes the call's arguments as JSON.
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
        """The execution mode of `copied`."""
        return self._request.inline

    async def copied(self, reporter: Reporter, *, dry_run: bool) -> Migration:
        """Copy in this process, without a plan, or see what would be copied."""
        source = self._request.source
        self._name, self._versions = await within(self.inline, source.inline, self._look)
        return self._migration(await TreeCopy(self._request, reporter).run(dry_run=dry_run))

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

    def result(self, outcomes: list[StageOutcome]) -> Migration:
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


def migrate(
    where: object,
    to: Literal[2, 3] = 3,
    *,
    dry_run: bool = False,
    in_place: bool = True,
    dest: object = None,
    keep: bool = False,
    manifest: object = None,
    executor: object = None,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[Migration]:
    """Make a hierarchy of an older version of Zarr one of a newer version, where it is.

    Chunks stay as they are wherever the newer version can say what they are like, which is tried
    out on up to three chunks of each array. Where it cannot, the array's chunks are encoded anew.
    The old documents are there until the new ones are and were looked at, so that the hierarchy
    can be read at any time; a migration that was cut short is finished by the next one. Nobody
    else may write to it meanwhile.

    Args:
        where: a URL, a local path (`os.PathLike`), a spec of a store or a `KvStore`.
        to: the version: 2 (from 1) or 3 (from 1 or 2). What is of it already stays.
        dry_run: only find out what would be done; `print` the result.
        in_place: False: make a copy at `dest` instead, as `ts.copy` does; so does giving that.
        dest: where to, if not in place.
        keep: keep the old documents, and old chunks where they were copied.
        manifest: of a copy, as for `ts.copy`.
        executor: who makes the copy, as for `ts.copy`.
        progress: called with a `Progress`, of chunks that are encoded anew or copied, and arrays;
            True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `Migration`, which tells what became of each node.

    Raises:
        SpecError: (at once) the place or the version is wrong, or `dest` is missing, which an
            executor or a manifest needs.
        NotFoundError: (by the Future) nothing is there.
        UnsupportedError: (by the Future) a node cannot be migrated; nothing was changed.
        FailedPreconditionError: (by the Future) a node has documents of both versions that do not
            agree.
        DataLossError: (by the Future) a document is corrupt; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.Group.open("memory://a/", create=True, zarr_format=2).result()
        >>> image = old.create_array("raw/image", dtype="int16", shape=[30]).result()
        >>> image[...] = 7
        >>> print(ts.migrate(old.kvstore).result())
        migrated memory://a/ to version 3: 3 of 3 nodes
          group /: version 2, new metadata, chunks stay
          group /raw: version 2, new metadata, chunks stay
          array /raw/image: version 2, new metadata, chunks stay
        >>> ts.Group.open(old.kvstore).result()["raw/image"][0].read().result()
        array(7, dtype=int16)
    """
    shared = as_context(context)
    reporter = Reporter(progress, "migrate")
    if dest is None and not in_place:
        raise SpecError("in_place=False needs a place for the copy", ("dest",))
    if dest is not None:
        call = _planned(where, to, dest=dest, context=shared)
        kept = None if manifest is None else document_place(manifest, shared)
        if not dry_run and (executor is not None or kept is not None):
            return run_call(call, executor, reporter, kept)
        body = partial(call.copied, reporter, dry_run=dry_run)
        return reporter.until(start(call.inline, body, on_interrupt=OnInterrupt.CANCEL))
    for name, value in (("executor", executor), ("manifest", manifest)):
        if value is not None:
            raise SpecError("a migration in place runs in this process; pass dest=", (name,))
    model, here = _place(where, to, shared)

    async def migrated() -> Migration:
        old, new, name = await _inside(model, shared)
        return await InPlaceMigration(old, new, to, keep, name, reporter).run(dry_run=dry_run)

    return reporter.until(start(here, migrated, on_interrupt=OnInterrupt.CANCEL))


def _place(where: object, to: int, context: Context) -> tuple[DriverSpec, bool]:
    """The bound spec of what is migrated, and its execution mode.

    Raises SpecError: the place or the version is wrong.
    """
    if to not in (2, 3):
        raise SpecError(f"expected 2 or 3, not {to!r}", ("to",))
    model = bind(group_model(where), context)
    return model, places(model, context, None)[0].where.open().inline


def _planned(
    where: object,
    to: Literal[2, 3] = 3,
    *,
    dest: object = None,
    context: Context | None = None,
    **how: object,
) -> MigrateCall:
    """The call of a migration to somewhere else; how it is run makes no difference.

    Raises SpecError: it is one in place.
    """
    del how
    if dest is None:
        raise SpecError("a migration in place has no plan; pass dest=", ("dest",))
    shared = as_context(context)
    model, here = _place(where, to, shared)
    end = destination(dest, shared, to)

    async def find() -> FoundEndpoint:
        old, new, _ = await _inside(model, shared)
        return await _found(old, new)

    async def look() -> tuple[str, dict[str, int]]:
        _, new, name = await _inside(model, shared)
        found = await find_nodes(new.where.open(), new.where.path)
        return name, {node.path: node.version for node in found}

    def arguments() -> JsonObject:
        return {"where": portable_json(model), "to": to, "dest": end.to_json()}

    name = described(places(model, shared, None)[0].where)
    source = SourceEndpoint(here, find, name, dict)
    nowhere = MemberPaths.of(None, None)
    identity = {"source": name, "dest": end.described}
    request = Request(
        source, end, here and end.inline, nowhere, "raise", RequestedMetadata(), None, identity
    )
    return MigrateCall(request, to, look, arguments)


register_call(migrate, _planned)


async def _inside(model: DriverSpec, context: Context) -> tuple[Place, Place, str]:
    """The place as versions 2 and 3 see it, in the archive that is there if one is; its name."""
    where = places(await model.inside(), context, None)[0].where
    return *_versions(where, context), described(where)


def _versions(where: KvStoreSpec, context: Context) -> tuple[Place, Place]:
    """The place as versions 2 and 3 see it."""
    model = group_model(KvStore.Spec.of(where))
    known = places(bind(model, context), context, None)
    by_version = {place.form.zarr_format: place for place in known}
    return by_version[2], by_version[3]


async def _found(old: Place, new: Place) -> FoundEndpoint:
    """The end of a copy: what is there, version 1 included."""
    nodes = await find_nodes(old.where.open(), old.where.path)
    root = next((node for node in nodes if not node.path), None)
    if root is None:
        raise NotFoundError(f"nothing to migrate: no array or group is at {described(old.where)}")
    if root.version == 1:
        document = as_version2(root)
        node = Node("", "array", {".zarray": document, ".zattrs": root.attributes}, {}, None)
        return FoundEndpoint(old.tree(None), "", node, None, None, await open_as(old, "", document))
    place = new if root.version == 3 else old
    seen = await read_node(place.tree(None), "", likely=root.kind)
    array = None
    if root.kind == "array":
        array = await open_as(place, "", root.document)
    return FoundEndpoint(place.tree(None), "", seen, place, None, array)
