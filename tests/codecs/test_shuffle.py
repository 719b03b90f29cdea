import numpy as np
import pytest
from numcodecs.shuffle import Shuffle as Library

from tensorstore_py.codecs.shuffle import Shuffle
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import OPAQUE, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type

DATA = np.random.default_rng(0).integers(0, 256, 240, np.uint8).tobytes()


class TestShuffle(CodecSuite):
    family = "zarr"
    configurations = ({"id": "shuffle", "elementsize": 4}, {"id": "shuffle", "elementsize": 1})
    dtypes = (np.dtype("<i4"), np.dtype("<f8"), np.dtype("<c16"))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 16, 240])
def test_other_implementations_read_and_write_the_same(size: int) -> None:
    encoded = bytes(Shuffle(size).encode(DATA))

    assert encoded == bytes(Library(size).encode(DATA))
    assert bytes(Shuffle(size).decode(encoded, len(DATA))) == DATA
    assert bytes(Shuffle(size).decode(encoded)) == DATA


def test_sizes_0_and_1_change_nothing() -> None:
    for size in (0, 1):
        spec = parse_codec_json("zarr", {"id": "shuffle", "elementsize": size})
        assert bytes(spec.bind(OPAQUE).encode(DATA)) == DATA  # type: ignore[attr-defined]


def test_a_chunk_that_is_no_whole_number_of_elements_is_refused_when_bound() -> None:
    spec = parse_codec_json("zarr", {"id": "shuffle", "elementsize": 8})

    with pytest.raises(SpecError, match=r"^elementsize: a chunk of 12 bytes"):
        spec.bind(chunk_type((3,), "<i4"))  # type: ignore[attr-defined]


def test_bytes_that_are_no_whole_number_of_elements_are_refused() -> None:
    with pytest.raises(ValueError, match="no whole number"):
        Shuffle(4).encode(DATA[:-1])
    with pytest.raises(DataLossError, match="no whole number"):
        Shuffle(4).decode(DATA[:-1])
