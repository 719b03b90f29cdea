import pytest

from tensorstore_py.drivers.zarr3.chunk_key_encoding import ChunkKeyEncoding
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import chunk_key_encodings

CASES = [
    ({"name": "default"}, "c/1/23", "c"),
    ({"name": "default", "configuration": {"separator": "."}}, "c.1.23", "c"),
    ({"name": "v2"}, "1.23", "0"),
    ({"name": "v2", "configuration": {"separator": "/"}}, "1/23", "0"),
]


@pytest.mark.parametrize(("json", "key", "scalar"), CASES)
def test_a_position_becomes_a_key_and_back(json: dict, key: str, scalar: str) -> None:
    encoding = ChunkKeyEncoding.parse(json)

    assert encoding.bind(2).encode((1, 23)) == key
    assert encoding.bind(2).decode(key) == (1, 23)
    assert encoding.bind(0).encode(()) == scalar
    assert encoding.bind(0).decode(scalar) == ()


@pytest.mark.parametrize("json", [case[0] for case in CASES])
def test_what_was_parsed_is_printed(json: dict) -> None:
    assert ChunkKeyEncoding.parse(json).to_json() == json


def test_the_usual_separator_is_left_out_unless_asked_for() -> None:
    encoding = ChunkKeyEncoding.parse({"name": "v2", "configuration": {"separator": "."}})

    assert encoding.to_json() == {"name": "v2"}
    assert encoding.to_json(include_defaults=True) == {
        "name": "v2",
        "configuration": {"separator": "."},
    }


@pytest.mark.parametrize(
    ("json", "path"),
    [
        (2, ()),
        ("v3", ("name",)),
        ({"name": "v2", "must_understand": 1}, ("must_understand",)),
        ({}, ("name",)),
        ({"name": "v3"}, ("name",)),
        ({"name": "v2", "separator": "."}, ("separator",)),
        ({"name": "v2", "configuration": []}, ("configuration",)),
        ({"name": "v2", "configuration": {"separator": "-"}}, ("configuration", "separator")),
        ({"name": "v2", "configuration": {"seperator": "."}}, ("configuration", "seperator")),
    ],
)
def test_errors_name_the_member(json: object, path: tuple) -> None:
    with pytest.raises(SpecError) as caught:
        ChunkKeyEncoding.parse(json)

    assert caught.value.path == path


@pytest.mark.parametrize("must_understand", [True, False])
def test_a_name_alone_and_what_must_be_understood_are_taken(must_understand: bool) -> None:
    assert ChunkKeyEncoding.parse("v2") == ChunkKeyEncoding.parse({"name": "v2"})
    json = {"name": "default", "must_understand": must_understand}
    assert ChunkKeyEncoding.parse(json) == ChunkKeyEncoding()


def test_the_built_in_ones_are_registered() -> None:
    assert set(chunk_key_encodings.names()) >= {"default", "v2"}
