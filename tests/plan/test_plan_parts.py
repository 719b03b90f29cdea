"""What a plan is made of: calls, steps, tasks, pieces on engines, and the stored document."""

import asyncio
import copy
import gc
import json
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py import Progress
from tensorstore_py._api.blocks import Blocks
from tensorstore_py._plan.arrays import array_json, open_json
from tensorstore_py._plan.call import call_named, call_of
from tensorstore_py._plan.document import check_same, document, document_place, forms_of, stages_of
from tensorstore_py._plan.engines import engine_of, run_pieces
from tensorstore_py._plan.plan import size_text
from tensorstore_py._plan.recorded import join, store_plan
from tensorstore_py._plan.running import Piece, StageProgress, StageWorker, shared_context
from tensorstore_py._plan.steps import (
    Stage,
    Step,
    TaskRun,
    check_portable,
    found,
    open_operation,
    register,
)
from tensorstore_py._plan.tasks import DamagedTask, StageOutcome, StepOutcome, Tasks
from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.limiters import MemoryBudget
from tensorstore_py._runtime.progress import Reporter
from tests.plan.trees import IMAGE, SMALL, check, tree


def step(name, parts, **arguments):
    blocks = Blocks(
        ts.IndexTransform(input_shape=[2 * parts]), [range(2, 2 * parts, 2)], [None], 1, 1
    )
    return Step("copy", name, arguments, blocks, 4, 2, form="f")


class TestSteps:
    def test_tasks_are_numbered_step_by_step(self):
        stage = Stage((step("a", 3), step("b", 0), step("c", 2)))

        assert stage.count == 5
        found = [stage.task(number) for number in range(5)]
        assert [(each.name, block.number) for each, block in found] == [
            ("a", 0), ("a", 1), ("a", 2), ("c", 0), ("c", 1),
        ]  # fmt: skip
        for beyond in (-1, 5):
            with pytest.raises(IndexError, match="5 tasks"):
                stage.task(beyond)

    @pytest.mark.parametrize(
        ("start", "stop", "runs"),
        [
            (0, 5, [TaskRun(0, 0, 3, 0), TaskRun(2, 0, 2, 3)]),
            (1, 4, [TaskRun(0, 1, 3, 1), TaskRun(2, 0, 1, 3)]),
            (3, 4, [TaskRun(2, 0, 1, 3)]),
            (2, 2, []),
        ],
    )
    def test_tasks_that_follow_each_other(self, start, stop, runs):
        stage = Stage((step("a", 3), step("b", 0), step("c", 2)))

        assert list(stage.runs(start, stop)) == runs
        some, first, before = stage.some(start, stop)
        mine = [some.task(number - before) for number in range(start, stop)]
        assert [(each.name, block) for each, block in mine] == [
            (each.name, block)
            for each, block in (stage.task(number) for number in range(start, stop))
        ]
        if runs:
            assert some.steps[0] is stage.steps[first]

    def test_a_step_through_json_and_pickle(self):
        before = step("a/b", 3, source={"driver": "zarr3"})

        for after in (
            Step.from_json(json.loads(json.dumps(before.to_json()))),
            pickle.loads(pickle.dumps(before)),
            pickle.loads(pickle.dumps(Stage((before,)))).steps[0],
        ):
            assert after.to_json() == before.to_json()
            assert list(after.blocks) == list(before.blocks)

    def test_the_open_operation_stays_behind(self):
        here = step("a", 1)
        here.live = object()

        assert pickle.loads(pickle.dumps(here)).live is None

    @pytest.mark.parametrize("wrong", [None, {}, {"kind": "copy"}])
    def test_what_is_no_step_is_refused(self, wrong):
        with pytest.raises(ts.SpecError, match="expected a step"):
            Step.from_json(wrong)

    def test_an_unknown_kind(self):
        json = {**step("a", 1).to_json(), "kind": "copi"}

        with pytest.raises(ts.SpecError, match=r"copi.*copy"):
            Step.from_json(json)

    def test_arguments_are_made_when_the_step_has_to_travel(self):
        made = []

        def arguments():
            made.append(1)
            return {"x": 1}

        blocks = Blocks(ts.IndexTransform(input_shape=[2]), [None], [None], 1, 1)
        lazy = Step("copy", "a", arguments, blocks, 1, 1)
        assert made == []
        assert lazy.arguments == lazy.arguments == {"x": 1}
        assert made == [1]

    @pytest.mark.parametrize(
        ("spec", "path"),
        [
            ({"base_url": "https://me:secret@host/"}, "base_url"),
            ({"a": ["https://host/?X-Signature=secret"]}, "a"),
            ({"kvstore": {"headers": ["Authorization: secret"]}}, "headers"),
        ],
    )
    def test_credentials_never_travel(self, spec, path):
        with pytest.raises(ts.SpecError, match=path) as caught:
            check_portable(spec, "a")

        assert "credentials" in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_memory_never_travels(self):
        with pytest.raises(ts.UnsupportedError, match='"/a" is in the memory of this process'):
            check_portable({"kvstore": {"base": {"driver": "memory", "path": "x"}}}, "a")

    def test_a_region_for_people(self):
        each = step("raw/image", 3)

        assert each.region(each.blocks[1]) == '"/raw/image"[2:4]'


class TestOperation:
    def test_a_kind_is_opened_with_its_arguments(self):
        seen = []

        async def opener(arguments, context, blocks):
            seen.append((arguments, context, blocks))

        register("tests.kind", opener)
        context = ts.Context()
        blocks = Blocks(ts.IndexTransform(input_shape=[2]), [None], [None], 1, 1)

        run_inline(open_operation("tests.kind", {"a": 1}, context, blocks))

        assert seen == [({"a": 1}, context, blocks)]
        assert found("tests.kind") == (opener, None)

    def test_an_unknown_kind(self):
        with pytest.raises(
            ts.SpecError, match=r"no steps of kind 'copyy' .did you mean \"copy\"?."
        ):
            found("copyy")


class TestCall:
    def test_a_call_of_a_function_and_by_its_name_are_the_same(self, tmp_path):
        options = {"chunks": [2, 3], "codec": "zstd", "includes": ["a/*"], "dtype": ts.int16}
        one = call_of(ts.copy, (tmp_path / "old", tmp_path / "new"), options)

        other = call_named(one.operation, one.request())

        assert one.operation == "copy"
        assert other.request() == one.request()
        assert other.identity() == one.identity()
        assert one.request()["dtype"] == "int16"

    def test_how_it_is_run_is_no_part_of_it(self, tmp_path):
        ends = (tmp_path / "old", tmp_path / "new")

        plain = call_of(ts.rechunk, ends, {"chunks": 4})
        other = call_of(ts.rechunk, ends, {"chunks": 4, "progress": True, "executor": None})

        assert plain.request() == other.request()

    def test_an_unknown_name(self):
        with pytest.raises(
            ts.SpecError, match=r"no operation 'rechunks' .did you mean \"rechunk\"."
        ):
            call_named("rechunks", {})


def stored(call=None):
    call = call_of(ts.copy, ("memory://a/", "memory://b/"), {}) if call is None else call
    return document(call, (Stage((step("a", 3), step("b", 2))),), portable=False)


class TestDocument:
    def test_it_says_each_step(self):
        found = stored()

        assert forms_of(found) == {"a": "f", "b": "f"}
        assert found["arguments"] is not None
        assert [each.count for each in stages_of(found["stages"])] == [5]

    def test_what_only_this_process_has_is_left_out(self):
        call = call_of(ts.copy, ("memory://a/", "memory://b/"), {})
        here = Stage((step("a", 3, kvstore={"driver": "memory"}),))
        here.steps[0]._arguments = lambda: {"kvstore": {"driver": "memory"}}

        with pytest.raises(ts.UnsupportedError, match="memory of this process"):
            document(call, (here,))
        found = document(call, (here,), portable=False)

        assert found["arguments"] is None
        assert forms_of(found) == {"a": "f"}

    def test_the_same_is_the_same(self):
        check_same(stored(), stored(), "m.json")

    @pytest.mark.parametrize(
        ("member", "value", "said"),
        [
            ("form", "g", '"/b" is not as it was when this began'),
            ("blocks", [], '"/b" was cut into other blocks'),
            ("name", "c", '"/b" is not there any more since this began'),
        ],
    )
    def test_what_has_changed_is_named(self, member, value, said):
        now = copy.deepcopy(stored())
        now["stages"][0][1][member] = value

        with pytest.raises(ts.FailedPreconditionError, match=said) as caught:
            check_same(stored(), now, "m.json")

        assert "delete the manifest m.json" in str(caught.value)

    def test_where_one_is(self):
        context = ts.Context()

        assert document_place("memory://a/m.json", context).key == "a/m.json"
        assert document_place(Path("/tmp/m.json"), context).key == "/tmp/m.json"
        assert document_place({"driver": "memory", "path": "m.json"}, context).key == "m.json"
        opened = ts.KvStore.open("memory://x/m.json", context=context).result()
        assert document_place(opened, context).key == "x/m.json"

    @pytest.mark.parametrize("where", ["copy.json", "memory://", "memory://a/"])
    def test_a_place_of_no_document(self, where):
        with pytest.raises(ts.SpecError, match="manifest"):
            document_place(where, ts.Context())

    @pytest.mark.parametrize("wrong", [None, [3]])
    def test_what_is_no_list_of_stages(self, wrong):
        with pytest.raises(ts.SpecError, match="lists of steps"):
            stages_of(wrong)


def array(tmp_path, **options):
    spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}
    given = {"create": True, "dtype": "int16", "shape": [6, 7], **options}
    return ts.open(spec, **given).result()


def again(json):
    return start(False, lambda: open_json(json, ts.Context(), "the array")).result()


class TestArrays:
    def test_a_view_is_the_same_elsewhere(self, tmp_path):
        store = array(tmp_path)
        store[...] = 5
        view = store[2:4, ::2]

        found = again(array_json(view, "a"))

        assert found.domain == view.domain
        assert found.read().result().tolist() == view.read().result().tolist()

    def test_how_it_was_opened_here_does_not_travel(self, tmp_path):
        json = array_json(array(tmp_path), "a")

        assert not {"create", "open", "delete_existing", "assume_metadata"} & set(json)
        assert json["kvstore"] == {"driver": "file", "path": f"{tmp_path}/a/", "file_io_sync": True}
        assert "context" not in json

    def test_limits_travel(self, tmp_path):
        context = ts.Context({"memory_limit": {"limit_bytes": 77}})

        json = array_json(array(tmp_path, context=context), "a")

        assert json["context"] == {"memory_limit": {"limit_bytes": 77}}

    def test_what_is_gone_or_changed_is_reported(self, tmp_path):
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

    def test_what_a_transaction_sees_stays_here(self, tmp_path):
        store = array(tmp_path).with_transaction(ts.Transaction())

        with pytest.raises(ts.UnsupportedError, match="transaction"):
            array_json(store, "the array")

    def test_opening_holds_no_loop_up(self, tmp_path):
        json = array_json(array(tmp_path), "a")

        async def several():
            return await asyncio.gather(*(open_json(json, ts.Context(), "a") for _ in range(3)))

        assert [each.shape for each in start(False, several).result()] == [(6, 7)] * 3


class Noting:
    """An operation that notes what it does.

    Args:
        blocks: to work on.
        error: raised in the block that begins at 2.
        memory: the budget.
    """

    item_bytes = 4
    progress_bytes = 2

    def __init__(self, blocks, error=None, memory=None, inline=False):
        self.blocks, self.error, self.memory, self.inline = blocks, error, memory, inline
        self.ran = []

    async def run(self, block):
        self.ran.append(block.bounds[0][0])
        if self.error is not None and block.bounds[0][0] == 2:
            raise self.error
        return block.size


class Adding:
    def merge(self, one, other):
        return one + other

    def to_json(self, result):
        return result

    def from_json(self, json):
        return json


def staged(**options):
    steps = tuple(step(name, parts) for name, parts in (("a", 3), ("b", 2)))
    for each in steps:
        each.live = Noting(each.blocks, **options)
    return Stage(steps)


def run(stage, start_=0, stop=None):
    seen: list[StepOutcome] = []
    tasks = Tasks(stage, ts.Context())
    body = lambda: tasks.run_all(start_, stage.count if stop is None else stop, seen.append)  # noqa: E731
    return start(False, body).result(), seen


@pytest.fixture
def merging():
    from tensorstore_py._plan import steps

    before = steps._openers["copy"]
    register("copy", before[0], Adding())
    yield
    register("copy", *before)


@pytest.mark.usefixtures("merging")
class TestTasks:
    @pytest.mark.parametrize("inline", [False, True])
    def test_all_are_done_and_counted(self, inline):
        stage = staged(inline=inline)

        outcome, seen = run(stage)

        assert outcome.steps == {0: StepOutcome(3, 12, 3, 6), 1: StepOutcome(2, 8, 2, 4)}
        assert sorted(stage.steps[0].live.ran) == [0, 2, 4]
        assert sum(each.bytes for each in seen) == 20

    def test_only_some(self):
        stage = staged()

        outcome, _ = run(stage, 2, 4)

        assert {number: each.tasks for number, each in outcome.steps.items()} == {0: 1, 1: 1}

    def test_damage_is_noted_and_the_others_go_on(self):
        stage = staged(error=ts.DataLossError("bad chunk"))

        outcome, _ = run(stage)

        assert [each.tasks for each in outcome.steps.values()] == [2, 1]
        assert sorted(each.region for each in outcome.damaged) == ['"/a"[2:4]', '"/b"[2:4]']
        with pytest.raises(
            ts.DataLossError, match=r"2 region\(s\) could not be done(.|\n)*bad chunk"
        ):
            outcome.check()

    @pytest.mark.parametrize(
        "error", [ts.ResourceExhaustedError("disk full"), OSError("disk full")]
    )
    def test_any_other_error_names_task_and_region(self, error):
        stage = staged(error=error)

        with pytest.raises(type(error)) as caught:
            run(stage, 0, 3)

        reporter = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
        assert "task 1" in reporter
        assert '"/a"[2:4]' in reporter
        assert "disk full" in reporter

    def test_memory_is_taken_and_given_back(self):
        memory = MemoryBudget(16)
        stage = staged(memory=memory)

        outcome, _ = run(stage)

        assert outcome.steps[0].tasks == 3
        assert (
            start(False, lambda: memory.blocks.acquire(False, memory.blocks.limit)).result() is None
        )

    def test_outcomes_merge_in_any_order(self):
        stage = staged()
        parts = [run(stage, number, number + 1)[0] for number in range(stage.count)]
        whole = StageOutcome({}, [])

        for each in reversed(parts):
            whole.merge(each, stage)

        assert whole.steps == run(stage)[0].steps
        assert whole.without_results().steps[0] == StepOutcome(3, 12, 3, None)

    def test_many_damaged_regions_are_counted(self):
        outcome = StageOutcome(
            {}, [DamagedTask("a", f"a[{number}]", "bad") for number in range(30)]
        )

        with pytest.raises(ts.DataLossError, match="and 10 more"):
            outcome.check()


def planned(tmp_path):
    tree(tmp_path / "old")
    return ts.plan(
        ts.copy, tmp_path / "old", tmp_path / "new", chunks=3, context=ts.Context(SMALL)
    ).result()


class TestPieces:
    def test_a_piece_knows_only_its_steps(self, tmp_path):
        (stage,) = planned(tmp_path).stages
        assert stage.steps[0].blocks.count == 1

        piece = Piece.of(stage, 1, 3)

        assert [step.name for step in piece.stage.steps] == ["raw/image"]
        assert (piece.first, piece.start, piece.stop) == (1, 0, 2)

    def test_pieces_in_any_order_any_number_of_times(self, tmp_path):
        plan = planned(tmp_path)
        plan.run().result()
        (stage,) = plan.stages
        pieces = [Piece.of(stage, at, min(at + 3, stage.count)) for at in range(0, stage.count, 3)]

        outcomes = [pickle.loads(pickle.dumps(piece)).run() for piece in [*pieces[::-1], pieces[0]]]

        assert [each.damaged for each in outcomes] == [[]] * len(outcomes)
        assert set(outcomes[-1].steps) == {0, 1}
        check(tmp_path / "new")

    def test_a_worker_needs_only_the_place_of_the_plan(self, tmp_path):
        where = tmp_path / "plan.json"
        where.write_text(json.dumps(planned(tmp_path).to_json()))
        joining = StageWorker({"driver": "file", "path": str(where)}, 0, 0, 1, None)

        outcome = pickle.loads(pickle.dumps(joining)).run()
        again = joining.run()

        assert sum(done.bytes for done in outcome.steps.values()) == 342
        assert again.steps == {}
        check(tmp_path / "new")

    def test_pieces_of_a_process_share_a_context(self):
        assert shared_context() is shared_context()


class Giving:
    """A piece that gives its number, or raises it."""

    def __init__(self, number, error=None):
        self.number, self.error = number, error

    def run(self):
        if self.error is not None:
            raise self.error
        return self.number


def given(engine, pieces, most=None):
    async def body():
        found = []
        async with aclosing(run_pieces(engine, iter(pieces), "test")) as ended:
            async for each in ended:
                found.append(each)
                if len(found) == most:
                    break
        return found

    return start(False, body).result()


class TestEngines:
    def test_nothing_is_this_process(self):
        assert engine_of(None) is None

    def test_all_pieces_run(self):
        with ThreadPoolExecutor(3) as executor:
            engine = engine_of(executor)
            assert engine is not None
            found = given(engine, map(Giving, range(100)))

        assert sorted(found) == list(range(100))
        assert (engine.workers, engine.shares_memory) == (3, True)

    def test_pieces_are_made_a_few_at_a_time(self):
        made = []

        def pieces():
            for number in range(1000):
                made.append(number)
                yield Giving(number)

        with ThreadPoolExecutor(2) as executor:
            found = given(engine_of(executor), pieces(), most=5)

        assert len(found) == 5
        assert len(made) < 20

    def test_the_first_error_is_the_end(self):
        made = []

        def pieces():
            for number in range(1000):
                made.append(number)
                yield Giving(number, ts.NotFoundError("gone") if number == 3 else None)

        with ThreadPoolExecutor(2) as executor, pytest.raises(ts.NotFoundError, match="gone"):
            given(engine_of(executor), pieces())

        assert len(made) < 20

    def test_whatever_looks_like_an_executor(self):
        class Looks:
            max_workers = 5

            def submit(self, function, *arguments):
                raise AssertionError

            map = submit

        looks = engine_of(Looks())
        assert looks is not None
        assert looks.workers == 5
        with ProcessPoolExecutor(1) as executor:
            engine = engine_of(executor)
        assert engine is not None
        assert not engine.shares_memory

    @pytest.mark.parametrize("wrong", [3, "dask", object()])
    def test_what_is_no_engine(self, wrong):
        with pytest.raises(ts.SpecError, match="executor"):
            engine_of(wrong)

    def test_an_engine_that_is_not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ray", None)

        with pytest.raises(ts.UnsupportedError, match="pip install ray"):
            engine_of("ray")

    def test_errors_that_come_together_are_reported_once(self, caplog):
        with ThreadPoolExecutor(4) as executor, pytest.raises(ts.NotFoundError):
            given(engine_of(executor), [Giving(0, ts.NotFoundError("gone")) for _ in range(40)])
        gc.collect()

        assert caplog.records == []


def told_of(stages):
    seen: list[Progress] = []
    reporter = Reporter(seen.append)
    reporter.begin(2 * 2 * 5, 5, 2)
    return StageProgress(stages, reporter), seen


class TestShare:
    def test_in_proportion_and_whole_at_the_end(self):
        share, seen = told_of((Stage((step("a", 3), step("b", 2))),))

        for tasks in (1, 1, 2, 1):
            share.advance(0, tasks)

        assert [each.bytes_done for each in seen] == [0, 4, 8, 16, 20]
        assert seen[-1].chunks_done == 5
        assert seen[-1].arrays_done == 2

    def test_what_others_have_done_is_reported_at_the_end(self):
        share, seen = told_of((Stage((step("a", 3),)), Stage((step("b", 2),))))
        share.advance(1, 1)

        share.finish()
        share.finish()

        assert (seen[-1].bytes_done, seen[-1].arrays_done) == (20, 2)

    def test_what_is_seen_elsewhere_and_reported_here_is_not_counted_twice(self):
        share, seen = told_of((Stage((step("a", 3), step("b", 2))),))

        share.reach(0, 3)
        share.advance(0, 2)
        share.reach(0, 1)
        share.advance(0, 2)

        assert [each.bytes_done for each in seen] == [0, 12, 16]

    @pytest.mark.parametrize(
        ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (2**70, "1024.0 EiB")]
    )
    def test_sizes_for_people(self, size, text):
        assert size_text(size) == text


def copied(tmp_path, **options):
    return call_of(
        ts.copy, (tmp_path / "old", tmp_path / "new"),
        {"chunks": 3, "context": ts.Context(SMALL), **options},
    )  # fmt: skip


def place(tmp_path):
    return document_place(tmp_path / "m.json", ts.Context())


def result_of(body):
    return start(False, body).result()


def joined(tmp_path, **options):
    reporter = []
    given = {"on_progress": lambda number, tasks: reporter.append((number, tasks)), **options}
    outcomes, is_done = result_of(lambda: join(place(tmp_path), ts.Context(), **given))
    assert is_done
    return outcomes, reporter


class TestRecorded:
    def test_shares_together_are_the_whole(self, tmp_path):
        tree(tmp_path / "old")
        (stage,) = result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))

        outcome, reporter = joined(tmp_path, share=(1, 3))
        assert sum(tasks for _, tasks in reporter) == stage.count
        for share in ((0, 3), (2, 3)):
            (late,), _ = joined(tmp_path, share=share)
            assert late.steps == {}

        assert sum(done.tasks for done in outcome[0].steps.values()) == stage.count
        check(tmp_path / "new")

    def test_storing_it_again_is_the_same(self, tmp_path):
        tree(tmp_path / "old")
        result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))
        before = (tmp_path / "m.json").read_bytes()

        result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))

        assert (tmp_path / "m.json").read_bytes() == before

    def test_what_others_make_after_it_has_looked_is_not_missed(self, tmp_path, monkeypatch):
        tree(tmp_path / "old")
        result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))
        late = copied(tmp_path)
        look = late.stages

        async def stages():
            found = await look()
            await join(place(tmp_path), ts.Context(), on_progress=lambda *_: None)
            return found

        monkeypatch.setattr(late, "stages", stages)

        result_of(lambda: store_plan(late, place(tmp_path)))

        check(tmp_path / "new")

    def test_another_call_is_refused(self, tmp_path):
        tree(tmp_path / "old")
        result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))

        with pytest.raises(ts.FailedPreconditionError, match="is of other work: codec"):
            result_of(lambda: store_plan(copied(tmp_path, codec="zstd"), place(tmp_path)))

    def test_another_limit_on_memory_is_reported(self, tmp_path):
        tree(tmp_path / "old")
        result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))

        with pytest.raises(ts.FailedPreconditionError, match="cut into other blocks"):
            result_of(lambda: store_plan(copied(tmp_path, context=ts.Context()), place(tmp_path)))

    def test_what_another_process_has_made_since_is_not_replaced(self, tmp_path):
        tree(tmp_path / "old")
        result_of(lambda: store_plan(copied(tmp_path), place(tmp_path)))
        theirs = ts.Group.open(tmp_path / "new", create=True).result()
        theirs.create_array("mask", dtype="int8", shape=[6]).result()[...] = 1

        with pytest.raises(ts.FailedPreconditionError, match='"/mask" was made at the destination'):
            joined(tmp_path)

        assert theirs["mask"].read().result().tolist() == [1] * 6

    def test_a_plan_of_what_only_its_process_has(self, tmp_path):
        context = ts.Context(SMALL)
        tree("memory://old/", context)
        call = call_of(ts.copy, ("memory://old/", tmp_path / "new"), {"context": context})
        result_of(lambda: store_plan(call, place(tmp_path)))

        assert json.loads((tmp_path / "m.json").read_text())["arguments"] is None
        with pytest.raises(ts.UnsupportedError, match="only the process has that made it"):
            joined(tmp_path)

    def test_no_plan_is_there(self, tmp_path):
        with pytest.raises(ts.NotFoundError, match=r"m\.json"):
            joined(tmp_path)


def test_progress_of_workers_elsewhere_is_what_the_manifest_says(tmp_path, monkeypatch):
    monkeypatch.setattr("tensorstore_py._plan.running._LOOK_S", 0.001)
    tree(tmp_path / "old")
    seen: list[ts.Progress] = []

    with ThreadPoolExecutor(2) as threads:
        ts.copy(
            tmp_path / "old", tmp_path / "new", chunks=1, executor=threads, progress=seen.append,
            manifest=tmp_path / "copy.json", context=ts.Context(SMALL),
        ).result()  # fmt: skip

    reporter = [each.bytes_done for each in seen]
    assert reporter == sorted(reporter)
    assert 0 < reporter[1] < reporter[-1] == IMAGE.nbytes + 6
