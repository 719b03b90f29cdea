"""The two endpoints of a copy: what users name as source and destination, and what is found there.

An endpoint is a node of a hierarchy, where the format has such, or an array by itself. Forms and
keywords are checked at once; finding out what is there may wait, in the execution mode of its
store. The name of a destination may say its format (`image.n5`, `image.zip`): local paths, and URLs
without `|`. The one invariant: such a name is never given to what is of another format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._api.begin import as_transaction
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import Place, group_model, open_array, places
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._api.prepared import as_model
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._hierarchy.document import AttributesFile
from tensorstore_py._hierarchy.formats import find_group, format_of
from tensorstore_py._hierarchy.node import Hierarchy, Node, read_node
from tensorstore_py._index import identity
from tensorstore_py._plan.arrays import array_json, portable_json
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.context import bind, spec_json, unbind
from tensorstore_py._spec.pretty import pretty
from tensorstore_py.errors import (
    MismatchError,
    NotFoundError,
    SpecError,
    UnsupportedError,
    without_secrets,
)

if TYPE_CHECKING:
    from tensorstore_py._interface.driver import Driver, DriverSpec
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.context import Context

__all__ = [
    "DestinationEndpoint",
    "FoundEndpoint",
    "SourceArray",
    "SourceEndpoint",
    "by_suffix",
    "described",
    "destination",
    "is_whole",
    "node_attributes",
    "open_source",
    "source",
]


_FOREIGN: Final = frozenset(
    """
    .csv .h5 .hdf .hdf5 .jpg .json .mat .nc .nc4 .npy .npz .nii .parquet .png .tif .tiff
    """.split()  # noqa: SIM905 - reads better
)


def by_suffix(given: object, zarr_format: int | None) -> object:
    """A destination with the format that its name says; any other is given back as it is.

    Raises:
        SpecError: the name is that of a format that cannot be written, or contradicts the version.

    Example:
        >>> by_suffix("s3://bucket/image.n5", None), by_suffix("s3://bucket/image.zip", None)
        ({'driver': 'n5', 'kvstore': 's3://bucket/image.n5/'}, 's3://bucket/image.zip|zip:')
        >>> by_suffix("s3://bucket/image.zarr", None)
        's3://bucket/image.zarr'
    """
    local = isinstance(given, os.PathLike)
    if not local and not (isinstance(given, str) and "://" in given and "|" not in given):
        return given
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    assert isinstance(text, str)
    suffix = PurePosixPath(text.partition("?")[0]).suffix.lower()
    if suffix == ".n5":
        if zarr_format is not None:
            raise SpecError(
                f"{text} is named as an array of n5; name it .zarr, or leave this out",
                ("zarr_format",),
            )
        return {"driver": "n5", "kvstore": given if local else text.rstrip("/") + "/"}
    if suffix == ".zip" and not text.endswith("/"):
        if not local:
            return f"{text}|zip:"
        if not Path(text).is_dir():
            return f"{Path(text).absolute().as_uri()}|zip:"
    if suffix in _FOREIGN:
        raise SpecError(
            f"{text} is named as a file of a format that is not written here; "
            "name it .zarr, .n5 or .zip"
        )
    return given


class FoundEndpoint(NamedTuple):
    """What is at an end.

    Attributes:
        tree: the hierarchy that it is a node of; None: an array by itself.
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


class SourceEndpoint(NamedTuple):
    """What a copy is from.

    Attributes:
        find: finds out what is there.
        described: how to name it to a person, and in a manifest.
        to_json: makes what another process takes for it.
    """

    inline: bool
    find: Callable[[], Coroutine[Any, Any, FoundEndpoint]]
    described: str
    to_json: Callable[[], object]


class DestinationEndpoint(NamedTuple):
    """What a copy is to, as `SourceEndpoint`.

    Attributes:
        find: finds out what is there; takes the source's format, which a new hierarchy gets.
        array: the spec of an array by itself, in a format without hierarchies.
    """

    inline: bool
    find: Callable[[HierarchyFormat | None], Coroutine[Any, Any, FoundEndpoint]]
    described: str
    to_json: Callable[[], object]
    array: DriverSpec | None = None


def source(given: object, context: Context) -> SourceEndpoint:
    """The end that a copy is from: a TensorStore, a Group, or what opens one.

    Raises SpecError: something is wrong with it; names the JSON path.
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

    async def find() -> FoundEndpoint:
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

    return SourceEndpoint(
        candidates[0].tree(transaction).store.inline,
        find,
        described(candidates[0].where),
        partial(_model_json, model, transaction),
    )


def destination(given: object, context: Context, zarr_format: int | None) -> DestinationEndpoint:
    """The end that a copy is to, as `source`; what is not there is made.

    `zarr_format` is that of a hierarchy that is made; None: whichever is there, or the source's.

    Raises SpecError: something is wrong with it; names the JSON path.
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

        async def nothing(_: HierarchyFormat | None) -> FoundEndpoint:
            return FoundEndpoint(None)

        return DestinationEndpoint(
            spec.inline, nothing, described(kept), partial(_model_json, spec, transaction), spec
        )
    model = bind(model, context)
    candidates = places(model, context, None)
    wanted = places(model, context, zarr_format)

    async def find(form: HierarchyFormat | None) -> FoundEndpoint:
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
        return FoundEndpoint(place.tree(transaction), "", None, place, transaction)

    return DestinationEndpoint(
        wanted[0].tree(transaction).store.inline,
        find,
        described(wanted[0].where),
        partial(_model_json, model, transaction),
    )


def _model_json(model: DriverSpec, transaction: Transaction | None) -> JsonObject:
    """What another process takes for a place.

    Raises UnsupportedError: it is seen through a transaction.
    """
    if transaction is not None:
        raise UnsupportedError(
            "what is seen through a transaction stays in this process; commit it first"
        )
    return portable_json(model)


def _as_it_is(end: SourceEndpoint) -> DestinationEndpoint:
    """A destination that is there."""

    async def find(_: HierarchyFormat | None) -> FoundEndpoint:
        return await end.find()

    return DestinationEndpoint(end.inline, find, end.described, end.to_json)


async def _find(candidates: list[Place], transaction: Transaction | None) -> FoundEndpoint | None:
    trees = [place.tree(transaction) for place in candidates]
    there = await find_group(trees, "", consolidated=True)
    if there is None:
        return None
    tree, node = there
    place = candidates[trees.index(tree)]
    array = None
    if node.kind == "array":
        array = await open_array(place, node, transaction, {}, Lifetime("TensorStore"))
    return FoundEndpoint(tree, "", node, place, transaction, array)


def _group_end(group: Group) -> SourceEndpoint:
    tree, path, place = group._tree, group._path, group._place

    async def find() -> FoundEndpoint:
        node = await read_node(tree, path, group._known, likely="group")
        if node is None:
            raise NotFoundError(f"no group found at {tree.describe(path)}; was it deleted?")
        if group._known is not None and not group._known.stale:
            node = node._replace(consolidated=group._known)
        return FoundEndpoint(tree, path, node, place, group._transaction)

    return SourceEndpoint(
        tree.store.inline,
        find,
        described(place.at(path)),
        partial(_model_json, place.array(path), group._transaction),
    )


def _open_array_end(array: TensorStore) -> SourceEndpoint:
    driver = array._driver

    async def find() -> FoundEndpoint:
        form, where = format_of(driver.spec().driver), driver.kvstore
        if form is None or where is None:
            return FoundEndpoint(None, array=array)
        model, store = where
        tree = Hierarchy(store, model.path, form)
        node = await read_node(tree, "")
        return FoundEndpoint(tree, "", node, None, driver.transaction, array)

    where = driver.kvstore
    return SourceEndpoint(
        driver.inline,
        find,
        "an open array" if where is None else described(where[0]),
        partial(array_json, array, "an open array"),
    )


def _array_spec_end(given: object, context: Context) -> SourceEndpoint:
    model = bind(updated(as_model(given), {}), context)

    async def find() -> FoundEndpoint:
        driver = await model.open()
        return await _open_array_end(opened(driver, model, readable=True, writable=True)).find()

    where = getattr(model, "kvstore", None)
    return SourceEndpoint(
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
        # Opening it as an array says what is wrong with it.
        return None


def described(where: KvStoreSpec | None) -> str:
    """How to name a place to a person."""
    if where is None:
        return "memory"
    try:
        return without_secrets(where.to_url())
    except UnsupportedError:
        return pretty("KvStore.Spec", spec_json(unbind(where)))


#: Types that take text and bytes of a fixed length apart, and those that don't.
_WHOLE = {"char": "S", "byte": "V"}


class SourceArray(NamedTuple):
    """An array that is to be copied, as it is found in its hierarchy or by itself.

    What it is, is its driver's matter, and what its documents say is its format's; here are both.
    The one invariant: elements are whole values. Where a driver takes them apart by default (text
    of a fixed length), it is asked for the type that keeps them.

    Attributes:
        path: below what is copied; `""` is that itself.
        array: the open array, or a view of one.
        document: what makes it an array in its format; None if it is no whole node.
    """

    path: str
    array: TensorStore
    document: JsonObject | None
    form: HierarchyFormat | None
    attributes: JsonObject

    @property
    def driver(self) -> Driver:
        """The open array itself."""
        return self.array._driver

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(self.array.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size


async def open_source(found: FoundEndpoint, node: Node, path: str) -> SourceArray:
    """An array that is a node of the hierarchy at an end."""
    tree = found.tree
    assert tree is not None
    document = node.documents[tree.form.array_key]
    array = found.array
    if array is None or path:
        assert found.place is not None
        array = await _whole_elements(found.place, node, found.transaction, document)
    elif found.place is not None:
        array = await _whole_elements(found.place, node, found.transaction, document, array)
    attributes = await node_attributes(tree, node)
    return SourceArray(path, array, document if is_whole(array) else None, tree.form, attributes)


async def node_attributes(tree: Hierarchy, node: Node) -> JsonObject:
    """The attributes of a node that was read."""
    key = tree.form.attributes_key
    if key in node.documents:
        return dict(tree.form.attributes(node.documents[key]))
    if node.kind == "array":
        return {}
    known = None if node.consolidated is None else node.consolidated.at(node.path)
    try:
        return await AttributesFile(tree.store, tree.below(node.path), tree.form, known).read()
    except NotFoundError:  # it was deleted meanwhile
        return {}


async def _whole_elements(
    place: Place,
    node: Node,
    transaction: Transaction | None,
    document: JsonObject,
    array: TensorStore | None = None,
) -> TensorStore:
    if array is None:
        array = await open_array(place, node, transaction, {}, Lifetime("TensorStore"))
    letter, shape = _WHOLE.get(array.dtype.name), document.get("shape")
    if letter is None or not isinstance(shape, list) or len(shape) == array.rank:
        return array
    asked = {"dtype": f"{letter}{array.shape[-1]}"}
    return await open_array(place, node, transaction, asked, Lifetime("TensorStore"))


def is_whole(array: TensorStore) -> bool:
    """Whether a view is all of the array, as it is."""
    domain, view = array._driver.domain, array._transform
    return (
        view.maps == identity(domain).maps
        and view.input_shape == domain.shape
        and view.input_origin == domain.origin
        and view.input_labels == domain.labels
    )
