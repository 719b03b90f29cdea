"""Blosc, by numcodecs: shuffled blocks, each compressed by one of several fast compressors.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/
Names: `blosc` (zarr, zarr3, n5), `numcodecs.blosc` (zarr3).
Example: `{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle",
"typesize": 4, "blocksize": 0}}`; in version 2 `{"id": "blosc", "cname": "zstd", "shuffle": 1}`.
Limits: 2 GiB a chunk; `snappy` is read, slowly, and written only by a library that has it. The
library trusts the sizes in a buffer's header and reads where they point; the invariant: it never
sees a buffer whose header does not agree with the buffer's own length and with the size that the
chunk must have. It takes no threads of its own: chunks are already worked on in parallel, and its
pool is one global that all callers would wait for.
"""

from __future__ import annotations

from tensorstore_py.codecs.blosc.codec import (
    Blosc,
    BloscSpec,
    BloscV2Spec,
    N5BloscSpec,
    NumcodecsBloscSpec,
)

__all__ = ["Blosc", "BloscSpec", "BloscV2Spec", "N5BloscSpec", "NumcodecsBloscSpec"]
