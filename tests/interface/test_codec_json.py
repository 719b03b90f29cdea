import pytest

from tensorstore_py._interface.codec_json import (
    codec_to_json,
    codecs_to_json,
    parse_codec_json,
    parse_codec_list,
)
from tensorstore_py.errors import SpecError


@pytest.mark.parametrize(
    ("family", "given", "printed"),
    [
        ("zarr3", "gzip", {"name": "gzip"}),
        ("zarr3", {"name": "gzip", "configuration": {}}, {"name": "gzip"}),
        (
            "zarr3",
            {"name": "gzip", "configuration": {"level": 6}},
            {"name": "gzip", "configuration": {"level": 6}},
        ),
        ("zarr3", {"name": "gzip", "configuration": {"level": 6.0}}, None),
        ("zarr", {"id": "gzip"}, {"id": "gzip", "level": 1}),
        ("zarr", {"id": "gzip", "level": 6}, {"id": "gzip", "level": 6}),
        ("n5", {"type": "gzip", "level": 6}, {"type": "gzip", "level": 6, "useZlib": False}),
    ],
)
def test_each_family_has_its_form(family: str, given: object, printed: dict | None) -> None:
    written = codec_to_json(family, parse_codec_json(family, given))

    assert written == (printed or {"name": "gzip", "configuration": {"level": 6}})
    assert list(written) == sorted(written)


def test_a_parsed_codec_passes() -> None:
    codec = parse_codec_json("zarr3", "gzip")

    assert parse_codec_json("zarr3", codec) is codec
    assert parse_codec_list("zarr3", [codec, "crc32c"])[0] is codec


def test_lists_keep_their_order() -> None:
    names = ["transpose", "bytes", "crc32c", "gzip"]
    given = [{"name": "transpose", "configuration": {"order": "C"}}, *names[1:]]

    assert [json["name"] for json in codecs_to_json("zarr3", parse_codec_list("zarr3", given))] == (
        names
    )


@pytest.mark.parametrize(
    ("family", "json", "message"),
    [
        ("zarr3", "gzipp", 'name: .*"gzip"'),
        ("zarr3", "zlib", 'name: no zarr3 codec is named "zlib"'),
        ("zarr3", {}, "name: .*required"),
        ("zarr3", {"name": 3}, "name: .*found 3"),
        ("zarr3", 3, "expected a codec, .*found 3"),
        ("zarr3", None, "expected a codec, .*found null"),
        ("zarr3", {"name": "gzip", "config": {}}, 'config: .*did you mean "configuration"'),
        ("zarr3", {"name": "gzip", "configuration": 3}, "configuration: .*object"),
        (
            "zarr3",
            {"name": "gzip", "configuration": {"levle": 3}},
            r'configuration\.levle: .*"level"',
        ),
        (
            "zarr3",
            {"name": "gzip", "configuration": {"level": None}},
            r"configuration\.level: null",
        ),
        ("zarr", "zlib", "expected a codec, "),
        ("zarr", {"name": "zlib"}, "id: .*required"),
        ("zarr", {"id": "zlip"}, 'id: .*"zlib"'),
        ("zarr", {"id": "zlib", "level": 99}, "level: .*99"),
    ],
)
def test_errors_name_the_member(family: str, json: object, message: str) -> None:
    with pytest.raises(SpecError, match=f"^{message}"):
        parse_codec_json(family, json)


def test_errors_in_a_list_name_the_position() -> None:
    with pytest.raises(SpecError, match=r"^\[1\]\.name: "):
        parse_codec_list("zarr3", ["bytes", "nothing"])
    with pytest.raises(SpecError, match='array of codecs, but found "bytes"'):
        parse_codec_list("zarr3", "bytes")


def test_null_is_possible_only_where_a_codec_says_so() -> None:
    spec = parse_codec_json("zarr", {"id": "lzma", "preset": None, "filters": None})

    assert spec == parse_codec_json("zarr", {"id": "lzma"})
    with pytest.raises(SpecError, match=r"^check: null is not possible"):
        parse_codec_json("zarr", {"id": "lzma", "check": None})
