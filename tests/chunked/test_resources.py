import pytest

import tensorstore_py as ts
from tensorstore_py._chunked.resources import (
    CachePool,
    DataCopyConcurrency,
    MemoryLimit,
    memory_bytes,
)
from tensorstore_py._runtime.workers import width
from tensorstore_py.errors import SpecError


def test_a_cache_pool_keeps_nothing_by_default():
    assert CachePool.parse({}).create().limit_bytes == 0
    assert CachePool.parse({"total_bytes_limit": 1000}).create().limit_bytes == 1000


def test_one_pool_a_context():
    context = ts.Context({"cache_pool": {"total_bytes_limit": 7}, "cache_pool#b": {}})
    assert context["cache_pool"].value is context["cache_pool"].value
    assert context["cache_pool#b"].value is not context["cache_pool"].value


def test_data_copy_concurrency_is_a_thread_a_core_by_default():
    shared = DataCopyConcurrency.parse({}).create()
    assert shared.limit == width()
    assert DataCopyConcurrency.parse({"limit": "shared"}).create() is shared
    assert DataCopyConcurrency.parse({"limit": 3}).create().limit == 3


def test_memory_in_flight_is_a_quarter_of_the_machines_by_default():
    shared = MemoryLimit.parse({}).create()
    assert shared.limit == max(64 * 2**20, memory_bytes() // 4)
    assert MemoryLimit.parse({"limit_bytes": "shared"}).create() is shared
    assert MemoryLimit.parse({"limit_bytes": 1000}).create().limit == 1000
    assert 2**26 < memory_bytes() < 2**50


def test_a_memory_limit_is_printed_only_where_it_was_asked_for():
    spec = {"driver": "zarr3", "kvstore": "memory://a/"}
    store = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
    assert "memory_limit" not in repr(store)
    assert "memory_limit" not in str(store.spec(retain_context=True).to_json(include_defaults=True))
    limited = {**spec, "memory_limit": {"limit_bytes": 1000}}
    store = ts.open(limited, create=True, dtype="uint8", shape=[4]).result()
    found = store.spec(retain_context=True).to_json()
    assert found["memory_limit"] == {"limit_bytes": 1000}
    context = ts.Context({"memory_limit": {"limit_bytes": 1000}})
    store = ts.open(spec, create=True, dtype="uint8", shape=[4], context=context).result()
    assert "'memory_limit': {'limit_bytes': 1000}" in str(store.spec(retain_context=True))


@pytest.mark.parametrize(
    ("model", "json", "path"),
    [
        (CachePool, {"total_bytes_limit": -1}, "total_bytes_limit"),
        (CachePool, {"total_bytes_limit": "1 GB"}, "total_bytes_limit"),
        (CachePool, {"total_bytes": 1}, "total_bytes"),
        (DataCopyConcurrency, {"limit": 0}, "limit"),
        (DataCopyConcurrency, {"limit": "few"}, "limit"),
        (MemoryLimit, {"limit_bytes": 0}, "limit_bytes"),
        (MemoryLimit, {"limit": 5}, "limit"),
    ],
)
def test_what_is_wrong_is_named(model, json, path):
    with pytest.raises(SpecError) as caught:
        model.parse(json)
    assert caught.value.path[0] == path
