"""Checks: what is damaged is found, with the keys that are lost, and what nothing needs."""

import importlib
import random

import pytest

import tensorstore_py as ts
from tensorstore_py.ocdbt.files import files_of
from tests.ocdbt.databases import (
    LIBRARIES,
    contents,
    damage,
    generations,
    new,
    random_changes,
    root_of,
)

CONFIGS = [
    {},
    {"max_decoded_node_bytes": 300, "max_inline_value_bytes": 0, "compression": None},
    {"manifest_kind": "numbered", "max_decoded_node_bytes": 600, "version_tree_arity_log2": 1},
]


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_databases_of_both_libraries_are_whole(tmp_path, library, config):
    db = new(tmp_path, library, **config)
    source = random.Random(3)
    for _ in range(30):
        db[f"k{source.randrange(40)}"] = source.randbytes(source.randrange(120))

    report = ts.ocdbt.check(tmp_path, all_versions=True, read_values=True).result()

    assert report.ok, str(report)
    assert report.versions == len(generations(tmp_path)) == 31
    assert report.keys == len(contents(tmp_path))
    assert report.newest_whole == report.latest == 31
    assert report.unreached_files == 0
    assert report.to_json()["ok"] is True


def test_progress_counts_nodes(tmp_path):
    db = new(tmp_path, max_decoded_node_bytes=300)
    random_changes(db, {}, 10)
    seen: list[ts.Progress] = []

    report = ts.ocdbt.check(db, all_versions=True, progress=seen.append).result()

    assert seen[-1].chunks_done == seen[-1].chunks_total == report.nodes > 10
    assert seen[-1].bytes_done == report.node_bytes


def test_every_damaged_byte_of_the_latest_tree_is_found(tmp_path):
    db = new(tmp_path, max_decoded_node_bytes=400, max_inline_value_bytes=1000)
    random_changes(db, {}, 4)
    file, offset, length = root_of(tmp_path)

    for place in range(offset, offset + length, 7):
        damage(tmp_path, file, place)
        report = ts.ocdbt.check(tmp_path).result()
        damage(tmp_path, file, place)
        assert report.problem_count == 1
        problem = report.problems[0]
        assert (problem.kind, problem.file) == ("node", file)
        assert (problem.begin, problem.end) == (offset, offset + length)
        assert problem.lost == report.keys > 0
        assert file in str(report)
        assert report.newest_whole == report.latest - 1


def test_values_in_a_missing_or_short_file_are_lost_keys(tmp_path):
    db = new(tmp_path, max_inline_value_bytes=0)
    with ts.Transaction() as transaction:
        staged = db.with_transaction(transaction)
        for number in range(20):
            staged[f"k{number:02}"] = b"x" * 100
    (values,) = (tmp_path / "d").iterdir()
    db["other"] = b"y"

    whole = values.read_bytes()
    values.write_bytes(whole[:1050])
    short = ts.ocdbt.check(tmp_path).result()
    values.unlink()
    missing = ts.ocdbt.check(tmp_path).result()

    for report, lost in [(short, 10), (missing, 20)]:
        assert report.problem_count == 1
        problem = report.problems[0]
        assert (problem.kind, problem.lost) == ("values", lost)
        assert problem.file == f"d/{values.name}"
        assert len(problem.first_keys) == 5
    assert "has 1,050 bytes" in short.problems[0].what
    assert short.problems[0].first_keys[0] == b"k10"
    assert "is missing" in str(missing)


def test_a_node_that_does_not_agree_with_its_parent_is_found(tmp_path):
    # The leaf of another version has a checksum that is right, but is not the one that is expected.
    db = new(tmp_path, max_decoded_node_bytes=10_000)
    db["a"] = b"1"
    first = root_of(tmp_path)
    db["a"] = b"2"
    second = root_of(tmp_path)
    assert first[1:] == second[1:]
    (tmp_path / second[0]).write_bytes((tmp_path / first[0]).read_bytes())
    assert ts.ocdbt.check(tmp_path).result().ok  # as large, and as many keys: nothing tells

    db["bb"] = b"3"
    third = root_of(tmp_path)
    db["cc"] = b""
    manifest = (tmp_path / "manifest.ocdbt").read_bytes()
    fourth = root_of(tmp_path)
    stored = (tmp_path / third[0]).read_bytes()
    (tmp_path / fourth[0]).write_bytes(stored[third[1] : third[1] + third[2]])
    report = ts.ocdbt.check(tmp_path).result()

    assert not report.ok
    assert (tmp_path / "manifest.ocdbt").read_bytes() == manifest


def test_what_nothing_needs_is_counted_to_the_byte(tmp_path):
    db = new(tmp_path, max_inline_value_bytes=0)
    db["a"] = b"x" * 1000
    db["a"] = b"y" * 500
    (tmp_path / "d" / ("0" * 32)).write_bytes(b"of a lost commit")
    (tmp_path / "notes.txt").write_bytes(b"no data file")
    (tmp_path / "other" / "d").mkdir(parents=True)
    (tmp_path / "other" / "manifest.ocdbt").write_bytes(b"another database")
    (tmp_path / "other" / "d" / ("1" * 32)).write_bytes(b"its file")

    every = ts.ocdbt.check(tmp_path, all_versions=True).result()
    latest = ts.ocdbt.check(tmp_path).result()

    assert [each.path for each in every.unreached] == ["d/" + "0" * 32]
    assert (every.unreached_files, every.unreached_bytes, every.files) == (1, 16, 3)
    root = root_of(tmp_path, -2)
    assert latest.unreached_bytes == 16 + 1000 + root[2]
    assert latest.unreached_files == 2


def test_a_damaged_tree_of_versions_is_found_with_all_versions(tmp_path):
    db = new(tmp_path, version_tree_arity_log2=1)
    for number in range(9):
        db["n"] = b"%d" % number
    manifest = ts.ocdbt.dump(db.base).result()
    where = manifest["version_tree_nodes"][0]["location"].split(":")
    damage(tmp_path, where[2], int(where[3]) + 20)

    report = ts.ocdbt.check(tmp_path, all_versions=True).result()

    assert [each.kind for each in report.problems] == ["versions"]
    assert ts.ocdbt.check(tmp_path).result().newest_whole == 10


def test_a_damaged_or_missing_manifest_is_a_problem_and_nothing_at_all_an_error(tmp_path):
    db = new(tmp_path / "db")
    db["a"] = b"1"
    damage(tmp_path / "db", "manifest.ocdbt", 30)

    report = ts.ocdbt.check(tmp_path / "db").result()
    assert [each.kind for each in report.problems] == ["manifest"]
    assert "manifest.ocdbt" in str(report)
    (tmp_path / "db" / "manifest.ocdbt").unlink()
    assert not ts.ocdbt.check(tmp_path / "db").result().ok
    with pytest.raises(ts.NotFoundError, match="there is no manifest"):
        ts.ocdbt.check(tmp_path / "nothing").result()


def test_a_name_of_a_version_that_is_gone_is_a_problem(tmp_path):
    db = new(tmp_path)
    db["a"] = b"1"
    (tmp_path / "version_names.json").write_text('{"names": {"old": 99}}')

    report = ts.ocdbt.check(tmp_path).result()

    assert [(each.kind, each.generation) for each in report.problems] == [("name", 99)]


def test_others_may_commit_while_it_runs(tmp_path, monkeypatch):
    db = new(tmp_path, max_inline_value_bytes=0)
    db["a"] = b"1"

    async def then_committed(found):
        files = await files_of(found)
        other = ts.KvStore.open(f"file://{tmp_path}/|ocdbt:").result()
        await other.store.write("late", b"2")
        return files

    module = importlib.import_module("tensorstore_py.ocdbt.check")  # its function hides it
    monkeypatch.setattr(module, "files_of", then_committed)
    report = ts.ocdbt.check(tmp_path).result()

    assert report.ok, str(report)
    assert report.latest == 2
    assert contents(tmp_path) == {b"a": b"1", b"late": b"2"}
