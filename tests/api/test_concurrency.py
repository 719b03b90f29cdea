"""The two concurrency resources decide how many threads one local operation asks for."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._runtime.workers import submit, width

SHAPE = [64, 64, 64]


def opened(tmp_path, **context):
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False},
        "context": context,
    }
    layout = ts.ChunkLayout(chunk_shape=[32, 32, 32])
    return ts.open(spec, create=True, dtype="float64", shape=SHAPE, chunk_layout=layout).result()


@pytest.fixture
def asked_for(monkeypatch):
    """How many helpers a piece of work invites to its fan-outs."""
    invited = []

    def watch(work):
        invited.append(work)
        submit(work)

    monkeypatch.setattr("tensorstore_py._runtime.fan_out.submit", watch)

    def count(work):
        invited.clear()
        work()
        return len(invited)

    return count


@pytest.mark.parametrize("resource", ["data_copy_concurrency", "file_io_concurrency"])
def test_a_limit_of_one_keeps_an_operation_on_the_calling_thread(tmp_path, resource, asked_for):
    store = opened(tmp_path, **{resource: {"limit": 1}})
    data = np.random.default_rng(0).random(SHAPE)

    assert asked_for(lambda: store.write(data).result()) == 0
    assert asked_for(lambda: store.read().result()) == 0
    np.testing.assert_array_equal(store.read().result(), data)


def test_by_default_the_whole_pool_is_invited(tmp_path, asked_for):
    store = opened(tmp_path)
    data = np.random.default_rng(0).random(SHAPE)

    assert asked_for(lambda: store.write(data).result()) == width() - 1
    assert asked_for(lambda: store.read().result()) == width() - 1


def test_what_is_decoded_faster_than_a_thread_wakes_is_not_shared_out(tmp_path, asked_for):
    store = opened(tmp_path)
    store.write(1.5).result()

    assert asked_for(lambda: store[0, 0, 0].read().result()) == 0
