import json

import numpy as np
import pytest

from tensorstore_py.drivers.zarr3.metadata import Zarr3Constraints, Zarr3Metadata, explicit_codecs
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import (
    codecs_to_json,
    parse_codec_list,
)

DOCUMENT: dict[str, object] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10, 20],
    "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 6]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 7,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}


def stored(**members: object) -> bytes:
    return json.dumps({**DOCUMENT, **members}).encode()


def test_a_document_is_read() -> None:
    metadata = Zarr3Metadata.read(stored(dimension_names=["y", None], attributes={"a": [1]}))

    assert metadata.shape == (10, 20)
    assert metadata.rank == 2
    assert metadata.data_type.data_type == dtype("uint16")
    assert metadata.chunk_grid.shape == (5, 6)
    assert metadata.chunk_key_encoding.bind(2).encode((1, 2)) == "c/1/2"
    assert metadata.fill_value == np.array(7, np.uint16)
    assert [codec.codec_id for codec in metadata.codecs] == ["bytes"]
    assert metadata.dimension_names == ("y", None)
    assert metadata.attributes == {"a": (1,)}


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"dimension_names": ["y", None]},
        {"dimension_names": ["", ""]},
        {"attributes": {"a": {"b": [1, None]}, "dimension_units": ["4 nm", None]}},
        {"data_type": "float32", "fill_value": "0x7fc00001"},
        {"data_type": "bool", "fill_value": True, "codecs": [{"name": "bytes"}]},
        {"ignorable": {"must_understand": False, "x": 1}},
        {"consolidated_metadata": None},
    ],
)
def test_a_document_written_again_is_the_same(members: dict) -> None:
    data = stored(**members)

    assert json.loads(Zarr3Metadata.read(data).serialize()) == json.loads(data)


def test_equal_documents_are_equal() -> None:
    nan = {"data_type": "float32", "fill_value": "NaN"}

    assert Zarr3Metadata.read(stored(**nan)) == Zarr3Metadata.read(stored(**nan))
    assert hash(Zarr3Metadata.read(stored(**nan))) == hash(Zarr3Metadata.read(stored(**nan)))
    assert Zarr3Metadata.read(stored()) != Zarr3Metadata.read(stored(shape=[10, 21]))


def test_what_a_document_may_leave_out_or_say_in_more_words() -> None:
    metadata = Zarr3Metadata.read(
        stored(
            storage_transformers=[],
            dimension_names=[None, None],
            data_type="uint8",
            codecs=["bytes", {"name": "gzip", "configuration": {"level": 1}}],
            chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}},
        )
    )

    again = json.loads(metadata.serialize())
    assert "storage_transformers" not in again
    assert "dimension_names" not in again
    assert again["chunk_key_encoding"] == {"name": "v2"}


def test_the_usual_place_of_a_shard_index_is_said_in_specs_and_not_in_documents() -> None:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    shards = {"chunk_shape": [5, 3], "codecs": [little], "index_codecs": [little, "crc32c"]}
    codecs = parse_codec_list("zarr3", [{"name": "sharding_indexed", "configuration": shards}])
    explicit = codecs_to_json("zarr3", explicit_codecs(codecs))
    metadata = Zarr3Metadata.read(stored(codecs=explicit))

    configuration = explicit[0]["configuration"]
    assert isinstance(configuration, dict)
    assert configuration["index_location"] == "end"
    assert metadata.constraints.to_json()["codecs"] == explicit
    written = json.loads(metadata.serialize())["codecs"][0]["configuration"]
    assert "index_location" not in written


@pytest.mark.parametrize("name", [name for name in DOCUMENT if name != "fill_value"])
def test_every_member_is_required(name: str) -> None:
    document = {key: value for key, value in DOCUMENT.items() if key != name}

    with pytest.raises(SpecError, match=f"^{name}: this member is required"):
        Zarr3Metadata.read(json.dumps(document).encode())


def test_a_group_is_no_damaged_array() -> None:
    with pytest.raises(MismatchError, match="this is a group, not an array"):
        Zarr3Metadata.read(stored(node_type="group"))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"zarr_format": 2}, "zarr_format: expected 3, but found 2"),
        ({"zarr_format": True}, "zarr_format: expected 3"),
        ({"data_type": "strings"}, 'data_type: data type "strings" is not supported'),
        ({"fill_value": -1}, "fill_value: expected an integer from 0 to 65535"),
        ({"dimension_names": ["x"]}, "dimension_names: 1 dimensions, but shape has 2"),
        (
            {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5]}}},
            r"chunk_grid.configuration.chunk_shape: 1 dimensions",
        ),
        ({"codecs": ["gzip"]}, "codecs: an array to bytes codec is required"),
        ({"codecs": ["bytes", "bytes"]}, r"codecs\[1\]: "),
        ({"codecs": ["bytes", "bloc"]}, r'codecs\[1\].name: .*did you mean "blosc"'),
        (
            {"codecs": ["bytes", {"name": "gzip", "configuration": {"level": 10}}]},
            r"codecs\[1\].configuration.level: ",
        ),
        ({"storage_transformers": ["x"]}, "storage_transformers: "),
        ({"new": 1}, "new: no such member"),
        ({"new": {"must_understand": True}}, "new: no such member"),
        ({"fil_value": 1}, 'fil_value: .*did you mean "fill_value"'),
        ({"attributes": 5}, "attributes: expected an object"),
    ],
)
def test_errors_name_the_member(members: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Zarr3Metadata.read(stored(**members))


@pytest.mark.parametrize("data", [b"", b"{", b'{"shape": \xff}'])
def test_what_is_not_json_is_named(data: bytes) -> None:
    with pytest.raises(SpecError, match="this is no JSON"):
        Zarr3Metadata.read(data)


def test_a_document_must_be_an_object() -> None:
    with pytest.raises(SpecError, match="expected an object"):
        Zarr3Metadata.read(b"[]")


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"zarr_format": 3},
        {"shape": [1, 2]},
        {"data_type": "int4", "fill_value": -8},
        {"codecs": [{"name": "gzip"}]},
        {"chunk_key_encoding": {"name": "v2"}},
        {"dimension_names": ["x", None]},
        {"attributes": {"a": 1}},
        {"x": {"must_understand": False}},
    ],
)
def test_constraints_say_what_was_said(members: dict) -> None:
    constraints = Zarr3Constraints.parse(members)

    assert constraints.to_json() == {**members, "node_type": "array"}
    assert constraints == Zarr3Constraints.parse(constraints.to_json())
    assert hash(constraints) == hash(Zarr3Constraints.parse(members))
    assert constraints.is_spec_default == (not members)
    assert Zarr3Constraints.parse(constraints) is constraints


def test_constraints_know_the_rank_from_any_member() -> None:
    assert Zarr3Constraints.parse({}).rank is None
    for members in (
        {"shape": [1, 2]},
        {"dimension_names": ["x", None]},
        {"chunk_grid": DOCUMENT["chunk_grid"]},
        {"attributes": {"dimension_units": ["m", None]}},
    ):
        assert Zarr3Constraints.parse(members).rank == 2


def test_a_fill_value_needs_its_data_type() -> None:
    with pytest.raises(SpecError, match=r'fill_value: .*together with "data_type"'):
        Zarr3Constraints.parse({"fill_value": 1})


def test_constraints_must_be_an_object() -> None:
    with pytest.raises(SpecError, match="expected an object"):
        Zarr3Constraints.parse([])
