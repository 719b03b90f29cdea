"""What is in a group, and what a group is: everything that changes nothing.

A handle: where the group is, in which format, and what consolidated metadata tells of it. Listings
and looks at single nodes are the hierarchy room's; what an array is, is its driver's matter.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tensorstore_py._api.attributes import Attributes
from tensorstore_py._api.begin import begin
from tensorstore_py._api.group_nodes import GroupNode, Members, Tree, TreeFuture
from tensorstore_py._api.group_spec import open_array
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._hierarchy.document import AttributesFile
from tensorstore_py._hierarchy.node import Node, read_node
from tensorstore_py._hierarchy.path import join, normalised
from tensorstore_py._hierarchy.walk import Walk, names_below, survey
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._runtime.lifetime import Closable, Lifetime
from tensorstore_py.errors import MismatchError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._hierarchy.consolidated import Consolidated
    from tensorstore_py._hierarchy.node import Hierarchy
    from tensorstore_py._interface.hierarchy import NodeKind
    from tensorstore_py._interface.kvstore import KvStore as KvStorePromise
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.future import Future

__all__ = ["GroupContents"]

T = TypeVar("T")
_NOTHING: Mapping[str, object] = {}


class GroupContents(Closable):
    """The part of `Group` that changes nothing."""

    __slots__ = ("__weakref__", "_known", "_life", "_path", "_place", "_transaction", "_tree")
    _life: Lifetime
    _place: Place
    _path: str
    _tree: Hierarchy
    _transaction: Transaction | None
    _known: Consolidated | None

    @classmethod
    def _of(
        cls,
        place: Place,
        path: str,
        transaction: Transaction | None,
        known: Consolidated | None = None,
        tree: Hierarchy | None = None,
        life: Lifetime | None = None,
    ) -> Self:
        group = cls.__new__(cls)
        group._place = place
        group._path = path
        group._tree = place.tree(transaction) if tree is None else tree
        group._transaction = transaction
        group._known = known
        group._life = Lifetime("Group") if life is None else life
        return group

    # What it is.

    @property
    def path(self) -> str:
        """Its path below the outermost group that is known; `""` is that itself."""
        return self._path

    @property
    def name(self) -> str:
        """Its path with a `/` in front."""
        return f"/{self._path}"

    @property
    def basename(self) -> str:
        """The last part of its path."""
        return self._path.rpartition("/")[2]

    @property
    def zarr_format(self) -> int | None:
        """The version of Zarr that it is; None if it is of another format."""
        return self._tree.form.zarr_format

    @property
    def consolidated(self) -> bool:
        """Whether consolidated metadata tells what is in it, and is not known to be out of date."""
        return self._known is not None and not self._known.stale

    @property
    def kvstore(self) -> KvStore:
        """The store, at the group's path. It is closed with this group.

        Raises:
            FailedPreconditionError: this group was closed.
        """
        where = self._place.at(self._path)
        return KvStore.of(where, self._plain_store(), self._transaction, self._within("KvStore"))

    @property
    def url(self) -> str:
        """The URL of its store.

        Raises:
            UnsupportedError: the store has no URL form.
        """
        return self._place.at(self._path).to_url()

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that it is seen through, with everything in it; None: there is none."""
        return self._transaction

    @property
    def attrs(self) -> Attributes:
        """Its attributes."""
        tree, known = self._tree, self._known
        kept = None if known is None else known.at(self._path)
        file = AttributesFile(tree.store, tree.below(self._path), tree.form, kept)
        return Attributes(file, self._transaction, self._life)

    # What is in it.

    def members(self, max_depth: int | None = 0) -> Members[TensorStore | Self]:
        """What is in it: pairs of a path and the open node, for `for`, `async for` or `await`.

        Costs one listing for each group and one request or two for each node, many at a time; none
        of both if it is consolidated.

        Args:
            max_depth: 0: only what is right in it; 1: what is in groups in it, too; None: all.
        """
        return self._members(None, max_depth, self._node)

    def arrays(self, max_depth: int | None = 0) -> Members[TensorStore]:
        """The arrays among `members`."""
        return self._members("array", max_depth, self._array)

    def groups(self, max_depth: int | None = 0) -> Members[Self]:
        """The groups among `members`."""
        return self._members("group", max_depth, self._inner_group)

    def names(self, max_depth: int | None = 0) -> Future[list[str]]:
        """The paths of what is in it, level by level, sorted in each; nothing is opened.

        Costs one listing for each group, and one request or two for each node above the deepest
        level; none of both if it is consolidated. At the deepest level a directory that holds
        something else has a name like a node's, so it is among them.

        Args:
            max_depth: 0: what is right in it; 1: what is in groups in it, too; None: all.

        Raises:
            UnsupportedError: (by the Future) the store cannot list its keys.
        """
        size = len(self._path)

        async def body() -> list[str]:
            paths = await names_below(self._tree, self._path, self._known, max_depth)
            return [path[size:].lstrip("/") for path in paths]

        return self._begin(body)

    def nodes(self, max_depth: int | None = 0) -> Future[dict[str, GroupNode]]:
        """What is stored of this group, at `""`, and of what is in it, by path; nothing is opened.

        Over a network a level costs about one round trip: documents of all nodes, attributes
        included, are read while it is listed what is in them. Nothing is asked if it is
        consolidated.

        Args:
            max_depth: as for `members`.

        Raises:
            NotFoundError: (by the Future) the group was deleted.
            UnsupportedError: (by the Future) the store cannot list its keys.
            DataLossError: (by the Future) a document is corrupt; names its key.

        Example:
            >>> import tensorstore_py as ts
            >>> group = ts.Group.open("memory://", create=True, attributes={"title": "b"}).result()
            >>> _ = group.create_array("a/b", dtype="int16", shape=[3]).result()
            >>> group.nodes(None).result()
            {'': GroupNode('', group), 'a': GroupNode('a', group), 'a/b': GroupNode('a/b', array)}
        """
        size, form = len(self._path), self._tree.form

        async def body() -> dict[str, GroupNode]:
            found = await survey(self._tree, self._path, self._known, max_depth)
            if not found:
                raise NotFoundError(f"no group found at {self._tree.describe(self._path)}")
            return {
                node.path[size:].lstrip("/"): GroupNode(node, form, partial(self._open_node, node))
                for node in found
            }

        return self._begin(body)

    def contains(self, path: str) -> Future[bool]:
        """Whether an array or a group is at a path."""
        where = self._at(path)

        async def body() -> bool:
            return await read_node(self._tree, where, self._known) is not None

        return self._begin(body)

    def tree(self, max_depth: int | None = None) -> TreeFuture:
        """A picture of what is in it, as text and, in notebooks, as HTML that opens and closes.

        Costs what `names`, and one request or two for each node, cost; arrays are not opened.

        Args:
            max_depth: as for `members`.

        Returns:
            A Future of the picture; a notebook that shows the Future waits for it.
        """
        nodes = self._members(None, max_depth, self._label)

        async def body() -> Tree:
            return Tree(self.name, await nodes.collect())

        return TreeFuture.of(self._begin(body))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.contains(path).result()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names().result())

    def __len__(self) -> int:
        return len(self.names().result())

    def __bool__(self) -> bool:
        return True  # an empty group is one

    def keys(self) -> list[str]:
        """`names().result()`."""
        return self.names().result()

    _ipython_key_completions_ = keys

    # How it is done.

    def _begin(
        self, body: Callable[[], Coroutine[Any, Any, T]], *, changes: bool = False
    ) -> Future[T]:
        inline = self._tree.store.inline
        return begin(inline, body, self._transaction, changes=changes, life=self._life)

    def _within(self, what: str) -> Lifetime:
        """The lifetime of something that is closed with this group."""
        life = Lifetime(what)
        self._life.include(life)
        return life

    def _at(self, path: str) -> str:
        return join(self._path, normalised(path))

    def _plain_store(self) -> KvStorePromise:
        store = self._tree.store
        return store.base if isinstance(store, Overlay) else store

    async def _open(self, where: str, asked: Mapping[str, object]) -> TensorStore | Self:
        node = await read_node(self._tree, where, self._known)
        if node is None:
            raise NotFoundError(
                f'nothing is at "/{where}": no array or group at {self._tree.describe(where)}'
            )
        if node.kind == "group":
            if asked:
                raise MismatchError(f'"/{where}" is a group, not an array; leave out {[*asked]}')
            return self._group(node)
        return await self._array(node, asked)

    def _group(self, node: Node) -> Self:
        return self._of(
            self._place,
            node.path,
            self._transaction,
            node.consolidated,
            self._tree,
            self._within("Group"),
        )

    async def _array(self, node: Node, asked: Mapping[str, object] = _NOTHING) -> TensorStore:
        life = self._within("TensorStore")
        return await open_array(self._place, node, self._transaction, asked, life)

    def _members(
        self,
        kind: NodeKind | None,
        max_depth: int | None,
        made: Callable[[Node], Coroutine[Any, Any, T]],
    ) -> Members[T]:
        size = len(self._path)

        def steps() -> Callable[[], Coroutine[Any, Any, list[tuple[str, T]] | None]]:
            walk = Walk(self._tree, self._path, self._known, max_depth)

            async def step() -> list[tuple[str, T]] | None:
                found = await walk.step()
                if found is None:
                    return None
                wanted = [node for node in found if kind is None or node.kind == kind]
                return [(node.path[size:].lstrip("/"), await made(node)) for node in wanted]

            return step

        return Members(self._begin, steps)

    def _open_node(self, node: Node) -> Future[TensorStore | Self]:
        return self._begin(partial(self._node, node))

    async def _node(self, node: Node) -> TensorStore | Self:
        return self._group(node) if node.kind == "group" else await self._array(node)

    async def _inner_group(self, node: Node) -> Self:
        return self._group(node)

    async def _label(self, node: Node) -> str:
        form = self._tree.form
        return form.summary(node.documents[form.array_key]) if node.kind == "array" else ""
