"""Arrays on rectilinear grids by the public door: created, changed, resized, reported, refused."""

import json
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py.errors import MismatchError, NotFoundError, SpecError
from tests.chunked.stores import counting, opened, pool
from tests.chunked.views import look_up, views
from tests.drivers.zarr3.test_chunk_grid import CUT, MALFORMED, expanded, rectilinear
from tests.runtime.processes import run_inline

SIZES = ([2, 3, [4, 2]], 5, [[1, 3], 7])
SHAPE = [13, 11, 10]
VALUES = np.arange(1, 13 * 11 * 10 + 1, dtype="int32").reshape(SHAPE)


def shards(*sizes: int) -> list[object]:
    return [{"name": "sharding_indexed", "configuration": {"chunk_shape": list(sizes)}}]


def members(*sizes, shape=SHAPE, data_type="int32", **metadata):
    return {
        "metadata": {
            "shape": list(shape),
            "data_type": data_type,
            "chunk_grid": rectilinear(*(sizes or SIZES)),
            **metadata,
        }
    }


def made(store, *sizes, context=None, shape=SHAPE, **metadata):
    options = {} if context is None else {"context": context}
    return opened(store, members=members(*sizes, shape=shape, **metadata), create=True, **options)


def document(store):
    return json.loads(bytes(run_inline(store.read("a/zarr.json")).value))


def replaced(store, **metadata):
    """Another program has changed the document."""
    run_inline(store.write("a/zarr.json", json.dumps({**document(store), **metadata}).encode()))


def chunk_keys(array):
    return sorted(key.decode() for key in array.kvstore.list().result() if key != b"zarr.json")


@pytest.fixture
def store():
    return counting()


class TestCreating:
    def test_the_document_says_what_was_asked(self, store):
        made(store)
        assert document(store)["chunk_grid"] == rectilinear(*SIZES)

    def test_an_even_layout_makes_a_regular_grid(self, store):
        layout = ts.ChunkLayout(write_chunk_shape=[4, 5])
        opened(store, create=True, dtype="int8", shape=[8, 10], chunk_layout=layout)
        assert document(store)["chunk_grid"]["name"] == "regular"

    def test_a_rectilinear_grid_of_one_size_stays_one(self, store):
        array = made(store, 5, [[4, 3]], 7)
        assert document(store)["chunk_grid"] == rectilinear(5, [[4, 3]], 7)
        assert array.chunk_layout.write_chunk.shape == (5, 4, 7)
        assert array.codec.to_json()["codecs"][0]["name"] == "bytes"

    def test_the_shape_may_come_from_the_schema(self, store):
        grid = {"metadata": {"chunk_grid": rectilinear([2, 3])}}
        array = opened(store, members=grid, create=True, dtype="int8", shape=[4])
        assert array.shape == (4,)

    def test_chunks_that_do_not_reach_the_end_are_refused(self, store):
        with pytest.raises(SpecError, match=r"metadata.*chunk_shapes\[1\].* 5 elements in all.*11"):
            made(store, 4, [2, 3], 10)
        grid = {"metadata": {"chunk_grid": rectilinear([2, 3])}}
        with pytest.raises(SpecError, match=r"chunk_shapes\[0\].* 5 elements in all"):
            opened(store, members=grid, create=True, dtype="int8", shape=[9])
        assert run_inline(store.read("a/zarr.json")).state == "missing"

    def test_sizes_asked_for_where_there_is_not_one(self, store):
        for kind in ("write_chunk", "read_chunk"):
            layout = ts.ChunkLayout({kind: {"shape": [4, 0, 0]}})
            with pytest.raises(MismatchError, match=f"{kind}: chunks of 4 .* dimension 0"):
                opened(store, members=members(codecs=["bytes"]), create=True, chunk_layout=layout)

    def test_sizes_asked_for_where_there_is_one(self, store):
        layout = ts.ChunkLayout(write_chunk_shape=[0, 5, 0], chunk_shape_soft_constraint=[9, 9, 9])
        opened(store, members=members(), create=True, chunk_layout=layout)
        other = ts.ChunkLayout(write_chunk_shape=[0, 4, 0])
        with pytest.raises(MismatchError, match="dimension 1"):
            opened(counting(), members=members(), create=True, chunk_layout=other)

    def test_read_chunks_are_put_into_shards_that_they_divide(self, store):
        layout = ts.ChunkLayout(read_chunk_shape=[5, 10])
        sizes = ([10, 20, 30], 50)
        asked = members(*sizes, shape=[60, 50])
        array = opened(store, members=asked, create=True, chunk_layout=layout)
        assert array.chunk_layout.read_chunk.shape == (5, 10)
        assert array.chunk_layout.write_chunk.shape == (None, 50)
        other = ts.ChunkLayout(read_chunk_shape=[4, 10])
        with pytest.raises(MismatchError, match="dimension 0"):
            opened(counting(), members=asked, create=True, chunk_layout=other)

    def test_shards_of_no_stated_size_hold_the_largest_chunks_that_fit(self, store):
        array = made(store, [10, 20, 30], 50, shape=[60, 50], codecs=["sharding_indexed"])
        assert array.chunk_layout.read_chunk.shape == (10, 50)


class TestOpening:
    def test_another_name_for_the_same_grid(self, store):
        made(store, 5, 6, 7)
        grid = {"name": "regular", "configuration": {"chunk_shape": [5, 6, 7]}}
        assert opened(store, members={"metadata": {"chunk_grid": grid}}).shape == tuple(SHAPE)

    def test_another_way_to_write_the_same_sizes(self, store):
        made(store, [2, 3, 4, 4], 5, 10)
        grid = {"metadata": {"chunk_grid": rectilinear([[2, 1], 3, [4, 2]], 5, 10)}}
        assert opened(store, members=grid).shape == tuple(SHAPE)

    def test_another_grid(self, store):
        made(store)
        for sizes in [([2, 3, 4, 5], *SIZES[1:]), (SIZES[0], [5, 6], SIZES[2])]:
            with pytest.raises(MismatchError, match='"chunk_grid"'):
                opened(store, members={"metadata": {"chunk_grid": rectilinear(*sizes)}})

    def test_a_layout_that_is_not_there(self, store):
        made(store)
        with pytest.raises(MismatchError, match=r"write_chunk: chunks of 4 .* dimension 2"):
            opened(store, chunk_layout=ts.ChunkLayout(write_chunk_shape=[0, 5, 4]))
        assert opened(store, chunk_layout=ts.ChunkLayout(write_chunk_shape=[0, 5, 0])).rank == 3

    @pytest.mark.parametrize(("grid", "path", "said"), MALFORMED)
    def test_malformed_documents(self, store, grid, path, said):
        made(store)
        replaced(store, chunk_grid=grid)
        with pytest.raises(ts.DataLossError) as caught:
            opened(store)
        assert "a/zarr.json" in str(caught.value)
        assert str(SpecError("", ("chunk_grid", *path))).rstrip(": ") in str(caught.value)
        assert said in str(caught.value)

    def test_a_grid_of_another_rank(self, store):
        with pytest.raises(SpecError, match=r"chunk_grid.configuration.chunk_shapes: 2 dimensions"):
            made(store, [13], 11)

    def test_shards_that_do_not_fit(self, store):
        made(store, [10, 20], 6, shape=[30, 6], codecs=shards(5, 3))
        replaced(store, chunk_grid=rectilinear([10, 18, 2], 6))
        with pytest.raises(ts.DataLossError, match=r"codecs\[0\].*does not divide") as caught:
            opened(store)
        assert "a/zarr.json" in str(caught.value)


class TestReadingAndWriting:
    @pytest.mark.parametrize("inline", [True, False], ids=["inline", "loop"])
    @pytest.mark.parametrize("cache", [0, 10**6])
    @pytest.mark.parametrize("codecs", [["bytes", "zstd"], shards(1, 5, 1)], ids=["zstd", "shards"])
    def test_a_round_trip(self, inline, cache, codecs):
        array = made(counting(inline), codecs=codecs, context=pool(cache))
        array.write(VALUES).result()
        expected = VALUES.copy()
        for _ in range(2):
            assert (array.read().result() == expected).all()
            array[3:7, 2, [1, 9, 3]] = 5
            expected[3:7, 2, [1, 9, 3]] = 5
        assert (array[::-1, 1:9:3].read().result() == expected[::-1, 1:9:3]).all()

    def test_chunks_not_stored_read_as_the_fill_value(self, store):
        array = made(store, fill_value=7)
        array[2:5] = 1
        assert chunk_keys(array) == [f"c/1/{y}/{x}" for y in range(3) for x in range(4)]
        assert set(np.unique(array.read().result())) == {1, 7}
        strict = opened(store, members={"fill_missing_data_reads": False})
        with pytest.raises(NotFoundError, match=r"chunk \(0, 0, 0\)"):
            strict.read().result()

    def test_a_chunk_that_becomes_the_fill_value_is_deleted(self, store):
        array = made(store, [2, 3, 4], shape=[9])
        array.write(1).result()
        array[2:5] = 0
        assert chunk_keys(array) == ["c/0", "c/2"]
        array[5:8] = 0
        assert chunk_keys(array) == ["c/0", "c/2"]

    def test_a_truncated_chunk_is_named(self, store):
        array = made(store, [2, 3, 4], shape=[9])
        array.write(1).result()
        run_inline(store.write("a/c/1", bytes(8)))
        with pytest.raises(ts.DataLossError, match="a/c/1"):
            array.read().result()
        assert array[5:].read().result().tolist() == [1] * 4
        array[2:5] = 3
        assert array.read().result().tolist() == [1, 1, 3, 3, 3, 1, 1, 1, 1]

    def test_a_cache_counts_each_chunk_with_its_own_size(self, store):
        context = pool(10**6)
        made(store, [2, 3, 400], shape=[405]).write(1).result()
        array = opened(store, context=context)
        held = []
        for part in (slice(0, 2), slice(2, 5), slice(5, 405)):
            array[part].read().result()
            held.append(context["cache_pool"].value.held_bytes)
        base = held[0] - 8
        assert np.diff([base, *held]).tolist()[1:] == [256 + 12, 256 + 1600]

    def test_statistics(self, store):
        array = made(store, [2, 3, 4], shape=[9])
        array[2:5] = 1
        for part, stored in [((0, 9), (False, False)), ((2, 5), (False, True)),
                             ((5, 9), (True, False))]:  # fmt: skip
            found = array[slice(*part)].storage_statistics(
                query_not_stored=True, query_fully_stored=True
            )
            assert (found.result().not_stored, found.result().fully_stored) == stored

    def test_statistics_of_shards(self, store):
        array = made(store, [2, 4, 6], shape=[12], codecs=shards(2))
        array[2:8] = 1
        query = {"query_not_stored": True, "query_fully_stored": True}
        assert array[2:8].storage_statistics(**query).result().fully_stored
        assert array[8:].storage_statistics(**query).result().not_stored

    @settings(max_examples=settings().max_examples // 2)
    @given(st.lists(CUT, min_size=1, max_size=2), st.booleans(), st.data())
    def test_any_selection_of_any_grid(self, cuts, cached, data):
        most = [20 if isinstance(cut, int) else sum(expanded(cut)) for cut in cuts]
        shape = [data.draw(st.integers(1, min(high, 20))) for high in most]
        context = pool(10**6 if cached else 0)
        array = made(counting(), *cuts, shape=shape, context=context)
        values = np.zeros(shape, "int32")
        where = np.arange(values.size).reshape(shape)
        for number in range(1, 4):
            view = data.draw(views(shape, distinct=True))
            array[view].write(number).result()
            values.reshape(-1)[look_up(where, view).reshape(-1)] = number
            view = data.draw(views(shape))
            np.testing.assert_array_equal(array[view].read().result(), look_up(values, view))
        np.testing.assert_array_equal(array.read().result(), values)


def named(name: str, **configuration: object) -> dict[str, object]:
    return {"name": name, "configuration": configuration}


CHAINS: dict[str, tuple[str, list[object]]] = {
    "reshape": ("int32", [named("reshape", shape=[[0], 3, -1]), "bytes"]),
    "packbits": ("bool", ["packbits"]),
    "text": ("string", ["vlen-utf8", "zstd"]),
    "bitround": ("float32", [named("bitround", keepbits=9), "bytes", "gzip"]),
    "transposed shards": (
        "int16",
        [
            named("transpose", order=[1, 0]),
            named("sharding_indexed", chunk_shape=[3, 2], codecs=["bytes", "crc32c"]),
        ],
    ),
    "nested shards": (
        "int16", [named("sharding_indexed", chunk_shape=[2, 3], codecs=shards(1, 3))],
    ),
    "compressed shards": ("int16", [*shards(2, 3), "gzip"]),
    "blosc": ("int64", ["bytes", "blosc"]),
    "numcodecs": ("int32", [named("numcodecs.delta", dtype="<i4"), "bytes"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_codecs_work_on_chunks_of_each_shape(store, name):
    data_type, codecs = CHAINS[name]
    sizes = ([2, 4, 6], [3, 6])
    array = made(store, *sizes, shape=[12, 9], data_type=data_type, codecs=codecs)
    values = np.arange(1, 109).reshape(12, 9).astype(array.dtype.numpy_dtype)
    if data_type == "string":
        values = np.vectorize(str, otypes=[object])(values)
    array.write(values).result()
    array[3:7, 1:5].write(values[0, 0]).result()
    values[3:7, 1:5] = values[0, 0]
    assert (array.read().result() == values).all()
    assert (array[1:, ::-2].read().result() == values[1:, ::-2]).all()


class TestElements:
    """What is opened of an element has dimensions of its own behind those of the grid."""

    RECORD: ClassVar = {
        "name": "struct",
        "configuration": {
            "fields": [
                {"name": "id", "data_type": "int32"},
                {"name": "place", "data_type": "float32"},
            ]
        },
    }

    @pytest.mark.parametrize("codecs", [["bytes", "zstd"], shards(1)], ids=["zstd", "shards"])
    def test_fields(self, store, codecs):
        record = self.RECORD
        made(store, [2, 3, 4], shape=[9], data_type=record, codecs=codecs)
        for name, values in [("id", np.arange(9)), ("place", np.arange(9) / 2)]:
            field = opened(store, members={"field": name})
            field.write(values.astype(field.dtype.numpy_dtype)).result()
        found = opened(store).read().result()
        assert found["id"].tolist() == list(range(9))
        assert found["place"].tolist() == [number / 2 for number in range(9)]

    def test_bytes_of_elements(self, store):
        made(store, [2, 3, 4], shape=[9], data_type="int32").write(VALUES[0, 0, :9]).result()
        array = opened(store, members={"open_as_void": True})
        assert array.chunk_layout.write_chunk.shape == (None, 4)
        assert (array.read().result().view("int32")[:, 0] == VALUES[0, 0, :9]).all()
        array[3].write(np.array([7, 0, 0, 0], "uint8").view("V1")).result()
        assert opened(store)[3].read().result() == 7
        array.resize(exclusive_max=[10, None]).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 3, 4, 1])


class TestWritesTogether:
    def test_parts_of_one_chunk_are_stored_together(self, store):
        array = made(store, [2, 30, 4], shape=[36])
        with ts.Transaction() as transaction:
            view = array.with_transaction(transaction)
            for position in range(1, 35):
                view[position] = position
            assert view.read().result().tolist() == [0, *range(1, 35), 0]
        assert {key: count for key, count in store.writes.items() if "/c/" in key} == {
            "a/c/0": 1, "a/c/1": 1, "a/c/2": 1,
        }  # fmt: skip
        assert array.read().result().tolist() == [0, *range(1, 35), 0]

    @pytest.mark.parametrize("codecs", [["bytes"], shards(2)], ids=["plain", "sharded"])
    def test_many_writers_of_one_chunk_lose_nothing(self, store, codecs):
        array = made(store, [2, 30, 4], shape=[36], codecs=codecs)
        writes = [array[position].write(position + 1) for position in range(36)]
        for write in writes:
            write.result()
        assert array.read().result().tolist() == list(range(1, 37))

    def test_appending(self, store):
        array = made(store, [2, 3], shape=[5])
        first = array.append(np.full(4, 7, "int32")).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 3, 4])
        assert first.shape == (9,)
        assert opened(store)[5:].read().result().tolist() == [7] * 4


class TestResizing:
    def test_growing_makes_one_more_chunk(self, store):
        array = made(store, [2, 3], 4, shape=[5, 4])
        array.write(1).result()
        grown = array.resize(exclusive_max=[9, 6]).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 3, 4], 4)
        grown[5:] = 2
        assert grown.read().result().sum() == 5 * 4 + 4 * 6 * 2
        assert "c/2/1" in chunk_keys(grown)

    def test_growing_into_what_there_is(self, store):
        array = made(store, [2, 3, 4], shape=[5])
        array.resize(exclusive_max=[8]).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 3, 4])

    def test_shrinking_keeps_the_sizes_and_deletes_the_chunks_outside(self, store):
        array = made(store, [2, 3, 4], shape=[9])
        array.write(1).result()
        shrunk = array.resize(exclusive_max=[4]).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 3, 4])
        assert chunk_keys(shrunk) == ["c/0", "c/1"]
        again = shrunk.resize(exclusive_max=[9]).result()
        assert again.read().result().tolist() == [1] * 5 + [0] * 4

    def test_to_nothing_and_back(self, store):
        array = made(store, [2, 3], shape=[5])
        array.write(1).result()
        array = array.resize(exclusive_max=[0]).result()
        assert chunk_keys(array) == []
        assert array.read().result().shape == (0,)
        array = array.resize(exclusive_max=[6]).result()
        array.write(2).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 3, 1])

    def test_new_shards_hold_whole_chunks(self, store):
        array = made(store, [4, 6], shape=[10], codecs=shards(2))
        array = array.resize(exclusive_max=[13]).result()
        assert document(store)["chunk_grid"] == rectilinear([4, 6, 4])
        array.write(np.arange(13, dtype="int32")).result()
        assert array.read().result().tolist() == list(range(13))

    @pytest.mark.parametrize("reshape", [[[0], [1], 1], [[0, 1]]])
    @pytest.mark.parametrize("inner", [None, 2])
    def test_new_chunks_fit_codecs_that_know_no_dimensions(self, store, reshape, inner):
        codecs: list[object] = [{"name": "reshape", "configuration": {"shape": reshape}}]
        codecs += ["bytes"] if inner is None else shards(inner, *[1] * (len(reshape) - 1))
        sizes = ([2, 4, 6], [3, 6])
        array = made(store, *sizes, shape=[12, 9], codecs=codecs, context=pool())
        array.write(VALUES[0, :9].T[:1, :9]).result()
        array = array.resize(exclusive_max=[13, 13]).result()
        assert document(store)["chunk_grid"] == rectilinear([2, 4, 6, 2], [3, [6, 2]])
        array[9:].write(5).result()
        assert (array[9:].read().result() == 5).all()
        assert (array[:9, :9].read().result() == VALUES[0, :9].T[:1, :9]).all()

    def test_another_handle_of_the_pool_sees_the_new_grid(self, store):
        context = pool()
        array = made(store, [2, 3], shape=[5], context=context)
        other = opened(store, context=context)
        array.write(1).result()
        other.read().result()
        array.resize(exclusive_max=[8]).result().write(2).result()
        assert other.resolve().result().read().result().tolist() == [2] * 8


class TestLayout:
    def test_sizes_are_shown_where_there_is_one(self, store):
        layout = made(store).chunk_layout
        assert layout.grid_origin == (0, 0, 0)
        assert layout.write_chunk.shape == layout.read_chunk.shape == (None, 5, None)
        assert layout.inner_order == (0, 1, 2)
        assert layout.read_chunk_template.shape[1] == 5

    def test_a_smaller_last_chunk_is_of_no_account(self, store):
        assert made(store, [4, 4, 4, 1], 5, 7).chunk_layout.write_chunk.shape == (4, 5, 7)

    def test_shards(self, store):
        layout = made(store, [4, 6], shape=[10], codecs=shards(2)).chunk_layout
        assert (layout.write_chunk.shape, layout.read_chunk.shape) == ((None,), (2,))

    def test_the_spec_opens_and_creates_the_same(self, store):
        spec = made(store).spec()
        assert spec.to_json()["metadata"]["chunk_grid"] == rectilinear(*SIZES)
        assert spec.chunk_layout.write_chunk.shape == (None, 5, None)
        copy = opened(counting(), members={"metadata": spec.to_json()["metadata"]}, create=True)
        assert copy.spec().to_json()["metadata"] == spec.to_json()["metadata"]

    def test_a_view_tells_its_own(self, store):
        array = made(store)
        assert array[:, 1].chunk_layout.write_chunk.shape == (None, None)
        assert array.T.chunk_layout.write_chunk.shape == (None, 5, None)

    def test_another_array_made_by_its_schema_has_chunks_of_one_size(self, store):
        schema = made(store).schema
        array = opened(counting(), create=True, schema=schema)
        assert array.chunk_layout.write_chunk.shape == (13, 5, 10)
