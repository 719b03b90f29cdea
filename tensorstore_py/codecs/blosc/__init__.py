"""The codec `blosc`: what is asked of it, the bound codec, and what its library cannot read.

Read in this order: `snappy` (buffers whose blocks Snappy compressed), and `codec`, the rest. The
one invariant: a buffer is decoded only if its header agrees with its length and the chunk's size.
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
