"""Damage: of JSON documents, and of bytes. All of it follows from the `random.Random` given.

- `mutate(rng, document)`: a JSON value with something in it replaced, removed, added, repeated or
  nested; what is put in is mostly what is likely to be believed (other members' values, huge,
  negative and fractional numbers, text that is none).
- `mutate_text(rng, text)`: a document as stored, damaged as a value, or as text: members given
  twice, numbers of thousands of digits, NaN, byte order marks, NUL bytes, bytes that are no UTF-8,
  brackets a hundred thousand deep.
- `mutate_bytes(rng, data)`: bits, bytes and numbers changed, cut out, put in, repeated; or a bomb:
  what a compressor makes of many zeros.
- `mutate_seed(rng, seed)`: a `Seed` with one to three of its values damaged.

The seed of the generator and the seed of the array make the case again.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numcodecs

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.fuzz.seeds import Seed

__all__ = ["mutate", "mutate_bytes", "mutate_seed", "mutate_text"]

Json = Any

#: What is put in the place of a value.
ATOMS: tuple[Json, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1,
    2**63, 2**64 - 1, 2**64, -(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, 1e300, 5.0,
    float("nan"), float("inf"), "", "x", "NaN", "0x7fc00000", "\ud800", "\udcff",
    "a\0b", "é", "a" * 10_000,
    "<U500000000", "|S2147483647", "<U4", "|O", ">f8", "<M8[ns]", "r67108872",
    "string", "bfloat16", "complex128",
    [], {}, [[]], [None], [2**40, 2**40], [1] * 33, [[1, 2**62]], [[2**40, 1]], {"": ""},
    "bytes", "zstd", "gzip", "blosc", "sharding_indexed", "transpose", "vlen-utf8",
    "vlen-bytes", "crc32c",
    {"name": "numcodecs.astype", "configuration": {"encode_dtype": "<c16"}},
    {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": ["bytes"]}},
    {"name": "fixed_length_utf32", "configuration": {"length_bytes": 2**26}},
    {"id": "zstd", "level": 1}, {"id": "json2", "encoding": "a\0b"}, {"id": "pcodec"},
    {"id": "delta", "dtype": "<c16"},
    {"id": "lzma", "filters": [{"id": 33, "dict_size": 2**32 - 1}], "format": 3},
)  # fmt: skip
_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
#: Zeros that a bomb stands for.
_BOMB = 1 << 24
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    gzip.compress,
    zlib.compress,
    bz2.compress,
    lambda data: lzma.compress(data, preset=0),
    lambda data: bytes(numcodecs.Zstd(1).encode(data)),
    lambda data: bytes(numcodecs.LZ4().encode(data)),
    lambda data: bytes(numcodecs.Blosc("lz4").encode(data)),
)
_bombs: dict[int, bytes] = {}


def mutate(rng: Random, document: Json) -> Json:
    """The document with one thing changed somewhere; the given one stays as it is."""
    document = json.loads(json.dumps(document))
    places = list(_places(document))
    if not places or rng.random() < 0.02:
        return rng.choice(ATOMS)
    parent, step = rng.choice(places)
    value = parent[step]
    kind = rng.randrange(8)
    if kind <= 2:
        parent[step] = rng.choice(ATOMS)
    elif kind == 3:
        other, place = rng.choice(places)
        parent[step] = json.loads(json.dumps(other[place]))
    elif kind == 4:
        del parent[step]
    elif kind == 5 and isinstance(value, int | float) and not isinstance(value, bool):
        parent[step] = rng.choice((-value, value + 1, value - 1, value * 2, value * 2**40))
    elif kind == 6:
        parent[step] = [value] * rng.choice((1, 2, 40))
    elif isinstance(parent, dict):
        parent[rng.choice(("x", "\ud800", "name", "configuration", ""))] = rng.choice(ATOMS)
    else:
        parent.insert(step, rng.choice(ATOMS))
    return document


def _places(value: Json) -> list[tuple[Json, Json]]:
    found: list[tuple[Json, Json]] = []
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in list(steps):
        found.append((value, step))
        if isinstance(inner, dict | list):
            found += _places(inner)
    return found


def mutate_text(rng: Random, text: bytes) -> bytes:
    """A stored document, damaged."""
    if rng.random() < 0.75:
        document = json.loads(text)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            document = mutate(rng, document) if isinstance(document, dict | list) else document
        return json.dumps(document).encode()
    kind = rng.randrange(9)
    middle = rng.randrange(len(text) + 1)
    number = next((at for at in range(middle, len(text)) if text[at : at + 1].isdigit()), middle)
    deep = rng.choice((90, 900, 100_000))
    return (
        b"\xef\xbb\xbf" + text,
        text.decode().encode("utf-16"),
        text[:middle] + b"\0" + text[middle:],
        text[:middle] + b"\xff" + text[middle:],
        text[:number] + b"1" * 5000 + text[number:],
        text[:number] + b"NaN" + text[number + 1 :],
        text.rstrip()[:-1] + b"," + text.strip()[1:],
        text.rstrip()[:-1] + b',"attributes":' + b"[" * deep + b"]" * deep + b"}",
        text[:middle],
    )[kind]


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """Stored bytes, damaged."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _damage(rng, damaged)
    if rng.random() < 0.05:
        return _bomb(rng.randrange(len(_PACKERS)))
    return bytes(damaged)


def _damage(rng: Random, data: bytearray) -> None:
    kind = rng.randrange(6)
    # Headers and indexes are at the ends.
    at = rng.randrange(len(data) + 1)
    if rng.random() < 0.5:
        at = rng.choice((min(at, 24), max(0, len(data) - rng.randrange(40))))
    if kind == 0 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        layout = rng.choice(("<B", "<H", "<I", "<Q", ">I", ">Q"))
        number = rng.choice(_NUMBERS) % (1 << 8 * struct.calcsize(layout))
        data[at : at + struct.calcsize(layout)] = struct.pack(layout, number)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        del data[at : at + rng.randrange(1, 20)]
    elif kind == 4:
        data[at:at] = rng.randbytes(rng.randrange(1, 20))
    else:
        data += data[at:]


def _bomb(packer: int) -> bytes:
    if packer not in _bombs:
        _bombs[packer] = _PACKERS[packer](bytes(_BOMB))
    return _bombs[packer]


def is_document(key: str) -> bool:
    """Whether a key holds JSON."""
    name = key.rpartition("/")[2]
    return (
        not name
        or name.endswith(".json")
        or name in (".zarray", ".zattrs", ".zgroup", ".zmetadata")
    )


def mutate_seed(rng: Random, seed: Seed) -> Seed:
    """A seed with one to three of its values damaged."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        key = rng.choice(sorted(seed.files))
        value = seed.files[key]
        try:
            damaged = mutate_text(rng, value) if is_document(key) else mutate_bytes(rng, value)
        except (ValueError, RecursionError):  # damaged before, so that it is no document any more
            damaged = mutate_bytes(rng, value)
        seed = seed.changed(key, damaged)
    return seed
