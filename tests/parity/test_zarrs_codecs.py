"""Registered codecs that zarr-python lacks, ours against those of zarrs, which it can work with."""

import json

import numpy as np
import pytest
import zarr
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.registry import register_codec

from tests.parity.libraries import ours, same, spec_of, stored

SHAPE = (5, 6)
CHUNKS = (2, 4)


class Stand:
    """Lets zarr-python hand a document on to the pipeline, which runs the codec itself."""

    is_fixed_size = True

    def __init__(self, json_form):
        self.json_form = json_form

    @classmethod
    def from_dict(cls, data):
        return cls(data)

    def to_dict(self):
        return self.json_form

    def compute_encoded_size(self, size, spec):
        return size


class Filter(Stand, ArrayArrayCodec):
    pass


class Serializer(Stand, ArrayBytesCodec):
    pass


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def made(name, **configuration):
    return {"name": name, "configuration": configuration}


#: Data type and codecs.
CASES = {
    "packbits_bool": ("bool", [made("packbits")]),
    "packbits_first_byte": ("bool", [made("packbits", padding_encoding="first_byte")]),
    "packbits_last_byte": ("bool", [made("packbits", padding_encoding="last_byte"), "crc32c"]),
    "packbits_bits": ("uint16", [made("packbits", first_bit=1, last_bit=10)]),
    "packbits_signed": ("int32", [made("packbits", last_bit=9)]),
    "packbits_whole": ("float32", [made("packbits"), "crc32c"]),
    "reshape": ("int16", [made("reshape", shape=[[0, 1]]), BYTES]),
    "reshape_rest": ("int16", [made("reshape", shape=[4, -1]), BYTES]),
    "reshape_transposed": (
        "int16",
        [made("transpose", order=[1, 0]), made("reshape", shape=[[0], [1], 1]), BYTES],
    ),
}


@pytest.fixture(autouse=True)
def _pipeline():
    register_codec("packbits", Serializer, qualname="stand.packbits")
    register_codec("reshape", Filter, qualname="stand.reshape")
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        yield


def document_of(dtype, codecs):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(SHAPE),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(CHUNKS)}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": False if dtype == "bool" else 0,
        "codecs": [made(each) if isinstance(each, str) else each for each in codecs],
        "attributes": {},
    }


def values_of(dtype):
    random = np.random.default_rng(0).integers(0, 500, SHAPE)
    if dtype == "bool":
        return random > 250
    return (random & ~1 if dtype == "uint16" else random - 200 * (dtype == "int32")).astype(dtype)


@pytest.mark.parametrize("name", CASES)
def test_what_zarrs_writes_is_read(name, tmp_path):
    dtype, codecs = CASES[name]
    (tmp_path / "zarr.json").write_text(json.dumps(document_of(dtype, codecs)))
    values = values_of(dtype)

    zarr.open_array(str(tmp_path), mode="r+")[...] = values

    same(ours.open(spec_of("zarr3", tmp_path)).result().read().result(), values)


@pytest.mark.parametrize("name", CASES)
def test_the_same_bytes_are_written(name, tmp_path):
    # zarrs does not read parts behind "reshape", nor all signs behind "packbits": bytes tell.
    dtype, codecs = CASES[name]
    values = values_of(dtype)
    for library in ("theirs", "ours"):
        (tmp_path / library).mkdir()
        text = json.dumps(document_of(dtype, codecs))
        (tmp_path / library / "zarr.json").write_text(text)

    zarr.open_array(str(tmp_path / "theirs"), mode="r+")[...] = values
    ours.open(spec_of("zarr3", tmp_path / "ours")).result()[...] = values

    keys = stored(tmp_path / "theirs") - {"zarr.json"}
    assert stored(tmp_path / "ours") - {"zarr.json"} == keys
    for key in keys:
        assert (tmp_path / "ours" / key).read_bytes() == (tmp_path / "theirs" / key).read_bytes()
