"""A long life of one array against NumPy: writes, reads, resizes, reopening, both formats."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import tensorstore_py as ts
from tests.api.loop_memory import LoopMemorySpec

SIZES = st.integers(0, 12)


class LifeMachine(RuleBasedStateMachine):
    """One array, and what NumPy says must be in it."""

    @initialize(
        driver=st.sampled_from(["zarr", "zarr3", "sharded"]),
        shape=st.tuples(SIZES, SIZES),
        chunks=st.tuples(st.integers(1, 5), st.integers(1, 5)),
        fill=st.sampled_from([0, 5]),
        cached=st.booleans(),
        kvstore=st.sampled_from(["memory", LoopMemorySpec.driver]),
    )
    def create(self, driver, shape, chunks, fill, cached, kvstore):
        layout = ts.ChunkLayout(chunk_shape=chunks)
        if driver == "sharded":
            layout = ts.ChunkLayout(
                read_chunk_shape=chunks, write_chunk_shape=[2 * size for size in chunks]
            )
        limit = 10_000 if cached else 0
        self.context = ts.Context({"cache_pool": {"total_bytes_limit": limit}})
        self.spec = {
            "driver": "zarr" if driver == "zarr" else "zarr3",
            "kvstore": {"driver": kvstore, "path": "a/"},
        }
        self.store = ts.open(
            self.spec, create=True, dtype="int32", shape=shape, chunk_layout=layout,
            fill_value=fill, context=self.context,
        ).result()  # fmt: skip
        self.fill = fill
        self.model = np.full(shape, fill, "int32")
        self.number = 100

    def region(self, data):
        sides = []
        for size in self.model.shape:
            a, b = sorted([data.draw(st.integers(0, size)), data.draw(st.integers(0, size))])
            sides.append(slice(a, b, data.draw(st.sampled_from([1, 1, 2]))))
        return tuple(sides)

    @rule(data=st.data())
    def write(self, data):
        region = self.region(data)
        shape = self.model[region].shape
        values = self.number + np.arange(np.prod(shape), dtype="int32").reshape(shape)
        self.number += values.size
        self.store[region] = values
        self.model[region] = values

    @rule(data=st.data())
    def fill_in(self, data):
        region = self.region(data)
        self.store[region] = self.fill
        self.model[region] = self.fill

    @rule(data=st.data())
    def gather(self, data):
        if 0 in self.model.shape:
            return
        rows, columns = (
            data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
            for size in self.model.shape
        )
        found = self.store.oindex[rows, columns].read().result()
        np.testing.assert_array_equal(found, self.model[np.ix_(rows, columns)])

    @rule(shape=st.tuples(SIZES, SIZES))
    def resize(self, shape):
        before = self.model
        self.store = self.store.resize(exclusive_max=shape).result()
        assert self.store.shape == shape
        found = self.store.read().result()
        kept = tuple(slice(0, min(a, b)) for a, b in zip(shape, before.shape, strict=True))
        np.testing.assert_array_equal(found[kept], before[kept])
        # What is new shows the fill value, or what was there before it was cut off.
        assert ((found == self.fill) | (found < self.number)).all()
        self.model = found

    @rule()
    def reopen(self):
        self.store = ts.open(self.spec, context=self.context).result()
        assert self.store.shape == self.model.shape

    @rule()
    def read(self):
        np.testing.assert_array_equal(self.store.read().result(), self.model)

    def teardown(self):
        if hasattr(self, "store"):
            self.read()


LifeMachine.TestCase.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=12
)
TestLifeMachine = LifeMachine.TestCase
