"""Arrays as JSON for other processes."""

import asyncio

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.arrays import array_json, open_json
from tensorstore_py._runtime.start import start


def array(tmp_path, **options):
    spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}
    given = {"create": True, "dtype": "int16", "shape": [6, 7], **options}
    return ts.open(spec, **given).result()


def again(json):
    return start(False, lambda: open_json(json, ts.Context(), "the array")).result()


def test_a_view_is_the_same_elsewhere(tmp_path):
    store = array(tmp_path)
    store[...] = 5
    view = store[2:4, ::2]

    found = again(array_json(view, "a"))

    assert found.domain == view.domain
    assert found.read().result().tolist() == view.read().result().tolist()


def test_how_it_was_opened_here_does_not_travel(tmp_path):
    json = array_json(array(tmp_path), "a")

    assert not {"create", "open", "delete_existing", "assume_metadata"} & set(json)
    assert json["kvstore"] == {"driver": "file", "path": f"{tmp_path}/a/", "file_io_sync": True}
    assert "context" not in json


def test_limits_travel(tmp_path):
    context = ts.Context({"memory_limit": {"limit_bytes": 77}})

    json = array_json(array(tmp_path, context=context), "a")

    assert json["context"] == {"memory_limit": {"limit_bytes": 77}}


def test_what_is_gone_or_changed_is_told(tmp_path):
    store = array(tmp_path)
    json = array_json(store, "a")
    ts.open(store.spec(), create=True, delete_existing=True, open=False).result()
    again(json)
    array(tmp_path, shape=[6, 8], delete_existing=True)
    with pytest.raises(ts.FailedPreconditionError, match="the array has changed"):
        again(json)
    (tmp_path / "a/zarr.json").unlink()
    with pytest.raises(ts.FailedPreconditionError, match="not there any more"):
        again(json)


def test_what_a_transaction_sees_stays_here(tmp_path):
    store = array(tmp_path).with_transaction(ts.Transaction())

    with pytest.raises(ts.UnsupportedError, match="transaction"):
        array_json(store, "the array")


def test_opening_holds_no_loop_up(tmp_path):
    json = array_json(array(tmp_path), "a")

    async def several():
        return await asyncio.gather(*(open_json(json, ts.Context(), "a") for _ in range(3)))

    assert [each.shape for each in start(False, several).result()] == [(6, 7)] * 3
