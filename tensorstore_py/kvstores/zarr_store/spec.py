"""The spec of a store object of zarr-python: the object itself, and a path in it.

It has no JSON form and no URL. Where a store is what a directory is, it is opened as that.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.zarr_store.store import ZarrStore, zarr_abc
from tensorstore_py.plugin.kvstore import (
    Held,
    JsonForm,
    KvStoreSpec,
    PlainValidator,
    describe,
    kvstore,
    kvstore_object,
)

__all__ = ["ZarrStoreSpec"]


def _held(value: object) -> Held[Any]:
    if not isinstance(value, Held) or not isinstance(value.value, zarr_abc().Store):
        raise SpecError(
            f"expected a store object of zarr-python, but found {describe(value)}; pass the object"
        )
    return value


@kvstore("zarr_store")
class ZarrStoreSpec(KvStoreSpec):
    """`{"driver": "zarr_store", "store": store}`, where `store` is a `zarr.abc.store.Store`.

    Attributes:
        store: the object.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    store: Annotated[Held[Any], PlainValidator(_held), JsonForm({"not": {}})]

    def open(self) -> ZarrStore:
        return ZarrStore(self.store.value)


@kvstore_object("zarr.abc.store", "Store")
def _of_store(store: object) -> dict[str, object]:
    return {"driver": "zarr_store", "store": Held(store)}


@kvstore_object("zarr.storage", "StorePath")
def _of_store_path(place: Any) -> dict[str, object]:  # noqa: ANN401 - a class of zarr-python
    path = {"path": f"{place.path}/"} if place.path else {}
    return {"driver": "zarr_store", "store": Held(place.store), **path}


@kvstore_object("zarr.storage", "LocalStore")
def _of_directory(store: Any) -> dict[str, object]:  # noqa: ANN401 - a class of zarr-python
    """A directory is one, unless its object has other ideas."""
    if type(store) is not sys.modules["zarr.storage"].LocalStore or store.read_only:
        return _of_store(store)
    return {"driver": "file", "path": f"{Path(store.root).absolute().as_posix().rstrip('/')}/"}
