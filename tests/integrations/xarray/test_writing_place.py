"""Places: whatever says where."""

import pytest

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_place import as_place, below, parents


def place(target, zarr_format=None, context=None, transaction=None):
    return as_place(target, zarr_format=zarr_format, context=context, transaction=transaction)


def test_targets_say_formats(tmp_path) -> None:
    spec = {"driver": "zarr", "kvstore": "memory://a"}

    assert place(spec).zarr_format == 2
    assert place(ts.Spec(spec)).zarr_format == 2
    assert place("memory://a/|zarr3:").zarr_format == 3
    assert place("memory://a/|zarr2:", 3).zarr_format == 3
    assert place(ts.zarr.group(zarr_format=2)).zarr_format == 2
    assert place(tmp_path).zarr_format is None


@pytest.mark.parametrize("target", ["memory://a", {"driver": "memory", "path": "a"}])
def test_places_are_directories(target) -> None:
    assert place(target).kvstore.path == "a/"


def test_a_dictionary_of_bytes_is_written_into() -> None:
    files: dict[str, bytes] = {}

    place(files).kvstore.write("a", b"1").result()

    assert files == {"a": b"1"}


def test_an_archive_is_rewritten(tmp_path) -> None:
    assert place(tmp_path / "a.zip").rewritten
    assert not place(tmp_path / "a").rewritten


def test_transactions_are_those_of_the_target_if_none_is_said() -> None:
    own, other = ts.Transaction(), ts.Transaction()
    kvstore = ts.KvStore.open("memory://", transaction=own).result()

    assert place(kvstore).transaction is own
    assert place(kvstore).kvstore.transaction is own
    assert place(kvstore, transaction=other).kvstore.transaction is other
    assert place("memory://").transaction is None


def test_a_context_is_shared() -> None:
    context = ts.Context()
    place("memory://", context=context).kvstore.write("a", b"1").result()

    assert place("memory://", context=context).kvstore.read("a").result().value == b"1"


def test_no_places() -> None:
    with pytest.raises((TypeError, ts.SpecError)):
        place(5)
    with pytest.raises((TypeError, ts.SpecError)):
        place({"driver": "zarr3"})


def test_paths() -> None:
    assert below("a", "b/c") == "a/b/c"
    assert parents("a") == [""]
    assert '"/a"' in place(ts.zarr.MemoryStore({}).kvstore).describe("a") or place(
        ts.zarr.MemoryStore({}).kvstore
    ).describe("a").endswith("a")
