"""What describes arrays and groups."""

import asyncio

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


class TestDescribe:
    def test_shape_type_bytes_chunks_shards_and_codecs(self, volume):
        page = Page(volume._repr_html_())

        assert "Driver zarr3" in page.text
        assert "Data type uint16" in page.text
        for word in ("100 × 200 × 300", "50 × 100 × 100", "10 × 10 × 10", "11.4 MiB", "2.0 KiB",
                     "zstd", "6,000", "12", "4 nm, none, um", "read, write", "Spec"):  # fmt: skip
            assert word in page.text, word
        assert page.elements.count("svg") == 1

    def test_the_short_text(self, volume):
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

    def test_nothing_is_asked(self, volume):
        store = counts(volume)
        views = [volume, volume[5:, 3], volume.astype("float32"), volume.oindex[[1, 5, 7]]]
        for shown in (
            *views,
            volume.kvstore,
            volume.attrs,
            volume.schema,
            volume.spec(),
            volume.codec,
        ):
            Page(shown._repr_html_())
            repr(shown)
        repr(volume.info)

        assert asked(store) == 0
        volume.attrs.asdict()
        assert asked(store) == 1

    @pytest.mark.parametrize("rank", [0, 1, 2, 3, 4, 31, 32])
    def test_every_rank(self, rank):
        store = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[2] * rank).result()

        assert Page(store._repr_html_()).size < 20_000
        assert "Bytes" in repr(store.info)

    def test_however_many_chunks_there_are(self):
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
            lambda: ts.virtual_chunked(
                lambda *_: None, dtype="int8", domain=ts.IndexDomain(rank=2)
            ),
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
    def test_arrays_of_every_kind(self, make):
        store = make()
        page = Page(store._repr_html_())

        assert page.size < 40_000
        assert "TensorStore" in repr(store.info)

    def test_a_closed_array_says_so(self):
        store = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[2]).result()
        store.close()

        assert "Closed" in Page(store._repr_html_()).text

    def test_in_a_transaction(self):
        store = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[2]).result()
        staged = store.with_transaction(ts.Transaction())

        assert "staged" in Page(staged._repr_html_()).text
        assert staged.kvstore is not None
        assert "staged" in Page(staged.kvstore._repr_html_()).text

    def test_statistics(self):
        found = ts.TensorStore.StorageStatistics(not_stored=True)

        assert Page(found._repr_html_()).text.split() == (
            ["StorageStatistics", "Not", "stored", "yes", "Fully", "stored", "not", "asked"]
        )

    def test_hostile_names_are_text(self):
        store = ts.open(
            {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"{HOSTILE}/"}},
            create=True,
            dtype="int8",
            domain=ts.IndexDomain(shape=[5], labels=[HOSTILE]),
            dimension_units=[(1, HOSTILE)],
        ).result()
        page = Page(store._repr_html_())

        assert page.text.count("<script>") >= 3

    def test_a_relative_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": "near/"}}
        array = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()

        assert array.info["Place"] == "file near/"
        assert "file near/" in array._repr_html_()
        assert array.kvstore is not None
        assert "file near/" in array.kvstore._repr_html_()
        assert "file near/" in array.spec()._repr_html_()


@pytest.fixture(params=[2, 3])
def root(request):
    attributes = {"title": HOSTILE, HOSTILE: 1, "nested": {"a": ["x" * 50] * 5}}
    root = ts.Group.open(
        WHERE, create=True, zarr_format=request.param, attributes=attributes
    ).result()
    root.create_array("raw/<i>", dtype="int16", shape=[3], attributes={"u": HOSTILE}).result()
    root.create_group("empty").result()
    return root


class TestDescribeGroup:
    def test_what_is_known_is_shown_and_nothing_is_asked(self, root):
        store = counts(root)
        page = Page(root._repr_html_())
        repr(root.info)
        Page(root.attrs._repr_html_())

        assert asked(store) == 0
        assert "Consolidated" in page.text
        assert ".tree()" in page.text
        assert "raw" not in page.text

    def test_consolidated_metadata_tells_it_all(self, root):
        root = root.consolidate().result()
        store = counts(root)
        page = Page(root._repr_html_())
        attributes = Page(root.attrs._repr_html_())
        inner = Page(root["raw/<i>"].attrs._repr_html_())

        assert asked(store) == 0
        assert page.elements.count("details") >= 2
        for word in ("raw", "<i>", "(3,) int16", "empty", "Attributes, 3", HOSTILE):
            assert word in page.text, word
        assert HOSTILE in attributes.text
        assert HOSTILE in inner.text

    def test_what_was_changed_since_is_not_shown(self, root):
        root = root.consolidate().result()
        with pytest.warns(UserWarning, match="out of date"):
            root.create_group("new").result()

        assert ".tree()" in Page(root._repr_html_()).text
        assert "not read" in Page(root.attrs._repr_html_()).text

    def test_the_short_text(self):
        group = ts.Group.open("memory://h/", path="a/b", create=True).result()

        assert repr(group.info) == (
            "Type         : Group\n"
            "Path         : /a/b\n"
            "Place        : memory://h/a/b/\n"
            "Format       : Zarr, version 3\n"
            "Consolidated : no"
        )

    def test_a_tree_is_shown_and_not_the_future_of_one(self, root):
        class Printer:
            def __init__(self):
                self.printed = ""

            def text(self, text):
                self.printed += text

        root.tree()._repr_pretty_(printer := Printer(), cycle=False)
        page = Page(root.tree()._repr_html_())

        assert printer.printed == str(root.tree().result())
        assert "<i> (3,) int16" in printer.printed
        assert "<i>" in page.text
        assert "pending" not in page.text

    def test_a_future_of_a_tree_is_a_future(self, root):
        async def wait():
            return await root.tree()

        future = root.tree()
        assert isinstance(future, ts.Future)
        assert str(asyncio.run(wait())) == str(future.result())
        assert future.done()
        assert future.exception() is None
        cancelled = root.tree()
        assert cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            cancelled.result()

    def test_a_tree_that_cannot_be_had_says_why(self):
        group = ts.Group.open("memory://", create=True).result()
        group.close()
        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            group.tree()
        assert "Closed" in Page(group._repr_html_()).text

    def test_a_large_tree(self):
        root = ts.Group.open("memory://", create=True).result()
        for name in range(1500):
            root.kvstore[f"g{name:04}/zarr.json"] = '{"zarr_format": 3, "node_type": "group"}'
        page = Page(root.tree()._repr_html_())
        known = Page(root.consolidate().result()._repr_html_())

        for each in (page, known):
            assert each.size < 50_000
            assert "1,400 more" in each.text

    def test_zarr_faces_show_the_same(self, root):
        root = root.consolidate().result()
        face = ts.zarr.open(root.kvstore)
        array = face["raw/<i>"]
        store = counts(face.ts)
        group_page, array_page = Page(face._repr_html_()), Page(array._repr_html_())

        assert asked(store) == 0
        assert "(3,) int16" in group_page.text
        assert "zarr.Array" in array_page.text
        assert "svg" in array_page.elements
        assert "int16" in Page(array.info._repr_html_()).text
