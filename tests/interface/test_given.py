"""What a caller says of its memory reaches the store, or does no harm where nobody reads it."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._interface.given import Given
from tensorstore_py._runtime.start import start
from tests.chunked.stores import counting, created, opened


class TestAMemoryThatLasts:
    @pytest.mark.parametrize("writable", [True, False])
    def test_is_kept_by_the_memory_store(self, writable):
        array = created_in_memory()
        values = np.full(8, 5, "int32")
        given = values[...]
        given.flags.writeable = writable
        array.write(given, can_reference_source_data_indefinitely=True).result()
        values[...] = 6  # which it was said never to be
        assert array.read().result().tolist() == [6] * 8

    @pytest.mark.parametrize(
        "codecs", [["bytes", "gzip"], [{"name": "bytes", "configuration": {"endian": "big"}}]]
    )
    def test_is_not_where_it_is_encoded(self, codecs):
        array = created_in_memory(codecs=codecs)
        values = np.full(8, 5, "int32")
        array.write(values, can_reference_source_data_indefinitely=True).result()
        values[...] = 6
        assert array.read().result().tolist() == [5] * 8

    def test_is_not_where_it_is_a_part_of_a_chunk(self):
        array = created_in_memory()
        values = np.full(4, 5, "int32")
        array[:4].write(values, can_reference_source_data_indefinitely=True).result()
        values[...] = 6
        assert array.read().result().tolist() == [5] * 4 + [0] * 4

    def test_is_not_where_it_may_change(self):
        array = created_in_memory()
        values = np.full(8, 5, "int32")
        array.write(values).result()
        values[...] = 6
        assert array.read().result().tolist() == [5] * 8

    def test_may_be_said_to_any_array(self):
        array = ts.array(np.zeros(8, "int32"))
        array.write(np.ones(8, "int32"), can_reference_source_data_indefinitely=True).result()
        assert array.read().result().tolist() == [1] * 8
        start(True, lambda: array._driver.write_given(
            array._transform, np.full(8, 2, "int32"), Given(lasting=True)
        )).result()  # fmt: skip
        assert array.read().result().tolist() == [2] * 8


def created_in_memory(codecs=("bytes",)):
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": {"codecs": list(codecs)}}
    return ts.open(spec, create=True, dtype="int32", shape=[8]).result()


@pytest.mark.parametrize("inline", [True, False])
class TestTaken:
    def told(self, array, values):
        calls = []
        given = Given(taken=lambda: calls.append(1))
        body = lambda: array._driver.write_given(array._transform, values, given)  # noqa: E731
        start(array._driver.inline, body).result()
        return bool(calls)

    @pytest.mark.parametrize("view", [slice(None), slice(1, 7), slice(0, 4), slice(0, 0)])
    def test_is_told_at_the_end_at_last(self, inline, view):
        array = created(counting(inline), [8], [4])
        values = np.arange(1, 9, dtype="uint8")[view]
        assert self.told(array[view], values) == (values.size > 0)

    def test_of_shards(self, inline):
        codec = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2]}}
        grid = {"name": "regular", "configuration": {"chunk_shape": [4]}}
        members = {"metadata": {"chunk_grid": grid, "codecs": [codec]}}
        array = opened(counting(inline), members=members, create=True, dtype="uint8", shape=[8])
        assert self.told(array, np.arange(8, dtype="uint8"))
        assert self.told(array[1:7], np.arange(6, dtype="uint8"))
