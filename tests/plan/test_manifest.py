"""The manifest: its documents and records, the owners of parts, and how free parts are found."""

import asyncio
import json
import os
import pickle
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    SpecError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._plan.claims import ClaimedPart, PartSearch, TaskResult
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import (
    BEGIN,
    DONE,
    END,
    FAILED,
    FREE,
    PAGE,
    TAKEN,
    Parts,
    TaskNumbers,
)
from tensorstore_py._plan.record import MOST_FAILURES, Clock, Failure, Owner, Record, WorkerTotals
from tensorstore_py._plan.status import status_of
from tensorstore_py._plan.work import Work, failed_tasks
from tensorstore_py._plan.worker import Worker
from tensorstore_py._runtime.execution import start
from tensorstore_py.kvstores.gcs.own_writes import ObjectThrottle
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountedWaits, CountingStore, FaultyStore, StoreAround
from tests.plan.cluster import REQUEST, machine
from tests.runtime.processes import run_script


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


class Unconditional(StoreAround):
    """A store that has no conditional writes, and says so when it is asked for one."""

    async def write(self, key, value, *, if_equal=None):
        if if_equal:
            raise UnsupportedError("it ignores conditions")
        return await super().write(key, value)


def staged(store):
    """That store as a transaction sees it."""
    return Overlay(store, repeatable=False, atomic=True, check=lambda: None)


def unfit(store, name, value):
    """That store, of a class that says something else of itself."""
    store.__class__ = type("Unfit", (type(store),), {name: value})
    return store


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
    status = await status_of(manifest)
    return ran, outcome.result, status.state


class TestManifest:
    def test_the_plan_is_stored_once_and_found_by_others(self, store):
        stored = done(lambda: of(store).ensure({**REQUEST, "tasks": 10}))

        assert stored["tasks"] == 10
        assert done(lambda: of(store).ensure({**REQUEST, "tasks": 11})) == stored
        assert done(of(store).load) == stored
        assert keys(store) == ["copy.json"]

    def test_another_plan_is_refused(self, store):
        done(lambda: of(store).ensure(REQUEST))

        said = r'source was "memory://a/", and is "b" now.*delete the manifest to begin anew'
        with pytest.raises(FailedPreconditionError, match=said):
            done(lambda: of(store).ensure({"request": {"source": "b"}}))

    @pytest.mark.parametrize("value", [b"no JSON", b"[1]", b'{"zarr_format": 3}'])
    def test_what_is_no_plan_is_not_replaced(self, store, value):
        done(lambda: store.write("copy.json", value))

        with pytest.raises(DataLossError, match=r"copy\.json"):
            done(lambda: of(store).ensure(REQUEST))
        assert bytes(done(lambda: store.read("copy.json")).value) == value

    def test_there_has_to_be_a_plan_to_load(self, store):
        with pytest.raises(NotFoundError, match=r"no plan at .*copy\.json"):
            done(of(store).load)

    @pytest.mark.parametrize("afterwards", [True, False])
    def test_the_answer_to_storing_the_plan_is_lost(self, store, afterwards):
        store.fail("write", UnavailableError("no answer"), afterwards=afterwards)

        with CountedWaits():
            stored = done(lambda: of(store).ensure(REQUEST))

        assert done(of(store).load) == stored

    def test_deleting_the_plan_begins_anew(self, begun, store):
        done(lambda: begun.put(3, Record(machine("a")), NO_VALUE))
        done(lambda: store.write("copy.json", None))

        anew = of(store)
        done(lambda: anew.ensure({"request": {"source": "b"}}))

        assert done(lambda: anew.read(3)).record is None

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (Unconditional, "it ignores conditions"),
            (lambda store: unfit(store, "writable", False), "read-only"),
            (lambda store: unfit(store, "listable", False), "listed"),
            (staged, "transaction"),
        ],
    )
    def test_a_store_that_cannot_have_a_manifest_is_refused_at_once(self, store, change, problem):
        said = f"cannot be a manifest: .*{problem}.*; name another place"
        with pytest.raises(UnsupportedError, match=said):
            done(lambda: of(change(store)).ensure(REQUEST))
        assert keys(store) == []

    def test_what_is_stored_can_be_read_by_people(self, begun, store):
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

    def test_one_of_two_gets_a_part(self, begun):
        first, second = Record(machine("a"), sequence=1), Record(machine("b"), sequence=1)

        generation = done(lambda: begun.put(3, first, NO_VALUE))

        assert done(lambda: begun.put(3, second, NO_VALUE)) is None
        assert done(lambda: begun.read(3)) == (first, generation)
        taken = done(lambda: begun.put(3, second, generation))
        assert taken
        first.sequence = 2
        assert done(lambda: begun.put(3, first, generation)) is None
        assert done(lambda: begun.read(3)) == (second, taken)

    @pytest.mark.parametrize(
        "error", [UnavailableError("?"), AbortedError("?"), ConnectionError("?")]
    )
    @pytest.mark.parametrize("afterwards", [True, False])
    @pytest.mark.parametrize("times", [1, 3])
    def test_the_answer_to_a_write_is_lost(self, begun, store, error, afterwards, times):
        record = Record(machine("a"), sequence=1)
        store.fail("write", error, afterwards=afterwards, times=times)

        with CountedWaits():
            generation = done(lambda: begun.put(3, record, NO_VALUE))
            assert done(lambda: begun.read(3)) == (record, generation)
            store.fail("write", error, afterwards=afterwards, times=times)
            record.sequence = 2
            generation = done(lambda: begun.put(3, record, generation))

        assert done(lambda: begun.read(3)) == (record, generation)

    def test_a_write_after_one_of_ours_whose_answer_was_lost_before(self, begun):
        first, record = Record(machine("a"), sequence=1), Record(machine("a"), sequence=2)
        generation = done(lambda: begun.put(3, first, NO_VALUE))
        done(lambda: begun.put(3, record, generation))
        record.sequence = 3

        with CountedWaits():
            assert done(lambda: begun.put(3, record, generation))

        assert done(lambda: begun.read(3)).record.sequence == 3

    def test_an_answer_is_lost_and_another_worker_was_faster(self, begun, store):
        other = Record(machine("b"), sequence=1)
        done(lambda: begun.put(3, other, NO_VALUE))
        store.fail("write", UnavailableError("?"))

        assert done(lambda: begun.put(3, Record(machine("a"), sequence=1), NO_VALUE)) is None
        assert done(lambda: begun.read(3)).record == other

    def test_a_store_that_never_answers_is_an_error_in_the_end(self, begun, store):
        store.fail("write", ConnectionError("unplugged"), times=1000)

        with CountedWaits(), pytest.raises(UnavailableError, match="unplugged"):
            done(lambda: begun.put(3, Record(machine("a")), NO_VALUE))
        store.fail("read", ConnectionError("unplugged"), times=1000)
        with CountedWaits(), pytest.raises(UnavailableError, match="unplugged"):
            done(lambda: begun.read(3))

    def test_one_listing_tells_how_far_parts_are(self, begun, store):
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

    def test_a_record_that_is_none_is_named(self, begun, store):
        done(lambda: begun.put(3, Record(machine("a")), NO_VALUE))
        key = keys(store)[1]
        done(lambda: store.write(key, b"{}"))

        with pytest.raises(DataLossError, match=r"copy\.json\.parts/.*0003\.json.*delete it"):
            done(lambda: begun.read(3))

    def test_on_s3(self, moto_s3):
        spec = spec_of(moto_s3, moto_s3.make_bucket())

        ran, result, state = done(lambda: work_on(spec, "copy.json"))

        assert (sorted(ran), result, state) == (list(range(12)), 66, "done")
        assert done(lambda: work_on(spec, "copy.json")) == ([], 66, "done")

    def test_on_gcs(self, gcs_server, monkeypatch):
        monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
        monkeypatch.setattr(ObjectThrottle, "GAP_S", 0.002)  # between two writes of one object
        spec = {"driver": "gcs", "bucket": "bucket", "path": "jobs/"}

        ran, result, state = done(lambda: work_on(spec, "copy.json"))

        assert (sorted(ran), result, state) == (list(range(12)), 66, "done")

    def test_on_s3_without_conditional_writes(self, swift_s3):
        spec = spec_of(swift_s3, swift_s3.make_bucket())

        with pytest.raises(UnsupportedError, match="cannot be a manifest"):
            done(lambda: work_on(spec, "copy.json"))

    def test_in_files(self, tmp_path):
        spec = {"driver": "file", "path": f"{tmp_path}/"}

        ran, result, state = done(lambda: work_on(spec, "copy.json"))

        assert (sorted(ran), result, state) == (list(range(12)), 66, "done")
        assert sorted(path.suffix for path in tmp_path.rglob("*") if path.is_file()) == (
            [".done"] * 12 + [".json"] * 15
        )


class TestParts:
    @given(st.integers(0, 30_000), st.none() | st.integers(1, 50))
    def test_each_task_is_in_one_part(self, tasks, size):
        parts = Parts(tasks, size)

        assert [task for part in range(parts.count) for task in parts[part]] == list(range(tasks))
        assert list(parts[BEGIN]) == list(parts[END]) == []

    @given(st.integers(0, 10**9))
    def test_there_are_thousands_at_most_and_enough_for_a_thousand_workers(self, tasks):
        parts = Parts(tasks)

        assert parts.count <= 4096
        assert parts.count >= min(tasks, 513)
        assert parts.size <= 4 or parts.count > 2048

    @given(st.integers(0, 5000), st.integers(1, 100))
    def test_shares_are_equal_and_everything(self, tasks, of):
        parts = Parts(tasks)

        shares = [parts.share(number, of) for number in range(of)]

        assert [part for share in shares for part in share] == list(range(parts.count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1

    @pytest.mark.parametrize("tasks", [1, 9999, 10_000, 10**8])
    def test_names_are_in_order(self, tasks):
        parts = Parts(tasks, 1 if tasks < 10**6 else None)

        names = [parts.name(part) for part in (0, parts.count // 2, parts.count - 1)]

        assert names == sorted(names)
        assert {len(name) for name in names} == {len(names[0])}
        assert names[-1] < parts.name(BEGIN) < parts.name(END)


RECORD = Record(
    Owner("id", "host", 7, "machine", "123"),
    "failed",
    3,
    1000.5,
    120.0,
    TaskNumbers([1, 2, 3, 7]),
    4096,
    {"min": 3.5},
    [Failure(4, "[0:8, 8:16]", "truncated")],
    1,
    WorkerTotals(10, 8192, 900.0),
)


class TestRecord:
    def test_is_json_and_back(self):
        assert Record.parse(RECORD.serialized(), "here") == RECORD
        assert json.loads(RECORD.serialized())["done"] == "1-3,7"
        assert RECORD.until == 1120.5

    def test_failures_name_task_and_region(self):
        assert str(RECORD.failures[0]) == "task 4 ([0:8, 8:16]): truncated"

    @pytest.mark.parametrize(
        "change",
        [{"state": "lost"}, {"owner": None}, {"owner": {}}, {"done": "3-1"}, {"until": None},
         {"failures": [1]}, {"worker": {"tasks": 1, "more": 2}}],
    )  # fmt: skip
    def test_says_what_is_no_record(self, change):
        text = json.dumps({**json.loads(RECORD.serialized()), **change})

        with pytest.raises(DataLossError, match="here: this is no record of a part"):
            Record.parse(text.encode(), "here")
        with pytest.raises(DataLossError, match="here"):
            Record.parse(b"{", "here")


class TestTaskNumbers:
    @given(st.lists(st.integers(0, 40)))
    def test_is_a_set_of_numbers(self, numbers):
        found = TaskNumbers(numbers)

        assert [number for number in range(42) if number in found] == sorted(set(numbers))
        assert len(found) == len(set(numbers))
        assert str(TaskNumbers.parse(str(found))) == str(found)

    def test_neighbours_are_one_run(self):
        assert str(TaskNumbers([4, 0, 2, 1, 3, 9])) == "0-4,9"
        assert str(TaskNumbers()) == ""

    @pytest.mark.parametrize("text", ["1-", "a", "3-1", "1,1", "5,1", "0-3,2", None, "1,,2", "1\n"])
    def test_refuses_other_text(self, text):
        with pytest.raises(SpecError):
            TaskNumbers.parse(text)


async def run(task):
    return task


WORK = Work(run, merge=set.union, to_json=sorted, from_json=set, size=lambda task: 10 * task)


@pytest.fixture
def held():
    record = Record(machine("a"), done=TaskNumbers([11, 12]), result=[11, 12])
    return ClaimedPart(1, range(10, 16), record, b"1", {11, 12})


class TestHeld:
    def test_gives_the_tasks_that_are_left(self, held):
        assert [held.take(2), held.take(3)] == [[10, 13], [14, 15]]
        assert held.running == 4
        assert not held.drained
        assert held.take(1) == []
        assert held.drained

    def test_its_record_says_what_is_done(self, held):
        held.take(4)

        assert held.note(2, [TaskResult(10, 0.1, {10}), TaskResult(14, 0.1, {14})], WORK) == (
            2,
            240,
        )

        assert (str(held.record.done), held.record.result) == ("10-12,14", [10, 11, 12, 14])
        assert held.record.bytes == 240

    def test_is_complete_when_all_that_were_taken_have_ended(self, held):
        held.take(4)
        held.take(1)
        held.note(3, [TaskResult(task, 0.1) for task in (10, 13, 14)], WORK)
        assert not held.complete
        held.note(1, [TaskResult(15, 0.1, failure=Failure(15, "r", "m"))], WORK)
        assert held.complete
        assert 15 not in held.record.done
        assert held.record.failures == [Failure(15, "r", "m")]

    def test_what_is_lost_gives_no_more_tasks_and_is_never_complete(self, held):
        held.take(1)
        held.lost = True
        held.note(1, [TaskResult(10, 0.1)], WORK)

        assert held.take(1) == []
        assert not held.complete

    def test_tasks_that_were_not_run_after_all_are_not_done(self, held):
        held.take(4)
        held.note(4, [TaskResult(10, 0.1), TaskResult(13, 0.1, error=OSError("full"))], WORK)

        assert str(held.record.done) == "10-12"

    def test_of_many_failures_some_are_kept(self):
        held = ClaimedPart(0, range(1000), Record(machine("a")), b"1", None)
        tasks = held.take(1000)
        held.note(
            1000, [TaskResult(task, 0.1, failure=Failure(task, "r", "m")) for task in tasks], WORK
        )

        assert held.record.failed == 1000
        assert [each.task for each in held.record.failures] == list(range(MOST_FAILURES))


class TestWork:
    def test_results_are_merged_where_there_are_any(self):
        work = Work(run, merge=lambda one, other: one + other)

        assert work.merged(None, None) is None
        assert work.merged(3, None) == work.merged(None, 3) == 3
        assert work.merged(3, 4) == 7

    def test_what_failed_is_named_up_to_ten(self):
        failures = [Failure(task, f"rows {task}", "truncated") for task in range(100)]

        few = failed_tasks(failures[:2], 2, 1000, '"copy.json"')
        many = failed_tasks(failures, 345, 1000, '"copy.json"')

        assert type(few) is DataLossError
        assert str(few).startswith("2 of 1000 tasks could not be done")
        assert ": task 0 (rows 0): truncated; task 1 (rows 1): truncated; restore" in str(few)
        assert "task 9 (rows 9): truncated; and 335 more; restore" in str(many)
        assert len(str(many)) < 1000


@pytest.fixture
def process():
    """Another process, which waits to be ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


FORK = """
import os
from tensorstore_py._plan.record import Owner
owner = Owner.new()
owner.enter()
child = os.fork()
if child == 0:
    mine = Owner.new()
    os._exit(int(owner.is_gone()) + 2 * (not mine.is_gone()) + 4 * (mine.pid == owner.pid))
print(os.waitpid(child, 0)[1])
"""


class TestOwner:
    def test_a_worker_of_this_process_is_gone_when_it_leaves(self):
        owner = Owner.new()
        owner.enter()
        assert not owner.is_gone()

        owner.leave()

        assert owner.is_gone()

    def test_a_worker_of_another_process_is_gone_with_it(self, process):
        owner = Owner.new(process.pid)
        assert not owner.is_gone()

        process.kill()

        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not reaped
        assert owner.is_gone()
        process.wait()
        assert owner.is_gone()

    def test_another_process_that_got_its_number_does_not_pass_for_it(self, process):
        owner = Owner.new(process.pid)

        assert owner._replace(began="12").is_gone()
        assert not owner._replace(began="").is_gone()  # where that cannot be known

    def test_of_other_machines_nothing_is_known(self):
        owner = Owner.new()._replace(machine="another")

        assert not owner.is_gone()

    def test_no_two_are_the_same_and_the_name_shows_the_owner(self):
        owner = Owner.new()

        assert owner.id != Owner.new().id
        assert str(owner) == f"process {os.getpid()} on {os.uname().nodename}"
        assert pickle.loads(pickle.dumps(owner)) == owner

    def test_a_forked_child_is_another_owner(self):
        assert run_script(FORK) == "0\n"


def search(count, share=None, *, anywhere=False, seed=0):
    chance = random.Random(seed).random
    return PartSearch(count, range(count) if share is None else share, chance, anywhere=anywhere)


def claimed(looking, states):
    """What one worker finds that is alone; returns the parts, and how many listings."""
    found, listings = [], 0
    while (part := looking.next_free()) is not None:
        if looking.wants_page(part):
            low, high = looking.page(part)
            looking.learn(low, states[low:high])
            listings += 1
            continue
        if states[part] == FREE:
            states[part] = TAKEN
            found.append(part)
            looking.claimed(part)
            continue
        looking.refused(part)
        if looking.wants_page(part):
            low, high = looking.page(part)
            looking.learn(low, states[low:high])
            listings += 1
        looking.move_on()
    return found, listings


class TestSearch:
    def test_alone_it_goes_on_in_order_and_lists_nothing(self):
        found, listings = claimed(search(2000), bytearray(2000))

        assert found == list(range(2000))
        assert listings == 0

    def test_begins_with_its_share(self):
        found, _ = claimed(search(100, range(40, 60)), bytearray(100))

        assert found[:20] == list(range(40, 60))
        assert sorted(found) == list(range(100))

    def test_begins_anywhere(self):
        begins = {search(1000, anywhere=True, seed=seed).next_free() for seed in range(20)}

        assert len(begins) > 15

    def test_goes_on_in_order_behind_what_was_done_earlier(self):
        states = bytearray([DONE] * 700 + [FREE] * 300)

        found, listings = claimed(search(1000), states)

        assert found == list(range(700, 1000))
        assert listings == 2

    @given(st.lists(st.sampled_from([FREE, FREE, TAKEN, DONE]), max_size=1200), st.integers(0, 9))
    def test_finds_all_that_is_free_with_few_listings(self, states, seed):
        states = bytearray(states)
        free = {part for part, state in enumerate(states) if state == FREE}

        found, listings = claimed(search(len(states), anywhere=True, seed=seed), states)

        assert len(found) == len(free)
        assert set(found) == free
        assert listings <= 2 * (len(states) // PAGE + 1)

    def test_knows_what_is_left(self):
        looking = search(1200)
        states = bytearray([DONE] * PAGE)
        states[7] = TAKEN

        assert len(looking.learn(0, states)) == PAGE - 1
        assert looking.learn(0, states) == []
        looking.note(7, DONE)
        looking.note(7, TAKEN)
        assert looking.is_done(7)
        assert looking.unfinished() == list(range(PAGE, 1200))
        assert looking.page(1100) == (1000, 1200)

    def test_what_is_taken_stays_so_whatever_an_older_listing_says(self):
        looking = search(10)
        looking.claimed(0)
        looking.learn(0, bytearray(10))

        assert looking.next_free() == 1
        assert sorted(claimed(looking, bytearray(10))[0]) == list(range(1, 10))

    def test_there_is_nothing_in_no_parts(self):
        assert search(0).next_free() is None
        assert search(5, range(2, 2)).next_free() is not None


class TestClock:
    def test_tells_the_time_of_this_machine(self):
        clock = Clock()

        before = time.time(), time.monotonic()
        found = clock.wall(), clock.now()
        after = time.time(), time.monotonic()

        assert all(low <= now <= high for low, now, high in zip(before, found, after, strict=True))

    def test_chance_and_waiting(self):
        clock = Clock()

        assert len({clock.chance() for _ in range(20)}) > 10
        asyncio.run(clock.pause(0))
