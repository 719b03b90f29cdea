"""The safetensors store: the tensors of a safetensors file as the arrays of a zarr3 group.

Read in this order: `header` (the bytes of the format), `hierarchy` (which zarr3 keys stand for
which bytes of a file), and `store`. The one invariant: a value is a range of a file, or made of the
header alone, so nothing is decoded here, and the engine reads of a tensor what it needs.
"""

from tensorstore_py.kvstores.safetensors.store import SafetensorsSpec, SafetensorsStore

__all__ = ["SafetensorsSpec", "SafetensorsStore"]
