import pytest
import tensorstore as reference

from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.driver import CodecSpec

GZIP = {"name": "gzip", "configuration": {"level": 3}}
SHARDS = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3]}}


def codec(*codecs: object) -> dict:
    return {"driver": "zarr3", "codecs": list(codecs)}


@pytest.mark.parametrize(
    "json", [{"driver": "zarr3"}, codec(), codec("bytes", GZIP), codec(SHARDS), codec("blosc")]
)
def test_it_prints_as_the_reference_does(json: dict) -> None:
    assert CodecSpec(json).to_json() == reference.CodecSpec(json).to_json()


@pytest.mark.parametrize(
    ("mine", "theirs", "merged"),
    [
        ({"driver": "zarr3"}, codec("gzip"), codec({"name": "gzip"})),
        (codec("gzip"), {"driver": "zarr3"}, codec({"name": "gzip"})),
        (codec("gzip"), codec("bytes", GZIP), codec({"name": "bytes"}, GZIP)),
        (
            codec(SHARDS),
            codec("gzip"),
            codec(
                {
                    "name": "sharding_indexed",
                    "configuration": {"chunk_shape": [2, 3], "codecs": [{"name": "gzip"}]},
                }
            ),
        ),
    ],
)
def test_two_constraints_become_one(mine: dict, theirs: dict, merged: dict) -> None:
    assert CodecSpec(mine).merged(CodecSpec(theirs)).to_json() == merged


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (codec("gzip"), codec("zstd")),
        (codec("gzip"), codec("bytes")),
        (codec(GZIP), codec({"name": "gzip", "configuration": {"level": 4}})),
    ],
)
def test_contradictions_are_refused(mine: dict, theirs: dict) -> None:
    with pytest.raises(MismatchError):
        CodecSpec(mine).merged(CodecSpec(theirs))


@pytest.mark.parametrize(
    ("json", "path"),
    [
        (codec("gzip", "bytes"), ("codecs", 1)),
        (codec("bytes", {"name": "gzip", "configuration": {"level": 10}}), ("codecs", 1)),
        (codec("gzzip"), ("codecs", 0)),
    ],
)
def test_errors_name_the_codec(json: dict, path: tuple) -> None:
    with pytest.raises(SpecError) as caught:
        CodecSpec(json)

    assert caught.value.path[:2] == path
