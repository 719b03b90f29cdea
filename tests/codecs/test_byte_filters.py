import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import asked, bound

DATA = np.random.default_rng(0).integers(0, 256, 240, np.uint8).tobytes()


@pytest.mark.parametrize("data", [b"YWJj!", b"YWJ", b"YW=j", b"YWJj\n", b"Y"])
def test_what_is_no_base64_is_data_loss(data: bytes) -> None:
    with pytest.raises(DataLossError, match="corrupt base64 data"):
        bound("zarr", "base64").decode(data)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 256])
def test_the_size_of_base64_is_known(size: int) -> None:
    codec = bound("zarr", "base64")

    assert codec.encoded_size(size) == len(codec.encode(bytes(size)))


def test_raw_copies_nothing() -> None:
    codec, data = bound("n5", "raw"), b"as it is"

    assert codec.encode(data) is data
    assert codec.decode(data, 8) is data
    assert codec.decode(data) is data
    assert codec.encoded_size(5) == 5
    with pytest.raises(DataLossError, match="decoded to 3 bytes, expected 4"):
        codec.decode(b"abc", 4)
    with pytest.raises(SpecError, match=r"^level: no such member"):
        asked("n5", "raw", level=1)


def test_shuffled_elements_of_0_and_1_bytes_do_not_change() -> None:
    for size in (0, 1):
        assert bytes(bound("zarr", "shuffle", elementsize=size).encode(DATA)) == DATA


def test_a_chunk_that_is_no_whole_number_of_elements_is_refused_when_bound() -> None:
    with pytest.raises(SpecError, match=r"^elementsize: a chunk of 12 bytes"):
        bound("zarr", "shuffle", chunk_type((3,), "<i4"), elementsize=8)


def test_bytes_that_are_no_whole_number_of_elements_are_refused() -> None:
    codec = bound("zarr", "shuffle", elementsize=4)

    with pytest.raises(ValueError, match="no whole number"):
        codec.encode(DATA[:-1])
    with pytest.raises(DataLossError, match="no whole number"):
        codec.decode(DATA[:-1])


def test_in_version_3_the_size_of_an_element_is_the_array_s() -> None:
    codec = bound("zarr3", "numcodecs.shuffle", chunk_type((60,), "<i4"))

    assert bytes(codec.encode(DATA)) == bytes(bound("zarr", "shuffle").encode(DATA))
    assert asked("zarr3", "numcodecs.shuffle", elementsize=None).to_json() == {}
    with pytest.raises(SpecError, match=r"^elementsize: the size of an element is not known"):
        bound("zarr3", "numcodecs.shuffle")
    with pytest.raises(SpecError, match=r"^elementsize: null"):
        asked("zarr", "shuffle", elementsize=None)
