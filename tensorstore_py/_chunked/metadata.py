"""The metadata document of one array: read, revalidated, and replaced on condition.

The document is small and read often, so equal bytes are parsed and bound only once, whoever
opens them (`layout.Remembered`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._chunked.layout import ArrayLayout, Remembered
from tensorstore_py._interface.generation import UNKNOWN
from tensorstore_py.errors import DataLossError, MismatchError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._chunked.spec import ChunkedSpec
    from tensorstore_py._interface.kvstore import KvStore

__all__ = ["MetadataFile", "MetadataState"]

M = TypeVar("M")

_parsed: Remembered[tuple[object, ArrayLayout]] = Remembered(256)


@dataclass(frozen=True, slots=True)
class MetadataState(Generic[M]):
    """Metadata as it was at `generation`, known to be current at `time` (in s since 1970)."""

    metadata: M
    layout: ArrayLayout
    generation: bytes
    time: float


class MetadataFile(Generic[M]):
    """Where an array's metadata is stored.

    Args:
        spec: the array's spec, which knows the format.
        store: where.
        prefix: the array's path, ending in "/" unless empty.
    """

    __slots__ = ("_key", "prefix", "spec", "store")

    def __init__(self, spec: ChunkedSpec[M], store: KvStore, prefix: str) -> None:
        self.spec = spec
        self.store = store
        self.prefix = prefix
        self._key = prefix + spec.metadata_key

    def describe(self) -> str:
        """How to name the document in an error message."""
        return self.store.describe_key(self._key)

    async def read(self, known: MetadataState[M] | None = None) -> MetadataState[M] | None:
        """What is stored now; None if nothing is.

        Args:
            known: what the caller has; if that is still current, nothing is fetched or parsed.

        Raises:
            DataLossError: the document is not valid metadata; names its key and the member.
            UnsupportedError: it asks for what is not here, by name; names its key.
        """
        before = known.generation if known is not None and known.generation != UNKNOWN else None
        result = await self.store.read(self._key, if_not_equal=before)
        if result.state == "missing":
            return None
        stamp = result.stamp
        if result.state == "unspecified" and known is not None:
            return MetadataState(known.metadata, known.layout, known.generation, stamp.time)
        metadata, layout = self._parse(bytes(result.value))
        return MetadataState(metadata, layout, stamp.generation, stamp.time)

    async def write(self, metadata: M, *, if_equal: bytes) -> MetadataState[M] | None:
        """Store `metadata` if the stored generation is `if_equal`; None if it was not.

        Raises:
            SpecError, UnsupportedError: it cannot be bound, and so is not stored.
        """
        data = self.spec.serialize_metadata(metadata)
        layout = self._layout(metadata, data)  # before the write: what can't be bound isn't stored
        stamp = await self.store.write(self._key, data, if_equal=if_equal)
        if stamp.generation == UNKNOWN:
            return None
        return MetadataState(metadata, layout, stamp.generation, stamp.time)

    def _layout(self, metadata: M, data: bytes) -> ArrayLayout:
        """The layout of `metadata`, whose document is `data`."""
        spec = self.spec
        content = (type(spec), spec.layout_variant, data)
        return _parsed.get(content, lambda: (metadata, spec.layout(metadata)))[1]

    def _parse(self, data: bytes) -> tuple[M, ArrayLayout]:
        spec = self.spec

        def make() -> tuple[object, ArrayLayout]:
            try:
                metadata = spec.parse_metadata(data)
                return metadata, spec.layout(metadata)
            except MismatchError as error:
                raise MismatchError(f"Error opening {self.describe()}: {error}") from error
            except (SpecError, DataLossError) as error:
                raise DataLossError(f"Error reading {self.describe()}: {error}") from error
            except UnsupportedError as error:
                raise UnsupportedError(f"Error reading {self.describe()}: {error}") from error

        return _parsed.get((type(spec), spec.layout_variant, data), make)  # type: ignore[return-value]
