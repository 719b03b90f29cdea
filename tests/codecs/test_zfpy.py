import sys
from importlib.util import find_spec

import numpy as np
import pytest

from tensorstore_py.codecs import zfpy
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type

CHUNK = chunk_type((5, 6), "<f4")
VALUES = np.random.default_rng(0).normal(size=(5, 6)).astype("<f4")


def bound(members: dict | None = None, chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "zfpy", **(members or {})}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    zfpy._library.cache_clear()
    monkeypatch.setitem(sys.modules, "zfpy", None)

    with pytest.raises(UnsupportedError, match=r"tensorstore-py\[codecs\]"):
        bound()


@pytest.mark.parametrize(
    ("members", "chunk", "problem"),
    [
        ({"mode": 1}, CHUNK, r"^mode: "),
        ({"tolerance": "x"}, CHUNK, r"^tolerance"),
        ({}, chunk_type((3,), "<i2"), "zfpy stores elements of .*, not <i2"),
        ({}, chunk_type((3,), ">f4"), "zfpy stores elements of .*, not >f4"),
        ({}, chunk_type((1,) * 5, "<f4"), "chunks of 1 to 4 dimensions, not 5"),
        ({}, chunk_type((), "<f4"), "chunks of 1 to 4 dimensions, not 0"),
    ],
)
def test_what_is_not_possible_is_named(members: dict, chunk: ChunkType, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound(members, chunk)


if find_spec("zfpy"):
    from numcodecs.zfpy import ZFPY

    class TestZfpy(CodecSuite):
        family = "zarr"
        configurations = ({"id": "zfpy"},)
        shapes = ((1,), (7,), (1, 5, 1), (4, 6), (2, 3, 4, 5))
        dtypes = tuple(np.dtype(text) for text in zfpy._TYPES)
        # The library stops where it has what it wants, and invents what is missing.
        detects_truncation = False

    @pytest.mark.parametrize(
        "members",
        [
            {},
            {"mode": 4, "tolerance": 0.01},
            {"mode": 3, "precision": 12},
            {"mode": 2, "rate": 8},
        ],
    )
    def test_other_implementations_read_and_write_the_same(members: dict) -> None:
        encoded = bound(members).encode(VALUES)

        assert encoded == ZFPY(**members).encode(VALUES)
        assert bound().decode(encoded).tolist() == ZFPY().decode(encoded).tolist()

    def test_what_other_implementations_print_is_read() -> None:
        assert bound(ZFPY(tolerance=0.5).get_config()).encode(VALUES) == ZFPY(tolerance=0.5).encode(
            VALUES
        )

    @pytest.mark.parametrize(
        "other",
        [np.zeros((5, 7), "<f4"), np.zeros((5, 6), "<i4"), np.zeros((500, 600), "<f4")],
    )
    def test_another_shape_or_type_is_data_loss(other: np.ndarray) -> None:
        with pytest.raises(DataLossError, match="zfpy: the data holds"):
            bound().decode(ZFPY().encode(other))

    @pytest.mark.parametrize("data", [b"", b"zfp", b"no zfp data at all, but long enough"])
    def test_what_has_no_header_is_data_loss(data: bytes) -> None:
        with pytest.raises(DataLossError, match="zfpy"):
            bound().decode(data)
