"""Copies within OCDBT databases: by reference, as the reference makes them, and read by both."""

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemorySpec
from tensorstore_py.testing import CountingStore

LARGE = b"large" * 1000
BOTH = pytest.mark.parametrize("library", [ts, reference], ids=["ours", "theirs"])


def spec_of(folder, **members):
    return {"driver": "ocdbt", "base": {"driver": "file", "path": f"{folder}/"}, **members}


def open_anew(library, spec, context=None):
    return library.KvStore.open(spec, context=context or library.Context()).result()


def contents(kv):
    return {bytes(key): bytes(kv.read(key).result().value) for key in kv.list().result()}


def value_files(path):
    """Files of values, which begin so in these tests."""
    return sorted(file for file in path.rglob("v*") if file.is_file())


def fill(library, path, pairs, **members):
    kv = open_anew(library, spec_of(path, value_data_prefix="v", **members))
    with library.Transaction() as transaction:
        for key, value in pairs.items():
            kv.with_transaction(transaction)[key] = value


@pytest.fixture
def counted(monkeypatch):
    """The files of databases in memory, counted."""
    opened = MemorySpec.open
    stores: dict[int, CountingStore] = {}

    def open_counted(spec):
        store = opened(spec)
        return stores.setdefault(id(spec.memory_key_value_store.value), CountingStore(store))

    monkeypatch.setattr(MemorySpec, "open", open_counted)
    return stores


PAIRS = {"x/a": b"inline", "x/b": LARGE, "x/c/d": LARGE[:700], "y": b"other", "x": b"no"}


@BOTH
@pytest.mark.parametrize("config", [{}, {"max_decoded_node_bytes": 200}], ids=["flat", "deep"])
def test_a_copy_within_a_database(tmp_path, library, config):
    fill(library, tmp_path, PAIRS, config=config)
    before = value_files(tmp_path)
    kv = open_anew(library, spec_of(tmp_path, value_data_prefix="v"))

    (kv / "x/").experimental_copy_range_to(kv / "z/").result()

    assert value_files(tmp_path) == before
    wanted = {key.encode(): value for key, value in PAIRS.items()}
    wanted |= {b"z/a": b"inline", b"z/b": LARGE, b"z/c/d": LARGE[:700]}
    for reader in (ts, reference):
        assert contents(open_anew(reader, spec_of(tmp_path))) == wanted


@BOTH
def test_a_range_of_keys_replaces_what_is_there_and_leaves_the_rest(tmp_path, library):
    fill(library, tmp_path, {**PAIRS, "z/b": b"old", "z/c/d": b"stays"})
    kv = open_anew(library, spec_of(tmp_path))

    wanted = library.KvStore.KeyRange("b", "c")
    (kv / "x/").experimental_copy_range_to(kv / "z/", wanted).result()

    for reader in (ts, reference):
        found = contents(open_anew(reader, spec_of(tmp_path, path="z/")))
        assert found == {b"b": LARGE, b"c/d": b"stays"}


@pytest.mark.parametrize("child", [ts, reference], ids=["from_ours", "from_theirs"])
@BOTH
def test_databases_below_are_merged_by_reference_in_one_transaction(tmp_path, library, child):
    wanted = {b"own": b"1"}
    fill(library, tmp_path, {"own": b"1"})
    for process in range(3):
        pairs = {f"p{process}/{n:03d}": LARGE[: 50 * n] for n in range(40)}
        config = {"max_decoded_node_bytes": 500} if process else {}
        fill(child, tmp_path / f"ocdbt.process_{process}", pairs, config=config)
        wanted |= {key.encode(): value for key, value in pairs.items()}
    before = value_files(tmp_path)

    context = library.Context()  # the reference knows by it that the files are in one store
    parent = open_anew(library, spec_of(tmp_path, value_data_prefix="v"), context)
    transaction = library.Transaction(atomic=True)
    copies = []
    for process in range(3):
        part = open_anew(library, spec_of(tmp_path / f"ocdbt.process_{process}"), context)
        copies.append(part.experimental_copy_range_to(parent.with_transaction(transaction)))
    for copy in copies:
        copy.result()
    assert bytes(parent.with_transaction(transaction)["p1/020"]) == LARGE[:1000]
    assert contents(parent) == {b"own": b"1"}
    transaction.commit_sync()

    assert value_files(tmp_path) == before
    for reader in (ts, reference):
        assert contents(open_anew(reader, spec_of(tmp_path))) == wanted


def test_what_was_merged_is_copied_on_by_reference(tmp_path):
    inner = tmp_path / "a" / "b"
    fill(ts, inner, {"k": LARGE})
    for here, there in ((tmp_path / "a", inner), (tmp_path, tmp_path / "a")):
        target = open_anew(ts, spec_of(here))
        open_anew(ts, spec_of(there)).experimental_copy_range_to(target).result()

    assert len(value_files(tmp_path)) == 1
    for reader in (ts, reference):
        assert contents(open_anew(reader, spec_of(tmp_path))) == {b"k": LARGE}


def test_another_database_that_is_not_below_is_copied_by_value(tmp_path):
    fill(ts, tmp_path / "one", {"k": LARGE})
    target = open_anew(ts, spec_of(tmp_path / "two", value_data_prefix="v"))

    open_anew(ts, spec_of(tmp_path / "one")).experimental_copy_range_to(target).result()

    assert len(value_files(tmp_path / "two")) == 1
    assert contents(open_anew(reference, spec_of(tmp_path / "two"))) == {b"k": LARGE}


def test_an_old_version_is_copied_as_it_was(tmp_path):
    kv = open_anew(ts, spec_of(tmp_path))
    kv["x/a"] = LARGE
    kv["x/a"] = b"new"

    old = open_anew(ts, spec_of(tmp_path, version=2, path="x/"))
    old.experimental_copy_range_to(kv / "y/").result()

    found = contents(open_anew(reference, spec_of(tmp_path)))
    assert found == {b"x/a": b"new", b"y/a": LARGE}


def test_a_copy_of_10000_keys_is_one_commit_and_moves_no_value(counted):
    kv = ts.KvStore.open("memory://db/|ocdbt:").result()
    with ts.Transaction() as transaction:
        staged = kv.with_transaction(transaction)
        for number in range(10_000):
            staged[f"x/{number:05d}"] = LARGE[:200]
    (store,) = counted.values()
    before, nodes = set(store.writes), len(b"/0000/") * 10_000
    store.reset()

    (kv / "x/").experimental_copy_range_to(kv / "y/").result()

    assert store.writes["db/manifest.ocdbt"] == 1
    assert len(set(store.writes) - before) == 1, "one data file, with the tree"
    assert store.bytes_written.total() < nodes * 10 < 10_000 * 200
    assert store.bytes_read.total() < nodes * 10
    assert len(kv.list().result()) == 20_000


def test_a_staged_copy_is_seen_changed_and_deleted_in_its_transaction(counted):
    kv = ts.KvStore.open("memory://db/|ocdbt:").result()
    for key in "abc":
        kv[f"x/{key}"] = LARGE
    with ts.Transaction() as transaction:
        staged = kv.with_transaction(transaction)
        (kv / "x/").experimental_copy_range_to(staged / "y/").result()
        assert staged.read("y/a", byte_range=slice(1, 4)).result().value == b"arg"
        assert staged.list().result() == [b"x/a", b"x/b", b"x/c", b"y/a", b"y/b", b"y/c"]
        staged["y/b"] = b"changed"
        del staged["y/c"]
        (store,) = counted.values()
        store.reset()

    assert store.bytes_written.total() < len(LARGE)
    assert contents(kv / "y/") == {b"a": LARGE, b"b": b"changed"}


def test_a_source_in_a_transaction_is_copied_as_it_is_seen(tmp_path):
    kv = open_anew(ts, spec_of(tmp_path))
    kv["x/a"] = LARGE
    transaction = ts.Transaction()
    staged = kv.with_transaction(transaction)
    staged["x/b"] = b"staged"

    (staged / "x/").experimental_copy_range_to(kv / "y/").result()
    transaction.abort()

    assert contents(kv) == {b"x/a": LARGE, b"y/a": LARGE, b"y/b": b"staged"}


def test_an_inline_value_obeys_the_configuration_of_the_target(tmp_path):
    inner = tmp_path / "p"
    fill(ts, inner, {"k": b"inline" * 10})
    config = {"max_inline_value_bytes": 5}
    target = open_anew(ts, spec_of(tmp_path, value_data_prefix="v", config=config))

    open_anew(ts, spec_of(inner)).experimental_copy_range_to(target).result()

    assert [file.read_bytes() for file in value_files(tmp_path)] == [b"inline" * 10]
    assert contents(open_anew(reference, spec_of(tmp_path))) == {b"k": b"inline" * 10}


def test_a_version_is_no_target(tmp_path):
    kv = open_anew(ts, spec_of(tmp_path))
    kv["a"] = LARGE
    with pytest.raises(ts.UnsupportedError, match="read-only"):
        kv.experimental_copy_range_to(open_anew(ts, spec_of(tmp_path, version=2))).result()
