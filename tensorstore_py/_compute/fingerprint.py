"""Fingerprints of arrays: a few sums over all elements that hardly any other array has.

An array is a table of 16-bit words: those of each element follow each other along the last
dimension. The fingerprint is the sum of all words, each times a key for each of its coordinates,
modulo the prime 2^31 - 1, with four sets of keys. As a polynomial in the keys it is linear in each,
and another array has another polynomial. So with keys drawn at random two arrays of rank r have one
fingerprint with a probability of at most (r / (2^31 - 1))^4 (J. L. Carter and M. N. Wegman,
"Universal Classes of Hash Functions", 1979; J. T. Schwartz, "Fast Probabilistic Algorithms for
Verification of Polynomial Identities", 1980). The keys are the same everywhere, so this is good
against accidents and not against a deliberate search for two such arrays. And since it is a sum,
parts of an array can be added in any order.
"""

from __future__ import annotations

import hashlib
import json
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorstore_py._compute.measure import Array
    from tensorstore_py._spec.dtype import dtype

__all__ = ["LANES", "PRIME", "added", "fingerprint", "words_of"]

PRIME: Final = 2**31 - 1
LANES: Final = 4
#: Words that are multiplied at a time; their products add up to less than 2^64.
_MOST_WORDS: Final = 2**14
_AT_A_TIME: Final = 2**16
_OBJECT_BYTES: Final = 16

Lanes = tuple[int, ...]


def added(one: Lanes, other: Lanes) -> Lanes:
    """The fingerprint of two parts together.

    Example:
        >>> added((1, PRIME - 1), (2, 3))
        (3, 2)
    """
    return tuple((here + there) % PRIME for here, there in zip(one, other, strict=True))


def fingerprint(data: Array, origin: Sequence[int], data_type: dtype) -> Lanes:
    """The fingerprint of a part of an array, which begins at `origin` of the array's elements.

    Raises UnsupportedError: they are Python objects of no known form.
    """
    words = words_of(data, data_type)
    if not words.size:
        return (0,) * LANES
    start = [*origin]
    if not start:
        words, start = words.reshape(words.shape[-1]), [0]
    elif words.ndim > data.ndim:
        each = words.shape[-1]
        words = words.reshape(*data.shape[:-1], data.shape[-1] * each)
        start[-1] *= each
    shape = words.shape
    # The last dimensions together are what is multiplied at a time, the first ones are rows.
    inner = len(shape) - 1
    while inner > 0 and prod(shape[inner - 1 :]) <= _MOST_WORDS:
        inner -= 1
    keys = _keys(range(inner, len(shape)), start, shape, len(shape))
    rows = _keys(range(inner), start, shape, len(shape))
    table = words.reshape(prod(shape[:inner]), prod(shape[inner:]))
    return _summed(table, keys, rows)


def _summed(table: Array, keys: Array, rows: Array) -> Lanes:
    """The sum of words times the keys of their columns and rows, by lane."""
    columns = table.shape[1]
    wide = min(columns, _MOST_WORDS)
    high = max(1, _AT_A_TIME // wide)
    total = [0] * LANES
    for left in range(0, columns, wide):
        some = np.ascontiguousarray(keys[:, left : left + wide])
        for top in range(0, len(table), high):
            piece = table[top : top + high, left : left + wide].astype(np.uint64)
            sums = np.einsum("ij,kj->ki", piece, some) % PRIME
            sums = sums * rows[:, top : top + high] % PRIME
            for lane, each in enumerate(sums.sum(axis=1).tolist()):
                total[lane] += each
    return tuple(each % PRIME for each in total)


def _keys(dims: range, start: Sequence[int], shape: Sequence[int], rank: int) -> Array:
    """The keys of the positions in some dimensions, in C order, by lane."""
    found = np.ones((LANES, 1), np.uint64)
    for dim in dims:
        # Counted from the last dimension, so that a new one in front changes no other's keys.
        along = _keys_along(rank - 1 - dim, start[dim], shape[dim])
        found = (found[:, :, None] * along[:, None, :] % PRIME).reshape(LANES, -1)
    return found


def _keys_along(dim: int, start: int, count: int) -> Array:
    """The keys of positions along a dimension: numbers from 1 to the prime, as if at random.

    Each is SplitMix64's (G. L. Steele, D. Lea, C. H. Flood: "Fast Splittable Pseudorandom Number
    Generators", 2014) of the position, with a seed for each dimension and lane.
    """
    positions = np.arange(start, start + count, dtype=np.uint64)
    found = np.empty((LANES, count), np.uint64)
    for lane in range(LANES):
        text = f"tensorstore_py digest, dimension {dim}, lane {lane}".encode()
        seed = np.uint64(int.from_bytes(hashlib.sha256(text).digest()[:8], "little"))
        word = seed + (positions + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        found[lane] = 1 + word % np.uint64(PRIME - 1)
    return found


def words_of(data: Array, data_type: dtype) -> Array:
    """The words of elements, in one more dimension if each has several.

    Bits count: zeros of either sign differ, and NaN with other bits. Text and bytes of any length,
    and JSON, stand for themselves by 16 bytes of their BLAKE2b.

    Raises UnsupportedError: they are Python objects of no known form.
    """
    if data.dtype.hasobject:
        return _object_words(data, data_type)
    if data_type.name in ("int2", "int4", "uint2", "uint4"):
        data = data.astype(np.int8)
    size = data.dtype.itemsize
    data = np.ascontiguousarray(data)
    if size in (1, 2):
        return data.view(f"<u{size}")
    if size % 2:
        return data.reshape(*data.shape, 1).view(np.uint8)
    return data.reshape(*data.shape, 1).view("<u2")


def _object_words(data: Array, data_type: dtype) -> Array:
    if data_type.name == "object":
        raise UnsupportedError(
            "Python objects of any kind have no digest; read them as another data type"
        )
    known: dict[str, Callable[[Any], bytes]] = {"string": bytes, "ustring": _text_bytes}
    encode = known.get(data_type.name, _json_bytes)
    found = b"".join(
        [
            hashlib.blake2b(encode(each), digest_size=_OBJECT_BYTES).digest()
            for each in data.ravel().tolist()
        ]
    )
    return np.frombuffer(found, "<u2").reshape(*data.shape, _OBJECT_BYTES // 2)


def _text_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json_bytes(value: Any) -> bytes:  # noqa: ANN401 - JSON
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
