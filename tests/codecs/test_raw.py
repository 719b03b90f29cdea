import pytest

from tensorstore_py.codecs.raw import Raw
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite


class TestRaw(CodecSuite):
    family = "n5"
    configurations = ({"type": "raw"},)


def test_nothing_is_copied() -> None:
    data = b"as it is"

    assert Raw().encode(data) is data
    assert Raw().decode(data, 8) is data
    assert Raw().decode(data) is data
    assert Raw().encoded_size(5) == 5


def test_another_size_is_data_loss() -> None:
    with pytest.raises(DataLossError, match="decoded to 3 bytes, expected 4"):
        Raw().decode(b"abc", 4)


def test_there_is_nothing_to_configure() -> None:
    with pytest.raises(SpecError, match=r"^level: no such member"):
        parse_codec_json("n5", {"type": "raw", "level": 1})
