"""The keyword arguments of zarr-python, 2 and 3, for whatever creates an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

__all__ = ["ArrayArguments", "named"]


class ArrayArguments(TypedDict, total=False):
    """The keyword arguments of whatever creates an array; `create` explains them."""

    chunks: object
    shards: object
    dtype: object
    compressor: object
    compressors: object
    filters: object
    serializer: object
    codecs: object
    object_codec: object
    fill_value: object
    order: object
    zarr_format: object
    dimension_separator: object
    chunk_key_encoding: object
    dimension_names: Sequence[str | None] | None
    attributes: Mapping[str, object] | None
    # Other names of these, and what is accepted without effect because nothing here needs it.
    chunk_shape: object
    zarr_version: object
    synchronizer: object
    cache_attrs: object
    write_empty_chunks: object
    meta_array: object
    config: object


def named(
    *,
    chunks: object = ...,
    shards: object = ...,
    dtype: object = ...,
    compressor: object = ...,
    compressors: object = ...,
    filters: object = ...,
    serializer: object = ...,
    codecs: object = ...,
    object_codec: object = ...,
    fill_value: object = ...,
    order: object = ...,
    zarr_format: object = ...,
    dimension_separator: object = ...,
    chunk_key_encoding: object = ...,
    dimension_names: object = ...,
    attributes: object = ...,
    chunk_shape: object = ...,
    zarr_version: object = ...,
    synchronizer: object = ...,
    cache_attrs: object = ...,
    write_empty_chunks: object = ...,
    meta_array: object = ...,
    config: object = ...,
    **unknown: object,
) -> ArrayArguments:
    """Those arguments that were given, named one by one for editors (see `_spec.spelled`)."""
    found = locals()
    given = {**found.pop("unknown"), **found}
    return cast("ArrayArguments", {name: given[name] for name in given if given[name] is not ...})
