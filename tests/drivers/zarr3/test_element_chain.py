from typing import Any

import numpy as np
import pytest

from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.element_chain import element_chain
from tensorstore_py.drivers.zarr3.fill_value import default_fill_value
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import (
    CodecChain,
    dtype,
)
from tensorstore_py.plugin.driver import parse_codec_list

RECORD = StoredType.parse([["x", "uint16"], ["raw", "r24"], ["z", "bfloat16"], ["ok", "bool"]])
SHAPE = (4, 6)
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def serializer(endian: str) -> dict[str, object]:
    return {"name": "bytes", "configuration": {"endian": endian}}


def sharding(codecs: list[object], shape: list[int]) -> dict[str, object]:
    return {"name": "sharding_indexed", "configuration": {"chunk_shape": shape, "codecs": codecs}}


def codec_lists(endian: str) -> dict[str, list[object]]:
    plain: list[object] = [serializer(endian)]
    return {
        "plain": plain,
        "turned": [TRANSPOSE, *plain, "gzip"],
        "shards": [sharding([TRANSPOSE, *plain], [2, 3])],
        "turned_shards": [TRANSPOSE, sharding([*plain, "crc32c"], [3, 2]), "crc32c"],
        "nested": [sharding([sharding([TRANSPOSE, *plain], [1, 3])], [2, 6])],
    }


LISTS = [(name, endian) for endian in ("little", "big") for name in codec_lists(endian)]


def chain_of(codecs: list[object], stored: StoredType = RECORD, **opened: Any) -> CodecChain:
    parsed = parse_codec_list("zarr3", codecs)
    return element_chain(parsed, SHAPE, stored, default_fill_value(stored), stored.view(**opened))


def records(seed: int = 1) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(1, 200, (24, RECORD.size_bytes), np.uint8)
    values = np.frombuffer(bits.tobytes(), RECORD.stored).reshape(SHAPE).copy()
    values["ok"] = bits[:, 0].reshape(SHAPE) > 100
    return values


@pytest.mark.parametrize(("name", "endian"), LISTS)
def test_records_come_back(name: str, endian: str) -> None:
    chain = chain_of(codec_lists(endian)[name])
    values = records()

    found = chain.decode(chain.encode(values))

    assert found.tobytes() == values.tobytes()
    out = np.zeros(SHAPE, RECORD.stored)
    chain.decode_into(chain.encode(values), out)
    assert out.tobytes() == values.tobytes()


@pytest.mark.parametrize("field", ["x", "raw", "z", "ok"])
@pytest.mark.parametrize(("name", "endian"), LISTS)
def test_a_field_is_written_over_and_the_others_stay(name: str, endian: str, field: str) -> None:
    codecs = codec_lists(endian)[name]
    whole, one = chain_of(codecs), chain_of(codecs, name=field)
    values, other = records(), records(2)
    stored = whole.encode(values)
    seen = np.ascontiguousarray(other[field])
    if field == "raw":
        seen = seen.view("V1").reshape(*SHAPE, 3)
    assert one.to_bytes.partial

    changed = one.encode_over(seen, stored, keep_fill=False)

    assert changed is not None
    values[field] = other[field]
    assert whole.decode(changed).tobytes() == values.tobytes()
    assert one.decode(changed).tobytes() == seen.tobytes()


@pytest.mark.parametrize("name", codec_lists("little"))
def test_nothing_is_stored_where_all_of_it_is_the_fill_value(name: str) -> None:
    chain = chain_of(codec_lists("big")[name], name="x")
    values = np.zeros(SHAPE, np.uint16)

    assert chain.encode_over(values, None, keep_fill=False) is None
    kept = chain.encode_over(values, None, keep_fill=True)
    assert kept is not None
    assert chain.encode_over(values, kept, keep_fill=False) is None
    values[3, 5] = 1
    assert chain.encode_over(values, None, keep_fill=False) is not None


@pytest.mark.parametrize("endian", ["little", "big"])
def test_the_bytes_are_those_that_are_stored(endian: str) -> None:
    stored = StoredType.parse("uint16")
    codecs: list[object] = [TRANSPOSE, serializer(endian)]
    values = np.arange(24, dtype=np.uint16).reshape(SHAPE)
    data = chain_of(codecs, stored).encode(values)

    found = chain_of(codecs, stored, as_void=True).decode(data)

    order = "<" if endian == "little" else ">"
    assert found.shape == (4, 6, 2)
    assert found.tobytes() == values.astype(f"{order}u2").tobytes()


def test_raw_bytes_are_moved_whole() -> None:
    stored = StoredType.parse("r24")
    values = np.arange(72, dtype=np.uint8).view("V1").reshape(4, 6, 3)
    chain = chain_of([TRANSPOSE, "bytes", "gzip"], stored)
    as_one = chain_of([TRANSPOSE, "bytes", "gzip"], stored, asked=dtype("V3"))

    data = chain.encode(values)

    assert chain.decode(data).tobytes() == values.tobytes()
    assert not chain.to_bytes.partial
    assert as_one.decode(data)[1, 2].tobytes() == values[1, 2].tobytes()


def test_a_codec_of_values_decodes_whole_elements() -> None:
    stored = StoredType.parse("bool")
    packed: list[object] = [TRANSPOSE, "numcodecs.packbits", "bytes"]
    values = np.arange(24).reshape(SHAPE) % 5 == 0
    data = chain_of(packed, stored).encode(values)
    chain = chain_of(packed, stored, as_void=True)

    assert chain.decode(data).tobytes() == values.tobytes()
    assert bytes(chain.encode(values.view("V1")[..., None])) == bytes(data)


def test_a_codec_that_cannot_store_records_is_named() -> None:
    with pytest.raises(SpecError, match=r"codecs\[0\]"):
        chain_of(["vlen-utf8"])


def test_a_chunk_of_another_size() -> None:
    for name in codec_lists("big"):
        if name in {"plain", "nested"}:
            with pytest.raises(DataLossError):
                chain_of(codec_lists("big")[name], name="x").decode(b"123")
