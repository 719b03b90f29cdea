"""Versions of a database: listed lazily, opened, named."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemorySpec
from tensorstore_py.kvstores.ocdbt.manifest import decode_manifest, encode_manifest
from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tensorstore_py.kvstores.ocdbt.versions import encode_version_node
from tensorstore_py.ocdbt.retention import manifest_of
from tensorstore_py.testing import CountingStore, LoopStore
from tests.ocdbt.databases import LIBRARIES, contents, generations, new


def stamped(path, count, library=ts, **config):
    db = new(path, library, **config)
    for number in range(count):
        db["n"] = b"%d" % number
    return ts.KvStore.open(f"file://{path}/|ocdbt:").result()


@pytest.mark.parametrize("kind", ["single", "numbered"])
@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize("arity", [1, 2, 4])
def test_all_versions_are_listed_from_either_end(tmp_path, library, kind, arity):
    db = stamped(tmp_path, 20, library, manifest_kind=kind, version_tree_arity_log2=arity)

    newest = ts.ocdbt.versions(db).result()
    oldest = list(ts.ocdbt.versions(f"file://{tmp_path}/", newest_first=False))

    count = newest[0].generation
    assert [each.generation for each in newest] == list(range(count, 0, -1))
    assert oldest == newest[::-1]
    assert [each.keys for each in newest[:3]] == [1, 1, 1]
    times = [each.time_ns for each in oldest]
    assert times == sorted(set(times))


def test_ranges_by_generation_and_time(tmp_path):
    db = stamped(tmp_path, 40, version_tree_arity_log2=1)
    every = ts.ocdbt.versions(db).result()[::-1]

    for first, last in [(1, 1), (7, 23), (40, 99), (12, 11)]:
        expected = [each for each in every if first <= each.generation <= last]
        listed = ts.ocdbt.versions(db, first=first, last=last, newest_first=False)
        assert listed.result() == expected
        low, high = every[first - 1], every[min(last, len(every)) - 1]
        by_time = ts.ocdbt.versions(
            db, since=str(low.to_json()["time"]), until=str(high.to_json()["time"])
        )
        assert by_time.result() == expected[::-1]


def test_a_time_is_a_datetime_with_a_zone_or_text(tmp_path):
    db = stamped(tmp_path, 3)
    ago = datetime.now(UTC) - timedelta(hours=1)

    assert len(ts.ocdbt.versions(db, since=ago).result()) == 4
    assert ts.ocdbt.versions(db, until=ago).result() == []
    wrongs: list[Any] = [datetime.now(), "released", 3]  # noqa: DTZ005 - that is what is wrong
    for wrong in wrongs:
        with pytest.raises(ts.SpecError, match="since: "):
            ts.ocdbt.versions(db, since=wrong)


def test_a_few_of_many_versions_take_a_few_requests(monkeypatch):
    stores = []
    opened = MemorySpec.open

    def counting(spec):
        stores.append(CountingStore(opened(spec)))
        return stores[-1]

    context = ts.Context()
    spec = {"driver": "ocdbt", "base": "memory://", "config": {"version_tree_arity_log2": 1}}
    db = ts.KvStore.open(spec, context=context).result()
    for number in range(300):
        db["n"] = b"%d" % number
    monkeypatch.setattr(MemorySpec, "open", counting)
    for listing, expected in [
        (ts.ocdbt.versions("memory://", context=context), 301),
        (ts.ocdbt.versions("memory://", first=150, last=150, context=context), 150),
        (ts.ocdbt.versions("memory://", newest_first=False, context=context), 1),
    ]:
        for store in stores:
            store.reset()
        assert next(iter(listing)).generation == expected
    found = ts.ocdbt.versions("memory://", first=150, last=150, context=context)
    for store in stores:
        store.reset()
    assert [each.generation for each in found] == [150]
    assert sum(sum(store.reads.values()) for store in stores) < 30


def test_awaited_and_listed_in_any_event_loop(monkeypatch):
    opened = MemorySpec.open
    monkeypatch.setattr(MemorySpec, "open", lambda spec: LoopStore(opened(spec)))

    async def main():
        db = await ts.KvStore.open("memory://|ocdbt:")
        for number in range(5):
            await db.write("n", b"%d" % number)
        found = [each.generation async for each in ts.ocdbt.versions(db)]
        assert found == [each.generation for each in await ts.ocdbt.versions(db)]
        assert await ts.ocdbt.name(db, "three", 3) == {"three": 3}
        assert (await (await ts.ocdbt.open(db, "three")).read("n")).value == b"1"
        assert (await ts.ocdbt.check(db)).ok
        assert (await ts.ocdbt.diff(2, db)).changed == 1
        report = await ts.ocdbt.compact(db, keep_last=1, grace=0)
        assert report.versions == 2
        return found

    assert asyncio.run(main()) == [6, 5, 4, 3, 2, 1]


def test_a_name_opens_a_version_by_url_and_spec_and_hides_nothing_from_the_reference(tmp_path):
    db = stamped(tmp_path, 5)

    assert ts.ocdbt.name(db, "released", 3).result() == {"released": 3}
    assert ts.ocdbt.name(db, "latest-1.0").result() == {"latest-1.0": 6, "released": 3}

    url = f"file://{tmp_path}/|ocdbt:@released/"
    assert ts.KvStore.open(url).result()["n"] == b"1"
    assert ts.KvStore.open(url).result().url == url
    spec = {"driver": "ocdbt", "base": f"file://{tmp_path}/", "version": "released"}
    assert ts.KvStore.open(spec).result().spec().to_json()["version"] == "released"
    assert ts.ocdbt.versions(db, first=3, last=3).result()[0].names == ("released",)
    assert contents(tmp_path, library=LIBRARIES["reference"]) == {b"n": b"4"}
    assert ts.ocdbt.unname(db, "released").result() == {"latest-1.0": 6}
    with pytest.raises(ts.NotFoundError, match=r'no version has the name "released".*latest-1.0'):
        ts.ocdbt.open(db, "released").result()


@pytest.mark.parametrize("wrong", ["v3", "", "a/b", "3", "2025-01-01T00:00:00Z", "a" * 200, None])
def test_what_is_no_name_is_refused_at_once(wrong):
    with pytest.raises(ts.SpecError, match="the name of a version"):
        ts.ocdbt.name("memory://|ocdbt:", wrong)


def test_versions_that_are_not_there(tmp_path):
    db = stamped(tmp_path, 2)

    with pytest.raises(ts.NotFoundError, match="there is no version v9"):
        ts.ocdbt.name(db, "x", 9).result()
    with pytest.raises(ts.NotFoundError, match="there is no version v9"):
        ts.ocdbt.open(db, 9).result()
    with pytest.raises(ts.NotFoundError, match=r"nothing/manifest.ocdbt.*there is no manifest"):
        ts.ocdbt.versions(f"file://{tmp_path}/nothing/").result()
    assert ts.ocdbt.names(db).result() == {}


def test_damaged_names_say_which_file_to_delete(tmp_path):
    db = stamped(tmp_path, 2)
    (tmp_path / "version_names.json").write_bytes(b"[]")

    with pytest.raises(ts.DataLossError, match=r"version_names.json.*delete it"):
        ts.ocdbt.names(db).result()
    assert [each.kind for each in ts.ocdbt.check(db).result().problems] == ["name"]
    assert contents(tmp_path) == {b"n": b"1"}


def test_a_place_is_a_store_a_spec_a_url_or_a_path(tmp_path):
    db = stamped(tmp_path, 2)

    for where in (db, db.base, db.spec(), tmp_path, f"file://{tmp_path}", {"driver": "ocdbt",
                  "base": {"driver": "file", "path": f"{tmp_path}/"}}):  # fmt: skip
        assert generations(where) == [3, 2, 1]
    with ts.Transaction() as transaction, pytest.raises(ts.FailedPreconditionError):
        ts.ocdbt.versions(db.with_transaction(transaction))


def test_a_hundred_thousand_versions():
    context = ts.Context()
    db = ts.KvStore.open("memory://|ocdbt:", context=context).result()
    db["a"] = b"1"
    base: Any = db.base
    manifest = decode_manifest(base["manifest.ocdbt"])
    latest = manifest.versions[-1]
    count = 100_000
    nodes = bytearray()
    file = DataFile(b"", b"d/" + b"0" * 32)

    def add(node):
        data = encode_version_node(node, None)
        offset = len(nodes)
        nodes.extend(data)
        return Reference(file, offset, len(data))

    versions = (
        latest._replace(generation=number, time_ns=latest.time_ns + number)
        for number in range(1, count + 1)
    )
    many = manifest_of(manifest.config, versions, add)
    base[file.path] = bytes(nodes)
    base["manifest.ocdbt"] = encode_manifest(many)

    listing = ts.ocdbt.versions(db)
    assert next(iter(listing)).generation == count
    generations = [each.generation for each in ts.ocdbt.versions(db, newest_first=False)]
    assert generations == list(range(1, count + 1))
    assert [each.generation for each in ts.ocdbt.versions(db, first=50_000, last=50_002)] == [
        50_002,
        50_001,
        50_000,
    ]
    assert ts.ocdbt.open(db, 77_777).result()["a"] == b"1"
