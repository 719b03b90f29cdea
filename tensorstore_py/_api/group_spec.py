"""What is asked of a group: where it is, in which formats, and which of its arrays to open or make.

A group is asked for like an array, by a store's spec or URL, alone or in a driver's. What an array
is, is its driver's matter, and everything else is `ts.open`'s; here the two meet the format's rules
about attributes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import Options, updated
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._hierarchy.changes import make_parents
from tensorstore_py._hierarchy.document import AttributesFile, as_attributes
from tensorstore_py._hierarchy.formats import format_of, formats
from tensorstore_py._hierarchy.node import Hierarchy, read_node
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.arguments import ARGUMENTS
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py._spec.open_mode import DELETE_NEEDS_CREATE, OpenMode
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import drivers
from tensorstore_py.errors import AlreadyExistsError, MismatchError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._chunked.format import RecheckCacheOption
    from tensorstore_py._hierarchy.node import Node
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.lifetime import Lifetime
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py._spec.schema import (
        CodecLike,
        DomainLike,
        LayoutLike,
        SchemaLike,
        ShapeLike,
        UnitsLike,
    )


__all__ = [
    "ArrayOptions",
    "NewArray",
    "Place",
    "array_given",
    "asked_mode",
    "group_model",
    "open_array",
    "places",
    "with_members",
]


class Place(NamedTuple):
    """The outermost group of a hierarchy, as one format sees it.

    `arrays` is the bound spec that its arrays are opened with, at the outermost group's path.
    """

    form: HierarchyFormat
    arrays: DriverSpec

    @property
    def where(self) -> KvStoreSpec:
        """The bound store spec, with the outermost group's path."""
        where = getattr(self.arrays, "kvstore", None)
        assert isinstance(where, KvStoreSpec)
        return where

    def tree(self, transaction: Transaction | None) -> Hierarchy:
        """The hierarchy, as a transaction sees it if one is given."""
        where = self.where
        store = where.open()
        if transaction is not None:
            store = transaction.overlay(where, store)
        return Hierarchy(store, where.path, self.form)

    def at(self, path: str) -> KvStoreSpec:
        """The bound store spec of a node."""
        where = self.where
        return where.replace(path=f"{where.path}{path}/") if path else where

    def array(self, path: str) -> DriverSpec:
        """The bound spec of the array at a path."""
        return self.arrays.replace(kvstore=self.at(path))


def group_model(spec: object) -> DriverSpec:
    """The driver spec that says where a group is; `spec` is as for `Group.open`.

    Raises:
        SpecError: something is wrong with it, or it says what only an array can have.
        UnsupportedError: the driver's format has no groups.
    """
    if isinstance(spec, Spec):
        model = spec.model
    elif isinstance(spec, KvStore | KvStore.Spec | os.PathLike):
        store = spec if isinstance(spec, os.PathLike) else spec.model
        model = parse_spec({"driver": "auto", "kvstore": store})
    elif isinstance(spec, str) and spec.lstrip()[:1] == "{":
        model = parse_spec(parse_json_text(spec))
    elif isinstance(spec, str) and "://" not in spec:
        raise SpecError(
            f"{spec!r} is neither JSON nor a URL; pass a local path as pathlib.Path({spec!r}), "
            "or as file:///absolute/path/"
        )
    else:
        model = parse_spec(spec)
    if model.driver != "auto" and format_of(model.driver) is None:
        raise UnsupportedError(f'driver "{model.driver}" has no groups')
    for name in ("dtype", "rank", "transform", "schema"):
        if getattr(model, "schema_" if name == "schema" else name) is not None:
            raise SpecError("an array has this, a group has not; leave it out", (name,))
    return model


def asked_mode(
    model: DriverSpec, open: bool | None, create: bool | None, delete_existing: bool | None
) -> OpenMode:
    """How to open: as the spec says, unless a keyword says it; opened if it isn't created.

    Raises SpecError: the flags exclude each other.
    """
    stated = model.open_mode()
    creates = stated.create if create is None else create
    deletes = stated.delete_existing if delete_existing is None else delete_existing
    if open is None:
        open = stated.open if stated.create or not creates else False
    if deletes and (open or not creates):
        raise SpecError(DELETE_NEEDS_CREATE)
    if not (open or creates):
        raise SpecError('nothing is to be done: pass "open": true or "create": true')
    return OpenMode(open=open, create=creates, delete_existing=deletes)


def places(model: DriverSpec, context: Context, zarr_format: int | None) -> list[Place]:
    """Where a group may be, in each format that it may be of, the newest first.

    Raises SpecError: no format has that version, or the spec names another one, or no store.
    """
    known = formats()
    if model.driver != "auto":
        known = [form for form in known if form.driver == model.driver]
    if zarr_format is not None:
        versions = {form.zarr_format for form in known}
        if zarr_format not in versions:
            allowed = " or ".join(sorted(str(version) for version in versions if version))
            raise SpecError(f"zarr_format must be {allowed} here, not {zarr_format!r}")
        known = [form for form in known if form.zarr_format == zarr_format]
    found = []
    for form in known:
        arrays = bind(_plain(model.named(form.driver)), context)
        if getattr(arrays, "kvstore", None) is None:
            raise SpecError('this member is required, for example "file:///data/"', ("kvstore",))
        found.append(Place(form, arrays))
    return found


def _plain(model: DriverSpec) -> DriverSpec:
    """Without how the group is to be opened."""
    flags = ("create", "delete_existing", "assume_metadata", "assume_cached_metadata")
    changes: dict[str, object] = {name: False for name in flags if getattr(model, name, False)}
    if getattr(model, "open_", None) is not None:
        changes["open_"] = None
    return model.minimal().replace(**changes)


class ArrayOptions(TypedDict, total=False):
    """What describes a new array: what `ts.open` takes for that, and the driver's `metadata`."""

    rank: int | None
    dtype: DTypeLike | None
    domain: DomainLike | None
    shape: ShapeLike | None
    chunk_layout: LayoutLike | None
    codec: CodecLike | None
    fill_value: object
    dimension_units: UnitsLike | None
    schema: SchemaLike | None
    metadata: Mapping[str, object] | None
    recheck_cached_metadata: RecheckCacheOption | None
    recheck_cached_data: RecheckCacheOption | None
    recheck_cached: RecheckCacheOption | None


def array_given(
    *,
    rank: int | None = None,
    dtype: DTypeLike | None = None,
    domain: DomainLike | None = None,
    shape: ShapeLike | None = None,
    chunk_layout: LayoutLike | None = None,
    codec: CodecLike | None = None,
    fill_value: object = None,
    dimension_units: UnitsLike | None = None,
    schema: SchemaLike | None = None,
    metadata: Mapping[str, object] | None = None,
    recheck_cached_metadata: RecheckCacheOption | None = None,
    recheck_cached_data: RecheckCacheOption | None = None,
    recheck_cached: RecheckCacheOption | None = None,
    **members: object,
) -> dict[str, object]:
    """Those that say something, named one by one for editors (see `spelled`)."""
    found = locals()
    named = {**found.pop("members"), **found}
    return {name: value for name, value in named.items() if value is not None}


async def open_array(
    place: Place,
    node: Node,
    transaction: Transaction | None,
    asked: Mapping[str, object],
    life: Lifetime,
) -> TensorStore:
    """The array at a node that was read, which must agree with the options `asked`.

    Raises:
        MismatchError: it does not; names the member.
        DataLossError, UnsupportedError: as by `ts.open`.
    """
    model = place.array(node.path)
    if asked:
        model = updated(model, asked)
    driver = await model.open_known(transaction, node.read())
    if node.consolidated is not None:
        driver.known_node = node.consolidated.at(node.path)
    return opened(driver, model, readable=True, writable=True, life=life)


class NewArray(NamedTuple):
    """An array that is to be made, or found.

    Attributes:
        spec: the bound spec to make it with.
        left: attributes that are stored after it.
        existing: the bound spec of one that may be there already; None: none may.
        deletes: whether whatever is there is deleted first.
    """

    path: str
    spec: DriverSpec
    left: JsonObject
    existing: DriverSpec | None
    deletes: bool

    @staticmethod
    def of(
        place: Place,
        path: str,
        attributes: Mapping[str, object],
        schema: Mapping[str, object],
        *,
        may_exist: bool,
        deletes: bool,
    ) -> NewArray:
        """What is asked for, checked; `schema` has options of `ts.open` and members of the spec.

        Raises:
            SpecError, MismatchError: something is wrong with it, or contradicts another.
        """
        options = {name: schema[name] for name in schema if name in Options.__annotations__}
        members: JsonObject = {name: schema[name] for name in schema if name not in options}
        known = type(place.arrays).member_names()
        for name in members:
            if name in ARGUMENTS and name not in known:
                raise SpecError(f"no such argument; {ARGUMENTS[name]}", (name,))
        asked = updated(with_members(place, path, members), options)
        domain = asked.known_schema().domain
        labelled = domain is not None and any(domain.labels)
        given, left = place.form.new_array(members, as_attributes(attributes), labelled=labelled)
        mode = {"create": True, "open": False, "delete_existing": deletes}
        spec = updated(with_members(place, path, given), {**options, **mode})
        return NewArray(path, spec, left, asked if may_exist else None, deletes)

    async def make(
        self, tree: Hierarchy, above: str, transaction: Transaction | None, life: Lifetime
    ) -> TensorStore:
        """Make it, with the groups between it and `above`, which is there, or find it.

        Raises:
            AlreadyExistsError: something is there, and it may not be.
            MismatchError: what is there is no such array.
            FailedPreconditionError: an array is above it.
        """
        # A format with one document for both has one condition for both.
        torn = len(tree.form.node_keys) > 1 and not self.deletes
        found = await self._find(tree, transaction, life) if self.existing or torn else None
        if found is not None:
            return found
        await make_parents(tree, self.path, above)
        try:
            driver = await self.spec.open_within(transaction)
        except AlreadyExistsError:  # another writer was faster
            found = await self._find(tree, transaction, life)
            if found is None:
                raise
            return found
        if self.left:
            left = self.left
            attributes = AttributesFile(tree.store, tree.below(self.path), tree.form)
            await attributes.change(lambda stored: {**stored, **left})
        return opened(driver, self.spec, readable=True, writable=True, life=life)

    async def _find(
        self, tree: Hierarchy, transaction: Transaction | None, life: Lifetime
    ) -> TensorStore | None:
        """The array that is there already, if it may be; None if nothing is there."""
        path, where = self.path, tree.describe(self.path)
        found = await read_node(tree, path)
        if found is None:
            return None
        if self.existing is None:
            kind = f"a{'n' * (found.kind == 'array')} {found.kind}"
            raise AlreadyExistsError(
                f'"/{path}" exists already, {kind} at {where}; '
                "open it instead, or pass delete_existing=True to replace it"
            )
        if found.kind == "group":
            raise MismatchError(f'"/{path}" is a group, not an array, at {where}; delete it first')
        driver = await self.existing.open_known(transaction, found.read())
        return opened(driver, self.existing, readable=True, writable=True, life=life)


def with_members(place: Place, path: str, members: JsonObject) -> DriverSpec:
    """The bound spec of the array at a path, with members that are given as JSON."""
    plain = place.array(path)
    if not members:
        return plain
    parsed = parse_registered(
        drivers, {"driver": plain.driver, "kvstore": place.at(path), **members}
    )
    known = type(parsed).model_fields
    fields = [name if name in known else f"{name}_" for name in members]
    return plain.replace(**{name: getattr(parsed, name) for name in fields}).checked()
