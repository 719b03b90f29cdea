"""`Writing`: in which order a planned tree is stored, so that nothing half-written looks whole.

Values come first, then the documents that make arrays of them, those of groups after those of what
is in them, and consolidated metadata last. A writer that fails removes what it made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_arrays import Blocks, Delayed, UnderWay
from tensorstore_py.integrations.xarray.writing_documents import (
    ABSENT,
    Documents,
    Form,
    Json,
    Node,
    below,
    parents,
    serialised,
)
from tensorstore_py.integrations.xarray.writing_plan import GroupPlan, Options

__all__ = ["Writing"]

Stored = dict[str, "ts.Future[ts.KvStore.TimestampedStorageGeneration]"]


class Writing:
    """Stores a planned tree.

    Args:
        documents: of the tree.
        form: the version of the format.
        options: what was asked.
        nodes: what is stored, by path: of the tree's own group and of all above it.
        path: of the tree's own group.
        consolidated: store consolidated metadata; None: unless the mode is `r+`.
    """

    def __init__(
        self,
        documents: Documents,
        form: Form,
        options: Options,
        nodes: Mapping[str, Node],
        path: str,
        *,
        consolidated: bool | None,
    ) -> None:
        self._documents = documents
        self._place = documents.place
        self._form = form
        self._options = options
        self._nodes = nodes
        self._path = path
        self._consolidates = options.mode != "r+" and consolidated is not False
        self._claims: dict[str, bytes] = {}

    def write(
        self,
        groups: Sequence[GroupPlan],
        *,
        compute: bool,
        store_options: Mapping[str, Any] | None,
    ) -> Delayed:
        """Store everything; or all but blocks that are computed later.

        Returns:
            What writes the blocks later; None: nothing is left.

        Raises:
            AlreadyExistsError, AbortedError: another writer was faster.
            TensorStoreError: the store failed.
        """
        self._prepare(groups)
        blocks, under_way = Blocks(), UnderWay()
        try:
            early = self._begin(groups, blocks, under_way)
            last = self._consolidated(groups)  # meanwhile
            if compute and blocks.any:
                blocks.write(compute=True, options=store_options)
            self._store_arrays(groups, under_way, early)
            self._store_groups(groups, last)
        except BaseException as error:
            under_way.drop()
            self._documents.settle()
            self._take_back(groups, error)
            raise
        return None if compute else blocks.write(compute=False, options=store_options)

    # Before.

    def _prepare(self, groups: Sequence[GroupPlan]) -> None:
        """Make room: of any number of writers that make the same group one goes on."""
        mode, path = self._options.mode, self._path
        if self._options.fresh or groups[0].found is None:
            self._make_parents()
        if mode == "w":
            if path and self._nodes[""].consolidated:
                self._drop_consolidated()
            keys = (*self._form.keys, "zarr.json", ".zmetadata", ".zgroup")
            self._documents.delete(*(below(path, key) for key in dict.fromkeys(keys)))
            self._documents.delete_below(path)
        elif groups[0].found is None and self._place.transaction is None:
            key = below(path, self._form.group_key)
            bare = self._form.group({})[self._form.group_key]
            stamp = self._documents.store(key, bare, condition=ABSENT).result()
            if not stamp.generation:
                raise ts.zarr.NodeExistsError(
                    f"there is a group at {self._place.describe(path)}, which somebody else has "
                    "just made; pass mode='a' to write into it"
                )
            self._claims[key] = stamp.generation

    def _make_parents(self) -> None:
        key = self._form.group_key
        bare = self._form.group({})[key]
        # If another writer is faster, the group is there, which is what is wanted.
        made = [
            self._documents.store(below(each, key), bare, condition=ABSENT)
            for each in parents(self._path)
            if self._nodes[each].kind is None
        ]
        for future in made:
            future.result()

    # Values and arrays.

    def _begin(self, groups: Iterable[GroupPlan], blocks: Blocks, under_way: UnderWay) -> Stored:
        """Begin to write all that is in memory, and documents that say nothing by themselves."""
        early: Stored = {}
        for array in (array for group in groups for array in group.arrays):
            where = blocks if array.variable.chunks is not None else under_way
            if 0 not in array.variable.shape:
                where.add(array.target, array.region, array.variable)
            for key, (value, condition) in array.documents.items():
                if not key.endswith(self._form.array_key):
                    early[key] = self._documents.store(key, value, condition=condition)
        return early

    def _store_arrays(
        self, groups: Sequence[GroupPlan], under_way: UnderWay, early: Stored
    ) -> None:
        """Make arrays of what is stored, groups of them, and then longer what is to be longer.

        Requests of one group do not wait for those of another.
        """
        late: dict[str, tuple[Json, bytes | None]] = {}
        made: list[tuple[GroupPlan, Stored]] = []
        for group in groups:
            begun: Stored = {}
            for array in group.arrays:
                under_way.wait(array.target)
                for key, (value, condition) in array.documents.items():
                    if not key.endswith(self._form.array_key):
                        continue
                    if array.new:
                        begun[key] = self._documents.store(key, value, condition=condition)
                    else:
                        late[key] = (value, condition)
            made.append((group, begun))
        self._documents.check(early)
        inner: Stored = {}
        for group, begun in made:
            self._documents.check(begun)
            if group.found is None and group.path != self._path:
                for key, value in self._form.group(group.attributes).items():
                    where = below(group.path, key)
                    inner[where] = self._documents.store(where, value)
        self._documents.check(inner)
        # Any other writer that makes the same arrays longer begins with the same one, so that of
        # two one gets all of them.
        for keys in sorted(late)[:1], sorted(late)[1:]:
            self._documents.store_all({key: late[key] for key in keys})

    # Groups.

    def _store_groups(self, groups: Sequence[GroupPlan], last: Mapping[str, Json]) -> None:
        """Finish the tree's own group, and tell of everything in consolidated metadata.

        Args:
            groups: the tree's own group first.
            last: the documents that have copies of all others, of a new tree.
        """
        root = groups[0]
        changed = self._changes(groups)
        self._change_attributes(groups)
        if root.found is not None and not self._options.fresh:
            self._consolidate(changed=changed)
            return
        whole = self._form.group(root.attributes)
        own = {**whole, **{key: value for key, value in last.items() if key in whole}}
        other = {} if self._options.mode == "w" else {self._form.group_key: ABSENT}
        self._documents.store_all(
            {
                where: (value, self._claims.get(where, other.get(key)))
                for key, value in own.items()
                for where in (below(self._path, key),)
            }
        )
        self._claims.clear()
        if self._path:
            self._consolidate(changed=True)
        else:
            self._documents.store_all(
                {key: (value, None) for key, value in last.items() if key not in own}
            )

    def _changes(self, groups: Iterable[GroupPlan]) -> bool:
        """Whether documents of arrays or attributes of groups are not what they were."""
        return any(
            group.found is None
            or _attributes_differ(group)
            or any(array.documents for array in group.arrays)
            for group in groups
        )

    def _change_attributes(self, groups: Iterable[GroupPlan]) -> None:
        """Store the attributes of groups that are there, as the modes that make something do."""
        if self._options.mode == "r+":
            return
        changing = []
        for group in groups:
            if _attributes_differ(group):
                node = self._group(group.path)
                changing.append(node.attrs.put(group.attributes))
        for future in changing:
            future.result()

    def _group(self, path: str) -> ts.Group:
        return ts.Group.open(
            self._place.kvstore,
            path=path,
            zarr_format=3 if self._form.zarr_format == 3 else 2,
            consolidated=False,
            context=self._place.context,
        ).result()

    # Consolidated metadata.

    def _consolidated(self, groups: Sequence[GroupPlan]) -> dict[str, Json]:
        """The documents that have copies of all others, if the whole tree is new."""
        new = self._options.fresh or groups[0].found is None
        if self._path or not (new and self._consolidates):
            return {}
        store = ts.zarr.MemoryStore()
        for group in groups:
            for key, value in self._form.group(group.attributes).items():
                store[below(group.path, key)] = serialised(value)
            for array in group.arrays:
                for key, (value, _) in array.documents.items():
                    store[key] = serialised(value)
        ts.Group.open(store.kvstore, context=store.context).result().consolidate().result()
        key = self._form.consolidated_key
        return {key: json.loads(store[key])}

    def _consolidate(self, *, changed: bool) -> None:
        """Have consolidated metadata of the outermost group tell what is stored now."""
        present = self._nodes[""].consolidated
        if self._consolidates and (changed or not present):
            self._group("").consolidate().result()
        elif changed and present and self._options.mode != "r+":
            self._drop_consolidated()

    def _drop_consolidated(self) -> None:
        """Delete consolidated metadata that is not true any more."""
        if self._form.zarr_format == 2:
            self._documents.delete(self._form.consolidated_key)
            return
        while True:
            node = self._documents.look([""], 3)[""]
            if node.kind is None:
                return
            document = node.documents["zarr.json"]
            plain = {
                key: each for key, each in document.value.items() if key != "consolidated_metadata"
            }
            stored = self._documents.store("zarr.json", plain, condition=document.generation)
            if stored.result().generation:
                return

    # After a failure.

    def _take_back(self, groups: Iterable[GroupPlan], error: BaseException) -> None:
        """Delete what was made, so that nothing is taken for what it was to be."""
        if self._place.transaction is not None:
            return  # which is the user's to abort
        new = [array.path for group in groups for array in group.arrays if array.new]
        made = [group.path for group in groups if group.found is None and group.path != self._path]
        try:
            self._documents.delete(
                *(below(path, key) for path in made for key in self._form.group(_ANY))
            )
            self._documents.delete_below(*new)
            for key, generation in self._claims.items():
                self._documents.take_back(key, generation)
        except ts.TensorStoreError as another:
            error.add_note(f"what was written could not be deleted: {another}")


#: Attributes, so that all documents of a group are named.
_ANY = {"": None}


def _attributes_differ(group: GroupPlan) -> bool:
    return group.found is not None and group.found.attributes != group.attributes
