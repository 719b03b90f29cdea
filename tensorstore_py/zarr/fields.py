"""Parts of elements: one field of records, and bytes that the engine has as one more dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec
from tensorstore_py._index import d
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.errors import IndexingError
from tensorstore_py.zarr.form import document_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["check_fields", "of_field", "whole_elements"]


def check_fields(names: Iterable[str], dtype: np.dtype[Any]) -> None:
    """Refuse names of fields that there are not.

    Raises:
        IndexingError: names one, and those that there are.
    """
    known = dtype.names
    for name in names:
        if known is None:
            raise IndexingError(f"{name!r} selects a field, but elements of {dtype} have none")
        if name not in known:
            raise IndexingError(f"there is no field {name!r}; there are {list(known)}")


def of_field(store: TensorStore, name: str) -> TensorStore:
    """One field of an array of records, to be read and written without the others.

    Raises:
        IndexingError: there is no such field.
    """
    check_fields([name], store.dtype.array_dtype)
    record: np.dtype[Any] = store.dtype.array_dtype
    dtype = record[name]
    plain = dtype.kind not in "SV" or dtype.names is not None or dtype.subdtype is not None
    if plain:
        return _reopened(store, field=name)
    if dtype.itemsize == 1:
        opened = _reopened(store, field=name)
        return opened if opened.rank == store.rank else opened[d[-1][0]]
    return _reopened(store, field=name, dtype=DType(f"{dtype.kind}{dtype.itemsize}"))


def whole_elements(store: TensorStore) -> TensorStore:
    """An array whose elements are seen as zarr-python has them.

    The engine opens byte strings of a fixed length as characters in one more dimension, and a
    record's only field by itself, as TensorStore does.

    Args:
        store: an open array of driver `zarr` or `zarr3`.
    """
    _, metadata = document_of(store)
    stated = metadata.get("dtype", metadata.get("data_type"))
    whole = _whole_type(stated)
    if whole is not None and store.dtype.name in ("char", "byte"):
        if whole[1:] != "1":
            return _reopened(store, field=None, dtype=DType(whole))
        return store if store.rank == len(metadata["shape"]) else store[d[-1][0]]
    field = getattr(store.spec().model, "field", None) if store.base is None else None
    if field is not None and _count_fields(stated) == 1:
        record = np.dtype([(str(field), store.dtype.array_dtype)])
        return _reopened(store, field=None, dtype=DType(record))
    return store


def _count_fields(stated: object) -> int:
    if isinstance(stated, dict):
        stated = stated.get("configuration", {}).get("fields")
    return len(stated) if isinstance(stated, list) else 0


def _whole_type(stated: object) -> str | None:
    """The type of byte strings of a fixed length: `"S8"` or `"V8"`; None for others."""
    if isinstance(stated, dict):
        length = stated.get("configuration", {}).get("length_bytes")
        letter = {"null_terminated_bytes": "S", "raw_bytes": "V"}.get(stated["name"])
        return None if letter is None else f"{letter}{length}"
    if not isinstance(stated, str):
        return None
    if stated[:2] in ("|S", "|V"):
        return stated[1:]
    if stated[:1] == "r" and stated[1:].isdigit():
        return f"V{int(stated[1:]) // 8}"
    return None


def _reopened(store: TensorStore, **changes: object) -> TensorStore:
    model = store.spec(retain_context=True).model
    plain: dict[str, object] = {"dtype": None, "rank": None, "schema_": None, "transform": None}
    spec = Spec.of(model.replace(**{**plain, **changes}).checked())
    return open_array(
        spec,
        open=True,
        read=True,
        write=store.writable or None,
        transaction=store.transaction,
    ).result()
