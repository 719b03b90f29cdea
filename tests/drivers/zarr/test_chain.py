import json
from typing import Literal

import numpy as np
import pytest

from tensorstore_py.drivers.zarr.chain import bound_chain, inner_order
from tensorstore_py.drivers.zarr.fill_value import field_fill_value
from tensorstore_py.drivers.zarr.metadata import ZarrMetadata
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import CodecChain

DOCUMENT: dict[str, object] = {
    "zarr_format": 2,
    "shape": [4, 6],
    "chunks": [2, 3],
    "dtype": ">i2",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": None,
}
VALUES = np.arange(6, dtype="i2").reshape(2, 3)
SHUFFLE = {"id": "shuffle", "elementsize": 2}
ZLIB = {"id": "zlib", "level": 1}


def chain(*, run_code: bool = False, field: str | None = None, **members: object) -> CodecChain:
    metadata = ZarrMetadata.read(json.dumps({**DOCUMENT, **members}).encode())
    view = metadata.stored_view(field)
    fill = field_fill_value(view, metadata.fill_value.data)
    return bound_chain(metadata, view, fill, run_code=run_code)


def round_trip(bound: CodecChain, values: np.ndarray) -> bytes:
    data = bytes(bound.encode(values))
    for found in (bound.decode(data), bound.decode_scratch(data)):
        assert found.tolist() == values.tolist()
    out = np.empty(values.shape, values.dtype)
    bound.decode_into(data, out)
    assert out.tolist() == values.tolist()
    return data


@pytest.mark.parametrize("order", ["C", "F"])
def test_filters_see_elements_in_the_order_and_byte_order_of_the_document(
    order: Literal["C", "F"],
) -> None:
    data = round_trip(chain(order=order, filters=[SHUFFLE]), VALUES)

    stored = VALUES.astype(">i2").tobytes(order)
    assert data == stored[::2] + stored[1::2]


def test_filters_come_before_the_compressor() -> None:
    bound = chain(filters=[{"id": "delta", "dtype": ">i2"}, SHUFFLE], compressor=ZLIB)

    round_trip(bound, VALUES)
    assert [type(each).__name__ for each in bound.compressors] == [
        "FilteredElements",
        "Shuffle",
        "StreamCodec",
    ]
    assert bound.sizes == (12, 12, 12)


def test_a_compressor_learns_the_size_of_the_elements_that_reach_it() -> None:
    # blosc writes the element size that it shuffled by at position 3 of its header
    blosc = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    scale = {"id": "fixedscaleoffset", "scale": 1, "offset": 0, "dtype": "<f8", "astype": "<i4"}
    floats = VALUES.astype("f8")

    assert bytes(chain(compressor=blosc).encode(VALUES))[3] == 2
    narrow = chain(dtype="<f8", fill_value=None, filters=[scale], compressor=blosc)
    assert bytes(narrow.encode(floats))[3] == 4
    summed = chain(filters=[{"id": "crc32"}], compressor=blosc)
    assert bytes(summed.encode(VALUES))[3] == 1


def test_one_field_is_written_through_filters_that_see_all() -> None:
    dtype = [["x", "<i2"], ["y", "<u4"]]
    bound = chain(field="y", dtype=dtype, fill_value=None, filters=[{"id": "fletcher32"}, ZLIB])
    stored = np.zeros((2, 3), [("x", "<i2"), ("y", "<u4")])
    stored["x"] = VALUES
    before = bytes(bound.compressors[1].encode(bound.compressors[0].encode(stored.tobytes())))

    data = bound.encode_over(VALUES.astype("u4") * 9, before, keep_fill=False)

    assert data is not None
    stored["y"] = VALUES * 9
    whole = bound.compressors[0].decode(bound.compressors[1].decode(data))
    assert bytes(whole) == stored.tobytes()


def test_objects_are_stored_by_the_first_filter_that_can() -> None:
    texts = np.array([["a", "", "b"], ["c", "dd", "e"]], object)
    label = {"id": "categorize", "labels": ["a", "b", "c", "dd", "e"], "dtype": "|O"}
    for members in (
        {"filters": [{"id": "vlen-utf8"}, ZLIB]},
        {"filters": [{"id": "vlen-utf8"}], "order": "F"},
        {"filters": None, "compressor": {"id": "vlen-utf8"}},
        {"filters": [label, {"id": "delta", "dtype": "|u1"}], "compressor": ZLIB},
        {"filters": [{**label, "astype": ">u2"}], "order": "F"},
    ):
        bound = chain(dtype="|O", fill_value="", **members)
        round_trip(bound, texts)


def test_numbers_behind_a_filter_of_objects_keep_their_byte_order() -> None:
    label = {"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": ">u2"}
    bound = chain(dtype="|O", chunks=[1, 2], fill_value="", filters=[label])

    assert bytes(bound.encode(np.array([["a", "b"]], object))) == b"\0\1\0\0"


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"filters": [{"id": "bitround", "keepbits": 3}]}, r"^filters\[0\]: expected floating"),
        (
            {"filters": [SHUFFLE, {"id": "delta", "dtype": "<i8"}]},
            r"^filters\[1\]: expected chunks of int64 elements, but 12 bytes",
        ),
        ({"compressor": {"id": "vlen-utf8"}}, r'^compressor: codec "vlen-utf8" stores strings'),
        (
            {"filters": [ZLIB, {"id": "delta", "dtype": "|u1"}]},
            r'^filters\[1\]: codec "delta" takes elements, but stands behind one',
        ),
        (
            {"filters": [ZLIB], "compressor": {"id": "json2"}},
            r'^compressor: codec "json2" takes elements, but stands behind one',
        ),
        ({"dtype": "|O", "fill_value": None}, r'^filters: Python objects \("\|O"\) need a codec'),
        (
            {"dtype": "|O", "fill_value": None, "filters": [ZLIB, {"id": "vlen-utf8"}]},
            r'^filters\[0\]: codec "zlib" takes bytes, but the elements are Python objects',
        ),
        (
            {"dtype": "|O", "fill_value": None, "filters": [{"id": "delta", "dtype": "<i4"}]},
            r"^filters\[0\]: expected chunks of int32 elements, but they are Python objects",
        ),
    ],
)
def test_codecs_that_do_not_fit_are_named_with_their_place(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        chain(**members)


def test_what_runs_code_is_bound_only_if_that_is_allowed() -> None:
    members: dict = {"dtype": "|O", "fill_value": None, "filters": [{"id": "pickle"}]}

    with pytest.raises(UnsupportedError, match=r'^filters\[0\]: .*"allow_pickle": true'):
        chain(**members)
    round_trip(chain(**members, run_code=True), np.array([[1, "a", None]] * 2, object))
    with pytest.raises(UnsupportedError, match=r'^compressor: .*"allow_pickle": true'):
        chain(compressor={"id": "pickle"})


def test_a_library_that_is_missing_is_named_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pcodec", None)
    __import__("importlib").import_module(
        "tensorstore_py.codecs.pcodec_zfpy"
    )._library.cache_clear()

    with pytest.raises(UnsupportedError, match=r"^filters\[0\]: .*tensorstore-py\[codecs\]"):
        chain(dtype="<i2", filters=[{"id": "pcodec"}])


def test_bombs_are_stopped_at_every_place() -> None:
    bound = chain(filters=[SHUFFLE, ZLIB, {"id": "crc32"}], compressor=None)
    _, zlib, crc32 = bound.compressors
    bomb = crc32.encode(zlib.encode(bytes(1 << 20)))

    with pytest.raises(DataLossError, match="more than 12 bytes"):
        bound.decode(bomb)


def test_inner_dimensions_are_always_innermost() -> None:
    assert inner_order("C", 2, 1) == (0, 1, 2)
    assert inner_order("F", 2, 1) == (1, 0, 2)
