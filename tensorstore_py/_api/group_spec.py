"""What is asked of `Group.open`, in any of its forms: where a group is, in which formats.

A group is asked for like an array, by a store's spec or URL, alone or in a driver's. Nothing is
opened here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._hierarchy.formats import format_of, formats
from tensorstore_py._hierarchy.node import Hierarchy
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.binding import bind
from tensorstore_py._spec.jsontext import parse_json_text
from tensorstore_py._spec.open_mode import DELETE_NEEDS_CREATE, OpenMode
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import HierarchyFormat
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.context import Context

__all__ = ["Place", "asked_mode", "group_model", "places"]


class Place(NamedTuple):
    """The outermost group of a hierarchy, as one format sees it.

    Attributes:
        form: the format.
        arrays: the bound spec that its arrays are opened with, at the outermost group's path.
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
    """The driver spec that says where a group is.

    Args:
        spec: as for `Group.open`.

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

    Raises:
        SpecError: the flags exclude each other.
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

    Raises:
        SpecError: no format has that version, or the spec names another one, or no store.
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
