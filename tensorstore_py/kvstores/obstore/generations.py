"""Generations, and how the library is told of them.

A generation is the ETag that the service gave, and the version, where there is one. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tensorstore_py.plugin import NO_VALUE, UNKNOWN, ByteRange

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, PutMode, PutResult, UpdateVersion

__all__ = ["generation_of", "get_options", "put_mode"]


def generation_of(told: ObjectMeta | PutResult) -> bytes:
    """Of a value: what the service calls its version; where there is none, its time and size."""
    etag, version = told["e_tag"], told["version"]
    if version is not None:
        return f"{etag or ''}\n{version}".encode()
    if etag is not None:
        return etag.encode()
    meta = cast("ObjectMeta", told)
    return f"\1{meta['last_modified'].timestamp()!r} {meta['size']}".encode()


def get_options(
    byte_range: ByteRange, if_equal: bytes | None, if_not_equal: bytes | None
) -> GetOptions:
    """How to ask for a part of a value under conditions, as far as they can be told."""
    options: GetOptions = {}
    if etag := _etag_of(if_equal):
        options["if_match"] = etag
    if etag := _etag_of(if_not_equal):
        options["if_none_match"] = etag
    if byte_range.start < 0:
        options["range"] = {"suffix": -byte_range.start}
    elif byte_range.stop is not None:
        options["range"] = (byte_range.start, byte_range.stop)
    elif byte_range.start:
        options["range"] = {"offset": byte_range.start}
    return options


def _etag_of(generation: bytes | None) -> str | None:
    """What to send for a generation; None for nothing, if it is none or none of an ETag."""
    if generation in (None, UNKNOWN, NO_VALUE):
        return None
    assert generation is not None
    etag = generation.partition(b"\n")[0]
    return etag.decode("latin-1") if etag and min(etag) > 0x20 and max(etag) < 0x7F else None


def put_mode(condition: bytes, *, bare: bool = False) -> PutMode | None:
    """How to ask for a condition; None if it cannot hold.

    Args:
        condition: a generation.
        bare: ETags go without their quotes.
    """
    if condition == NO_VALUE:
        return "create"
    etag = _etag_of(condition)
    version = condition.partition(b"\n")[2].decode("latin-1")
    if etag is None and not version:
        return None
    told: UpdateVersion = {}
    if etag is not None:
        told["e_tag"] = etag.strip('"') if bare else etag
    if version:
        told["version"] = version
    return told
