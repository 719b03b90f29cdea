"""A plan's document: what must be the same to go on with it."""

import copy
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.call import call_of
from tensorstore_py._plan.document import check_same, document, document_place, forms_of, stages_of
from tensorstore_py._plan.steps import Stage
from tests.plan.test_steps import step


def stored(call=None):
    call = call_of(ts.copy, ("memory://a/", "memory://b/"), {}) if call is None else call
    return document(call, (Stage((step("a", 3), step("b", 2))),), portable=False)


def test_it_says_each_step():
    found = stored()

    assert forms_of(found) == {"a": "f", "b": "f"}
    assert found["arguments"] is not None
    assert [each.count for each in stages_of(found["stages"])] == [5]


def test_what_only_this_process_has_is_left_out():
    call = call_of(ts.copy, ("memory://a/", "memory://b/"), {})
    here = Stage((step("a", 3, kvstore={"driver": "memory"}),))
    here.steps[0]._arguments = lambda: {"kvstore": {"driver": "memory"}}

    with pytest.raises(ts.UnsupportedError, match="memory of this process"):
        document(call, (here,))
    found = document(call, (here,), portable=False)

    assert found["arguments"] is None
    assert forms_of(found) == {"a": "f"}


def test_the_same_is_the_same():
    check_same(stored(), stored(), "m.json")


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("form", "g", '"/b" is not as it was when this began'),
        ("blocks", [], '"/b" was cut into other blocks'),
        ("name", "c", '"/b" is not there any more since this began'),
    ],
)
def test_what_has_changed_is_named(member, value, said):
    now = copy.deepcopy(stored())
    now["stages"][0][1][member] = value

    with pytest.raises(ts.FailedPreconditionError, match=said) as caught:
        check_same(stored(), now, "m.json")

    assert "delete the manifest m.json" in str(caught.value)


def test_where_one_is():
    context = ts.Context()

    assert document_place("memory://a/m.json", context).key == "a/m.json"
    assert document_place(Path("/tmp/m.json"), context).key == "/tmp/m.json"
    assert document_place({"driver": "memory", "path": "m.json"}, context).key == "m.json"
    opened = ts.KvStore.open("memory://x/m.json", context=context).result()
    assert document_place(opened, context).key == "x/m.json"


@pytest.mark.parametrize("where", ["copy.json", "memory://", "memory://a/"])
def test_a_place_of_no_document(where):
    with pytest.raises(ts.SpecError, match="manifest"):
        document_place(where, ts.Context())


@pytest.mark.parametrize("wrong", [None, [3]])
def test_what_is_no_list_of_stages(wrong):
    with pytest.raises(ts.SpecError, match="lists of steps"):
        stages_of(wrong)
