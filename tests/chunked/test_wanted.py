"""Parts of chunks that are stored as they are: no more is fetched than is wanted."""

from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._interface.byte_range import WHOLE
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError, NotFoundError
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.kvstores.memory import MemoryStore
from tests.chunked.stores import counting, created, opened

SHAPE = (8, 24, 6)
VALUES = np.arange(np.prod(SHAPE), dtype="uint16").reshape(SHAPE) + 1
BIG = [{"name": "bytes", "configuration": {"endian": "big"}}]


@pytest.fixture(params=["memory", "file"])
def base(request, tmp_path):
    if request.param == "memory":
        return {"driver": "memory"}
    return {"driver": "file", "path": f"{tmp_path}/"}


@pytest.fixture
def fetched(monkeypatch):
    """How many bytes were asked for of each chunk, by parts and as a whole."""
    found: list[list[int] | str] = []
    for kind in (MemoryStore, FileStore):
        read_parts, read = kind.read_parts, kind.read

        async def noted_parts(self, key, ranges, size, read_parts=read_parts):
            values = await read_parts(self, key, ranges, size)
            if values is not None and values[0] is not None:
                found.append([len(value) for value in values])
            return values

        async def noted(self, key, byte_range=WHOLE, read=read, **named):
            if not key.endswith("json"):
                found.append("whole")
            return await read(self, key, byte_range, **named)

        monkeypatch.setattr(kind, "read_parts", noted_parts)
        monkeypatch.setattr(kind, "read", noted)
    return found


def made(base, codecs=("bytes",), chunks=(8, 8, 6), dtype="uint16", **options):
    array = ts.open(
        {"driver": "zarr3", "kvstore": base, "metadata": {"codecs": list(codecs)}},
        create=True, dtype=dtype, shape=SHAPE, chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
        **options,
    ).result()  # fmt: skip
    array.write(VALUES.astype(dtype)).result()
    return array


@pytest.mark.parametrize("codecs", [["bytes"], BIG], ids=["native", "swapped"])
def test_a_plane_is_fetched_alone(base, fetched, codecs):
    array = made(base, codecs)
    np.testing.assert_array_equal(array[3].read().result(), VALUES[3])
    assert fetched == [[96]] * 3


def test_a_few_planes_are_fetched_in_one_piece(base, fetched):
    array = made(base)
    np.testing.assert_array_equal(array[2:5, 4:12, 1].read().result(), VALUES[2:5, 4:12, 1])
    assert fetched == [[3 * 96], [3 * 96]]


def test_most_of_a_chunk_is_fetched_as_a_whole(base, fetched):
    array = made(base)
    np.testing.assert_array_equal(array[1:6, 3, :2].read().result(), VALUES[1:6, 3, :2])
    assert fetched == ["whole"]


def test_what_several_want_is_fetched_in_pieces(fetched):
    array = made({"driver": "memory"})
    driver = array._driver
    boxes: list[Any] = [
        (5, 1),
        (slice(1, 2), slice(2, 4)),
        (slice(2, 3), 5, slice(0, 2)),
        (5, 0, 0),
    ]
    reads = [driver.reading(array[box]._get_transform(), "C") for box in boxes]
    for box, read in zip(boxes, reads, strict=True):
        np.testing.assert_array_equal(start(True, read).result(), VALUES[box])
    assert fetched == [[2 * 96, 96]]


@pytest.mark.parametrize("dtype", ["int8", "bool", "float32", "complex64", "bfloat16", "U3"])
def test_types(base, dtype):
    values = VALUES.astype("U3" if dtype == "U3" else "float32")
    if dtype == "U3":
        array = ts.open(
            {"driver": "zarr", "kvstore": base, "metadata": {"compressor": None, "dtype": "<U3"}},
            create=True, shape=SHAPE, chunk_layout=ts.ChunkLayout(chunk_shape=(8, 8, 6)),
        ).result()  # fmt: skip
    else:
        array = made(base, dtype="float32" if dtype == "bfloat16" else dtype)
        values = VALUES.astype(dtype if dtype != "bfloat16" else "float32")
    array.write(values).result()
    for box in [(2,), (slice(3, 5), 7), (7, slice(None), 5)]:
        np.testing.assert_array_equal(array[box].read().result(), values[box])


@pytest.mark.parametrize("codecs", [["bytes", "zstd"], ["bytes", "crc32c"], ["transpose"]])
def test_what_is_encoded_further_is_fetched_as_a_whole(base, fetched, codecs):
    if codecs == ["transpose"]:
        codecs = [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}, "bytes"]
    array = made(base, codecs)
    np.testing.assert_array_equal(array[3, 2].read().result(), VALUES[3, 2])
    assert fetched in (["whole"], [])
    assert fetched or base["driver"] == "file"


def test_a_missing_chunk_reads_as_fill_values(base, fetched):
    array = made(base)
    array[:, 8:16] = 0
    fetched.clear()
    assert array[3, 6:18, 0].read().result().tolist() == [
        0 if 8 <= at < 16 else VALUES[3, at, 0] for at in range(6, 18)
    ]
    strict = ts.open(
        {"driver": "zarr3", "kvstore": base, "fill_missing_data_reads": False}
    ).result() if base["driver"] == "file" else None  # fmt: skip
    if strict is not None:
        with pytest.raises(NotFoundError, match="c/0/1/0"):
            strict[3, 9].read().result()


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x"])
def test_a_chunk_of_another_size_is_corrupt_wherever_it_is_read(tmp_path, change):
    base = {"driver": "file", "path": f"{tmp_path}/"}
    array = made(base)
    path = tmp_path / "c/0/0/0"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataLossError, match="c/0/0/0"):
        array[0, 0].read().result()


def test_a_stored_boolean_that_is_none_is_corrupt(tmp_path):
    base = {"driver": "file", "path": f"{tmp_path}/"}
    array = made(base, dtype="bool")
    path = tmp_path / "c/0/0/0"
    path.write_bytes(b"\x02" + path.read_bytes()[1:])
    with pytest.raises(DataLossError, match="c/0/0/0"):
        array[0, 0].read().result()
    assert array[1, 0].read().result().all()


def test_a_store_that_cannot_tell_is_read_as_a_whole():
    store = counting()
    created(store, [8, 4], [8, 4], members={"metadata": {"codecs": ["bytes"]}}).write(
        np.arange(32, dtype="uint8").reshape(8, 4)
    ).result()
    array = opened(store)
    store.reset()
    assert array[3].read().result().tolist() == [12, 13, 14, 15]
    assert store.reads == {"a/c/0/0": 1}
