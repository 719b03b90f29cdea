"""What the engine counts: chunks read and written, decoded and encoded, found in a pool or not.

Requests are counted when they begin, with the number of their chunks, so no loop over chunks does
it. What is decoded or encoded is noted by who does it, once for each chunk or run of chunks.
"""

from __future__ import annotations

from tensorstore_py._runtime.metrics import Family, Sums, counter, register

__all__ = [
    "CHUNK_READS", "CHUNK_WRITES", "DECODED", "ENCODED", "EVICTIONS", "HITS", "MISSES", "POOL_READS"
]  # fmt: skip

_CACHE = "/tensorstore/cache/"

CHUNK_READS = counter(f"{_CACHE}chunk_cache/reads", "chunks or shards that reads were for")
CHUNK_WRITES = counter(f"{_CACHE}chunk_cache/writes", "chunks or shards that writes were for")
HITS = counter(f"{_CACHE}hit_count", "chunks that were in a cache pool when a read wanted them")
MISSES = counter(f"{_CACHE}miss_count", "chunks that were not")
EVICTIONS = counter(f"{_CACHE}evict_count", "entries that a full cache pool forgot")
POOL_READS = register(
    Family(
        f"{_CACHE}kvs_cache_read",
        "requests of a cache pool, by what became of what it had",
        "category",
        ("changed", "error", "unchanged"),
    )
)
_CODEC = "/tensorstore/codec/"
#: Chunks, their bytes as stored, their bytes as elements.
DECODED = register(
    Sums(
        (f"{_CODEC}decoded_chunks", "chunks decoded", ""),
        (f"{_CODEC}decoded_stored_bytes", "stored bytes of chunks that were decoded", "bytes"),
        (f"{_CODEC}decoded_bytes", "bytes of the elements that were decoded", "bytes"),
    )
)
#: The same.
ENCODED = register(
    Sums(
        (f"{_CODEC}encoded_chunks", "chunks encoded", ""),
        (f"{_CODEC}encoded_stored_bytes", "bytes that chunks were encoded to", "bytes"),
        (f"{_CODEC}encoded_bytes", "bytes of the elements that were encoded", "bytes"),
    )
)
