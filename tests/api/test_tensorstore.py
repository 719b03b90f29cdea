import copy
import pickle
from typing import Any

import numpy as np
import pytest
import tensorstore as wheel

import tensorstore_py as ts

SPEC = {"driver": "zarr3", "kvstore": "memory://a/"}
VALUES = np.arange(60, dtype="int16").reshape(6, 10)


@pytest.fixture
def store():
    made = ts.open(
        SPEC, create=True, dtype="int16", shape=[6, 10],
        chunk_layout=ts.ChunkLayout(chunk_shape=[4, 4]), dimension_units=["nm", None],
    ).result()  # fmt: skip
    made[...] = VALUES
    return made


def test_properties_are_those_of_the_reference(store):
    theirs = wheel.open(
        SPEC, create=True, dtype="int16", shape=[6, 10], context=wheel.Context(),
        chunk_layout=wheel.ChunkLayout(chunk_shape=[4, 4]), dimension_units=["nm", None],
    ).result()  # fmt: skip
    for index in (np.s_[...], np.s_[2:5, ::2], np.s_[:, 3], np.s_[None, 1]):
        a, b = store[index], theirs[index]
        for name in (
            "rank", "ndim", "shape", "origin", "size", "mode", "readable", "writable",
            "transaction", "base", "url",
        ):  # fmt: skip
            assert getattr(a, name) == getattr(b, name), name
        for name in ("domain", "dtype", "chunk_layout", "schema", "codec"):
            mine, ref = getattr(a, name), getattr(b, name)
            assert mine.to_json() == ref.to_json(), name
        assert str(a.domain) == str(b.domain)
        assert [unit and unit.to_json() for unit in a.dimension_units] == [
            unit and unit.to_json() for unit in b.dimension_units
        ]
        assert repr(a).splitlines()[:3] == repr(b).splitlines()[:3]


def test_everything_of_the_reference_is_there(store):
    public = {name for name in dir(wheel.TensorStore) if not name.startswith("_")}
    public.remove("astype")  # belongs to the cast driver
    assert {name for name in public if not hasattr(type(store), name)} == set()


class TestIndexing:
    def test_reads_nothing(self, store):
        view = store[1:3].oindex[:, [1, 2]].transpose([1, 0]).translate_to[5, 6]
        assert view.domain.origin == (5, 6)
        np.testing.assert_array_equal(view.read().result(), VALUES[1:3][:, [1, 2]].T)

    def test_coordinates_are_kept(self, store):
        view = store[2:5, 4:8]
        assert view.domain.index_exp == (slice(2, 5), slice(4, 8))
        assert view[3, 4].read().result() == VALUES[3, 4]

    def test_rank_zero(self, store):
        found = store[1, 2].read().result()
        assert (found.shape, int(found)) == ((), 12)

    def test_fortran_order(self, store):
        found = store.read(order="F").result()
        assert found.flags.f_contiguous
        np.testing.assert_array_equal(found, VALUES)
        with pytest.raises(TypeError, match="order"):
            store.read(order="K")

    def test_every_result_is_fresh(self, store):
        first = store.read().result()
        first[...] = 0
        np.testing.assert_array_equal(store.read().result(), VALUES)

    def test_transform_and_domain_and_expression(self, store):
        transform = ts.IndexTransform(
            input_shape=[3], output=[ts.OutputIndexMap(0), ts.OutputIndexMap(0, 1, 2)]
        )
        np.testing.assert_array_equal(store[transform].read().result(), VALUES[0, 1:7:2])
        np.testing.assert_array_equal(
            store[ts.IndexDomain(shape=[2, 2])].read().result(), VALUES[:2, :2]
        )
        np.testing.assert_array_equal(
            store[ts.d[0, 1].diagonal].read().result(), np.diagonal(VALUES)
        )


class TestAssignment:
    def test_every_mode(self, store):
        expected = VALUES.copy()
        store[1, 2:4] = 99
        expected[1, 2:4] = 99
        store.oindex[[0, 5], [1, 9]] = [[1, 2], [3, 4]]
        expected[np.ix_([0, 5], [1, 9])] = [[1, 2], [3, 4]]
        store.vindex[[2, 3], [4, 5]] = [7, 8]
        expected[[2, 3], [4, 5]] = [7, 8]
        store[::2, ::-3] = np.arange(12, dtype="int16").reshape(3, 4)
        expected[::2, ::-3] = np.arange(12).reshape(3, 4)
        np.testing.assert_array_equal(store.read().result(), expected)

    def test_from_another_array(self, store):
        other = ts.open(
            {"driver": "zarr", "kvstore": "memory://b/"}, create=True, dtype="int32",
            shape=[6, 10], chunk_layout=ts.ChunkLayout(chunk_shape=[5, 3]),
        ).result()  # fmt: skip
        other[...] = store
        np.testing.assert_array_equal(other.read().result(), VALUES)
        other[2:4, 1:3].write(store[0:2, 5:7].translate_to[2, 1]).result()
        np.testing.assert_array_equal(other[2:4, 1:3].read().result(), VALUES[0:2, 5:7])

    def test_non_native_and_unusual_memory(self, store):
        store[...] = VALUES.astype(">i2")[::-1, ::-1]
        np.testing.assert_array_equal(store.read().result(), VALUES[::-1, ::-1])


class TestNumpy:
    def test_asarray(self, store):
        np.testing.assert_array_equal(np.asarray(store), VALUES)
        np.testing.assert_array_equal(np.array(store[1:3], dtype="float64"), VALUES[1:3])

    def test_no_copy_is_refused(self, store):
        with pytest.raises(ValueError, match="cop"):
            store.__array__(copy=False)


class TestResize:
    def test_grow_and_shrink(self, store):
        store = store.resize(exclusive_max=[8, 4]).result()
        assert store.shape == (8, 4)
        expected = np.zeros((8, 4), "int16")
        expected[:6] = VALUES[:, :4]
        np.testing.assert_array_equal(store.read().result(), expected)

    def test_chunks_outside_are_deleted(self, store):
        assert len(store.kvstore.list().result()) == 1 + 6
        store.resize(exclusive_max=[4, 4]).result()
        assert len(store.kvstore.list().result()) == 1 + 1

    def test_unless_only_metadata_is_asked_for(self, store):
        store.resize(exclusive_max=[4, 4], resize_metadata_only=True).result()
        assert len(store.kvstore.list().result()) == 1 + 6
        again = store.resize(exclusive_max=[6, 10]).result()
        np.testing.assert_array_equal(again.read().result(), VALUES)

    def test_flags(self, store):
        with pytest.raises(ValueError, match=r"dimension 0.*shrink"):
            store.resize(exclusive_max=[3, None], expand_only=True).result()
        with pytest.raises(ValueError, match=r"dimension 1.*grow"):
            store.resize(exclusive_max=[None, 11], shrink_only=True).result()

    def test_through_a_view(self, store):
        with pytest.raises(ValueError, match="resize_tied_bounds"):
            store[2].resize(exclusive_max=[12]).result()
        grown = store[2].resize(exclusive_max=[12], resize_tied_bounds=True).result()
        assert grown.shape == (12,)
        assert store.resolve().result().shape == (6, 12)

    def test_resolve_sees_what_others_did(self, store):
        context = store.spec(retain_context=True)
        other = ts.open(context).result()
        other.resize(exclusive_max=[20, 30]).result()
        assert store.shape == (6, 10)
        assert store.resolve().result().shape == (20, 30)
        fixed = store.resolve(fix_resizable_bounds=True).result()
        assert str(fixed.domain) == "{ [0, 20), [0, 30) }"


class TestStorageStatistics:
    def test_of_nothing_some_and_all(self):
        store = ts.open(
            SPEC, create=True, dtype="uint8", shape=[8],
            chunk_layout=ts.ChunkLayout(chunk_shape=[4]),
        ).result()  # fmt: skip
        seen = []
        for index in (None, slice(0, 4), slice(4, 8)):
            if index is not None:
                store[index] = 1
            found = store.storage_statistics(query_not_stored=True, query_fully_stored=True)
            seen.append((found.result().not_stored, found.result().fully_stored))
        assert seen == [(True, False), (False, False), (False, True)]
        assert store.storage_statistics().result() == ts.TensorStore.StorageStatistics()


class TestSpec:
    def test_round_trip(self, store):
        spec = store[1:3, 2].spec()
        assert ts.Spec(spec.to_json()) == spec
        assert spec.domain == store[1:3, 2].domain

    def test_as_the_reference_prints_it(self, store):
        theirs = wheel.open(
            SPEC, create=True, dtype="int16", shape=[6, 10], context=wheel.Context(),
            chunk_layout=wheel.ChunkLayout(chunk_shape=[4, 4]), dimension_units=["nm", None],
        ).result()  # fmt: skip
        cases: list[dict[str, Any]] = [{}, {"minimal_spec": True}, {"unbind_context": True}]
        for options in cases:
            assert store[1:3].spec(**options).to_json() == theirs[1:3].spec(**options).to_json()

    def test_copies(self, store):
        for made in (copy.copy(store), store.spec(retain_context=True).copy()):
            assert made.domain == store.domain


def test_pickled_over_files(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    store = ts.open(spec, create=True, dtype="int16", shape=[6, 10]).result()
    store[...] = VALUES
    again = pickle.loads(pickle.dumps(store[2:4]))
    np.testing.assert_array_equal(again.read().result(), VALUES[2:4])
    assert again.mode == "rw"
    spec_again = pickle.loads(pickle.dumps(store.spec()))
    assert spec_again == store.spec()


def test_pickled_together_over_one_context():
    """What shares a memory store shares it after unpickling."""
    context = ts.Context()
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    store = ts.open(spec, create=True, dtype="uint8", shape=[2], context=context).result()
    specs = [store.spec(retain_context=True) for _ in range(2)]
    first, second = pickle.loads(pickle.dumps(specs))
    made = ts.open(first, open=True, create=True).result()
    made[...] = 4
    assert (ts.open(second).result().read().result() == 4).all()


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_assumed_metadata_touches_no_document(tmp_path, driver):
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    store = ts.open(spec, open=True, assume_metadata=True, dtype="uint8", shape=[4]).result()
    store[...] = 3
    assert (store.read().result() == 3).all()
    names = {each.name for each in tmp_path.rglob("*") if each.is_file()}
    assert names == {"0"}
    with pytest.raises(ValueError, match="assume_metadata"):
        store.resize(exclusive_max=[8]).result()


class TestCache:
    def open_pair(self, path, **members):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}, **members}
        context = ts.Context({"cache_pool": {"total_bytes_limit": 10**7}})
        layout = ts.ChunkLayout(chunk_shape=[4])
        writer = ts.open(
            spec, create=True, open=True, dtype="uint8", shape=[8], chunk_layout=layout
        ).result()
        return writer, ts.open(spec, context=context).result()

    def test_what_others_wrote_is_seen_by_default(self, tmp_path):
        writer, reader = self.open_pair(tmp_path)
        for value in range(1, 4):
            writer[...] = value
            assert (reader.read().result() == value).all()
        writer[...] = 0
        assert (reader.read().result() == 0).all()

    def test_and_not_when_that_was_not_asked_for(self, tmp_path):
        writer, reader = self.open_pair(tmp_path, recheck_cached_data=False)
        writer[...] = 1
        assert (reader.read().result() == 1).all()
        writer[...] = 2
        assert (reader.read().result() == 1).all()

    def test_ones_own_writes_are_always_seen(self, tmp_path):
        _, store = self.open_pair(tmp_path, recheck_cached_data=False)
        for value in range(1, 4):
            store[2:6] = value
            assert store.read().result().tolist() == [0, 0, value, value, value, value, 0, 0]

    def test_what_was_handed_out_is_not_what_is_kept(self, tmp_path):
        writer, reader = self.open_pair(tmp_path)
        writer[...] = 1
        found = reader[:4].read().result()
        found[...] = 9
        assert (reader.read().result() == 1).all()


def test_a_view_in_a_transaction_is_not_pickled_without_it(store):
    with pytest.raises(ts.FailedPreconditionError, match="with_transaction\\(None\\)"):
        pickle.dumps(store.with_transaction(ts.Transaction()))
