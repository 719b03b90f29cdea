import pytest

from tensorstore_py._interface.codec_json import codecs_to_json, parse_codec_list
from tensorstore_py._interface.codec_merge import merge_chains
from tensorstore_py.errors import MismatchError

TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}
SHARD = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3]}}


def merged(one: list, two: list) -> list:
    result = merge_chains(parse_codec_list("zarr3", one), parse_codec_list("zarr3", two))
    return codecs_to_json("zarr3", result)


def test_what_one_list_leaves_open_the_other_states() -> None:
    assert merged([TURN, "gzip"], ["bytes", {"name": "gzip", "configuration": {"level": 2}}]) == [
        TURN,
        {"name": "bytes"},
        {"name": "gzip", "configuration": {"level": 2}},
    ]


def test_a_list_that_does_not_shard_is_about_the_inner_chunks() -> None:
    inside = {"chunk_shape": [2, 3], "codecs": [{"name": "gzip"}]}

    assert merged([SHARD], ["gzip"]) == [{"name": "sharding_indexed", "configuration": inside}]
    assert merged(["gzip"], [SHARD]) == merged([SHARD], ["gzip"])


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (["gzip"], ["zstd"], 'codec "gzip" and codec "zstd"'),
        (["gzip"], ["gzip", "crc32c"], r"1 bytes to bytes codecs \(gzip\), the other 2"),
        (["bytes"], ["gzip"], r"0 bytes to bytes codecs \(none\), the other 1"),
        (
            [{"name": "gzip", "configuration": {"level": 1}}],
            [{"name": "gzip", "configuration": {"level": 2}}],
            'codec "gzip": "level" is both 1 and 2',
        ),
    ],
)
def test_contradictions_are_named(one: list, two: list, message: str) -> None:
    with pytest.raises(MismatchError, match=message):
        merged(one, two)
