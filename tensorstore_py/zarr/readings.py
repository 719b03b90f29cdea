"""Other readings of an array's stored bytes: `Array.view`.

An array is opened with metadata that are assumed and not stored. Whether the bytes make sense so is
the caller's affair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tensorstore_py._api.open import open as open_spec
from tensorstore_py.zarr.arguments import ArrayArguments
from tensorstore_py.zarr.request import request_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py.zarr.form import Form

__all__ = ["arguments_of", "other_reading"]


def arguments_of(form: Form, fill_value: object) -> dict[str, Any]:
    """What would create an array of a form.

    Args:
        form: of an array.
        fill_value: of it.
    """
    found: dict[str, Any] = {
        "chunks": form.chunks,
        "dtype": form.element,
        "filters": form.filters,
        "compressors": form.compressors,
        "order": form.order,
        "fill_value": fill_value,
        "zarr_format": form.zarr_format,
    }
    if form.zarr_format == 2:
        found["dimension_separator"] = form.metadata["dimension_separator"]
        return found
    found["serializer"] = form.serializer
    found["shards"] = form.shards
    found["chunk_key_encoding"] = form.metadata["chunk_key_encoding"]
    found["dimension_names"] = form.metadata.get("dimension_names")
    return found


def other_reading(
    store: TensorStore, form: Form, shape: object, changes: Mapping[str, object]
) -> TensorStore:
    """An array over the same stored bytes.

    Args:
        store: the array.
        form: of it.
        shape: of the other one; None: the same.
        changes: keyword arguments of `create` that differ; None: they don't.

    Raises:
        TypeError, ValueError: as by `create`.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    fill = None if store.fill_value is None else store.fill_value[()]
    arguments = {**arguments_of(form, fill), **given}
    if "dtype" in given and "fill_value" not in given:
        arguments["fill_value"] = _converted(fill, given["dtype"])
    if "dtype" in given and form.serializer is not None:
        arguments["serializer"] = "auto"
    request = request_for(
        store.shape if shape is None else shape, cast("ArrayArguments", arguments)
    )
    return open_spec(
        request.members,
        kvstore=store.kvstore,
        open=True,
        assume_metadata=True,
        read=True,
        write=store.writable or None,
        transaction=store.transaction,
        **request.options,
    ).result()


def _converted(fill_value: object, dtype: object) -> object:
    """A fill value in another type; None if it has none there."""
    try:
        return np.array(fill_value).astype(dtype)[()]  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return None
