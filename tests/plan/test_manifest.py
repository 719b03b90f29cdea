import json

import pytest

import tensorstore_py as ts
from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import BEGIN, DONE, END, FAILED, FREE, TAKEN, Parts
from tensorstore_py._plan.record import Record
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.kvstores.gcs.pacing import GcsPacer
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountedWaits, CountingStore, FaultyStore, StoreAround
from tests.plan.cluster import REQUEST, machine


@pytest.fixture
def store():
    return FaultyStore(CountingStore(MemoryStore(SharedMap())))


def of(store, tasks=10):
    return Manifest(store, "copy.json", Parts(tasks))


def done(body):
    """What a body of the library's loop gives."""
    return start(False, body).result(timeout=60)


def keys(store):
    async def body():
        return [entry.key async for entry in store.list()]

    return done(body)


@pytest.fixture
def begun(store):
    """A manifest of which the plan is stored."""
    manifest = of(store)
    done(lambda: manifest.ensure(REQUEST))
    return manifest


# The plan.


def test_the_plan_is_stored_once_and_found_by_others(store):
    stored = done(lambda: of(store).ensure({**REQUEST, "tasks": 10}))

    assert stored["tasks"] == 10
    assert done(lambda: of(store).ensure({**REQUEST, "tasks": 11})) == stored
    assert done(of(store).load) == stored
    assert keys(store) == ["copy.json"]


def test_another_plan_is_refused(store):
    done(lambda: of(store).ensure(REQUEST))

    said = r'source was "memory://a/", and is "b" now.*delete the manifest to begin anew'
    with pytest.raises(FailedPreconditionError, match=said):
        done(lambda: of(store).ensure({"request": {"source": "b"}}))


@pytest.mark.parametrize("value", [b"no JSON", b"[1]", b'{"zarr_format": 3}'])
def test_what_is_no_plan_is_not_replaced(store, value):
    done(lambda: store.write("copy.json", value))

    with pytest.raises(DataLossError, match=r"copy\.json"):
        done(lambda: of(store).ensure(REQUEST))
    assert bytes(done(lambda: store.read("copy.json")).value) == value


def test_there_has_to_be_a_plan_to_load(store):
    with pytest.raises(NotFoundError, match=r"no plan at .*copy\.json"):
        done(of(store).load)


@pytest.mark.parametrize("afterwards", [True, False])
def test_the_answer_to_storing_the_plan_is_lost(store, afterwards):
    store.fail("write", UnavailableError("no answer"), afterwards=afterwards)

    with CountedWaits():
        stored = done(lambda: of(store).ensure(REQUEST))

    assert done(of(store).load) == stored


def test_who_deletes_the_plan_begins_anew(begun, store):
    done(lambda: begun.put(3, Record(machine("a")), NO_VALUE))
    done(lambda: store.write("copy.json", None))

    anew = of(store)
    done(lambda: anew.ensure({"request": {"source": "b"}}))

    assert done(lambda: anew.read(3)).record is None


class Unconditional(StoreAround):
    """A store that has no conditional writes, and says so when it is asked for one."""

    async def write(self, key, value, *, if_equal=None):
        if if_equal:
            raise UnsupportedError("it ignores conditions")
        return await super().write(key, value)


def unfit(store, name, value):
    setattr(store, name, value)
    return store


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (Unconditional, "it ignores conditions"),
        (lambda store: unfit(store, "writable", False), "read-only"),
        (lambda store: unfit(store, "listable", False), "listed"),
        (lambda store: unfit(store, "stages", True), "transaction"),
    ],
)
def test_a_store_that_cannot_have_a_manifest_is_refused_at_once(store, change, problem):
    said = f"cannot be a manifest: .*{problem}.*; name another place"
    with pytest.raises(UnsupportedError, match=said):
        done(lambda: of(change(store)).ensure(REQUEST))
    assert keys(store) == []


# Parts.


def test_what_is_stored_can_be_read_by_people(begun, store):
    record = Record(machine("a"), "done", 7, 10.0, 5.0)
    done(lambda: begun.put(3, record, NO_VALUE))
    done(lambda: begun.mark(3, "done"))

    plan, marked, found = sorted(keys(store))

    assert plan == "copy.json"
    assert found.startswith("copy.json.parts/")
    assert (found.rpartition("/")[2], marked) == ("0003.json", found[:-4] + "done")
    json_ = json.loads(bytes(done(lambda: store.read(found)).value))
    assert (json_["state"], json_["owner"]["host"], json_["until"]) == ("done", "a", 15.0)
    assert done(lambda: begun.read(3)).record == record


def test_one_of_two_gets_a_part(begun):
    first, second = Record(machine("a"), sequence=1), Record(machine("b"), sequence=1)

    generation = done(lambda: begun.put(3, first, NO_VALUE))

    assert done(lambda: begun.put(3, second, NO_VALUE)) is None
    assert done(lambda: begun.read(3)) == (first, generation)
    taken = done(lambda: begun.put(3, second, generation))
    assert taken
    first.sequence = 2
    assert done(lambda: begun.put(3, first, generation)) is None
    assert done(lambda: begun.read(3)) == (second, taken)


@pytest.mark.parametrize("error", [UnavailableError("?"), AbortedError("?"), ConnectionError("?")])
@pytest.mark.parametrize("afterwards", [True, False])
@pytest.mark.parametrize("times", [1, 3])
def test_the_answer_to_a_write_is_lost(begun, store, error, afterwards, times):
    record = Record(machine("a"), sequence=1)
    store.fail("write", error, afterwards=afterwards, times=times)

    with CountedWaits():
        generation = done(lambda: begun.put(3, record, NO_VALUE))
        assert done(lambda: begun.read(3)) == (record, generation)
        store.fail("write", error, afterwards=afterwards, times=times)
        record.sequence = 2
        generation = done(lambda: begun.put(3, record, generation))

    assert done(lambda: begun.read(3)) == (record, generation)


def test_a_write_after_one_of_ours_that_nobody_knew_of(begun):
    first, record = Record(machine("a"), sequence=1), Record(machine("a"), sequence=2)
    generation = done(lambda: begun.put(3, first, NO_VALUE))
    done(lambda: begun.put(3, record, generation))
    record.sequence = 3

    with CountedWaits():
        assert done(lambda: begun.put(3, record, generation))

    assert done(lambda: begun.read(3)).record.sequence == 3


def test_an_answer_is_lost_and_somebody_else_was_faster(begun, store):
    other = Record(machine("b"), sequence=1)
    done(lambda: begun.put(3, other, NO_VALUE))
    store.fail("write", UnavailableError("?"))

    assert done(lambda: begun.put(3, Record(machine("a"), sequence=1), NO_VALUE)) is None
    assert done(lambda: begun.read(3)).record == other


def test_a_store_that_never_answers_is_an_error_in_the_end(begun, store):
    store.fail("write", ConnectionError("unplugged"), times=1000)

    with CountedWaits(), pytest.raises(UnavailableError, match="unplugged"):
        done(lambda: begun.put(3, Record(machine("a")), NO_VALUE))
    store.fail("read", ConnectionError("unplugged"), times=1000)
    with CountedWaits(), pytest.raises(UnavailableError, match="unplugged"):
        done(lambda: begun.read(3))


def test_one_listing_tells_how_far_parts_are(begun, store):
    for part, suffixes in ((1, ()), (2, ("failed",)), (3, ("failed", "done")), (9, ("done",))):
        done(lambda part=part: begun.put(part, Record(machine("a")), NO_VALUE))
        for suffix in suffixes:
            done(lambda part=part, suffix=suffix: begun.mark(part, suffix))
    for part in (BEGIN, END):
        done(lambda part=part: begun.put(part, Record(machine("a")), NO_VALUE))
    store.base.reset()

    states = done(lambda: begun.states(0, 10))

    assert list(states) == [FREE, TAKEN, FAILED, DONE, *[FREE] * 5, DONE]
    assert list(done(lambda: begun.states(2, 4))) == [FAILED, DONE]
    assert store.base.lists.total() == 2
    assert not store.base.reads


def test_a_record_that_is_none_is_named(begun, store):
    done(lambda: begun.put(3, Record(machine("a")), NO_VALUE))
    key = keys(store)[1]
    done(lambda: store.write(key, b"{}"))

    with pytest.raises(DataLossError, match=r"copy\.json\.parts/.*0003\.json.*delete it"):
        done(lambda: begun.read(3))


# On services.


def spec_of(server, bucket):
    keys = {
        "type": "static",
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
    }
    where = {"bucket": bucket, "endpoint": server.endpoint, "aws_region": server.region}
    return {"driver": "s3", "path": "jobs/", "aws_credentials": keys, **where}


async def work_on(spec, name):
    """Do a plan on a service; returns which tasks were run, and what came of it."""
    face = ts.KvStore.open(spec).result()
    ran: list[int] = []

    async def run(task: int) -> int:
        ran.append(task)
        return task

    manifest = Manifest(face.store, face.path + name, Parts(12))
    await manifest.ensure(REQUEST)
    outcome = await Worker(manifest, Work(run, merge=lambda one, other: one + other)).run()
    status = await manifest.status()
    return ran, outcome.result, status.state


def test_on_s3(moto_s3):
    spec = spec_of(moto_s3, moto_s3.make_bucket())

    ran, result, state = done(lambda: work_on(spec, "copy.json"))

    assert (sorted(ran), result, state) == (list(range(12)), 66, "done")
    assert done(lambda: work_on(spec, "copy.json")) == ([], 66, "done")


def test_on_gcs(gcs_server, monkeypatch):
    monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
    monkeypatch.setattr(GcsPacer, "GAP_S", 0.002)  # between two writes of one object
    spec = {"driver": "gcs", "bucket": "bucket", "path": "jobs/"}

    ran, result, state = done(lambda: work_on(spec, "copy.json"))

    assert (sorted(ran), result, state) == (list(range(12)), 66, "done")


def test_on_s3_without_conditional_writes(swift_s3):
    spec = spec_of(swift_s3, swift_s3.make_bucket())

    with pytest.raises(UnsupportedError, match="cannot be a manifest"):
        done(lambda: work_on(spec, "copy.json"))


def test_in_files(tmp_path):
    spec = {"driver": "file", "path": f"{tmp_path}/"}

    ran, result, state = done(lambda: work_on(spec, "copy.json"))

    assert (sorted(ran), result, state) == (list(range(12)), 66, "done")
    assert sorted(path.suffix for path in tmp_path.rglob("*") if path.is_file()) == (
        [".done"] * 12 + [".json"] * 15
    )
