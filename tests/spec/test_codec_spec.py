import pickle

import pytest

from tensorstore_py._spec.codec_spec import CodecSpec, CodecSpecModel, codec_spec
from tensorstore_py.errors import MismatchError, SpecError


@codec_spec("sample_codec")
class Sample(CodecSpecModel):
    level: int | None = None
    codecs: tuple[str, ...] | None = None


@codec_spec("sample_other")
class Other(CodecSpecModel):
    pass


def make(**members):
    return CodecSpec({"driver": "sample_codec", **members})


def test_json():
    spec = make(level=3)

    assert spec.driver == "sample_codec"
    assert spec.to_json() == {"driver": "sample_codec", "level": 3}
    assert repr(spec) == "CodecSpec({'driver': 'sample_codec', 'level': 3})"
    assert spec == CodecSpec(spec) == pickle.loads(pickle.dumps(spec))


def test_merging_takes_what_either_says():
    assert make(level=3).merged(make(codecs=["a"])) == make(level=3, codecs=["a"])
    assert make(level=3).merged(make(level=3)) == make(level=3)


def test_merging_refuses_contradictions():
    with pytest.raises(MismatchError, match='"level" is both 3 and 4'):
        make(level=3).merged(make(level=4))
    with pytest.raises(MismatchError, match="Cannot merge codec spec"):
        make().merged(CodecSpec({"driver": "sample_other"}))


@pytest.mark.parametrize(
    ("json", "path"),
    [
        (5, ()),
        ({}, ("driver",)),
        ({"driver": "sample_codex"}, ("driver",)),
        ({"driver": "sample_codec", "levl": 1}, ("levl",)),
        ({"driver": "sample_codec", "codecs": [1]}, ("codecs", 0)),
    ],
)
def test_errors(json, path):
    with pytest.raises(SpecError) as caught:
        CodecSpec(json)

    assert caught.value.path == path
