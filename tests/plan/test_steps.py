"""Steps as they travel, and tasks by their numbers."""

import json
import pickle

import pytest

import tensorstore_py as ts
from tensorstore_py._api.blocks import Blocks
from tensorstore_py._plan.steps import Run, Stage, Step, check_portable


def step(name, parts, **arguments):
    blocks = Blocks(
        ts.IndexTransform(input_shape=[2 * parts]), [range(2, 2 * parts, 2)], [None], 1, 1
    )
    return Step("copy", name, arguments, blocks, 4, 2, form="f")


def test_tasks_are_numbered_step_by_step():
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
        (0, 5, [Run(0, 0, 3, 0), Run(2, 0, 2, 3)]),
        (1, 4, [Run(0, 1, 3, 1), Run(2, 0, 1, 3)]),
        (3, 4, [Run(2, 0, 1, 3)]),
        (2, 2, []),
    ],
)
def test_tasks_that_follow_each_other(start, stop, runs):
    stage = Stage((step("a", 3), step("b", 0), step("c", 2)))

    assert list(stage.runs(start, stop)) == runs
    some, first, before = stage.some(start, stop)
    mine = [some.task(number - before) for number in range(start, stop)]
    assert [(each.name, block) for each, block in mine] == [
        (each.name, block) for each, block in (stage.task(number) for number in range(start, stop))
    ]
    if runs:
        assert some.steps[0] is stage.steps[first]


def test_a_step_through_json_and_pickle():
    before = step("a/b", 3, source={"driver": "zarr3"})

    for after in (
        Step.from_json(json.loads(json.dumps(before.to_json()))),
        pickle.loads(pickle.dumps(before)),
        pickle.loads(pickle.dumps(Stage((before,)))).steps[0],
    ):
        assert after.to_json() == before.to_json()
        assert list(after.blocks) == list(before.blocks)


def test_the_open_operation_stays_behind():
    here = step("a", 1)
    here.live = object()

    assert pickle.loads(pickle.dumps(here)).live is None


@pytest.mark.parametrize("wrong", [None, {}, {"kind": "copy"}])
def test_what_is_no_step_is_refused(wrong):
    with pytest.raises(ts.SpecError, match="expected a step"):
        Step.from_json(wrong)


def test_a_kind_that_nobody_knows():
    json = {**step("a", 1).to_json(), "kind": "copi"}

    with pytest.raises(ts.SpecError, match=r"copi.*copy"):
        Step.from_json(json)


def test_arguments_are_made_when_the_step_has_to_travel():
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
def test_credentials_never_travel(spec, path):
    with pytest.raises(ts.SpecError, match=path) as caught:
        check_portable(spec, "a")

    assert "credentials" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_memory_never_travels():
    with pytest.raises(ts.UnsupportedError, match='"/a" is in the memory of this process'):
        check_portable({"kvstore": {"base": {"driver": "memory", "path": "x"}}}, "a")


def test_a_region_for_people():
    each = step("raw/image", 3)

    assert each.region(each.blocks[1]) == '"/raw/image"[2:4]'
