"""Codecs of each kind as another package writes them for zarr-python, and arrays of them."""

import asyncio
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr
import zarr.registry
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec

import tensorstore_py as ts

VALUES = np.arange(12, dtype="i4").reshape(3, 4)


class Members:
    """What the three have in common: members as they are given."""

    is_fixed_size = True

    @classmethod
    def from_dict(cls, data):
        return cls(**data.get("configuration", {}))

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        return input_byte_length


@dataclass(frozen=True)
class Shift(Members, ArrayArrayCodec):
    """Adds a number; has coroutines that never wait."""

    by: int = 1

    def to_dict(self):
        return {"name": "test.shift", "configuration": {"by": self.by}}

    def validate(self, *, shape, dtype, chunk_grid):
        if dtype.to_native_dtype().kind not in "iu":
            raise ValueError("integers only")

    async def _encode_single(self, chunk_data, chunk_spec):
        array = chunk_data.as_numpy_array() + chunk_data.dtype.type(self.by)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array)

    async def _decode_single(self, chunk_data, chunk_spec):
        array = chunk_data.as_numpy_array() - chunk_data.dtype.type(self.by)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array)


@dataclass(frozen=True)
class Raw(Members, ArrayBytesCodec):
    """Elements side by side; has plain functions."""

    def to_dict(self):
        return {"name": "test.raw"}

    def _encode_sync(self, chunk_data, chunk_spec):
        return chunk_spec.prototype.buffer.from_bytes(chunk_data.as_numpy_array().tobytes())

    def _decode_sync(self, chunk_data, chunk_spec):
        array = np.frombuffer(chunk_data.to_bytes(), chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array.reshape(chunk_spec.shape))

    async def _encode_single(self, chunk_data, chunk_spec):
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data, chunk_spec):
        return self._decode_sync(chunk_data, chunk_spec)


@dataclass(frozen=True)
class Press(Members, BytesBytesCodec):
    """Compresses in a thread."""

    is_fixed_size = False
    level: int | None = None

    def to_dict(self):
        return {"name": "test.press", "configuration": {"level": self.level}}

    def evolve_from_array_spec(self, array_spec):
        return self if self.level is not None else Press(level=2)

    async def _encode_single(self, chunk_data, chunk_spec):
        data = await asyncio.to_thread(zlib.compress, chunk_data.to_bytes(), self.level or 1)
        return chunk_spec.prototype.buffer.from_bytes(data)

    async def _decode_single(self, chunk_data, chunk_spec):
        data = await asyncio.to_thread(zlib.decompress, chunk_data.to_bytes())
        return chunk_spec.prototype.buffer.from_bytes(data)


def register() -> None:
    """Tell zarr-python of them, as a program does."""
    for name, cls in (("test.shift", Shift), ("test.raw", Raw), ("test.press", Press)):
        zarr.registry.register_codec(name, cls)


CODECS = [
    {"name": "test.shift", "configuration": {"by": 3}},
    {"name": "test.raw"},
    {"name": "test.press"},
]


def created(path: Path, codecs: list = CODECS, dtype: str = "int32") -> ts.TensorStore:
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/"},
        "metadata": {
            "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        },
    }
    return ts.open(spec, create=True, dtype=dtype, shape=[3, 4]).result()


def read_by_zarr(path: Path) -> object:
    return np.asarray(zarr.open_array(str(path), mode="r")[...]).tolist()
