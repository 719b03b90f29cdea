"""What map_blocks makes, what it reads and writes for that, and what it refuses."""

import asyncio

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import counting, created
from tests.compute import functions
from tests.compute.mapping import CHUNK, VALUES, mapped, stored


class TestMapBlocksForm:
    def test_the_target_is_like_the_first_source(self):
        units = ["4 nm", None]
        source = stored(VALUES, CHUNK, ["y", "x"], dimension_units=units)
        found = ts.map_blocks(np.sqrt, source, target="memory://|zarr3:").result()
        assert found.domain == source.domain
        assert found.dimension_units == source.dimension_units
        assert found.chunk_layout.read_chunk.shape == CHUNK
        assert found.dtype == ts.float64
        np.testing.assert_array_equal(found, np.sqrt(VALUES))

    @pytest.mark.parametrize(
        ("form", "options", "read", "write"),
        [
            ("zarr3", {"chunks": {"x": 5}}, (4, 5), (4, 5)),
            ("zarr3", {"chunks": 2, "shards": (4, -1)}, (2, 2), (4, 10)),
            ("zarr2", {"chunks": -1}, (11, 10), (11, 10)),
            ("n5", {}, (4, 3), (4, 3)),
        ],
    )
    def test_the_target_may_have_other_chunks(self, form, options, read, write):
        values = np.arange(110).reshape(11, 10)
        source = stored(values, CHUNK, ["y", "x"])
        target = {"driver": form, "kvstore": "memory://a/"}
        found = ts.map_blocks(functions.double, source, target=target, **options).result()
        layout = found.chunk_layout
        assert (layout.read_chunk.shape, layout.write_chunk.shape) == (read, write)
        np.testing.assert_array_equal(found, 2 * values)

    def test_a_spec_with_a_domain_tells_both(self):
        source = stored(VALUES, CHUNK, ["y", "x"])
        target = {
            "driver": "zarr3", "kvstore": "memory://", "dtype": "int64",
            "schema": {"domain": {"shape": [11], "labels": ["y"]},
                       "chunk_layout": {"write_chunk": {"shape": [6]}}},
        }  # fmt: skip
        found = ts.map_blocks(lambda block: block.sum(1), source, target=target).result()
        assert found.chunk_layout.write_chunk.shape == (6,)
        np.testing.assert_array_equal(found, VALUES.sum(1))


class TestMapBlocksCall:
    @pytest.mark.parametrize("at", ["here", "there"])
    def test_a_target_that_is_read_is_refused(self, tmp_path, at):
        store = stored(VALUES, CHUNK, where=f"file://{tmp_path}/a.zarr|zarr3:")
        target = {"here": store[:11], "there": tmp_path / "a.zarr"}[at]
        with pytest.raises(ts.SpecError, match="target: it is source 1, too"):
            mapped(np.add, VALUES, store, target=target, if_exists="replace")
        np.testing.assert_array_equal(store, VALUES)

    def test_places_in_memory_are_distinguished_by_their_context(self):
        shared = ts.Context()
        stored(VALUES, CHUNK, context=shared, where="memory://a|zarr3:")
        source = stored(VALUES, CHUNK, context=shared, where="memory://b|zarr3:")
        mapped(functions.double, source, target="memory://b|zarr3:", context=ts.Context())
        with pytest.raises(ts.SpecError, match="it is source 0, too"):
            mapped(functions.double, source, target="memory://b|zarr3:", context=shared,
                   if_exists="replace")  # fmt: skip

    def test_what_is_there_is_not_replaced_unasked(self, tmp_path):
        where = f"file://{tmp_path}/b.zarr|zarr3:"
        there = stored(VALUES, CHUNK, where=where)
        with pytest.raises(ts.AlreadyExistsError, match='if_exists="replace"'):
            mapped(functions.double, VALUES, target=tmp_path / "b.zarr")
        np.testing.assert_array_equal(there, VALUES)
        found = mapped(functions.double, VALUES, target=tmp_path / "b.zarr", if_exists="replace")
        np.testing.assert_array_equal(found, 2 * VALUES)

    def test_groups_are_no_arrays(self, tmp_path):
        ts.Group.open(tmp_path / "g.zarr", create=True).result()
        for source, target in ((tmp_path / "g.zarr", "memory://|zarr3:"),
                               (VALUES, tmp_path / "g.zarr")):  # fmt: skip
            with pytest.raises(ts.MismatchError, match="group"):
                mapped(functions.double, source, target=target)

    def test_an_open_target_is_as_it_is(self):
        target = stored(np.zeros_like(VALUES), CHUNK)
        with pytest.raises(ts.SpecError, match="chunks: the target is an open array"):
            mapped(functions.double, VALUES, target=target, chunks=3)

    def test_what_is_done_is_kept_in_a_manifest(self, tmp_path):
        source = stored(VALUES, CHUNK, where=f"file://{tmp_path}/a.zarr|zarr3:")
        calls = []

        def sometimes(block, domain):
            calls.append(domain.origin)
            if len(calls) == 4:
                raise ZeroDivisionError
            return 2 * block

        def run():
            return mapped(sometimes, source, target=tmp_path / "b.zarr", dtype="int32",
                          manifest=tmp_path / "m.json")  # fmt: skip

        with pytest.raises(ZeroDivisionError):
            run()
        for _ in range(2):
            np.testing.assert_array_equal(run(), 2 * VALUES)
            assert 9 < len(calls) <= 9 + 4


class TestMapBlocksOperation:
    def test_each_chunk_is_read_and_written_once(self):
        store = counting()
        source = created(store, [12, 8], [4, 4], path="a/")
        source.write(np.ones((12, 8), "uint8")).result()
        target = created(store, [12, 8], [4, 4], path="b/")
        store.reset()

        ts.map_blocks(functions.double, source, target=target).result()

        chunks = [f"c/{row}/{column}" for row in range(3) for column in range(2)]
        assert {key: store.reads[f"a/{key}"] for key in chunks} == dict.fromkeys(chunks, 1)
        assert {key: store.writes[f"b/{key}"] for key in chunks} == dict.fromkeys(chunks, 1)
        assert not any(store.reads[f"b/{key}"] for key in chunks)

    def test_only_what_a_block_needs_is_read(self):
        store = counting()
        source = created(store, [16, 16], [4, 4], path="a/")
        target = created(store, [16, 16], [4, 4], path="b/")
        store.reset()
        view = ts.d[:].translate_to[0]
        ts.map_blocks(
            functions.double, source[4:8, 12:][view], target=target[:4, :4], halo=4,
            boundary="reflect",
        ).result()  # fmt: skip
        assert [key for key in store.reads if key.startswith("a/c")] == ["a/c/1/3"]

    def test_memory_is_bounded(self):
        running = most = 0

        async def watch(block):
            nonlocal running, most
            running += block.nbytes
            most = max(most, running)
            for _ in range(20):
                await asyncio.sleep(0)
            running -= block.nbytes
            return block

        context = ts.Context({"memory_limit": {"limit_bytes": 2**13}})
        source = stored(np.ones((64, 64)), (8, 8), context=context)
        mapped(watch, source, target="memory://b|zarr3:", context=context, dtype="float64")

        assert 512 < most <= 2**13 // 4  # half is for blocks, and of that half for what is made

    def test_blocks_grow_where_the_halo_would_be_most_of_what_is_read(self):
        source = stored(np.zeros((256, 256), "int8"), (4, 4), context=ts.Context())
        target = stored(np.zeros((256, 256), "int8"), (4, 4), context=ts.Context(
            {"memory_limit": {"limit_bytes": 2**18}}))  # fmt: skip
        plan = ts.plan(ts.map_blocks, functions.double, source, target=target, halo=8).result()
        assert plan.bytes == 256**2
        assert plan.chunks == 64**2
        block = plan.steps[0].blocks[0]
        assert all(high - low >= 64 for low, high in block.bounds)
        assert plan.task_memory <= 2**15 * 1.1

    def test_a_target_that_tasks_would_write_twice_is_refused(self):
        target = stored(np.zeros(9, "int32"), (3,))
        source = stored(VALUES, CHUNK)
        with pytest.raises(ts.SpecError, match="target: the target is a view by index arrays"):
            mapped(functions.double, source[0, :3], target=target.oindex[[0, 1, 1]])
        repeated = ts.IndexTransform(
            input_shape=[11, 9], output=[ts.OutputIndexMap(input_dimension=1)]
        )
        with pytest.raises(ts.SpecError, match=r"target: each element .* stands at 11 positions"):
            mapped(functions.double, source, target=target[repeated])

    def test_with_a_halo_both_shapes_are_named(self):
        target = stored(np.zeros_like(VALUES), CHUNK)
        with pytest.raises(ts.MismatchError, match=r"\(4, 3\), or \(6, 5\) with the halo"):
            ts.map_blocks(lambda block: block[:1], stored(VALUES, CHUNK), target=target, halo=1,
                          boundary=0).result()  # fmt: skip

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda block: block[:1], r"gave an array of shape \(1, 3\).*is of shape \(4, 3\)"),
            (lambda block: block.sum(), r"shape \(\).*named by drop="),
            (lambda _: None, "gave None"),
            (lambda block: block.astype("float32"), "gave float32, but the target is of int32"),
        ],
    )
    def test_what_a_function_may_not_give(self, function, message):
        target = stored(np.zeros_like(VALUES), CHUNK)
        with pytest.raises(ts.MismatchError, match=message) as caught:
            ts.map_blocks(function, stored(VALUES, CHUNK), target=target).result()
        assert str(caught.value).startswith("task ")
        assert '"/"[' in str(caught.value)


def planned(function, *sources, **options):
    return ts.plan(ts.map_blocks, function, *sources, target="memory://|zarr3:", **options).result()


class TestBlockProbe:
    def test_a_small_block_tells_the_data_type(self):
        shapes = []

        def seen(block, row):
            shapes.append((block.shape, row.shape))
            return (block.sum(axis=1) + row.mean()).astype("float32")

        source = np.zeros((20, 30, 4), "int8")
        plan = planned(seen, source, np.zeros((30, 1)), drop=1, halo={0: 1}, boundary=0)

        assert shapes == [((10, 30, 4), (30, 1))]
        assert plan.bytes == 20 * 4 * 4

    def test_it_is_not_called_if_the_data_type_is_known(self):
        def never(_):
            raise AssertionError

        planned(never, VALUES, dtype="int8")
        planned(never, np.zeros((0, 3)), dtype="int8")

    def test_what_goes_wrong_is_reported_before_anything_is_made(self, tmp_path):
        for function, error in (
            (lambda block: block[:1], ts.MismatchError),
            (lambda _: 1 / 0, ZeroDivisionError),
        ):
            with pytest.raises(error) as caught:
                mapped(function, VALUES, target=tmp_path / "a.zarr")
            assert any(
                "called with ones of shape (8, 8)" in note for note in caught.value.__notes__
            )
            assert not (tmp_path / "a.zarr").exists()

    def test_values_that_are_only_tried_give_no_warning(self):
        plan = planned(lambda block, other: block / (block - other), VALUES, VALUES)
        assert plan.bytes == 8 * VALUES.size
