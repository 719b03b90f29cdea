import re

import pytest

from tensorstore_py.drivers.zarr3.chain import (
    chain_layout,
    check_codecs,
    completed,
    inside_shards,
    is_sharded,
    moves_elements_only,
    parse_codecs,
    require_complete,
    stored_endian,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.driver import codecs_to_json


def transpose(*order: int) -> dict:
    return {"name": "transpose", "configuration": {"order": list(order)}}


FLAT = {"name": "reshape", "configuration": {"shape": [-1]}}


def shards(*codecs: object, shape: list[int] | None = None) -> dict:
    configuration: dict[str, object] = {"codecs": list(codecs)} if codecs else {}
    if shape is not None:
        configuration["chunk_shape"] = shape
    return {"name": "sharding_indexed", "configuration": configuration}


@pytest.mark.parametrize(
    ("codecs", "order", "read"),
    [
        ([], None, None),
        (["gzip"], None, None),
        (["bytes", "gzip"], (0, 1, 2), None),
        ([transpose(2, 0, 1), "bytes"], (2, 0, 1), None),
        ([transpose(2, 0, 1)], None, None),
        ([transpose(1, 0, 2), transpose(2, 1, 0), "bytes"], (2, 0, 1), None),
        ([shards("bytes", shape=[2, 3, 4])], (0, 1, 2), (2, 3, 4)),
        ([shards(shape=[2, 3, 4])], None, (2, 3, 4)),
        ([transpose(2, 0, 1), shards("bytes", shape=[4, 2, 3])], (2, 0, 1), (2, 3, 4)),
        ([shards(transpose(2, 0, 1), "bytes")], (2, 0, 1), None),
        ([shards(shards("bytes", shape=[1, 1, 2]), shape=[4, 4, 4])], (0, 1, 2), (1, 1, 2)),
        ([shards(shards("bytes"), shape=[4, 4, 4])], (0, 1, 2), None),
        ([shards(shards(shape=[1, 1, 2]), shape=[4, 4, 4])], None, None),
        ([FLAT, "bytes"], (0, 1, 2), None),
        ([transpose(2, 0, 1), FLAT, "bytes"], (2, 0, 1), None),
        ([FLAT, transpose(0), "bytes"], None, None),
        ([FLAT, shards("bytes", shape=[8])], None, None),
        ([transpose(2, 0, 1), "numcodecs.packbits", "bytes"], (2, 0, 1), None),
        (["packbits"], (0, 1, 2), None),
    ],
)
def test_the_layout_that_codecs_mean(codecs: list, order: object, read: object) -> None:
    assert chain_layout(parse_codecs(codecs), 3) == (order, read)


def test_a_transpose_for_another_rank_is_an_error() -> None:
    with pytest.raises(SpecError):
        chain_layout(parse_codecs([transpose(1, 0), "bytes"]), 3)


@pytest.mark.parametrize(
    ("codecs", "order", "expected"),
    [
        ([], None, []),
        ([], (0, 1, 2), []),
        (["gzip"], (2, 0, 1), [transpose(2, 0, 1), {"name": "gzip"}]),
        (["bytes"], (2, 0, 1), [transpose(2, 0, 1), {"name": "bytes"}]),
        ([transpose(1, 0, 2)], (2, 0, 1), [transpose(1, 0, 2), transpose(2, 1, 0)]),
        ([transpose(2, 0, 1)], (2, 0, 1), [transpose(2, 0, 1)]),
        ([shards("gzip")], None, [shards({"name": "gzip"}, shape=[2, 3, 4])]),
        ([FLAT, "bytes"], (2, 0, 1), [transpose(2, 0, 1), FLAT, {"name": "bytes"}]),
        ([FLAT, shards(shape=[8])], None, [FLAT, shards(shape=[8])]),
        (
            [transpose(1, 0, 2), shards("bytes")],
            (2, 0, 1),
            [transpose(1, 0, 2), shards(transpose(2, 1, 0), {"name": "bytes"}, shape=[3, 2, 4])],
        ),
    ],
)
def test_codecs_for_a_layout(codecs: list, order: tuple | None, expected: list) -> None:
    made = completed(parse_codecs(codecs), (2, 3, 4), order)

    assert codecs_to_json("zarr3", made) == expected


def test_codecs_go_inside_shards() -> None:
    made = inside_shards(parse_codecs(["bytes", "gzip"]))

    assert is_sharded(made)
    assert codecs_to_json("zarr3", made) == [shards({"name": "bytes"}, {"name": "gzip"})]


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        (["bytes", "gzip"], ["gzip"]),
        (["bytes", "gzip"], ["bytes", "gzip"]),
        ([shards("bytes", "gzip", shape=[2, 3, 4])], []),
        ([shards("bytes", "gzip", shape=[2, 3, 4])], ["sharding_indexed"]),
        ([shards("bytes", "gzip", shape=[2, 3, 4])], [shards("gzip")]),
        ([transpose(2, 1, 0), "bytes"], [{"name": "transpose", "configuration": {"order": "F"}}]),
    ],
)
def test_stored_codecs_that_satisfy(found: list, asked: list) -> None:
    check_codecs(parse_codecs(found), parse_codecs(asked))


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        (["bytes", "gzip"], []),
        (["bytes", "gzip"], ["bytes"]),
        (["bytes", "gzip"], ["zstd"]),
        ([transpose(2, 1, 0), "bytes"], ["bytes"]),
        (["bytes"], ["sharding_indexed"]),
        ([shards("bytes", "gzip", shape=[2, 3, 4])], ["gzip"]),
        ([shards("bytes", "gzip", shape=[2, 3, 4])], [shards("zstd")]),
        ([shards("bytes", "gzip", shape=[2, 3, 4])], [shards("bytes")]),
        ([shards("bytes", shape=[2, 3, 4])], [shards(shape=[2, 3, 2])]),
    ],
)
def test_stored_codecs_that_do_not(found: list, asked: list) -> None:
    with pytest.raises(MismatchError):
        check_codecs(parse_codecs(found), parse_codecs(asked))


def test_a_codec_in_the_wrong_place_is_named_by_position() -> None:
    with pytest.raises(SpecError) as caught:
        parse_codecs(["bytes", "gzip", transpose(0)])

    assert caught.value.path == (2,)


def test_shards_of_other_dimensions_are_none_of_the_array_s() -> None:
    assert is_sharded(parse_codecs([transpose(2, 0, 1), shards("bytes", shape=[2, 3, 4])]))
    assert not is_sharded(parse_codecs([FLAT, shards("bytes", shape=[8])]))


@pytest.mark.parametrize(
    ("codecs", "endian", "moves_only"),
    [
        ([], "little", True),
        (["bytes", "gzip"], "little", True),
        ([transpose(1, 0), {"name": "bytes", "configuration": {"endian": "big"}}], "big", True),
        ([shards({"name": "bytes", "configuration": {"endian": "big"}})], "big", True),
        ([shards(shards(transpose(1, 0), "bytes"))], "little", True),
        (["vlen-utf8"], "little", False),
        ([shards("numcodecs.packbits", "bytes")], "little", False),
    ],
)
def test_how_elements_are_stored(codecs: list, endian: str, moves_only: bool) -> None:
    parsed = parse_codecs(codecs)

    assert stored_endian(parsed) == endian
    assert moves_elements_only(parsed) is moves_only


@pytest.mark.parametrize(
    ("codecs", "path"),
    [
        ([], "codecs: an array to bytes codec"),
        ([transpose(0), "gzip"], "codecs: an array to bytes codec"),
        ([shards("bytes")], "codecs[0].configuration.chunk_shape: this member"),
        ([transpose(0), shards(shape=[1])], "codecs[1].configuration.codecs: this member"),
        ([shards("gzip", shape=[1])], "codecs[0].configuration.codecs: an array to bytes"),
        (
            [shards(shards("bytes"), shape=[1])],
            "codecs[0].configuration.codecs[0].configuration.chunk_shape: this member",
        ),
    ],
)
def test_what_is_stored_must_say_how_to_read_it(codecs: list, path: str) -> None:
    with pytest.raises(SpecError, match=re.escape(path)):
        require_complete(parse_codecs(codecs), has_byte_order=False)
    good = parse_codecs([shards(shards("bytes", shape=[1]), "gzip", shape=[2])])
    require_complete(good, has_byte_order=False)


@pytest.mark.parametrize(
    ("codecs", "path"),
    [
        (["bytes"], "codecs[0].configuration.endian"),
        ([transpose(0), FLAT, "bytes"], "codecs[2].configuration.endian"),
        (
            [shards(transpose(0), "bytes", shape=[1])],
            "codecs[0].configuration.codecs[1].configuration.endian",
        ),
    ],
)
def test_what_is_stored_must_say_in_which_order_bytes_are(codecs: list, path: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"{path}: this member is required where")):
        require_complete(parse_codecs(codecs), has_byte_order=True)
    require_complete(parse_codecs(codecs), has_byte_order=False)
    # Which elements come out of these is not known before they are bound.
    require_complete(parse_codecs(["numcodecs.packbits", *codecs]), has_byte_order=True)


def test_an_index_is_of_numbers_whatever_the_array_is_of() -> None:
    shard = shards("bytes", shape=[1])
    shard["configuration"]["index_codecs"] = ["bytes", "crc32c"]

    with pytest.raises(
        SpecError, match=r"^codecs\[0\]\.configuration\.index_codecs\[0\]\.conf.*endian"
    ):
        require_complete(parse_codecs([shard]), has_byte_order=False)
