import sys
from importlib.util import find_spec

import numpy as np
import pytest

from tensorstore_py.codecs import pcodec
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type

CHUNK = chunk_type((3, 4), "<i4")


def bound(members: dict | None = None, chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "pcodec", **(members or {})}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pcodec._library.cache_clear()
    monkeypatch.setitem(sys.modules, "pcodec", None)

    with pytest.raises(UnsupportedError, match=r"tensorstore-py\[codecs\]"):
        bound()


@pytest.mark.parametrize(
    ("members", "dtype", "problem"),
    [
        ({"level": 13}, "<i4", r"^level: "),
        ({"mode_spec": "fast"}, "<i4", r"^mode_spec"),
        ({"delta_encoding_order": 8}, "<i4", r"^delta_encoding_order: "),
        ({"delta_encoding_order": 1, "delta_spec": "none"}, "<i4", r"^delta_encoding_order: only"),
        ({}, "<c8", "pcodec stores elements of .*, not <c8"),
        ({}, ">i4", "pcodec stores elements of .*, not >i4"),
        ({}, "|b1", "pcodec stores elements of"),
    ],
)
def test_what_is_not_possible_is_named(members: dict, dtype: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound(members, chunk_type((3,), dtype))


if find_spec("pcodec"):
    from numcodecs.pcodec import PCodec

    TYPES = tuple(np.dtype(text) for text in pcodec._TYPES)

    class TestPcodec(CodecSuite):
        family = "zarr"
        configurations = ({"id": "pcodec"}, {"id": "pcodec", "level": 0, "delta_spec": "none"})
        dtypes = TYPES
        # What stands behind the end is not looked at.
        detects_truncation = False

    @pytest.mark.parametrize(
        "members",
        [
            {},
            {"level": 3, "mode_spec": "classic"},
            {"delta_spec": "try_consecutive", "delta_encoding_order": 2},
            {"delta_encoding_order": 1},
            {"delta_spec": "try_lookback"},
            {"equal_pages_up_to": 5},
        ],
    )
    def test_other_implementations_read_and_write_the_same(members: dict) -> None:
        values = np.random.default_rng(0).integers(0, 1000, (3, 4)).astype("<i4")
        encoded = bound(members).encode(values)

        assert encoded == PCodec(**members).encode(values)
        assert bound().decode(encoded).tolist() == values.tolist()

    def test_truncated_data_is_data_loss() -> None:
        encoded = bytes(bound().encode(np.arange(12, dtype="<i4").reshape(3, 4)))

        for stop in range(len(encoded)):
            with pytest.raises(DataLossError):
                bound().decode(encoded[:stop])

    def test_another_number_of_elements_is_data_loss() -> None:
        for count in (11, 13, 100_000):
            encoded = PCodec().encode(np.arange(count, dtype="<i4"))
            with pytest.raises(DataLossError, match="expected 48"):
                bound().decode(encoded)

    def test_elements_of_another_type_are_data_loss() -> None:
        with pytest.raises(DataLossError, match="corrupt pcodec data"):
            bound().decode(PCodec().encode(np.arange(12, dtype="<f4")))
