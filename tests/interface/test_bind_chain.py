import numpy as np
import pytest

from tensorstore_py._interface.bind_chain import bind_chain, resolve_chain, split_chain
from tensorstore_py._interface.codec import OPAQUE, BytesToBytes, BytesToBytesSpec, ChunkType
from tensorstore_py._interface.codec_json import codecs_to_json, parse_codec_list
from tensorstore_py.errors import SpecError
from tensorstore_py.testing.codecs import chunk_type

CHUNK = chunk_type((2, 3), "uint16")
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}
SEEN: list[ChunkType] = []


class Nothing(BytesToBytes):
    def encode(self, data):
        return data

    def decode(self, data, size=None):
        return data


class NothingSpec(BytesToBytesSpec):
    codec_id = "nothing"

    def bind(self, chunk: ChunkType) -> BytesToBytes:
        SEEN.append(chunk)
        return Nothing()


def test_stages_are_told_apart_by_what_goes_in_and_out() -> None:
    specs = parse_codec_list("zarr3", [TURN, TURN, "bytes", "gzip", "crc32c"])

    stages = split_chain(specs)

    assert stages.to_array == specs[:2]
    assert stages.to_bytes is specs[2]
    assert stages.compressors == specs[3:]


@pytest.mark.parametrize(
    ("codecs", "position"),
    [
        (["bytes", "bytes"], 1),
        (["gzip", "bytes"], 1),
        (["bytes", TURN], 1),
        ([TURN, "bytes", "gzip", TURN], 3),
        (["bytes", "sharding_indexed"], 1),
    ],
)
def test_a_misplaced_codec_is_named_by_position(codecs: list, position: int) -> None:
    specs = parse_codec_list("zarr3", codecs)

    for run in (bind_chain, resolve_chain):
        with pytest.raises(SpecError, match="takes an array") as caught:
            run(specs, CHUNK)
        assert caught.value.path == ("codecs", position)
    with pytest.raises(SpecError, match=rf"^index_codecs\[{position}\]: "):
        bind_chain(specs, CHUNK, member="index_codecs")


@pytest.mark.parametrize("codecs", [[], [TURN], ["gzip"], [TURN, "gzip", "crc32c"]])
def test_bytes_is_put_in_where_nothing_serializes(codecs: list) -> None:
    resolved = resolve_chain(parse_codec_list("zarr3", codecs), CHUNK)

    names = [json["name"] for json in codecs_to_json("zarr3", resolved)]
    assert names.count("bytes") == 1
    assert len(names) == len(codecs) + 1
    assert bind_chain(parse_codec_list("zarr3", codecs), CHUNK).to_bytes.encoded_size == 12


def test_a_chain_knows_its_chunk_and_size() -> None:
    chain = bind_chain(parse_codec_list("zarr3", [TURN, "crc32c", "crc32c"]), CHUNK)

    assert chain.chunk is CHUNK
    assert chain.encoded_size() == 20
    assert bind_chain(parse_codec_list("zarr3", ["crc32c", "gzip"]), CHUNK).encoded_size() is None


@pytest.mark.parametrize(
    ("codecs", "opaque"), [([TURN], False), (["gzip"], True), (["sharding_indexed"], True)]
)
def test_only_the_first_compressor_behind_plain_elements_sees_them(
    codecs: list, opaque: bool
) -> None:
    SEEN.clear()

    bind_chain([*parse_codec_list("zarr3", codecs), NothingSpec(), NothingSpec()], CHUNK)

    assert (SEEN[0] is OPAQUE) is opaque
    assert SEEN[1] is OPAQUE
    if not opaque:
        assert SEEN[0].shape == (3, 2)


def test_errors_of_binding_name_codec_and_member() -> None:
    wrong = {"name": "transpose", "configuration": {"order": [1, 0, 2]}}

    for run in (bind_chain, resolve_chain):
        with pytest.raises(SpecError) as caught:
            run(parse_codec_list("zarr3", [TURN, wrong]), CHUNK)
        assert caught.value.path == ("codecs", 1, "configuration", "order")


def test_compressors_may_follow_a_sharding_codec() -> None:
    chain = bind_chain(parse_codec_list("zarr3", ["sharding_indexed", "gzip"]), CHUNK)
    array = np.arange(6, dtype="uint16").reshape(2, 3)
    out = np.zeros_like(array)

    chain.decode_into(chain.encode(array), out)

    assert (out == array).all()


@pytest.mark.parametrize(("missing", "name"), [("", "vlen-utf8"), (b"", "vlen-bytes")])
def test_objects_get_the_serializer_of_their_type(missing: object, name: str) -> None:
    fill_value = np.empty((), object)
    fill_value[...] = missing
    chunk = ChunkType((2,), np.dtype(object), fill_value)

    codecs = resolve_chain(parse_codec_list("zarr3", ["gzip"]), chunk)

    assert [codec.codec_id for codec in codecs] == [name, "gzip"]
    fill_value[...] = None
    with pytest.raises(SpecError, match=r'^codecs\[0\]: codec "bytes" stores elements of fixed'):
        bind_chain((), chunk)
