import zlib

import pytest

from tensorstore_py._interface.streams import StreamCodec, StreamDecoder, decode_streams
from tensorstore_py.errors import DataLossError

ONE = zlib.compress(b"abc" * 100)
TWO = zlib.compress(b"def" * 100)


def decode(data: bytes, size: int | None = None, concatenated: bool = True) -> bytes:
    return decode_streams(data, size, zlib.decompressobj, unlimited=0, concatenated=concatenated)


@pytest.mark.parametrize("size", [300, None])
def test_one_stream_is_decoded(size: int | None) -> None:
    assert decode(ONE, size) == b"abc" * 100
    assert decode(ONE, size, concatenated=False) == b"abc" * 100


@pytest.mark.parametrize("size", [600, None])
def test_streams_one_behind_the_other_are_joined_where_the_format_does(size: int | None) -> None:
    assert decode(ONE + TWO, size) == b"abc" * 100 + b"def" * 100
    with pytest.raises(DataLossError):
        decode(ONE + TWO, size, concatenated=False)


def test_a_stream_without_its_end_is_data_loss() -> None:
    for length in range(len(ONE)):
        with pytest.raises(DataLossError, match="truncated after"):
            decode(ONE[:length])


def test_sizes_must_agree() -> None:
    with pytest.raises(DataLossError, match="decoded to 300 bytes, expected 301"):
        decode(ONE, 301)
    with pytest.raises(DataLossError, match="more than 299 bytes"):
        decode(ONE, 299)
    with pytest.raises(DataLossError, match="more than 0 bytes"):
        decode(ONE, 0)


def test_an_empty_stream_decodes_to_nothing() -> None:
    assert decode(zlib.compress(b""), 0) == b""


def test_no_more_is_decoded_than_expected() -> None:
    asked: list[int] = []

    class Spy(StreamDecoder):
        def __init__(self) -> None:
            self.inner = zlib.decompressobj()

        @property
        def eof(self) -> bool:
            return self.inner.eof

        @property
        def unused_data(self) -> bytes:
            return self.inner.unused_data

        def decompress(self, data, max_length: int, /) -> bytes:
            asked.append(max_length)
            return self.inner.decompress(data, max_length)

    bomb = zlib.compress(bytes(10**6))

    with pytest.raises(DataLossError):
        decode_streams(bomb, 10, Spy, unlimited=0, concatenated=True)

    assert asked == [11]


@pytest.mark.parametrize("most", [3, 10])
def test_a_size_that_is_not_known_may_have_a_limit(most: int) -> None:
    def within(data: bytes) -> bytes:
        return decode_streams(
            data, None, zlib.decompressobj, unlimited=0, concatenated=True, most=most
        )

    assert within(zlib.compress(b"a" * most)) == b"a" * most
    assert within(zlib.compress(b"a") + zlib.compress(b"a" * (most - 1))) == b"a" * most
    for bomb in (zlib.compress(bytes(most + 1)), zlib.compress(b"a") + zlib.compress(bytes(most))):
        with pytest.raises(DataLossError, match=f"decoded to more than {most} bytes"):
            within(bomb)


def test_a_codec_of_streams() -> None:
    codec = StreamCodec(
        "zlib", zlib.compress, zlib.decompressobj, (zlib.error,), concatenated=False
    )
    assert codec.decode(codec.encode(b"abc"), 3) == b"abc"
    assert codec.decode_within(ONE, 300) == b"abc" * 100
    for data in (ONE[:-1], ONE + TWO):
        with pytest.raises(DataLossError):
            codec.decode(data)
    with pytest.raises(DataLossError, match="corrupt zlib data"):
        codec.decode(b"\0" * 10)
    with pytest.raises(DataLossError, match="more than 299"):
        codec.decode_within(ONE, 299)
