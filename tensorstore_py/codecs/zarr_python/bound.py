"""Codecs of zarr-python at work: they get its buffers, and are run to their end."""

from __future__ import annotations

import numpy as np

from tensorstore_py.codecs.zarr_python.library import Foreign, chunk_type_of
from tensorstore_py.errors import DataLossError
from tensorstore_py.plugin import (
    Array,
    ArrayToArray,
    ArrayToBytes,
    Buffer,
    BytesToBytes,
    ChunkType,
    run_coroutine,
    size_error,
)

__all__ = ["Runner", "ZarrArrayToArray", "ZarrArrayToBytes", "ZarrBytesToBytes"]


class Runner:
    """A codec of that library, run to its end on the calling thread.

    Args:
        name: for error messages.
        codec: the library's.
        array_spec: the library's word for what the chunk is.
    """

    def __init__(self, name: str, codec: Foreign, array_spec: Foreign) -> None:
        self.name = name
        self.codec = codec
        self.array_spec = array_spec
        self._buffer = array_spec.prototype.buffer
        self._nd_buffer = array_spec.prototype.nd_buffer

    def encode(self, data: Foreign) -> Foreign:
        """Encode one of the library's buffers."""
        return self._run("_encode", data)

    def decode(self, data: Foreign) -> Foreign:
        """Decode one of the library's buffers.

        Raises:
            DataLossError: whatever the codec says of the data.
        """
        try:
            return self._run("_decode", data)
        except Exception as error:
            raise DataLossError(f'codec "{self.name}": {error}') from error

    def of_bytes(self, data: Buffer) -> Foreign:
        """Bytes as the library has them."""
        return self._buffer.from_bytes(bytes(data))

    def of_array(self, array: Array) -> Foreign:
        """An array as the library has it."""
        return self._nd_buffer.from_ndarray_like(np.ascontiguousarray(array).reshape(array.shape))

    def _run(self, method: str, data: Foreign) -> Foreign:
        plain = getattr(self.codec, f"{method}_sync", None)
        if plain is not None:
            return plain(data, self.array_spec)
        return run_coroutine(lambda: getattr(self.codec, f"{method}_single")(data, self.array_spec))


class ZarrArrayToArray(ArrayToArray):
    """The bound codec.

    Args:
        runner: runs it.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._decoded = chunk_type_of(runner.array_spec)
        self.encoded = chunk_type_of(runner.codec.resolve_metadata(runner.array_spec))

    def encode(self, array: Array) -> Array:
        encoded = self._runner.encode(self._runner.of_array(array))
        return _checked(self._runner.name, encoded.as_numpy_array(), self.encoded)

    def decode(self, array: Array) -> Array:
        decoded = self._runner.decode(self._runner.of_array(array))
        return _checked(self._runner.name, decoded.as_numpy_array(), self._decoded)


class ZarrArrayToBytes(ArrayToBytes):
    """The bound codec.

    Args:
        runner: runs it.
        chunk: what is stored.
    """

    def __init__(self, runner: Runner, chunk: ChunkType) -> None:
        self._runner = runner
        self._chunk = chunk
        self.encoded_size = _fixed_size(runner, chunk.size_bytes)

    def encode(self, array: Array) -> bytes:
        encoded: bytes = self._runner.encode(self._runner.of_array(array)).to_bytes()
        return encoded

    def decode(self, data: Buffer) -> Array:
        if self.encoded_size is not None and len(data) != self.encoded_size:
            raise size_error(len(data), self.encoded_size)
        decoded = self._runner.decode(self._runner.of_bytes(data))
        return _checked(self._runner.name, decoded.as_numpy_array(), self._chunk)


class ZarrBytesToBytes(BytesToBytes):
    """The bound codec.

    Args:
        runner: runs it.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def encode(self, data: Buffer) -> bytes:
        encoded: bytes = self._runner.encode(self._runner.of_bytes(data)).to_bytes()
        return encoded

    def decode(self, data: Buffer, size: int | None = None) -> bytes:
        decoded: bytes = self._runner.decode(self._runner.of_bytes(data)).to_bytes()
        if size is not None and len(decoded) != size:
            raise size_error(len(decoded), size)
        return decoded

    def encoded_size(self, size: int | None) -> int | None:
        return None if size is None else _fixed_size(self._runner, size)


def _checked(name: str, found: Array, expected: ChunkType) -> Array:
    if found.dtype != expected.dtype or found.nbytes != expected.size_bytes:
        raise DataLossError(
            f'codec "{name}" gave {found.dtype} of shape {list(found.shape)}, expected '
            f"{expected.dtype} of shape {list(expected.shape)}"
        )
    return found.reshape(expected.shape)


def _fixed_size(runner: Runner, size: int) -> int | None:
    if not runner.codec.is_fixed_size:
        return None
    try:
        encoded: int = runner.codec.compute_encoded_size(size, runner.array_spec)
    except NotImplementedError:
        return None
    return encoded
