"""Context resources of the file store: concurrency, durability, locking, access mode, retries.

JSON in, plain values out; what they mean is in the modules that use them. All but the limit are
mere configuration, so a spec prints them in place instead of sharing them by reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.kvstore import (
    ConcurrencyModel,
    Duration,
    NonNegativeInt,
    ResourceModel,
    RetriesModel,
    context_resource,
    describe,
)

__all__ = [
    "FileIoConcurrency",
    "FileIoLocking",
    "FileIoMode",
    "FileIoRetries",
    "FileIoSync",
    "LockingMode",
    "ReadMode",
]

LockingMode = Literal["os", "lockfile", "none", "non_atomic"]
ReadMode = Literal["default", "memmap", "direct"]


@context_resource("file_io_concurrency")
class FileIoConcurrency(ConcurrencyModel):
    """How many file operations run at a time."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()


@context_resource("file_io_sync")
class FileIoSync(ResourceModel):
    """Whether a write returns only once it would survive a power cut. The JSON is the bool.

    Attributes:
        enabled: the bool.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"enabled"})

    config_only: ClassVar[bool] = True

    json_form: ClassVar[Mapping[str, object] | None] = {"type": "boolean", "default": True}

    enabled: bool = True

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if isinstance(json, cls):
            return json
        if not isinstance(json, bool):
            raise SpecError(f"expected true or false, but found {describe(json)}")
        return cls(enabled=json)

    def spec_json(self, include_defaults: bool) -> object:
        return self.enabled

    def create(self) -> bool:
        return self.enabled


@context_resource("file_io_locking")
class FileIoLocking(ResourceModel):
    """How writers of one key keep out of each other's way.

    Attributes:
        mode: `"os"`: a lock of the operating system on `KEY.__lock`; `"lockfile"`: the existence
            of that file, for file systems without locks; `"none"`: atomic writes, but conditions
            are not; `"non_atomic"`: written in place, readers may see halves.
        acquire_timeout: how long to wait for another writer.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"mode", "acquire_timeout"})
    data_values: ClassVar[Mapping[str, frozenset[object]]] = {"mode": frozenset({"os", "lockfile"})}

    config_only: ClassVar[bool] = True

    mode: LockingMode = "os"
    acquire_timeout: Duration = Duration.parse("60s")

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        # The reference never prints these two members' defaults, not even when asked to.
        return super().to_json(False)


@context_resource("file_io_mode")
class FileIoMode(ResourceModel):
    """How values are read.

    Attributes:
        mode: `"default"`: read into memory; `"memmap"`: mapped, pages come when touched;
            `"direct"`: past the page cache, where the platform can.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"mode"})
    # A mapped file that another process cuts short ends this one.
    data_values: ClassVar[Mapping[str, frozenset[object]]] = {
        "mode": frozenset({"default", "direct"})
    }

    config_only: ClassVar[bool] = True

    mode: ReadMode = "default"

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        return super().to_json(False)


@context_resource("file_io_retries")
class FileIoRetries(RetriesModel):
    """How often to try again when a (network) file system fails for a moment; by default never."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    max_retries: NonNegativeInt = 0
