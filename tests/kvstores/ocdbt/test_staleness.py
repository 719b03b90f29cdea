"""What a reader or writer may take to be current although others have changed the database."""

import time
from collections.abc import Callable

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.file import FileStore
from tests.kvstores.ocdbt.databases import contents, open_anew, spec_of

KINDS = pytest.mark.parametrize("kind", ["single", "numbered"])
MANY = 140  # more than the numbered manifests that stay


def both_of(tmp_path, kind):
    spec = spec_of(tmp_path, config={"manifest_kind": kind})
    return open_anew(ts, spec), open_anew(ts, spec)


@pytest.fixture
def after_manifests(monkeypatch):
    """Have something done when the next manifest was stored, before its writer knows."""
    waiting: list[Callable[[], None]] = []
    plain = FileStore.write

    async def write(self, key, value, **conditions):
        stamp = await plain(self, key, value, **conditions)
        if waiting and "/manifest." in key:
            waiting.pop()()
        return stamp

    monkeypatch.setattr(FileStore, "write", write)
    return waiting


@KINDS
@pytest.mark.parametrize("other", [ts, reference], ids=["ours", "theirs"])
def test_what_others_commit_is_seen_by_the_next_read(tmp_path, kind, other):
    ours, _ = both_of(tmp_path, kind)
    ours["n"] = b"-"
    theirs = open_anew(other, spec_of(tmp_path))
    for number in range(20):
        theirs["n"] = b"%d" % number
        assert ours["n"] == b"%d" % number
        theirs[f"k{number}"] = b"1"
        assert len(ours.list().result()) == number + 2


@KINDS
def test_a_writer_that_others_left_far_behind_loses_nothing(tmp_path, kind):
    late, other = both_of(tmp_path, kind)
    late["mine"] = b"0"
    for number in range(MANY):
        other["n"] = b"%d" % number

    late["mine"] = b"1"

    expected = {b"mine": b"1", b"n": b"%d" % (MANY - 1)}
    assert contents(late) == contents(other) == expected
    for library in (ts, reference):
        assert contents(open_anew(library, spec_of(tmp_path))) == expected
    assert len(list(tmp_path.iterdir())) <= 1 + 1 + 128


@KINDS
def test_a_condition_that_others_broke_long_ago_does_not_hold(tmp_path, kind):
    late, other = both_of(tmp_path, kind)
    stamp = late.write("n", b"-").result()
    for number in range(MANY):
        other["n"] = b"%d" % number

    assert late.write("n", b"x", if_equal=stamp.generation).result().generation == b""
    assert late["n"] == b"%d" % (MANY - 1)


@KINDS
def test_what_was_stored_before_the_answer_came_is_not_taken_for_later(
    tmp_path, kind, after_manifests
):
    ours, other = both_of(tmp_path, kind)
    ours["a"] = b"0"
    moments = []

    def commit():
        other["b"] = b"1"
        moments.append(time.time())

    after_manifests.append(commit)
    ours["a"] = b"1"

    assert bytes(ours.read("b", staleness_bound=moments[0]).result().value) == b"1"
    assert contents(ours) == {b"a": b"1", b"b": b"1"}


@KINDS
def test_others_that_go_on_from_a_commit_before_its_answer_came_do_not_undo_it(
    tmp_path, kind, after_manifests
):
    ours, other = both_of(tmp_path, kind)
    ours["a"] = b"0"

    def commit_many():
        for number in range(MANY):
            other["b"] = b"%d" % number

    after_manifests.append(commit_many)
    ours["a"] = b"1"

    assert contents(ours) == {b"a": b"1", b"b": b"%d" % (MANY - 1)}
    versions = {
        version: open_anew(reference, spec_of(tmp_path, version=version))["a"]
        for version in (3, 4, MANY)
    }
    assert versions[4] == b"1"


def test_a_numbered_manifest_that_cannot_be_removed_fails_no_commit(tmp_path, monkeypatch):
    ours, _ = both_of(tmp_path, "numbered")
    plain = FileStore.write

    async def write(self, key, value, **conditions):
        if value is None:
            raise ts.PermissionDeniedError(f"cannot remove {key}")
        return await plain(self, key, value, **conditions)

    monkeypatch.setattr(FileStore, "write", write)
    for number in range(MANY):
        ours["n"] = b"%d" % number

    assert ours["n"] == b"%d" % (MANY - 1)


@KINDS
@pytest.mark.parametrize(("bound", "sees"), [(True, True), (False, False), ("open", False)])
def test_arrays_in_a_database_are_rechecked_as_they_are_told(tmp_path, kind, bound, sees):
    store = spec_of(tmp_path, config={"manifest_kind": kind})
    spec = {"driver": "zarr3", "kvstore": store}
    made = ts.open(spec, create=True, dtype="int32", shape=[4], context=ts.Context()).result()
    made[...] = 1
    cached = ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})
    reader = ts.open({**spec, "recheck_cached_data": bound}, context=cached).result()
    assert reader.read().result().tolist() == [1] * 4

    other = reference.open(spec, context=reference.Context()).result()
    other.write(2).result()

    assert reader.read().result().tolist() == [2 if sees else 1] * 4
    # Nodes that are kept are those of the versions that they were read for.
    assert ts.open(spec, context=cached).result().read().result().tolist() == [2] * 4
