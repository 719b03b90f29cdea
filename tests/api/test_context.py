"""Contexts as arrays use them: what is shared with whom."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import NotFoundError, SpecError

MEMORY = {"driver": "zarr3", "kvstore": "memory://a/"}


def create(spec, **options):
    return ts.open(spec, create=True, dtype="uint8", shape=[4], **options).result()


def test_one_context_is_one_memory():
    context = ts.Context()
    create(MEMORY, context=context)[...] = 7
    assert (ts.open(MEMORY, context=context).result().read().result() == 7).all()
    with pytest.raises(NotFoundError):
        ts.open(MEMORY, context=ts.Context()).result()
    with pytest.raises(NotFoundError):
        ts.open(MEMORY).result()


def test_named_references_are_apart():
    context = ts.Context({"memory_key_value_store#other": {}})
    there = {"driver": "memory", "path": "a/", "memory_key_value_store": "memory_key_value_store"}
    other = {**there, "memory_key_value_store": "memory_key_value_store#other"}
    create({"driver": "zarr3", "kvstore": there}, context=context)[...] = 1
    create({"driver": "zarr3", "kvstore": other}, context=context)[...] = 2
    for kvstore, value in ((there, 1), (other, 2)):
        opened = ts.open({"driver": "zarr3", "kvstore": kvstore}, context=context).result()
        assert (opened.read().result() == value).all()


def test_a_context_written_in_the_spec():
    limits = {"cache_pool#big": {"total_bytes_limit": 10**6}}
    store = create({**MEMORY, "context": limits, "cache_pool": "cache_pool#big"})
    store[...] = 3
    assert (store.read().result() == 3).all()
    assert store.spec().to_json().get("context") is None
    printed = store.spec(unbind_context=True).to_json()
    assert printed["context"]["cache_pool#big"] == {"total_bytes_limit": 10**6}
    assert printed["cache_pool"] == "cache_pool#big"


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({"cache_pool": "cache_pool#none"}, "cache_pool#none"),
        ({"data_copy_concurrency": {"limit": 0}}, "limit"),
        ({"file_io_concurrency": {"limit": "many"}}, "limit"),
    ],
)
def test_a_context_that_is_wrong_is_named(context, path, tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    with pytest.raises(SpecError, match=path):
        create(spec, context=ts.Context(context))


@pytest.mark.parametrize("limit", [1, 4, "shared"])
def test_concurrency_limits_change_no_result(tmp_path, limit):
    context = ts.Context(
        {"data_copy_concurrency": {"limit": limit}, "file_io_concurrency": {"limit": limit}}
    )
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    values = np.arange(1, 101, dtype="uint8").reshape(10, 10)
    store = ts.open(
        spec, create=True, dtype="uint8", shape=[10, 10], context=context,
        chunk_layout=ts.ChunkLayout(chunk_shape=[3, 3]),
    ).result()  # fmt: skip
    store[...] = values
    np.testing.assert_array_equal(store.read().result(), values)


@pytest.mark.parametrize("sync", [True, False])
def test_file_io_sync_by_member_and_by_context(tmp_path, sync):
    kvstore = {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": sync}
    create({"driver": "zarr3", "kvstore": kvstore})[...] = 1
    opened = ts.open(
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}},
        context=ts.Context({"file_io_sync": sync}),
    ).result()
    assert (opened.read().result() == 1).all()


class TestRecheckMetadata:
    def pair(self, path, **options):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        writer = create(spec)
        return writer, ts.open(spec, **options).result()

    def test_known_from_opening_by_default(self, tmp_path):
        writer, reader = self.pair(tmp_path)
        writer.resize(exclusive_max=[9]).result()
        assert reader.read().result().shape == (4,)
        assert reader.resolve().result().shape == (9,)

    def test_looked_up_again_on_request(self, tmp_path):
        writer, reader = self.pair(tmp_path, recheck_cached_metadata=True)
        writer.resize(exclusive_max=[9]).result()
        assert reader[:9].read().result().shape == (9,)

    def test_an_array_deleted_under_our_hands(self, tmp_path):
        _, reader = self.pair(tmp_path, recheck_cached_metadata=True)
        (tmp_path / "zarr.json").unlink()
        with pytest.raises(NotFoundError, match=r"zarr\.json.*deleted"):
            reader.read().result()

    def test_an_array_replaced_by_one_of_another_form(self, tmp_path):
        _, reader = self.pair(tmp_path, recheck_cached_metadata=True)
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        ts.open(spec, create=True, delete_existing=True, dtype="int64", shape=[2, 2]).result()
        with pytest.raises(ValueError, match="open the array again"):
            reader.read().result()
