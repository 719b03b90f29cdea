"""Arrays of a group: opened with the documents that are known already, and created with attributes.

What an array is, is its driver's matter, and everything else is `ts.open`'s; here the two meet the
format's rules about attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from tensorstore_py._api.open import opened
from tensorstore_py._api.options import Options, updated
from tensorstore_py._hierarchy.attributes import AttributesFile, as_attributes
from tensorstore_py._hierarchy.creating import make_parents
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import drivers
from tensorstore_py._spec.words import ARGUMENTS
from tensorstore_py.errors import AlreadyExistsError, MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.group_spec import Place
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._chunked.spec import RecheckCacheOption
    from tensorstore_py._hierarchy.node import Hierarchy, Node
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.lifetime import Lifetime
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py._spec.schema import (
        CodecLike,
        DomainLike,
        LayoutLike,
        SchemaLike,
        ShapeLike,
        UnitsLike,
    )

__all__ = ["ArrayOptions", "NewArray", "array_given", "open_array", "with_members"]


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
    """The array at a node that was read.

    Args:
        place: where the hierarchy is.
        node: the node.
        transaction: in which it is opened.
        asked: options of `ts.open`, which it must agree with.
        life: its lifetime.

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
        path: in the hierarchy.
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
        """What is asked for, checked.

        Args:
            place: where the hierarchy is.
            path: of the array, in its one form.
            attributes: of a new array.
            schema: options of `ts.open`, and members of the driver's spec such as `metadata`.
            may_exist: take one that is there already and agrees.
            deletes: as the attribute.

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
        """Make it, with the groups above it, or find it.

        Args:
            tree: the hierarchy, as the transaction sees it.
            above: the path of a group above it that is there.
            transaction: in which it is made.
            life: its lifetime.

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
        except AlreadyExistsError:  # somebody was faster
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
