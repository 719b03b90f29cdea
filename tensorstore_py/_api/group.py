"""`Group`: a group of arrays and further groups, as users hold it, and `Group.open`.

Here is what changes something; `GroupContents` has the rest. Calls return Futures; the dictionary
forms block. Forms and keywords are checked at once, where the call is; what may wait is in the
Future. How nodes are found, made and moved is the hierarchy room's matter.

`open` is one name asked of the class (`ts.Group.open(spec)`) or of a group (`group.open(path)`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Never, Unpack, overload

from tensorstore_py._api.begin import as_context, as_transaction, begin
from tensorstore_py._api.describe_group import group_html, group_info
from tensorstore_py._api.group_contents import GroupContents
from tensorstore_py._api.group_spec import (
    ArrayOptions,
    NewArray,
    array_given,
    asked_mode,
    group_model,
    places,
)
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.options import Options, given
from tensorstore_py._api.view import View, view
from tensorstore_py._display.public_name import public
from tensorstore_py._hierarchy.changes import (
    check_absent,
    consolidate,
    create_group,
    delete_node,
    make_parents,
    move_node,
)
from tensorstore_py._hierarchy.document import as_attributes
from tensorstore_py._hierarchy.formats import find_group
from tensorstore_py._hierarchy.path import check_new, normalised
from tensorstore_py._runtime.handle import stands_for
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.arguments import ARGUMENTS, check_names, spelled_out
from tensorstore_py._spec.context import bind
from tensorstore_py.errors import MismatchError, NotFoundError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._display.info import Info
    from tensorstore_py._hierarchy.node import Hierarchy, Node
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context


__all__ = ["Group", "OpenGroup", "OpenNode", "Opens"]


_ARGUMENTS = (
    "path", "open", "create", "delete_existing", "zarr_format", "attributes", "consolidated",
    "context", "transaction",
)  # fmt: skip
#: What zarr and xarray call these.
_WORDS = {
    **{name: ARGUMENTS[name] for name in ("overwrite", "exist_ok", "storage_options")},
    "mode": 'say nothing for mode "r" and "r+", open=True, create=True for "a", '
    'create=True, delete_existing=True for "w", create=True for "w-"',
    "group": "say path=",
    "store": ARGUMENTS["store"],
    "attrs": "say attributes=",
    "use_consolidated": "say consolidated=",
    "zarr_version": "say zarr_format=",
}


class Opens:
    """The attribute `open` of the class and of its instances."""

    @overload
    def __get__(self, group: None, cls: type[Group]) -> OpenGroup: ...

    @overload
    def __get__(self, group: Group, cls: type[Group]) -> OpenNode: ...

    def __get__(self, group: Group | None, cls: type[Group]) -> OpenGroup | OpenNode:
        return OpenGroup(cls) if group is None else OpenNode(group)


class OpenGroup:
    """`ts.Group.open`."""

    __slots__ = ("_type",)

    def __init__(self, type_: type[Group]) -> None:
        self._type = type_

    def __call__(
        self,
        spec: object,
        *,
        path: str = "",
        open: bool | None = None,
        create: bool | None = None,
        delete_existing: bool | None = None,
        zarr_format: Literal[2, 3] | None = None,
        attributes: Mapping[str, object] | None = None,
        consolidated: bool | None = None,
        context: Context | None = None,
        transaction: Transaction | None = None,
        **unknown: Never,
    ) -> Future[Group]:
        """Open or create a group.

        Args:
            spec: where the outermost group is: a URL (`file:///data/`, or `file:///data/|zarr2:`,
                which names the format), a JSON spec of a store or of an array's driver, a `Spec`,
                a `KvStore` or its `Spec`, a store object of zarr-python, icechunk, obstore or
                fsspec, or a local path as `os.PathLike`. An archive that is opened by its own path
                is found out.
            path: of a group inside it. Created groups are made with all groups above them.
            open: open it if it is there. So it is by default, unless it is to be created.
            create: create it if it is not there.
            delete_existing: delete whatever is there first; needs `create`, and not `open`.
            zarr_format: which version of the format; by default whichever is there, and that of
                the outermost group, or the newest, if it is created.
            attributes: of a new group; JSON.
            consolidated: use consolidated metadata: False: not; True: it must be there. By default
                if it is there. It is a copy: what was stored since by others does not show.
            context: shared resources; a fresh default `Context` if not given.
            transaction: in which it is opened, and created, with everything in it.
            **unknown: refused, with what to say instead.

        Raises:
            TypeError: (at once) an argument that does not exist.
            SpecError: (at once) the spec is wrong, or has what only an array has; a path with `.`
                or `..`; attributes that are no JSON; (by the Future) a path that the format does
                not allow.
            NotFoundError: (by the Future) nothing is there and `create` is off.
            AlreadyExistsError: (by the Future) something is there and `open` is off.
            MismatchError: (by the Future) an array is there.
            UnsupportedError: (at once) the driver's format has no groups.
            DataLossError: (by the Future) a document is corrupt; names its key.

        Example:
            >>> import tensorstore_py as ts
            >>> ts.Group.open("memory://data/", create=True).result()
            Group('memory://data/', zarr_format=3)
        """
        check_names("ts.Group.open", unknown, _ARGUMENTS, _WORDS)
        within = as_transaction(_transaction(spec, transaction))
        model = group_model(spec)
        mode = asked_mode(model, open, create, delete_existing)
        shared = as_context(context)
        life = Lifetime("Group", shared.life.close if context is None else None)
        if context is not None:
            context.life.include(life)
        found = places(model, shared, zarr_format)
        inner = normalised(path)
        new = as_attributes({} if attributes is None else attributes)
        trees = [place.tree(within) for place in found]
        of = self._type._of

        async def look(at: Sequence[Place]) -> Group | None:
            seen = [place.tree(within) for place in at]
            there = await find_group(seen, inner, consolidated=consolidated is not False)
            if there is None:
                return None
            tree, node = there
            _check(node, tree, consolidated)
            return of(at[seen.index(tree)], inner, within, node.consolidated, tree, life)

        async def body() -> Group:
            group = await look(found) if mode.open else None
            if group is None and not mode.create:
                bound = bind(model, shared)
                inside = await bound.inside()
                group = None if inside is bound else await look(places(inside, shared, zarr_format))
                if group is None:
                    raise _nothing(trees, inner)
            if group is not None:
                return group
            root = await find_group(trees, "", consolidated=False) if inner else None
            tree = trees[0] if root is None else root[0]
            check_new(tree.form, inner)
            if not (mode.open or mode.delete_existing):
                await check_absent([each for each in trees if each is not tree], inner)
            await make_parents(tree, inner)
            made = await create_group(
                tree, inner, new, may_exist=mode.open, delete_existing=mode.delete_existing
            )
            return of(found[trees.index(tree)], inner, within, made.consolidated, tree, life)

        return begin(trees[0].store.inline, body, within, changes=mode.create)


class OpenNode:
    """`open` of a group."""

    __slots__ = ("_group",)

    def __init__(self, group: Group) -> None:
        self._group = group

    @spelled_out(Options)
    def __call__(self, path: str, **asked: Unpack[Options]) -> Future[Any]:
        """Open what is at a path: a `TensorStore` or a `Group`.

        Args:
            path: below this group, such as `"a/b"`.
            **asked: for an array, options of `ts.open` that it must agree with, or that say how it
                is cached.

        Raises:
            SpecError: (at once) the path has the part `.` or `..`.
            NotFoundError: (by the Future) nothing is there.
            MismatchError: (by the Future) it does not agree, or is a group.
            DataLossError, UnsupportedError: (by the Future) as by `ts.open`.
        """
        group, found = self._group, given(**asked)
        options = {name: value for name, value in found.items() if value is not None}
        return group._begin(partial(group._open, group._at(path), options))


def _transaction(spec: object, given: Transaction | None) -> Transaction | None:
    return spec.transaction if isinstance(spec, KvStore) and given is None else given


def _check(found: Node, tree: Hierarchy, asked: bool | None) -> None:
    """Refuse what is no group, or not as it should be.

    Raises:
        MismatchError: it is an array.
        NotFoundError: consolidated metadata is asked for, and there is none.
    """
    where = tree.describe(found.path)
    if found.kind == "array":
        raise MismatchError(
            f'"/{found.path}" is an array, not a group, at {where}; open it with ts.open'
        )
    if asked and found.consolidated is None:
        raise NotFoundError(
            f'"/{found.path}" has no consolidated metadata, at {where}; '
            "leave out consolidated=True, and call consolidate() to store some"
        )


def _nothing(trees: Sequence[Hierarchy], path: str) -> NotFoundError:
    keys = " or ".join(tree.describe(path) for tree in trees)
    return NotFoundError(f"no group found at {keys}; to create one pass create=True")


@stands_for
@public
class Group(GroupContents):
    """A group of arrays and further groups, made by `Group.open`.

    Example:
        >>> import tensorstore_py as ts
        >>> root = ts.Group.open("memory://", create=True, attributes={"title": "Run 7"}).result()
        >>> image = root.create_array("raw/image", dtype="uint16", shape=[100, 200]).result()
        >>> image[:10, :10] = 7
        >>> image.attrs["unit"] = "counts"
        >>> root["raw/image"][5, 5].read().result(), list(root), root.attrs["title"]
        (array(7, dtype=uint16), ['raw'], 'Run 7')
        >>> print(root.tree().result())
        /
        └── raw
            └── image (100, 200) uint16
    """

    __slots__ = ()

    #: `ts.Group.open(spec)` opens or creates a group, `group.open(path)` what is in one.
    open = Opens()

    def __init__(self) -> None:
        raise TypeError("a Group is made by Group.open(spec)")

    def with_transaction(self, transaction: Transaction | None) -> Group:
        """The same group, seen through a transaction.

        Raises:
            FailedPreconditionError: the transaction is not open.

        Example:
            >>> import tensorstore_py as ts
            >>> group = ts.Group.open("memory://", create=True).result()
            >>> with ts.Transaction() as transaction:
            ...     _ = group.with_transaction(transaction).create_group("a").result()
            ...     print("a" in group)
            False
            >>> "a" in group
            True
        """
        within = as_transaction(transaction)
        return Group._of(self._place, self._path, within, life=self._life)

    @property
    def info(self) -> Info:
        """What it is, in a few lines, of what is known here: nothing is read."""
        return group_info(self)

    def view(self, *, port: int = 0, height: int = 600) -> View:
        """Show what is in it in a browser: its tree, and each array as `TensorStore.view` does.

        Args:
            port: at which the page is served, on this machine alone; by default any that is free.
            height: of the frame in a notebook, in pixels.

        Returns:
            The page: in a notebook it shows itself; elsewhere open its `url`.

        Raises:
            UnsupportedError: aiohttp is not installed.
            UnavailableError: the port cannot be had.

        Example:
            >>> import tensorstore_py as ts
            >>> with ts.Group.open("memory://", create=True).result().view() as page:
            ...     page.url.startswith("http://127.0.0.1:")
            True
        """
        return view(self, port=port, height=height)

    # Making and changing what is in it.

    @spelled_out(ArrayOptions)
    def create_array(
        self,
        path: str,
        *,
        attributes: Mapping[str, object] | None = None,
        delete_existing: bool = False,
        **schema: Unpack[ArrayOptions],
    ) -> Future[TensorStore]:
        """Make an array, and the groups above it that are not there.

        Args:
            path: below this group, such as `"a/b"`.
            attributes: of the array; JSON.
            delete_existing: delete whatever is there first.
            **schema: `dtype`, `shape` or `domain`, and whatever else `ts.open` knows of an array's
                form; members of the driver's spec, such as `metadata`. Labels of the domain are
                stored as the format's dimension names, or as `_ARRAY_DIMENSIONS`.

        Raises:
            SpecError, MismatchError: (at once) something is wrong with it, or contradicts another.
            AlreadyExistsError: (by the Future) something is there.
            FailedPreconditionError: (by the Future) an array is above it.

        Example:
            >>> import tensorstore_py as ts
            >>> group = ts.Group.open("memory://", create=True, zarr_format=2).result()
            >>> array = group.create_array(
            ...     "a/b", dtype="int16", domain=ts.IndexDomain(shape=[2, 3], labels=["y", "x"])
            ... ).result()
            >>> array.attrs["_ARRAY_DIMENSIONS"], group["a/b"].domain.labels
            (['y', 'x'], ('y', 'x'))
        """
        found = array_given(**schema)
        return self._make(path, attributes, found, may_exist=False, deletes=delete_existing)

    @spelled_out(ArrayOptions)
    def require_array(
        self,
        path: str,
        *,
        attributes: Mapping[str, object] | None = None,
        **schema: Unpack[ArrayOptions],
    ) -> Future[TensorStore]:
        """The array at a path, made if it is not there.

        Args are those of `create_array`; attributes are those of a new array.

        Raises:
            MismatchError: (by the Future) what is there does not agree, or is a group.
        """
        found = array_given(**schema)
        return self._make(path, attributes, found, may_exist=True, deletes=False)

    def create_group(
        self,
        path: str,
        *,
        attributes: Mapping[str, object] | None = None,
        delete_existing: bool = False,
    ) -> Future[Group]:
        """Make a group, and those above it that are not there.

        Args:
            path: below this group, such as `"a/b"`.
            attributes: of the group; JSON.
            delete_existing: delete whatever is there first.

        Raises:
            SpecError: (at once) a path that the format does not allow, or attributes that are no
                JSON.
            AlreadyExistsError: (by the Future) something is there.
            FailedPreconditionError: (by the Future) an array is above it.
        """
        return self._make_group(path, attributes, may_exist=False, deletes=delete_existing)

    def require_group(
        self, path: str, *, attributes: Mapping[str, object] | None = None
    ) -> Future[Group]:
        """The group at a path, made if it is not there; attributes are those of a new one.

        Raises:
            MismatchError: (by the Future) an array is there.
        """
        return self._make_group(path, attributes, may_exist=True, deletes=False)

    def delete(self, path: str) -> Future[None]:
        """Delete what is at a path, with everything below it; key after key.

        Raises:
            SpecError: (at once) the path is that of the group itself, or has `.` or `..`.
            NotFoundError: (by the Future) nothing is there.
        """
        where = self._inner(path)
        self._spoil(where)
        return self._begin(lambda: delete_node(self._tree, where), changes=True)

    def move(self, source: str, target: str) -> Future[None]:
        """Move what is at a path, with everything below it, to another path below this group.

        Everything is copied, and deleted then: who fails in between leaves it where it was. In a
        transaction it happens when that is committed. Handles of what was moved are of no use.

        Raises:
            SpecError: (at once) a path that is not allowed; (by the Future) it would be moved into
                itself.
            NotFoundError: (by the Future) nothing is there.
            AlreadyExistsError: (by the Future) something is at the target.
        """
        from_, to = self._inner(source), self._inner(target)
        check_new(self._tree.form, to)
        self._spoil(from_)
        return self._begin(lambda: move_node(self._tree, from_, to, self._path), changes=True)

    def consolidate(self) -> Future[Group]:
        """Store the metadata of everything below in one document, so that one request tells it all.

        It is a copy: call it when all changes are made.

        Returns:
            A Future of this group, opened from it.

        Raises:
            UnsupportedError: (by the Future) the format has no such thing, or the store cannot
                list its keys.
            NotFoundError: (by the Future) the group was deleted.

        Example:
            >>> import tensorstore_py as ts
            >>> group = ts.Group.open("memory://", create=True).result()
            >>> _ = group.create_array("a/b", dtype="int16", shape=[3]).result()
            >>> _ = group.consolidate().result()
            >>> ts.Group.open(group.kvstore).result().consolidated
            True
        """

        async def body() -> Group:
            # What was known before is known better now, so later changes are warned of anew.
            self._known = await consolidate(self._tree, self._path)
            return Group._of(
                self._place, self._path, self._transaction, self._known, self._tree, self._life
            )

        return self._begin(body, changes=True)

    # As a dictionary.

    def __getitem__(self, path: str) -> Any:  # noqa: ANN401 - an array or a group
        """Open what is at a path, and wait for it.

        Raises:
            KeyError: nothing is there.
        """
        try:
            return self.open(path).result()
        except NotFoundError as error:
            raise KeyError(str(error)) from error

    def __delitem__(self, path: str) -> None:
        try:
            self.delete(path).result()
        except NotFoundError as error:
            raise KeyError(str(error)) from error

    def _repr_html_(self) -> str:
        return group_html(self, "Group")

    def __repr__(self) -> str:
        try:
            where = self.url
        except UnsupportedError:
            where = self._tree.describe(self._path)
        form = self._tree.form
        kind = (
            f"zarr_format={form.zarr_format}" if form.zarr_format else f"format={form.format_id!r}"
        )
        return f"Group({where!r}, {kind})"

    def __reduce__(self) -> tuple[object, tuple[Place, str]]:
        return _reopen, (self._place, self._path)

    # How it is done.

    def _inner(self, path: str) -> str:
        inner = self._at(path)
        if inner == self._path:
            raise SpecError(
                f"path {path!r} is that of the group itself; do this from outside of it"
            )
        return inner

    def _spoil(self, path: str) -> None:
        if self._known is not None:
            self._known.spoil(path)

    def _make(
        self,
        path: str,
        attributes: Mapping[str, object] | None,
        schema: Mapping[str, object],
        *,
        may_exist: bool,
        deletes: bool,
    ) -> Future[TensorStore]:
        inner = self._inner(path)
        check_new(self._tree.form, inner)
        new = NewArray.of(
            self._place, inner, attributes or {}, schema, may_exist=may_exist, deletes=deletes
        )
        self._spoil(inner)
        return self._begin(
            lambda: new.make(
                self._tree, self._path, self._transaction, self._within("TensorStore")
            ),
            changes=True,
        )

    def _make_group(
        self,
        path: str,
        attributes: Mapping[str, object] | None,
        *,
        may_exist: bool,
        deletes: bool,
    ) -> Future[Group]:
        inner = self._inner(path)
        check_new(self._tree.form, inner)
        new = as_attributes(attributes or {})
        self._spoil(inner)

        async def body() -> Group:
            await make_parents(self._tree, inner, self._path)
            return self._group(
                await create_group(
                    self._tree, inner, new, may_exist=may_exist, delete_existing=deletes
                )
            )

        return self._begin(body, changes=True)


def _reopen(place: Place, path: str) -> Group:
    return Group._of(place, path, None)
