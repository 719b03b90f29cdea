"""All that is used of zarr-python: public names only, which its releases keep.

The types of what a codec is told of its chunks have no public name. A codec of ours therefore asks
zarr-python to make an array, and keeps what it is told.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import OPAQUE, ChunkType, run_coroutine

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Foreign", "Library", "array_spec_of", "chunk_type_of", "library", "published"]

_GROUP = "zarr.codecs"
# Any: the library need not be installed, so that its types cannot be named.
Foreign = Any


def published(name: str) -> type[Foreign] | None:
    """The class that a package or the program published for zarr-python; None if there is none.

    Raises:
        SpecError: the package that publishes it cannot be imported, or zarr-python knows the name
            and cannot give the class.
    """
    for entry in (*entry_points(group=_GROUP, name=name), *entry_points(group=f"{_GROUP}.{name}")):
        try:
            found: type[Foreign] = entry.load()
        except Exception as error:
            raise SpecError(
                f'codec "{name}" is published as {entry.value}, which cannot be imported: '
                f"{type(error).__name__}: {error}"
            ) from error
        return found
    return _registered(name) if "zarr" in sys.modules else None


def _registered(name: str) -> type[Foreign] | None:
    """What the program told the registry of zarr-python, whose versions differ in the refusal."""
    try:
        registry = import_module("zarr.registry")
    except ModuleNotFoundError:
        return None  # zarr-python 2
    unknown = getattr(import_module("zarr.errors"), "UnknownCodecError", KeyError)
    try:
        found: type[Foreign] = registry.get_codec_class(name)
    except (KeyError, unknown):
        return None
    except Exception as error:
        raise SpecError(f'zarr-python gives no codec "{name}": {error}') from error
    return found


class Library:
    """What codecs need of zarr-python.

    Raises:
        SpecError: the installed version has not what is used.
    """

    def __init__(self) -> None:
        try:
            self.kinds: ModuleType = import_module("zarr.abc.codec")
            self.parse_dtype: Foreign = import_module("zarr.dtype").parse_dtype
            told, self._chunk_grid = _told_by_zarr(self.kinds.ArrayArrayCodec)
            config = replace(told.config, order="C", write_empty_chunks=True)
            self._array_spec: Foreign = replace(told, config=config)
        except Exception as error:
            raise SpecError(
                "codecs of zarr-python need version 3.1 of it or a later one that this package "
                f"knows: {type(error).__name__}: {error}"
            ) from error

    def array_spec(self, shape: tuple[int, ...], data_type: Foreign, fill_value: object) -> Foreign:
        """What it says of a chunk."""
        return replace(self._array_spec, shape=shape, dtype=data_type, fill_value=fill_value)

    def chunk_grid(self, shape: tuple[int, ...]) -> Foreign:
        """What it says of an array that is a single chunk."""
        json = {"name": "regular", "configuration": {"chunk_shape": shape}}
        return type(self._chunk_grid).from_dict(json)


def _told_by_zarr(codec: type[Foreign]) -> tuple[Foreign, Foreign]:
    """The array spec and the chunk grid that zarr-python hands the codecs of an array."""
    told: list[Foreign] = []

    class Listener(codec):  # type: ignore[misc]
        """A codec that is asked whether the array suits it, and has heard enough then."""

        is_fixed_size = True

        def to_dict(self) -> dict[str, object]:
            return {"name": "tensorstore_py.listener"}

        def compute_encoded_size(self, input_byte_length: int, chunk_spec: Foreign) -> int:
            return input_byte_length

        def evolve_from_array_spec(self, array_spec: Foreign) -> Self:
            told[:] = [array_spec]
            return self

        def validate(self, *, shape: Foreign, dtype: Foreign, chunk_grid: Foreign) -> None:
            told[1:] = [chunk_grid]
            raise _HeardError

    create_array = import_module("zarr.api.asynchronous").create_array
    array: dict[str, Foreign] = {"shape": (1,), "chunks": (1,), "dtype": "uint8"}
    with suppress(_HeardError):
        run_coroutine(lambda: create_array({}, **array, filters=[Listener()]))
    array_spec, chunk_grid = told
    return array_spec, chunk_grid


class _HeardError(Exception):
    """Ends the creation of an array before anything is stored."""


@cache
def library() -> Library:
    """What is used of zarr-python, which is asked once."""
    return Library()


def array_spec_of(chunk: ChunkType) -> Foreign:
    """What the library says of a chunk; for bytes of unknown meaning, a single byte."""
    if chunk is OPAQUE:
        chunk = ChunkType((), np.dtype(np.uint8), np.zeros((), np.uint8))
    if chunk.dtype.hasobject:
        raise SpecError("codecs of zarr-python get no Python objects here")
    zarr = library()
    try:
        data_type = zarr.parse_dtype(chunk.dtype, zarr_format=3)
    except Exception as error:
        raise SpecError(f"zarr-python has no data type for {chunk.dtype}: {error}") from error
    return zarr.array_spec(chunk.shape, data_type, chunk.fill_value[()])


def chunk_type_of(array_spec: Foreign) -> ChunkType:
    """What this package says of a chunk that the library has a word for."""
    dtype = array_spec.dtype.to_native_dtype().newbyteorder("=")
    fill_value = np.array(array_spec.fill_value).astype(dtype)
    return ChunkType(tuple(array_spec.shape), dtype, fill_value)
