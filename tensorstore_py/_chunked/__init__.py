"""The engine: chunked arrays over stores. The only hot path.

`array` is what all of it is about. `selection` and `plan` are pure: a transform becomes a
selection, a selection meets a grid and becomes chunk slices. `read` and `write` serve the slices;
`shard` goes one level down. `format` is what a spec says, `spec` opens it, and `driver` is the open
array, whose document `metadata` keeps. Codecs and stores are known by their promises only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = ["REGISTERED"]

#: By module, what it registers, by the kind of the registry.
REGISTERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "format": {"context resource": ("data_copy_concurrency", "memory_limit", "unpacking_limit")},
    "pool": {"context resource": ("cache_pool",)},
}
