"""What a driver and its spec have of the promise when they implement no more than they must."""

import numpy as np
import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py._interface.driver import (
    Driver,
    DriverSpec,
    ResizeRequest,
    StorageStatistics,
)
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError


class Constant(Driver):
    """Reads as zeros everywhere."""

    inline = True
    data_type = ts.uint8

    @property
    def domain(self):
        return ts.IndexDomain(shape=[3])

    @property
    def schema(self):
        return ts.Schema(dtype="uint8", domain=self.domain)

    async def resolve(self):
        return self.domain

    async def read(self, transform, order):
        return np.zeros(transform.input_shape, "uint8", order)

    def spec(self):
        return Odd()


class Odd(DriverSpec):
    driver = "odd"


class TestDriver:
    @pytest.mark.parametrize(
        ("body", "missing"),
        [
            (lambda d: d.write(ts.IndexTransform(1), np.zeros(3)), "cannot be written"),
            (lambda d: d.resize(ResizeRequest((None,), (5,))), "cannot be resized"),
            (lambda d: d.grow(0, 1, print), "cannot be resized"),
            (
                lambda d: d.storage_statistics(
                    ts.IndexTransform(1), not_stored=True, fully_stored=False
                ),
                "no storage statistics",
            ),
        ],
        ids=["write", "resize", "grow", "storage_statistics"],
    )
    def test_what_is_not_there_cannot_be_done_and_names_the_driver(self, body, missing):
        with pytest.raises(UnsupportedError, match=f"Constant .*{missing}"):
            run_inline(body(Constant()))

    def test_there_need_not_be_a_store(self):
        assert Constant().kvstore is None

    def test_it_can_be_viewed(self):
        store = ts.TensorStore(Constant(), ts.IndexTransform(Constant().domain), True, False)
        assert store[1:].read().result().tolist() == [0, 0]
        assert (store.kvstore, store.mode) == (None, "r")


class TestStatistics:
    @pytest.mark.parametrize("not_stored", [None, True, False])
    @pytest.mark.parametrize("fully_stored", [None, True, False])
    def test_are_those_of_the_reference(self, not_stored, fully_stored):
        named = {"not_stored": not_stored, "fully_stored": fully_stored}
        mine, theirs = StorageStatistics(**named), wheel.TensorStore.StorageStatistics(**named)
        assert repr(mine) == repr(theirs)
        assert mine == StorageStatistics(**named)

    def test_are_values_that_can_change(self):
        statistics = StorageStatistics(not_stored=True)
        assert statistics != StorageStatistics()
        statistics.not_stored = None
        assert statistics == StorageStatistics()
        assert statistics != "nothing"
        with pytest.raises(TypeError):
            hash(statistics)


class TestKnownSchema:
    def known(self, **members):
        return Odd.parse({"driver": "odd", **members}).known_schema()

    def test_members_and_schema_are_one(self):
        schema = self.known(dtype="uint8", rank=2, schema={"fill_value": 5})
        assert schema.to_json() == {"dtype": "uint8", "rank": 2, "fill_value": 5}

    def test_a_transform_tells_the_rank(self):
        transform = {"input_shape": [3], "output": [{"input_dimension": 0}, {"offset": 5}]}
        assert self.known(transform=transform).rank == 2

    @pytest.mark.parametrize(
        ("members", "named"),
        [
            ({"dtype": "uint8", "schema": {"dtype": "int8"}}, "dtype"),
            ({"rank": 2, "schema": {"rank": 3}}, "rank"),
            ({"rank": 2, "transform": {"input_rank": 1}}, "rank"),
        ],
        ids=["dtype", "rank", "transform"],
    )
    def test_contradictions_are_named(self, members, named):
        with pytest.raises((SpecError, MismatchError), match=named):
            self.known(**members)

    def test_asking_changes_nothing(self):
        spec = Odd.parse({"driver": "odd", "dtype": "uint8", "schema": {"fill_value": 5}})
        before = spec.to_json()
        spec.known_schema().update(rank=3)
        assert spec.to_json() == before


class TestSpec:
    def test_what_a_spec_cannot_do_is_named(self):
        spec = Odd()
        actions = (lambda: spec.inline, lambda: run_inline(spec.open()), spec.to_url)
        for action in actions:
            with pytest.raises(UnsupportedError, match='driver "odd"'):
                action()

    def test_it_opens_what_exists_unless_it_says_otherwise(self):
        assert Odd().open_mode() == ts.OpenMode(open=True)
        assert Odd().checked() == Odd() == Odd().minimal()

    @pytest.mark.parametrize(
        ("members", "printed"),
        [
            ({"schema": {"dtype": "uint8", "rank": 2}}, {"dtype": "uint8", "rank": 2}),
            ({"schema": {"rank": 2, "fill_value": 5}}, {"rank": 2, "schema": {"fill_value": 5}}),
            (
                {"dtype": "uint8", "schema": {"dtype": "uint8", "domain": {"shape": [3]}}},
                {
                    "dtype": "uint8",
                    "schema": {"domain": {"inclusive_min": [0], "exclusive_max": [3]}},
                },
            ),
        ],
    )
    def test_data_type_and_rank_are_printed_once(self, members, printed):
        assert Odd.parse(members).to_json() == {"driver": "odd", **printed}
