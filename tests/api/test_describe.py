"""What notebooks and `info` show of arrays, and that nothing is asked for it."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.api.counted_memory import asked, counts
from tests.display.pages import Page

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>"
WHERE = {"driver": "counted_memory", "path": "h/"}


@pytest.fixture
def volume():
    root = ts.Group.open(WHERE, create=True, attributes={"a": HOSTILE}).result()
    return root.create_array(
        "volume",
        dtype="uint16",
        domain=ts.IndexDomain(shape=[100, 200, 300], labels=["z", "y", "x"]),
        chunk_layout=ts.ChunkLayout(
            read_chunk_shape=[10, 10, 10], write_chunk_shape=[50, 100, 100]
        ),
        codec="zstd",
        dimension_units=["4nm", None, "1um"],
    ).result()


def test_shape_type_bytes_chunks_shards_and_codecs(volume):
    page = Page(volume._repr_html_())

    assert "Driver zarr3" in page.text
    assert "Data type uint16" in page.text
    for word in ("100 × 200 × 300", "50 × 100 × 100", "10 × 10 × 10", "11.4 MiB", "2.0 KiB", "zstd",
                 "6,000", "12", "4 nm, none, um", "read, write", "Spec"):  # fmt: skip
        assert word in page.text, word
    assert page.elements.count("svg") == 1


def test_the_short_text(volume):
    assert repr(volume[:50, 3].info) == (
        "Type        : TensorStore, zarr3\n"
        "Place       : counted_memory h/volume/\n"
        "Data type   : uint16\n"
        "Shape       : 50 × 300\n"
        "Shard shape : 50 × 100\n"
        "Chunk shape : 10 × 10\n"
        "Bytes       : 29.3 KiB (30,000)\n"
        "Shards      : 3\n"
        "Chunks      : 150\n"
        'Domain      : { "z": [0, 50), "x": [0, 300*) }\n'
        "Codecs      : sharding_indexed (bytes (endian little), zstd (level 3))\n"
        "Fill value  : 0\n"
        "Units       : 4 nm, um\n"
        "Mode        : read, write"
    )


def test_nothing_is_asked(volume):
    store = counts(volume)
    views = [volume, volume[5:, 3], volume.astype("float32"), volume.oindex[[1, 5, 7]]]
    for shown in (*views, volume.kvstore, volume.attrs, volume.schema, volume.spec(), volume.codec):
        Page(shown._repr_html_())
        repr(shown)
    repr(volume.info)

    assert asked(store) == 0
    volume.attrs.asdict()
    assert asked(store) == 1


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4, 31, 32])
def test_every_rank(rank):
    store = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[2] * rank).result()

    assert Page(store._repr_html_()).size < 20_000
    assert "Bytes" in repr(store.info)


def test_however_many_chunks_there_are():
    store = ts.open(
        "memory://|zarr3:",
        create=True,
        dtype="int8",
        shape=[2**20, 2**21, 2**10],
        chunk_layout=ts.ChunkLayout(chunk_shape=[16, 16, 16]),
    ).result()
    page = Page(store._repr_html_())

    assert page.size < 20_000
    assert "549,755,813,888" in page.text  # chunks
    assert "2.0 PiB" in page.text


@pytest.mark.parametrize(
    "make",
    [
        lambda: ts.array(5),
        lambda: ts.array(np.zeros(10**6)),
        lambda: ts.array(["<b>", "x"], dtype="ustring"),
        lambda: ts.array([{"a": HOSTILE}], dtype="json"),
        lambda: ts.cast(ts.array([1, 2]), "float32"),
        lambda: ts.downsample(ts.array([1, 2, 3, 4]), [2], "mean"),
        lambda: ts.stack([ts.array([1, 2])] * 3),
        lambda: ts.virtual_chunked(lambda *_: None, dtype="int8", rank=2),
        lambda: ts.virtual_chunked(lambda *_: None, dtype="int8", domain=ts.IndexDomain(rank=2)),
        lambda: ts.array(np.zeros((0, 5))),
        lambda: ts.array(np.zeros((3, 3))).oindex[[0, 2], [1, 1]],
        lambda: ts.array(np.zeros((3, 3)))[::-1].translate_to[-7, 9],
        lambda: ts.open("memory://|zarr3:", create=True, shape=[9], dtype="string").result(),
        lambda: ts.open(
            {
                "driver": "zarr3",
                "kvstore": "memory://",
                "metadata": {
                    "shape": [60],
                    "chunk_grid": {
                        "name": "rectilinear",
                        "configuration": {"kind": "inline", "chunk_shapes": [[10, 20, 30]]},
                    },
                },
            },
            create=True,
            dtype="int8",
        ).result(),
        lambda: ts.open(
            {"driver": "zarr", "kvstore": "memory://", "metadata": {"dtype": [["<x>", "<i2"]]}},
            create=True,
            shape=[3],
        ).result(),
        lambda: ts.open("memory://|n5:", create=True, dtype="uint8", shape=[30, 40]).result(),
    ],
)
def test_arrays_of_every_kind(make):
    store = make()
    page = Page(store._repr_html_())

    assert page.size < 40_000
    assert "TensorStore" in repr(store.info)


def test_a_closed_array_says_so():
    store = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[2]).result()
    store.close()

    assert "Closed" in Page(store._repr_html_()).text


def test_in_a_transaction():
    store = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[2]).result()
    staged = store.with_transaction(ts.Transaction())

    assert "staged" in Page(staged._repr_html_()).text
    assert staged.kvstore is not None
    assert "staged" in Page(staged.kvstore._repr_html_()).text


def test_statistics():
    found = ts.TensorStore.StorageStatistics(not_stored=True)

    assert Page(found._repr_html_()).text.split() == (
        ["StorageStatistics", "Not", "stored", "yes", "Fully", "stored", "not", "asked"]
    )


def test_hostile_names_are_text():
    store = ts.open(
        {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"{HOSTILE}/"}},
        create=True,
        dtype="int8",
        domain=ts.IndexDomain(shape=[5], labels=[HOSTILE]),
        dimension_units=[(1, HOSTILE)],
    ).result()
    page = Page(store._repr_html_())

    assert page.text.count("<script>") >= 3


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": "near/"}}
    array = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()

    assert array.info["Place"] == "file near/"
    assert "file near/" in array._repr_html_()
    assert array.kvstore is not None
    assert "file near/" in array.kvstore._repr_html_()
    assert "file near/" in array.spec()._repr_html_()
