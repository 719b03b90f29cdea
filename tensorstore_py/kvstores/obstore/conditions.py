"""Writes under a condition: whether a service heeds them, and how it wants to be told.

What speaks S3 may ignore conditions, or refuse those that are right because of the quotes around an
ETag. Both are found out. The invariant: a conditional write is never sent to a service that would
carry it out regardless.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.obstore.errors import says_no, says_unable
from tensorstore_py.kvstores.obstore.generations import put_mode
from tensorstore_py.plugin import NO_VALUE, Buffer

if TYPE_CHECKING:
    from obstore import PutResult
    from obstore.store import ObjectStore

__all__ = ["Conditions"]

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

        Args:
            client: of the service.
            key: what to write.
            value: its bytes.
            condition: the generation that has to be there.
            present: looks which one is there.

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
