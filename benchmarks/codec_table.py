"""Codecs of this package beside numcodecs' own, run by an adapter: times of encoding and decoding.

What numcodecs does as well is left to it; a codec has code of its own here where that is clearly
faster, or where numcodecs believes what damaged data says. `docs/codecs.md` has the table.

Rounds alternate between the two, and each number is the median of the ratios, theirs to ours: above
1, ours is faster. "Two threads" is the time that two threads take for as much each; a codec that
holds the interpreter lock takes twice the time of one.

Usage: codec_table.py [--rounds N] [name ...]
"""

from __future__ import annotations

import argparse
import statistics
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numcodecs
import numpy as np

from tensorstore_py.plugin.codec import (
    ArrayToArray,
    ArrayToBytes,
)
from tensorstore_py.plugin.driver import parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py.plugin.codec import Array

SHAPES = {"1 MiB or 512 KiB": (64, 64, 64), "4 KiB or 8 KiB": (2048,)}
#: Members, and the type of the elements, of each codec.
CODECS: dict[str, tuple[dict[str, object], str]] = {
    "adler32": ({}, "<u2"),
    "astype": ({"encode_dtype": "<f2", "decode_dtype": "<f4"}, "<f4"),
    "base64": ({}, "<u2"),
    "bitround": ({"keepbits": 7}, "<f4"),
    "blosc": ({}, "<u2"),
    "bz2": ({}, "<u2"),
    "crc32": ({}, "<u2"),
    "crc32c": ({}, "<u2"),
    "delta": ({"dtype": "<u2"}, "<u2"),
    "fixedscaleoffset": ({"offset": 0, "scale": 10, "dtype": "<f4", "astype": "<u2"}, "<f4"),
    "fletcher32": ({}, "<u2"),
    "gzip": ({}, "<u2"),
    "jenkins_lookup3": ({}, "<u2"),
    "lz4": ({}, "<u2"),
    "packbits": ({}, "|b1"),
    "pcodec": ({}, "<u2"),
    "quantize": ({"digits": 2, "dtype": "<f4"}, "<f4"),
    "shuffle": ({"elementsize": 2}, "<u2"),
    "zfpy": ({"tolerance": 0.01}, "<f4"),
    "zlib": ({}, "<u2"),
    "zstd": ({}, "<u2"),
    "categorize": ({"labels": list("abcdefgh"), "dtype": "<U1"}, "<U1"),
    "json2": ({}, "|O"),
    "msgpack2": ({}, "|O"),
    "vlen-utf8": ({}, "|O"),
}


class Codec(Protocol):
    """What both have in common."""

    def encode(self, array: Array, /) -> object:
        """The stored form."""

    def decode(self, data: bytes, /) -> object:
        """The inverse."""


class Ours:
    """A codec of this package, which gets an array and gives one, whatever its kind."""

    def __init__(self, json: dict[str, object], array: Array) -> None:
        spec: Any = parse_codec_json("zarr", json)
        self._codec: Any = spec.bind(
            chunk_type(array.shape, array.dtype, "" if array.dtype.hasobject else 0)
        )
        self._size = array.nbytes

    def encode(self, array: Array, /) -> object:
        if isinstance(self._codec, ArrayToArray | ArrayToBytes):
            return self._codec.encode(array)
        return self._codec.encode(array.reshape(-1).view(np.uint8).data)

    def decode(self, data: bytes, /) -> object:
        if isinstance(self._codec, ArrayToArray):
            encoded = self._codec.encoded
            return self._codec.decode(np.frombuffer(data, encoded.dtype).reshape(encoded.shape))
        if isinstance(self._codec, ArrayToBytes):
            return self._codec.decode(data)
        return self._codec.decode(data, self._size)


class Adapted:
    """A codec of numcodecs, with nothing around it but the check that a chunk came out."""

    def __init__(self, json: dict[str, object], array: Array) -> None:
        self._codec = numcodecs.get_codec(json)
        self._shape, self._dtype, self._size = array.shape, array.dtype, array.nbytes
        encoded = self._codec.encode(array)
        # Filters give arrays, and take no bytes.
        self._filtered = encoded.dtype if isinstance(encoded, np.ndarray) else None

    def encode(self, array: Array, /) -> object:
        return self._codec.encode(array)

    def decode(self, data: bytes, /) -> object:
        stored = data if self._filtered is None else np.frombuffer(data, self._filtered)
        found = np.asarray(self._codec.decode(stored))
        if found.dtype != self._dtype:
            found = found.reshape(-1).view(self._dtype)
        if found.nbytes != self._size:
            raise ValueError(found.nbytes)
        return found.reshape(self._shape)


class Times(NamedTuple):
    """Seconds a call."""

    encode: float
    decode: float
    encode_two: float
    decode_two: float


def sample(shape: tuple[int, ...], dtype: str) -> Array:
    """Values as measured ones are: neighbours are alike."""
    random = np.random.default_rng(7)
    walk = np.abs(np.cumsum(random.normal(size=int(np.prod(shape))))).reshape(shape)
    if dtype in ("<U1", "|O"):
        letters = np.array(list("abcdefgh"))[walk.astype(int) % 8]
        texts: Array = letters.astype(dtype)
        return texts
    return (walk % 2 > 1 if dtype == "|b1" else walk).astype(dtype)


def measure(codec: Codec, array: Array, pool: ThreadPoolExecutor, calls: int) -> Times:
    """One round."""
    data = bytes(np.asarray(codec.encode(array)).data)

    def timed(action: Callable[[], object]) -> float:
        start = perf_counter()
        for _ in range(calls):
            action()
        return (perf_counter() - start) / calls

    def both(action: Callable[[], object]) -> float:
        return max(pool.map(timed, (action, action)))

    actions = (lambda: codec.encode(array), lambda: codec.decode(data))
    return Times(*(timed(each) for each in actions), *(both(each) for each in actions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    pool = ThreadPoolExecutor(2)
    print("| codec | chunk | encode, us | decode, us | encode | decode | two: encode | decode |")
    print("|---|---|---|---|---|---|---|---|")
    for name in asked.names or CODECS:
        members, dtype = CODECS[name]
        for title, shape in SHAPES.items():
            array = sample(shape, dtype)
            json_form = {"id": name, **members}
            ours = Ours(json_form, array)
            library = Adapted(json_form, array)
            start = perf_counter()
            measure(ours, array, pool, 1)
            calls = max(1, int(0.05 / (perf_counter() - start)))
            pairs = [
                (measure(ours, array, pool, calls), measure(library, array, pool, calls))
                for _ in range(asked.rounds)
            ]
            medians = [
                statistics.median(times) for times in zip(*(mine for mine, _ in pairs), strict=True)
            ]
            ratios = [
                statistics.median(theirs[field] / mine[field] for mine, theirs in pairs)
                for field in range(len(Times._fields))
            ]
            print(
                f"| `{name}` | {title} | {medians[0] * 1e6:.0f} | {medians[1] * 1e6:.0f} | "
                + " | ".join(f"{ratio:.2f}" for ratio in ratios)
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
