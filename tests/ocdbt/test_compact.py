"""Compaction: what is kept stays readable by both libraries, space returns, nothing breaks."""

import random

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.ocdbt.database import Database
from tests.conversion.breaking_memory import BrokenError, store_of
from tests.ocdbt.databases import LIBRARIES, contents, generations, new, random_changes
from tests.ocdbt.rounds import far_away

HOURS = 3600.0


@pytest.mark.parametrize("kind", ["single", "numbered"])
@pytest.mark.parametrize("arity", [1, 2, 4])
def test_what_is_kept_is_as_it_was_for_both_libraries(tmp_path, kind, arity):
    source = random.Random(arity)
    nodes = source.choice([500, 100_000])
    db = new(tmp_path, manifest_kind=kind, version_tree_arity_log2=arity,
             max_decoded_node_bytes=nodes, max_inline_value_bytes=10)  # fmt: skip
    model: dict[bytes, bytes] = {}
    models: dict[int, dict[bytes, bytes]] = {}
    for step in range(2):
        models |= random_changes(db, model, source.randrange(5, 25), seed=step)
        named = source.choice(generations(db))
        ts.ocdbt.name(db, f"n{step}", named).result()
        live = source.choice([0, 0.5, 0.9])
        report = ts.ocdbt.compact(
            db, keep_last=source.randrange(4), live_below=live, grace=0
        ).result()

        left = generations(db)
        assert named in left
        assert len(left) == report.versions + (kind == "numbered")
        for library in LIBRARIES.values():
            for generation in sorted(set(left) & models.keys())[::3]:
                assert contents(tmp_path, generation, library) == models[generation]
            assert contents(tmp_path, library=library) == model
        checked = ts.ocdbt.check(tmp_path, all_versions=True, read_values=True).result()
        assert checked.ok, str(checked)
        assert checked.unreached_files == 0
        other = LIBRARIES["reference"]
        kv = other.KvStore.open(f"file://{tmp_path}/|ocdbt:", context=other.Context()).result()
        kv["by the reference"] = model[b"by the reference"] = b"%d" % step


def test_space_returns(tmp_path):
    db = new(tmp_path)
    for _ in range(10):
        with ts.Transaction() as transaction:
            staged = db.with_transaction(transaction)
            for number in range(10):
                staged[f"k{number}"] = bytes(10_000)
    db["k0"] = b"1"
    assert ts.ocdbt.check(tmp_path).result().file_bytes > 1_000_000

    report = ts.ocdbt.compact(tmp_path, keep_last=1, grace=0).result()

    assert (report.versions_before, report.versions, report.kept_for_format) == (12, 1, 0)
    after = ts.ocdbt.check(tmp_path, all_versions=True).result()
    assert after.file_bytes < 110_000
    assert report.deleted_bytes > 900_000
    assert after.ok
    assert after.keys == 10


def test_mostly_dead_files_are_left(tmp_path):
    db = new(tmp_path)
    with ts.Transaction() as transaction:
        staged = db.with_transaction(transaction)
        for number in range(20):
            staged[f"k{number}"] = bytes(1000)
    with ts.Transaction() as transaction:
        staged = db.with_transaction(transaction)
        for number in range(15):
            staged[f"k{number}"] = b"1"

    kept = ts.ocdbt.compact(tmp_path, keep_last=1, live_below=0.2, grace=0, dry_run=True).result()
    by_reference = ts.ocdbt.compact(tmp_path, keep_last=1, live_below=0, dry_run=True).result()
    done = ts.ocdbt.compact(tmp_path, keep_last=1, live_below=0.5, grace=0).result()

    assert (kept.left_files, by_reference.left_files, done.left_files) == (0, 0, 1)
    assert 5000 <= done.moved_bytes < 6000
    # What was moved, with the root, which refers to it: so that of before is not needed, either.
    assert len(list((tmp_path / "d").iterdir())) == 1
    assert contents(tmp_path)[b"k17"] == bytes(1000)


def test_all_versions_stay_unless_something_is_said(tmp_path):
    db = new(tmp_path)
    random_changes(db, {}, 5)

    report = ts.ocdbt.compact(db, grace=0).result()

    assert report.versions == report.versions_before == 6
    assert (report.deleted_files, report.left_files) == (0, 0)


def test_versions_since_a_time(tmp_path):
    db = new(tmp_path)
    random_changes(db, {}, 6)
    since = ts.ocdbt.versions(db, first=5, last=5).result()[0].time

    ts.ocdbt.compact(db, keep_since=since, grace=0).result()

    assert generations(db) == [7, 6, 5]


def test_files_wait_for_the_grace_and_a_second_run(tmp_path, monkeypatch):
    db = new(tmp_path)
    for number in range(4):
        db["a"] = b"%d" % number * 1000
    old = ts.ocdbt.open(tmp_path, 3).result()
    assert old["a"] == b"1" * 1000
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)

    first = ts.ocdbt.compact(tmp_path, keep_last=1).result()
    now += 23 * HOURS
    early = ts.ocdbt.compact(tmp_path, keep_last=1).result()
    assert (first.deleted_files, early.deleted_files) == (0, 0)
    assert first.waiting_files == early.waiting_files == 3
    assert first.due == 1e9 + 24 * HOURS
    assert old["a"] == b"1" * 1000  # who has an old version open goes on
    now += 2 * HOURS
    last = ts.ocdbt.compact(tmp_path, keep_last=1).result()

    assert (last.deleted_files, last.waiting_files, last.due) == (3, 0, None)
    assert not (tmp_path / "unreached_files.json").exists()
    assert contents(tmp_path) == {b"a": b"3" * 1000}


def test_files_that_are_needed_again_are_forgotten_as_garbage(tmp_path, monkeypatch):
    db = new(tmp_path)
    db["a"] = b"1" * 1000
    (values,) = (tmp_path / "d").iterdir()
    manifest = (tmp_path / "manifest.ocdbt").read_bytes()
    del db["a"]
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)
    # A writer whose commit comes after the first run: here the manifest of before.
    assert ts.ocdbt.compact(tmp_path, keep_last=1).result().waiting_files == 1
    (tmp_path / "manifest.ocdbt").write_bytes(manifest)
    now += 48 * HOURS

    report = ts.ocdbt.compact(tmp_path, keep_last=1).result()

    assert report.deleted_files == 0
    assert values.exists()
    assert contents(tmp_path) == {b"a": b"1" * 1000}


def test_a_writer_that_knows_a_removed_version_goes_on(tmp_path):
    # Its manifest is that of before, and files of that one are gone.
    db = new(tmp_path, version_tree_arity_log2=1, max_inline_value_bytes=0)
    for number in range(4):
        db["a"] = b"%d" % number * 100

    ts.ocdbt.compact(tmp_path, keep_last=1, grace=0).result()

    db["b"] = b"more"
    db.write("a", b"new", if_equal=db.read("a").result().stamp.generation).result()
    assert contents(tmp_path) == {b"a": b"new", b"b": b"more"}


@pytest.mark.parametrize("kind", ["single", "numbered"])
def test_killed_before_any_write_it_leaves_a_whole_database(kind):
    context = ts.Context()
    store = store_of(context)
    config = {"manifest_kind": kind, "version_tree_arity_log2": 1, "max_decoded_node_bytes": 500}
    spec = {"driver": "ocdbt", "base": {"driver": "breaking_memory", "path": "db/"},
            "config": config}  # fmt: skip
    db = ts.KvStore.open(spec, context=context).result()
    model: dict[bytes, bytes] = {}
    random_changes(db, model, 12)
    steps = 0
    while True:
        store.restore()
        store.left = steps
        try:
            ts.ocdbt.compact(spec, keep_last=2, live_below=0.9, grace=0, context=context).result()
        except BrokenError:
            done = False
        else:
            done = True
        store.restore()
        fresh = ts.KvStore.open(spec, context=context).result()
        found = {bytes(key): fresh[key] for key in fresh.list().result()}
        assert found == model
        assert ts.ocdbt.check(spec, all_versions=True, context=context).result().ok
        if done:
            break
        steps += 1
    assert steps > 3


def test_others_may_commit_while_it_runs(tmp_path, monkeypatch):
    db = new(tmp_path, max_inline_value_bytes=0, version_tree_arity_log2=1)
    for number in range(9):
        db["a"] = b"%d" % number * 100
    other = LIBRARIES["reference"].KvStore.open(f"file://{tmp_path}/|ocdbt:").result()
    replace = Database.replace
    left = [2]

    async def late(self, old, manifest):
        if left[0]:
            left[0] -= 1
            other[f"late{left[0]}"] = b"x"
        return await replace(self, old, manifest)

    monkeypatch.setattr(Database, "replace", late)
    ts.ocdbt.compact(tmp_path, keep_last=1, grace=0).result()

    assert contents(tmp_path) == {b"a": b"8" * 100, b"late0": b"x", b"late1": b"x"}
    assert ts.ocdbt.check(tmp_path, all_versions=True).result().ok


def test_a_version_that_gets_a_name_while_it_is_dropped_is_there_again(tmp_path, monkeypatch):
    db = new(tmp_path, max_inline_value_bytes=0, version_tree_arity_log2=1)
    for number in range(9):
        db["a"] = b"%d" % number * 100
    replace = Database.replace

    async def named_first(self, old, manifest):
        path = tmp_path / "version_names.json"
        if not path.exists():
            path.write_text('{"names": {"late": 3}}')
        return await replace(self, old, manifest)

    monkeypatch.setattr(Database, "replace", named_first)
    ts.ocdbt.compact(tmp_path, keep_last=1, grace=0).result()

    assert ts.ocdbt.open(tmp_path, "late").result()["a"] == b"1" * 100
    assert ts.ocdbt.check(tmp_path, all_versions=True).result().ok


def test_a_database_within_another_one_and_damaged_ones_are_left_alone(tmp_path):
    whole = new(tmp_path)
    whole["a"] = b"1"
    part = new(tmp_path / "part")
    part["a"] = b"1"

    with pytest.raises(ts.FailedPreconditionError, match="compact that one"):
        ts.ocdbt.compact(part).result()
    ts.ocdbt.compact(whole, keep_last=1, grace=0).result()
    assert contents(tmp_path / "part") == {b"a": b"1"}
    (file,) = (tmp_path / "d").iterdir()
    file.write_bytes(b"damaged")
    with pytest.raises(ts.DataLossError, match=file.name):
        ts.ocdbt.compact(whole, keep_last=1, grace=0).result()
    assert file.exists()


@pytest.mark.parametrize("wrong", [
    {"keep_last": -1}, {"grace": -1}, {"live_below": 2}, {"keep_since": "yesterday"},
])  # fmt: skip
def test_arguments_are_refused_at_once(wrong):
    with pytest.raises(ts.SpecError, match=next(iter(wrong))):
        ts.ocdbt.compact("memory://|ocdbt:", **wrong)


def test_nodes_and_values_are_moved_many_at_a_time(tmp_path, monkeypatch):
    db = new(tmp_path, max_decoded_node_bytes=2000, max_inline_value_bytes=4)
    model = {}
    for step in range(3):
        with ts.Transaction() as transaction:
            staged = db.with_transaction(transaction)
            for number in range(0, 4000, step + 1):
                staged[f"k{number:05}"] = model[b"k%05d" % number] = b"value %d" % (number + step)
    nodes = ts.ocdbt.check(tmp_path).result().nodes
    stores = far_away(monkeypatch)

    report = ts.ocdbt.compact(tmp_path, keep_last=1, live_below=1, grace=0).result()

    assert report.left_files
    assert nodes > 150
    assert sum(store.rounds for store in stores) < nodes / 3
    monkeypatch.undo()
    assert contents(tmp_path) == model
    assert contents(tmp_path, library=LIBRARIES["reference"]) == model
    assert ts.ocdbt.check(tmp_path, read_values=True).result().ok
