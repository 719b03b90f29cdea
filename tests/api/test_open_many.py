"""Opening many arrays by specs that differ in a path: the same result, at less expense."""

import gc
import json
import sys
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts

METADATA = {"shape": [4], "data_type": "uint8"}


def spec_of(path, driver="zarr3", kvstore="memory", **members):
    return {"driver": driver, "kvstore": {"driver": kvstore, "path": path}, **members}


@pytest.fixture
def context():
    return ts.Context()


def created(path, context, **members):
    return ts.open(spec_of(path, **members), create=True, dtype="uint8", shape=[4], context=context)


def calls_of(work):
    """How many Python calls a piece of work is in this thread, and what it gives."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    return calls, found


class TestEachIsItsOwn:
    def test_paths_are_told_apart(self, context):
        arrays = [created(f"a{number}", context).result() for number in range(5)]
        for number, array in enumerate(arrays):
            array[...] = number

        found: list[Any] = [
            ts.open(spec_of(f"a{number}/"), context=context).result() for number in range(5)
        ]

        assert [int(array[0].read().result()) for array in found] == [0, 1, 2, 3, 4]
        assert [array.kvstore.path for array in found] == [f"a{number}/" for number in range(5)]

    def test_a_dict_that_is_changed_between(self, context):
        spec = spec_of("a/", metadata={"shape": [3], "data_type": "uint8"})
        first = ts.open(spec, create=True, context=context).result()
        spec["kvstore"]["path"], spec["metadata"]["shape"][0] = "b/", 7
        second = ts.open(spec, create=True, context=context).result()

        assert (first.shape, second.shape) == ((3,), (7,))

    def test_values_of_other_types_are_others(self, context):
        created("a/", context).result()

        specs = [spec_of("a/", recheck_cached_data=bound) for bound in (True, 1, 1.0, False, 0)]
        stores = [ts.open(spec, context=context).result() for spec in specs]
        bounds = [store.spec().to_json().get("recheck_cached_data") for store in stores]

        assert [(type(bound), bound) for bound in bounds] == [
            (type(None), None), (float, 1.0), (float, 1.0), (bool, False), (float, 0.0),
        ]  # fmt: skip

    def test_scalars_of_numpy_are_not_their_bytes(self, context):
        created("a/", context).result()

        for bound in (np.float64(2), np.float64(2).view(np.int64)):
            spec = spec_of("a/", recheck_cached_data=bound)
            found = ts.open(spec, context=context).result().spec().to_json()

            assert found["recheck_cached_data"] == float(bound)

    def test_keywords_are_told_apart(self, context):
        created("a/", context).result()

        with pytest.raises(ts.MismatchError, match="rank"):
            ts.open(spec_of("a/"), rank=2, context=context).result()
        with pytest.raises(ts.NotFoundError):
            ts.open(spec_of("b/"), open=True, context=context).result()
        assert ts.open(spec_of("a/"), rank=1, context=context).result().rank == 1
        assert created("b/", context).result().shape == (4,)

    def test_contexts_are_told_apart(self, context):
        created("a/", context).result()

        with pytest.raises(ts.NotFoundError):
            ts.open(spec_of("a/"), context=ts.Context()).result()
        with pytest.raises(ts.NotFoundError):
            ts.open(spec_of("a/")).result()

    def test_resources_of_a_spec_are_its_own_each_time(self, context):
        spec = spec_of("a/", context={"memory_key_value_store": {}})
        options = {"create": True, "dtype": "uint8", "shape": [4], "context": context}
        arrays = [ts.open(spec, **options).result() for _ in range(3)]  # nothing was there

        assert [array.shape for array in arrays] == [(4,)] * 3
        with pytest.raises(ts.NotFoundError):
            ts.open(spec, context=context).result()
        created("a/", context).result()
        assert ts.open(spec_of("a/"), context=context).result().shape == (4,)

    def test_a_closed_context_opens_nothing(self, context):
        created("a/", context).result()
        context.close()

        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            ts.open(spec_of("a/"), context=context)


class TestWhatIsWrong:
    @pytest.mark.parametrize("kvstore", ["memory", "file"])
    @pytest.mark.parametrize("path", ["/t/a//b", "/t/../b", "/t/\ud800", "/t/a\0", 3, None])
    def test_a_path_is_refused_in_the_same_words(self, kvstore, path, context):
        def refused():
            with pytest.raises((ts.SpecError, ts.NotFoundError)) as caught:
                ts.open(spec_of(path, kvstore=kvstore), context=context).result()
            return type(caught.value), str(caught.value), getattr(caught.value, "path", None)

        before = refused()
        with pytest.raises(ts.NotFoundError):
            ts.open(spec_of("/nowhere/a/", kvstore=kvstore), context=context).result()

        assert refused() == before

    def test_a_member_is_refused_after_others_were_taken(self, context):
        created("a/", context).result()

        for _ in range(2):
            with pytest.raises(ts.SpecError, match="recheck_cached_dada"):
                ts.open(spec_of("a/", recheck_cached_dada=True), context=context)
            with pytest.raises(TypeError, match="recheck_cached_dada"):
                ts.open(spec_of("a/"), recheck_cached_dada=True)  # type: ignore[call-arg]
            with pytest.raises(ts.SpecError, match="not defined"):
                ts.open(spec_of("a/", cache_pool="cache_pool#other"), context=context)


class TestHowMuch:
    """Of the arrays of one database, as a checkpoint is opened."""

    @pytest.fixture
    def specs(self, tmp_path):
        base = f"file://{tmp_path}/"
        specs = [
            {
                "driver": "zarr3",
                "kvstore": {"driver": "ocdbt", "base": base, "path": f"params.{number}/"},
                "recheck_cached_data": False,
                "recheck_cached_metadata": False,
            }
            for number in range(60)
        ]
        with ts.Transaction() as transaction:
            for spec in specs:
                ts.open(
                    spec, create=True, dtype="float32", shape=[8, 8], transaction=transaction
                ).result()
        return specs

    def test_objects_that_an_open_array_has(self, specs, context):
        first = ts.open(specs[0], open=True, context=context).result()
        gc.collect()
        before = len(gc.get_objects())
        arrays = [first, *(ts.open(each, open=True, context=context).result() for each in specs)]
        gc.collect()

        assert (len(gc.get_objects()) - before) / len(arrays) < 26

    def test_calls_that_opening_takes(self, specs, context):
        ts.open(specs[0], open=True, context=context).result()
        calls, arrays = calls_of(
            lambda: [ts.open(each, open=True, context=context).result() for each in specs]
        )

        assert len(arrays) == len(specs)
        assert calls / len(specs) < 260

    def test_arrays_of_one_database_share_its_store(self, specs, context):
        opened = [ts.open(each, open=True, context=context).result() for each in specs[:2]]
        again = ts.open(specs[0], open=True, context=context).result()
        opened[0][0, 0] = 5

        assert again[0, 0].read().result() == 5
        assert opened[1][0, 0].read().result() == 0


class TestArraysThatNobodySaw:
    """Each of another shape, so that nothing is known from an array before it."""

    COUNT = 60

    @pytest.fixture
    def group(self, tmp_path):
        group = ts.Group.open(f"file://{tmp_path}/", create=True).result()
        for number in range(self.COUNT):
            document = {
                "zarr_format": 3,
                "node_type": "array",
                "shape": [300 + number, 9],
                "data_type": "uint16",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [30, 3]}},
                "chunk_key_encoding": {"name": "default"},
                "fill_value": 0,
                "codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "gzip", "configuration": {"level": 1}},
                ],
            }
            (tmp_path / f"a{number}").mkdir()
            (tmp_path / f"a{number}" / "zarr.json").write_text(json.dumps(document))
        return group

    def calls(self, work):
        """How many Python calls a piece of work is for each array."""
        calls, found = calls_of(work)
        return calls / self.COUNT, found

    @pytest.mark.parametrize(
        ("keywords", "most"), [({}, 250), ({"dtype": np.dtype("uint16"), "rank": 2}, 290)]
    )
    def test_calls_that_opening_takes(self, group, context, keywords, most):
        path = group.kvstore.path
        specs = [spec_of(f"{path}a{number}/", kvstore="file") for number in range(self.COUNT)]
        ts.open(specs[0], context=context, **keywords).result()

        taken, arrays = self.calls(
            lambda: [ts.open(spec, context=context, **keywords).result() for spec in specs]
        )

        assert [array.shape[0] for array in arrays] == [300 + at for at in range(self.COUNT)]
        assert taken < most

    def test_a_url_takes_as_many_as_a_spec(self, group, context):
        path = group.kvstore.path
        urls = [f"file://{path}a{number}/|zarr3" for number in range(self.COUNT)]
        ts.open(urls[0], context=context).result()

        taken, arrays = self.calls(lambda: [ts.open(url, context=context).result() for url in urls])

        assert [array.url for array in arrays] == [f"{url}:" for url in urls]
        assert taken < 250

    def test_calls_that_listing_takes(self, group):
        taken, found = self.calls(lambda: dict(group.members().result()))

        assert {name: array.shape for name, array in found.items()} == {
            f"a{number}": (300 + number, 9) for number in range(self.COUNT)
        }
        assert taken < 250
