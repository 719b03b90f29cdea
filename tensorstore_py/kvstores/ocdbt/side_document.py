"""Side documents: small JSON objects beside the manifest, for what the format has no place for.

Other libraries know nothing of them. Each is replaced on the condition that it is still the one
that was changed, and is not there while it would be empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin.kvstore import UNKNOWN, RetryPolicy

if TYPE_CHECKING:
    from tensorstore_py.kvstores.ocdbt.database import Place

__all__ = ["SideDocument"]

V = TypeVar("V")

_CONFLICTS: Final = RetryPolicy()


class SideDocument(Generic[V]):
    """Values by name, as the one member of a JSON object.

    Args:
        name: of the file, from the directory of the manifest.
        member: of the object.
        convert: makes a value of JSON; raises a `ValueError` or `TypeError` if it is none.
        damaged: what to say if it is no such document: what it is not, and the remedy.
    """

    def __init__(self, name: str, member: str, convert: Callable[[Any], V], damaged: str) -> None:
        self._name = name
        self._member = member
        self._convert = convert
        self._damaged = damaged

    async def read(self, manifests: Place) -> dict[str, V]:
        """What it has; nothing if it is not there.

        Raises:
            DataLossError: it is damaged; names it.
        """
        return (await self._read(manifests))[0]

    async def _read(self, manifests: Place) -> tuple[dict[str, V], bytes]:
        store, root = manifests
        key = f"{root}{self._name}"
        result = await store.read(key)
        if result.state != "value":
            return {}, result.stamp.generation
        try:
            found = json.loads(bytes(result.value))[self._member]
            values = {str(name): self._convert(value) for name, value in found.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataLossError(f"{store.describe_key(key)}: {self._damaged}") from error
        return values, result.stamp.generation

    async def change(
        self, manifests: Place, step: Callable[[dict[str, V]], Mapping[str, V]]
    ) -> dict[str, V]:
        """Make `step` to what it has, again if another writer is first.

        Returns:
            What it has after that.

        Raises:
            DataLossError: it is damaged; names it.
        """
        store, root = manifests
        key = f"{root}{self._name}"
        attempts = _CONFLICTS.begin("change", lambda: store.describe_key(key), inline=store.inline)
        while True:
            before, generation = await self._read(manifests)
            after = dict(sorted(step(before).items()))
            if after == before:
                return after
            document = json.dumps({self._member: after}, indent=1).encode() if after else None
            stamp = await store.write(key, document, if_equal=generation)
            if stamp.generation != UNKNOWN:
                return after
            await attempts.lost(generation)
