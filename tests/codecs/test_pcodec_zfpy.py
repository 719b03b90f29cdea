import sys
from importlib.util import find_spec

import numcodecs
import numpy as np
import pytest

from tensorstore_py.codecs import pcodec_zfpy
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.testing.codecs import CodecSuite, chunk_type
from tests.codecs.bound import bound

INTEGERS = chunk_type((3, 4), "<i4")
FLOATS = chunk_type((5, 6), "<f4")


@pytest.mark.parametrize(("name", "chunk"), [("pcodec", INTEGERS), ("zfpy", FLOATS)])
def test_without_the_library_the_extra_is_named(
    name: str, chunk, monkeypatch: pytest.MonkeyPatch
) -> None:
    pcodec_zfpy._library.cache_clear()
    monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(UnsupportedError, match=r"tensorstore-py\[codecs\]"):
        bound("zarr", name, chunk)


@pytest.mark.parametrize(
    ("name", "members", "shape", "dtype", "problem"),
    [
        ("pcodec", {"level": 13}, (3,), "<i4", r"^level: "),
        ("pcodec", {"mode_spec": "fast"}, (3,), "<i4", r"^mode_spec"),
        ("pcodec", {"delta_encoding_order": 8}, (3,), "<i4", r"^delta_encoding_order: "),
        ("pcodec", {"delta_encoding_order": 1, "delta_spec": "none"}, (3,), "<i4", r"^delta.*only"),
        ("pcodec", {}, (3,), "<c8", "pcodec stores elements of .*, not <c8"),
        ("pcodec", {}, (3,), ">i4", "pcodec stores elements of .*, not >i4"),
        ("pcodec", {}, (3,), "|b1", "pcodec stores elements of"),
        ("zfpy", {"mode": 1}, (3,), "<f4", r"^mode: "),
        ("zfpy", {"tolerance": "x"}, (3,), "<f4", r"^tolerance"),
        ("zfpy", {}, (3,), "<i2", "zfpy stores elements of .*, not <i2"),
        ("zfpy", {}, (3,), ">f4", "zfpy stores elements of .*, not >f4"),
        ("zfpy", {}, (1,) * 5, "<f4", "chunks of 1 to 4 dimensions, not 5"),
        ("zfpy", {}, (), "<f4", "chunks of 1 to 4 dimensions, not 0"),
    ],
)
def test_what_is_not_possible_is_named(
    name: str, members: dict, shape: tuple[int, ...], dtype: str, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        bound("zarr", name, chunk_type(shape, dtype), **members)


if find_spec("pcodec"):

    class TestPcodec(CodecSuite):
        family = "zarr"
        configurations = ({"id": "pcodec"}, {"id": "pcodec", "level": 0, "delta_spec": "none"})
        dtypes = tuple(np.dtype(text) for text in pcodec_zfpy._PCODEC_TYPES)
        # What stands behind the end is not looked at.
        detects_truncation = False

    def test_truncated_data_is_data_loss() -> None:
        codec = bound("zarr", "pcodec", INTEGERS)
        encoded = bytes(codec.encode(np.arange(12, dtype="<i4").reshape(3, 4)))

        for stop in range(len(encoded)):
            with pytest.raises(DataLossError):
                codec.decode(encoded[:stop])

    def test_another_number_or_type_of_elements_is_data_loss() -> None:
        theirs = numcodecs.get_codec({"id": "pcodec"})
        codec = bound("zarr", "pcodec", INTEGERS)
        for count in (11, 13, 100_000):
            with pytest.raises(DataLossError, match="expected 48"):
                codec.decode(theirs.encode(np.arange(count, dtype="<i4")))
        with pytest.raises(DataLossError, match="corrupt pcodec data"):
            codec.decode(theirs.encode(np.arange(12, dtype="<f4")))


if find_spec("zfpy"):

    class TestZfpy(CodecSuite):
        family = "zarr"
        configurations = ({"id": "zfpy"},)
        shapes = ((1,), (7,), (1, 5, 1), (4, 6), (2, 3, 4, 5))
        dtypes = tuple(np.dtype(text) for text in pcodec_zfpy._ZFPY_TYPES)
        # The library stops where it has what it wants, and invents what is missing.
        detects_truncation = False

    @pytest.mark.parametrize(
        "other",
        [np.zeros((5, 7), "<f4"), np.zeros((5, 6), "<i4"), np.zeros((500, 600), "<f4")],
    )
    def test_another_shape_or_type_is_data_loss(other: np.ndarray) -> None:
        with pytest.raises(DataLossError, match="zfpy: the data holds"):
            bound("zarr", "zfpy", FLOATS).decode(numcodecs.get_codec({"id": "zfpy"}).encode(other))

    @pytest.mark.parametrize("data", [b"", b"zfp", b"no zfp data at all, but long enough"])
    def test_what_has_no_header_is_data_loss(data: bytes) -> None:
        with pytest.raises(DataLossError, match="zfpy"):
            bound("zarr", "zfpy", FLOATS).decode(data)
