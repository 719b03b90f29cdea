import pytest
from numcodecs.base64 import Base64 as Library

from tensorstore_py.codecs.base64 import Base64
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing.codecs import CodecSuite


class TestBase64(CodecSuite):
    family = "zarr"
    configurations = ({"id": "base64"},)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_other_implementations_read_and_write_the_same(data: bytes) -> None:
    encoded = Base64().encode(data)

    assert encoded == Library().encode(data)
    assert Base64().decode(encoded, len(data)) == data
    assert Base64().encoded_size(len(data)) == len(encoded)


@pytest.mark.parametrize("data", [b"YWJj!", b"YWJ", b"YW=j", b"YWJj\n", b"Y"])
def test_what_is_no_base64_is_data_loss(data: bytes) -> None:
    with pytest.raises(DataLossError, match="corrupt base64 data"):
        Base64().decode(data)
