import pytest

import tensorstore_py as ts
from tensorstore_py._chunked.resources import CachePool, DataCopyConcurrency
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
    assert DataCopyConcurrency.parse({}).create() == width()
    assert DataCopyConcurrency.parse({"limit": "shared"}).create() == width()
    assert DataCopyConcurrency.parse({"limit": 3}).create() == 3


@pytest.mark.parametrize(
    ("model", "json", "path"),
    [
        (CachePool, {"total_bytes_limit": -1}, "total_bytes_limit"),
        (CachePool, {"total_bytes_limit": "1 GB"}, "total_bytes_limit"),
        (CachePool, {"total_bytes": 1}, "total_bytes"),
        (DataCopyConcurrency, {"limit": 0}, "limit"),
        (DataCopyConcurrency, {"limit": "few"}, "limit"),
    ],
)
def test_what_is_wrong_is_named(model, json, path):
    with pytest.raises(SpecError) as caught:
        model.parse(json)
    assert caught.value.path[0] == path
