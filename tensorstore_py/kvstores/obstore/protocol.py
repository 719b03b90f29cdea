"""What the library is told and says: errors, generations, and writes under a condition.

It raises classes of its own and builtin ones, sometimes with many lines of text. Its classes are
told by their names, since the library may not be there. A generation is the ETag that the service
gave, and the version, where there is one.

What speaks S3 may ignore conditions, or refuse those that are right because of the quotes around an
ETag. Both are found out. The invariant: a conditional write is never sent to a service that would
carry it out regardless.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from tensorstore_py.errors import (
    DataLossError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, Buffer, ByteRange

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore


__all__ = [
    "KINDS",
    "Conditions",
    "generation_of",
    "get_options",
    "put_mode",
    "says_missing",
    "says_no",
    "says_unable",
]

_NOT_IMPLEMENTED: Final = "501 Not Implemented"
_NOT_A_DIRECTORY: Final = "(os error 20)"
#: By name, what an error of the library is here.
KINDS: Final[Mapping[str, type[TensorStoreError]]] = {
    "DataLossError": DataLossError,
    "InvalidPathError": SpecError,
    "NotImplementedError": UnsupportedError,
    "NotSupportedError": UnsupportedError,
    "OutOfRangeError": OutOfRangeError,
    "PermissionDeniedError": PermissionDeniedError,
    "PermissionError": PermissionDeniedError,
    "UnauthenticatedError": PermissionDeniedError,
    "ValueError": SpecError,
}


def says_missing(error: Exception) -> bool:
    """Whether there is no such key; below a file there is none, either."""
    return isinstance(error, FileNotFoundError) or _NOT_A_DIRECTORY in str(error)


def says_no(error: Exception) -> bool:
    """Whether a condition did not hold."""
    return type(error).__name__ in ("AlreadyExistsError", "PreconditionError") or says_missing(
        error
    )


def says_unable(error: Exception) -> bool:
    """Whether the service cannot do that at all."""
    if isinstance(error, NotImplementedError) or _NOT_IMPLEMENTED in str(error):
        return True
    return type(error).__name__ == "NotSupportedError"


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


#: An ETag that no value has.
_IMPOSSIBLE: Final = '"00000000000000000000000000000000-0"'
_ROUNDS: Final = 4


class Conditions:
    """What is known of one service.

    Args:
        trusted: that it heeds conditions, or says that it has none.
    """

    def __init__(self, *, trusted: bool) -> None:
        self._heeded: bool | None = True if trusted else None
        self._bare = False

    async def put(
        self,
        client: ObjectStore,
        key: str,
        value: Buffer,
        condition: bytes,
        present: Callable[[], Awaitable[bytes]],
    ) -> PutResult | None:
        """Write on condition; None if that does not hold.

        Raises:
            UnsupportedError: the service has no such writes, or refuses them although they are
                right.
        """
        if self._heeded is None:
            self._heeded = await _tried_out(client, key)
        if not self._heeded:
            raise UnsupportedError("it ignores conditions")
        for _ in range(_ROUNDS):
            for bare in (self._bare, not self._bare):
                mode = put_mode(condition, bare=bare)
                if mode is None:
                    return None
                try:
                    told = await client.put_async(key, value, mode=mode)
                except Exception as error:
                    if not says_no(error):
                        raise
                    if condition == NO_VALUE or await present() != condition:
                        return None
                else:
                    self._bare = bare
                    return told
        raise UnsupportedError("it refuses conditions that hold")


async def _tried_out(client: ObjectStore, key: str) -> bool:
    """Whether a write that cannot be right is refused; nothing is stored if it is."""
    scratch = f"{key[:400]}.{secrets.token_hex(8)}.tensorstore-condition-test"
    try:
        await client.put_async(scratch, b"", mode={"e_tag": _IMPOSSIBLE})
    except Exception as error:
        if says_no(error) or says_unable(error):
            return says_no(error)
        raise
    await client.delete_async(scratch)
    return False
