"""`Group`: a group of arrays and further groups, as users hold it.

Here is what changes something; `GroupContents` has the rest. Calls return Futures; the dictionary
forms block. How nodes are made and moved is the hierarchy room's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tensorstore_py._api.begin import as_transaction
from tensorstore_py._api.group_arrays import ArrayOptions, NewArray, array_given
from tensorstore_py._api.group_contents import GroupContents
from tensorstore_py._api.open_group import Opens
from tensorstore_py._hierarchy.attributes import as_attributes
from tensorstore_py._hierarchy.consolidating import consolidate
from tensorstore_py._hierarchy.creating import create_group, make_parents
from tensorstore_py._hierarchy.moving import delete_node, move_node
from tensorstore_py._hierarchy.path import check_new
from tensorstore_py._spec.spelled import spelled_out
from tensorstore_py.errors import NotFoundError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.future import Future

__all__ = ["Group"]


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
