"""Migrating a hierarchy where it is.

New documents are stored beside the old ones, the outermost last, so that a reader that opens the
hierarchy meanwhile finds all of it in the old version or all of it in the new one. What is new is
looked at before anything old is deleted, the outermost last again. The one invariant: a migration
that is cut short leaves a hierarchy that can be read, and the next one finishes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorstore_py._api.blockwise import ArrayCopy, each_block
from tensorstore_py._api.group_spec import open_array
from tensorstore_py._conversion.summary import Migration, MigrationStep
from tensorstore_py._conversion.translation import (
    OldNode,
    as_version2,
    find_nodes,
    open_as,
    same_array,
    translate,
)
from tensorstore_py._hierarchy.changes import consolidate
from tensorstore_py._hierarchy.document import serialize_document
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._runtime.progress import PartReporter, Reporter
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    SpecError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._chunked.driver import ChunkedDriver
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStore

__all__ = ["InPlaceMigration"]

Version = Literal[2, 3]


class _PlannedNode(NamedTuple):
    node: OldNode
    step: MigrationStep
    documents: dict[str, JsonObject]


class InPlaceMigration(NamedTuple):
    """A migration of what is at a place."""

    old: Place
    new: Place
    to: Version
    keep: bool
    where: str
    reporter: Reporter

    @property
    def store(self) -> KvStore:
        """Where all of it is."""
        return self.new.where.open()

    @property
    def prefix(self) -> str:
        """What all keys begin with."""
        return self.new.where.path

    async def run(self, *, dry_run: bool) -> Migration:
        """Migrate, or see what would be done.

        Raises:
            NotFoundError: nothing is there.
            FailedPreconditionError: a node has documents of both versions that do not agree.
            UnsupportedError: a node cannot be migrated; nothing was changed.
        """
        nodes = await find_nodes(self.store, self.prefix)
        if not nodes:
            raise NotFoundError(f"nothing to migrate: no array or group is at {self.where}")
        found: dict[str, _PlannedNode] = {}

        async def plan(node: OldNode) -> None:
            found[node.path] = await self._plan(node)

        await self._each(nodes, plan)
        plans = [found[node.path] for node in nodes]
        done = Migration(self.to, self.where, dry_run, tuple(each.step for each in plans))
        if dry_run:
            return done
        if done.impossible:
            listed = "; ".join(f"/{step.path}: {step.why}" for step in done.impossible)
            raise UnsupportedError(f"cannot migrate {self.where}, nothing was changed: {listed}")
        await self._store_new(plans)
        await self._check(plans)
        if not self.keep:
            await self._delete_old(plans)
        return done

    # What is to be done.

    async def _plan(self, node: OldNode) -> _PlannedNode:
        if node.version == 3 and self.to == 2:
            why = "it is newer; ts.copy(..., zarr_format=2) makes a copy in version 2"
            return self._planned(node, "impossible", why)
        if self.to == 2:
            return self._to_version2(node)
        if node.version == 3:
            return self._planned(node, "nothing")
        if node.kind == "group":
            document = self.new.form.new_group(node.attributes)
            if node.newer is None:
                return self._planned(node, "metadata", documents=document)
            if node.newer.get("node_type") != "group":
                self._check_begun(node, "one is an array")
            # Without any, they may be gone by now.
            elif node.attributes and self.new.form.attributes(node.newer) != node.attributes:
                self._check_begun(node, "their attributes differ")
            return self._planned(node, "finish")
        if node.newer is not None:
            self._check_begun(node, await self._difference(node, node.newer))
            return self._planned(node, "finish")
        translated = await translate(node, self.old, self.new)
        if translated.document is None:
            return self._planned(node, "impossible", translated.why)
        return self._planned(
            node,
            "chunks" if translated.copies else "metadata",
            translated.why,
            {self.new.form.array_key: translated.document},
        )

    def _to_version2(self, node: OldNode) -> _PlannedNode:
        if node.version == 2:
            return self._planned(node, "finish" if node.leftover else "nothing")
        try:
            document = as_version2(node)
        except SpecError as error:
            return self._planned(node, "impossible", str(error))
        form = self.old.form
        # The document that makes it a node comes last: no reader shall miss its attributes.
        documents = {form.attributes_key: node.attributes} if node.attributes else {}
        return self._planned(node, "metadata", documents={**documents, form.array_key: document})

    def _planned(
        self,
        node: OldNode,
        action: Literal["metadata", "chunks", "finish", "nothing", "impossible"],
        why: str = "",
        documents: dict[str, JsonObject] | None = None,
    ) -> _PlannedNode:
        step = MigrationStep(node.path, node.kind, node.version, action, why)
        return _PlannedNode(node, step, documents or {})

    def _check_begun(self, node: OldNode, difference: str) -> None:
        """Refuse a node whose documents do not tell the same.

        Raises FailedPreconditionError: they don't.
        """
        if difference:
            raise FailedPreconditionError(
                f'"/{node.path}" of {self.where} has documents of version {node.version} and of '
                f"version 3 that do not agree: {difference}; delete those that are wrong"
            )

    async def _difference(self, node: OldNode, newer: JsonObject) -> str:
        if newer.get("node_type") != "array":
            return "one is a group"
        before = await open_as(self.old, node.path, as_version2(node))
        after = await open_as(self.new, node.path, newer)
        # Chunks of its own were all there before the document was; old ones may be gone by now.
        return await same_array(before, after, chunks=_shares_chunks(newer))

    # Doing it.

    async def _store_new(self, plans: Sequence[_PlannedNode]) -> None:
        store = self.store

        self.reporter.begin(0, 0, sum(each.node.kind == "array" for each in plans))

        async def make(each: _PlannedNode) -> None:
            if each.step.action == "chunks":
                await self._copy_chunks(each)
            prefix = self._below(each.node)
            for key, document in each.documents.items():
                data = serialize_document(document)
                stamp = await store.write(prefix + key, data, if_equal=NO_VALUE)
                attributes = key != next(reversed(each.documents))
                if stamp.generation == UNKNOWN and not attributes:
                    raise AbortedError(
                        f"{store.describe_key(prefix + key)} was made by somebody else meanwhile; "
                        "migrate again when nobody else changes the hierarchy"
                    )
            if each.node.kind == "array":
                self.reporter.advance(0, 0, 1)

        await self._inner_first(plans, make)
        for each in plans:
            if each.node.consolidated and self.to == 3:
                await consolidate(self.new.tree(None), each.node.path)

    async def _copy_chunks(self, each: _PlannedNode) -> None:
        """Make the new array's chunks, beside the old ones."""
        path = each.node.path
        document = each.documents[self.new.form.array_key]
        before = await open_as(self.old, path, as_version2(each.node))
        after = await open_as(self.new, path, document)
        copy = ArrayCopy.of(before._driver, before._transform, after._driver, after._transform)
        part = PartReporter(self.reporter)
        self.reporter.more(0, copy.blocks.size * copy.progress_bytes)
        await each_block(
            copy.inline,
            copy.blocks,
            copy.run,
            item_bytes=copy.item_bytes,
            memory=copy.memory,
            reporter=part,
            progress_bytes=copy.progress_bytes,
        )

    async def _check(self, plans: Sequence[_PlannedNode]) -> None:
        """Look at what was stored, before what it replaces goes.

        Raises DataLossError: it is not what it should be; everything old is still there.
        """
        place = self.new if self.to == 3 else self.old
        tree = place.tree(None)

        async def look(each: _PlannedNode) -> None:
            if each.step.action == "nothing":
                return
            node = await read_node(tree, each.node.path)
            if node is None or node.kind != each.node.kind:
                raise DataLossError(
                    f"{tree.describe(each.node.path)} is not there as it was stored; the documents "
                    "of the older version were kept"
                )
            if node.kind == "array":
                await open_array(place, node, None, {}, Lifetime("TensorStore"))

        await self._each(plans, look)

    async def _delete_old(self, plans: Sequence[_PlannedNode]) -> None:
        store = self.store
        for each in plans:
            # A copy of what is about to go would be believed.
            if each.node.consolidated and self.to == 3:
                await store.write(f"{self._below(each.node)}.zmetadata", None)

        async def delete(each: _PlannedNode) -> None:
            node, prefix = each.node, self._below(each.node)
            if each.step.action == "nothing":
                return
            if node.kind == "array" and self.to == 3:
                await self._delete_chunks(each)
            replaced = node.keys if node.version < self.to else ()
            for key in (*replaced, *node.leftover):
                await store.write(prefix + key, None)

        await self._inner_first(plans, delete)

    async def _delete_chunks(self, each: _PlannedNode) -> None:
        """Delete an array's old chunks, if the new one has its own."""
        if _shares_chunks(each.documents.get(self.new.form.array_key, each.node.newer) or {}):
            return
        before = await open_as(self.old, each.node.path, as_version2(each.node))
        driver: ChunkedDriver[Any] = before._driver  # type: ignore[assignment]
        chunks, array = driver._known.source, driver._known.array
        cells = array.cells([(0, axis.extent) for axis in array.grid])
        count = 1
        for axis in array.grid:
            count *= axis.count

        async def delete(cell: tuple[int, ...]) -> None:
            await chunks.write(cell, None, owned=False)

        await fan_out(chunks.inline, cells, delete, count=count, width=chunks.store.width)

    def _below(self, node: OldNode) -> str:
        return f"{self.prefix}{node.path}/" if node.path else self.prefix

    async def _inner_first(
        self,
        plans: Sequence[_PlannedNode],
        work: Callable[[_PlannedNode], Coroutine[object, object, None]],
    ) -> None:
        """Work on all nodes, on those that are deepest first and on the outermost last."""
        depths = {each.node.path: _depth(each.node.path) for each in plans}
        for depth in sorted(set(depths.values()), reverse=True):
            level = [each for each in plans if depths[each.node.path] == depth]
            await self._each(level, work)

    async def _each(
        self, steps: Sequence[object], work: Callable[..., Coroutine[object, object, None]]
    ) -> None:
        store = self.store
        await fan_out(store.inline, steps, work, count=len(steps), width=store.width)


def _shares_chunks(document: JsonObject) -> bool:
    """Whether chunks of an array in version 3 are named as in version 2."""
    naming = document.get("chunk_key_encoding")
    return isinstance(naming, dict) and naming.get("name") == "v2"


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0
