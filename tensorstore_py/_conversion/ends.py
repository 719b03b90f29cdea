"""The two ends of a copy: what users name as source and destination, and what is found there.

An end is a node of a hierarchy, where the format has such, or an array by itself. Forms and
keywords are checked at once; finding out what is there may wait, in the temperament of its store.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._api.begin import as_transaction
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_arrays import open_array
from tensorstore_py._api.group_spec import Place, group_model, places
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import as_model, opened
from tensorstore_py._api.options import updated
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._conversion.suffix import by_suffix
from tensorstore_py._hierarchy.formats import format_of
from tensorstore_py._hierarchy.node import Hierarchy, Node, read_node
from tensorstore_py._hierarchy.opening import find_group
from tensorstore_py._plan.arrays import array_json, portable_json
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.binding import bind, spec_json, unbind
from tensorstore_py._spec.pretty import pretty
from tensorstore_py.errors import (
    MismatchError,
    NotFoundError,
    SpecError,
    UnsupportedError,
    without_secrets,
)

if TYPE_CHECKING:
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.context import Context

__all__ = ["Destination", "End", "Found", "described", "destination", "source"]


class Found(NamedTuple):
    """What is at an end.

    Attributes:
        tree: the hierarchy that it is a node of; None: an array by itself.
        path: of the node.
        node: what is there; None: nothing.
        place: what opens arrays of the hierarchy.
        transaction: that it is seen through.
        array: the open array, if it is one.
    """

    tree: Hierarchy | None
    path: str = ""
    node: Node | None = None
    place: Place | None = None
    transaction: Transaction | None = None
    array: TensorStore | None = None


class End(NamedTuple):
    """What a copy is from.

    Attributes:
        inline: its temperament.
        find: finds out what is there.
        described: how to name it to a person, and in a manifest.
        to_json: makes what another process takes for it.
    """

    inline: bool
    find: Callable[[], Coroutine[Any, Any, Found]]
    described: str
    to_json: Callable[[], object]


class Destination(NamedTuple):
    """What a copy is to.

    Attributes:
        inline: its temperament.
        find: finds out what is there; takes the source's format, which a new hierarchy gets.
        described: as for `End`.
        to_json: as for `End`.
        array: the spec of an array by itself, in a format without hierarchies.
    """

    inline: bool
    find: Callable[[HierarchyFormat | None], Coroutine[Any, Any, Found]]
    described: str
    to_json: Callable[[], object]
    array: DriverSpec | None = None


def source(given: object, context: Context) -> End:
    """The end that a copy is from.

    Args:
        given: a TensorStore, a Group, or whatever `ts.open` or `ts.Group.open` takes.
        context: what specs are bound to.

    Raises:
        SpecError: something is wrong with it; names the JSON path.
    """
    if isinstance(given, TensorStore):
        return _open_array_end(given)
    if isinstance(given, Group):
        return _group_end(given)
    transaction = as_transaction(given.transaction if isinstance(given, KvStore) else None)
    model = _group_model(given)
    if model is None:
        return _array_spec_end(given, context)
    model = bind(model, context)
    candidates = places(model, context, None)

    async def find() -> Found:
        inside = model
        found = await _find(candidates, transaction)
        if found is None:
            inside = await model.inside()
            if inside is not model:
                found = await _find(places(inside, context, None), transaction)
        if found is None:
            keys = " or ".join(place.tree(transaction).describe("") for place in candidates)
            raise NotFoundError(f"nothing to copy: no array or group is at {keys}")
        return found

    return End(
        candidates[0].tree(transaction).store.inline,
        find,
        described(candidates[0].where),
        partial(_model_json, model, transaction),
    )


def destination(given: object, context: Context, zarr_format: int | None) -> Destination:
    """The end that a copy is to.

    Args:
        given: as for `source`; what is not there is made.
        context: what specs are bound to.
        zarr_format: version of a hierarchy that is made; None: whichever is there, or the source's.

    Raises:
        SpecError: something is wrong with it; names the JSON path.
    """
    if isinstance(given, TensorStore):
        return _as_it_is(_open_array_end(given))
    if isinstance(given, Group):
        if zarr_format not in (None, given.zarr_format):
            raise SpecError(f"{given!r} is not of that version; leave it out", ("zarr_format",))
        return _as_it_is(_group_end(given))
    transaction = as_transaction(given.transaction if isinstance(given, KvStore) else None)
    given = by_suffix(given, zarr_format)
    model = _group_model(given)
    if model is None:
        spec = bind(as_model(given), context)
        if "create" not in type(spec).model_fields:  # what is there is all that can be
            return _as_it_is(_array_spec_end(given, context))
        kept = getattr(spec, "kvstore", None)

        async def nothing(_: HierarchyFormat | None) -> Found:
            return Found(None)

        return Destination(
            spec.inline, nothing, described(kept), partial(_model_json, spec, transaction), spec
        )
    model = bind(model, context)
    candidates = places(model, context, None)
    wanted = places(model, context, zarr_format)

    async def find(form: HierarchyFormat | None) -> Found:
        found = await _find(candidates, transaction)
        if found is not None:
            assert found.tree is not None
            if zarr_format not in (None, found.tree.form.zarr_format):
                raise MismatchError(
                    f"the destination is of version {found.tree.form.zarr_format} of the format, "
                    f"at {found.tree.describe('')}; name another one, or leave out zarr_format"
                )
            return found
        place = next((each for each in wanted if each.form is form), wanted[0])
        return Found(place.tree(transaction), "", None, place, transaction)

    return Destination(
        wanted[0].tree(transaction).store.inline,
        find,
        described(wanted[0].where),
        partial(_model_json, model, transaction),
    )


def _model_json(model: DriverSpec, transaction: Transaction | None) -> JsonObject:
    """What another process takes for a place.

    Raises:
        UnsupportedError: it is seen through a transaction.
    """
    if transaction is not None:
        raise UnsupportedError(
            "what is seen through a transaction stays in this process; commit it first"
        )
    return portable_json(model)


def _as_it_is(end: End) -> Destination:
    """A destination that is there."""

    async def find(_: HierarchyFormat | None) -> Found:
        return await end.find()

    return Destination(end.inline, find, end.described, end.to_json)


async def _find(candidates: list[Place], transaction: Transaction | None) -> Found | None:
    trees = [place.tree(transaction) for place in candidates]
    there = await find_group(trees, "", consolidated=True)
    if there is None:
        return None
    tree, node = there
    place = candidates[trees.index(tree)]
    array = None
    if node.kind == "array":
        array = await open_array(place, node, transaction, {}, Lifetime("TensorStore"))
    return Found(tree, "", node, place, transaction, array)


def _group_end(group: Group) -> End:
    tree, path, place = group._tree, group._path, group._place

    async def find() -> Found:
        node = await read_node(tree, path, group._known, likely="group")
        if node is None:
            raise NotFoundError(f"no group found at {tree.describe(path)}; was it deleted?")
        if group._known is not None and not group._known.stale:
            node = node._replace(consolidated=group._known)
        return Found(tree, path, node, place, group._transaction)

    return End(
        tree.store.inline,
        find,
        described(place.at(path)),
        partial(_model_json, place.array(path), group._transaction),
    )


def _open_array_end(array: TensorStore) -> End:
    driver = array._driver

    async def find() -> Found:
        form, where = format_of(driver.spec().driver), driver.kvstore
        if form is None or where is None:
            return Found(None, array=array)
        model, store = where
        tree = Hierarchy(store, model.path, form)
        node = await read_node(tree, "")
        return Found(tree, "", node, None, driver.transaction, array)

    where = driver.kvstore
    return End(
        driver.inline,
        find,
        "an open array" if where is None else described(where[0]),
        partial(array_json, array, "an open array"),
    )


def _array_spec_end(given: object, context: Context) -> End:
    model = bind(updated(as_model(given), {}), context)

    async def find() -> Found:
        driver = await model.open()
        return await _open_array_end(opened(driver, model, readable=True, writable=True)).find()

    where = getattr(model, "kvstore", None)
    return End(
        model.inline,
        find,
        f'an array of driver "{model.driver}"' if where is None else described(where),
        partial(_model_json, model, None),
    )


def _group_model(given: object) -> DriverSpec | None:
    """The spec of a hierarchy's place; None if only an array can be there."""
    try:
        return group_model(given)
    except (SpecError, UnsupportedError):
        # What is wrong with it is said by who opens it as an array.
        return None


def described(where: KvStoreSpec | None) -> str:
    """How to name a place to a person."""
    if where is None:
        return "memory"
    try:
        return without_secrets(where.to_url())
    except UnsupportedError:
        return pretty("KvStore.Spec", spec_json(unbind(where)))
