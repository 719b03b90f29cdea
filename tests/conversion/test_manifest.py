import json

import pytest

from tensorstore_py._conversion.manifest import ArrayRecord, Manifest
from tensorstore_py._plan.task_numbers import TaskNumbers
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import AbortedError, DataLossError, FailedPreconditionError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing.fake_stores import FaultyStore

REQUEST: dict[str, object] = {"source": "memory://a/", "zarr_format": None}


@pytest.fixture
def store():
    return MemoryStore(SharedMap())


def manifest(store, request=REQUEST):
    return Manifest(store, "m.json", True, request)


def stored(store):
    return json.loads(bytes(run_inline(store.read("m.json")).value))


def test_tells_a_later_copy_what_is_done(store):
    first = manifest(store)
    run_inline(first.load())
    record = ArrayRecord("form", "5-a")
    run_inline(first.begin({"a/b": record, "c": ArrayRecord("other")}))
    for block in (0, 1, 3):
        run_inline(first.change("a/b", record, block))

    second = manifest(store)
    run_inline(second.load())

    found = second.record("a/b")
    assert (found.form, found.blocks, str(found.done), found.complete) == (
        "form", "5-a", "0-1,3", False,
    )  # fmt: skip
    assert second.record("c").blocks is None
    assert second.record("d") is None
    record.complete = True
    run_inline(first.change("a/b", record))
    run_inline(second.load())
    assert second.record("a/b").complete


def test_is_a_document_to_be_read(store):
    first = manifest(store)
    run_inline(first.begin({"a": ArrayRecord("form", "2-a", TaskNumbers([0]))}))

    assert stored(store) == {
        "tensorstore_py_copy": 1,
        "request": REQUEST,
        "arrays": {"a": {"form": "form", "blocks": "2-a", "done": "0"}},
    }


def test_is_of_one_copy_only(store):
    run_inline(manifest(store).begin({"a": ArrayRecord("form")}))

    with pytest.raises(FailedPreconditionError, match='source was "memory://a/", and is "x"'):
        run_inline(manifest(store, {**REQUEST, "source": "x"}).load())
    with pytest.raises(FailedPreconditionError, match="codec was null"):
        run_inline(manifest(store, {**REQUEST, "codec": "'zstd'"}).load())


def test_is_not_shared(store):
    first, second = manifest(store), manifest(store)
    run_inline(first.begin({"a": ArrayRecord("form")}))

    with pytest.raises(AbortedError, match="another copy"):
        run_inline(second.begin({"a": ArrayRecord("form")}))


def test_what_could_not_be_stored_is_stored_with_the_next(store):
    faulty = FaultyStore(store)
    first = Manifest(faulty, "m.json", True, REQUEST)
    record = ArrayRecord("form", "3-a")
    run_inline(first.begin({"a": record}))
    faulty.fail("write", OSError("unplugged"))

    with pytest.raises(OSError, match="unplugged"):
        run_inline(first.change("a", record, 0))
    run_inline(first.change("a", record, 1))

    assert stored(store)["arrays"]["a"]["done"] == "0-1"


HEAD = b'{"tensorstore_py_copy": 1, "request": {"source": "memory://a/", "zarr_format": null}'


@pytest.mark.parametrize(
    "value",
    [
        b"{}",
        b"no JSON",
        b'{"tensorstore_py_copy": 1}',
        HEAD + b', "arrays": {"a": {"form": "x", "blocks": "1-a", "done": "?"}}}',
        HEAD + b', "arrays": {"a": 1}}',
        HEAD + b', "arrays": {"a": {}}}',
    ],
)
def test_says_what_is_no_manifest(store, value):
    run_inline(store.write("m.json", value))

    with pytest.raises(DataLossError, match=r"m\.json"):
        run_inline(manifest(store).load())
