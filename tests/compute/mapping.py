"""Arrays to map functions over, in blocks of one chunk."""

import numpy as np

import tensorstore_py as ts

VALUES = np.arange(11 * 9, dtype="int32").reshape(11, 9) ** 2 % 1009
CHUNK = (4, 3)


def small():
    """A context in which a block is one chunk."""
    return ts.Context({"memory_limit": {"limit_bytes": 64}})


def stored(values, chunk, labels=None, context=None, where="memory://|zarr3:", **options):
    """An array with some chunks, whatever is in it."""
    values = np.asarray(values)
    store = ts.open(
        where,
        create=True,
        dtype=values.dtype,
        domain=ts.IndexDomain(shape=values.shape, labels=labels),
        chunk_layout=ts.ChunkLayout(chunk_shape=chunk),
        context=small() if context is None else context,
        **options,
    ).result()
    store[...] = values
    return store


def mapped(function, *sources, target="memory://|zarr3:", **options):
    """What comes out, as an array in memory."""
    options.setdefault("context", small())
    return ts.map_blocks(function, *sources, target=target, **options).result().read().result()
