"""`ts.Group.open(spec)` and `group.open(path)`: one name, asked of the class or of a group.

Forms and keywords are checked at once, where the call is; whatever may wait is in the Future. How a
group is found or made is the hierarchy room's matter.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Never, Unpack, overload

from tensorstore_py._api.begin import as_transaction, begin
from tensorstore_py._api.group_spec import asked_mode, group_model, places
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._api.options import Options, given
from tensorstore_py._hierarchy.attributes import as_attributes
from tensorstore_py._hierarchy.creating import check_absent, create_group, make_parents
from tensorstore_py._hierarchy.opening import find_group
from tensorstore_py._hierarchy.path import check_new, normalised
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.binding import bind
from tensorstore_py._spec.chunk_grid import check_names
from tensorstore_py._spec.spelled import spelled_out
from tensorstore_py._spec.words import ARGUMENTS
from tensorstore_py.errors import MismatchError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorstore_py._api.group import Group
    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._hierarchy.node import Hierarchy, Node
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context

__all__ = ["OpenGroup", "OpenNode", "Opens"]


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
