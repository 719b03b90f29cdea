"""What is decided before anything is stored; what of it happens is in test_copy."""

import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.copy_plan import PlannedArray, PlannedGroup, Request
from tensorstore_py._conversion.ends import destination, source
from tensorstore_py._conversion.member_paths import MemberPaths
from tensorstore_py._conversion.new_form import Wanted
from tensorstore_py._runtime.inline import run_inline


def plan(from_, to, context, **options):
    ends = source(from_, context), destination(to, context, options.pop("zarr_format", None))
    given = {"if_exists": "raise", "wanted": Wanted(), **options}
    request = Request(*ends, inline=True, paths=MemberPaths.of(None, None), **given)
    here = run_inline(ends[0].find())
    there = run_inline(ends[1].find(None if here.tree is None else here.tree.form))
    return run_inline(request.plan(here, there))


def group(context, where="memory://old/"):
    made = ts.Group.open(where, create=True, attributes={"a": 1}, context=context).result()
    made.create_array("b/c", dtype="int8", shape=[4]).result()
    return made


def test_members_come_in_order():
    context = ts.Context()
    found = plan(group(context), "memory://new/", context)

    assert [(type(each), each.path, each.action) for each in found] == [
        (PlannedGroup, "", "create"),
        (PlannedGroup, "b", "create"),
        (PlannedArray, "b/c", "create"),
    ]
    assert found[0].attributes == {"a": 1}
    assert found[2].size_bytes == 4
    assert found[2].form.same_chunks


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_groups_are_known(zarr_format):
    context = ts.Context()
    made = ts.Group.open(
        "memory://old/", create=True, zarr_format=zarr_format, context=context
    ).result()
    made.create_group("a").result()
    made.consolidate().result()

    found = plan("memory://old/", "memory://new/", context)

    assert [each.consolidated for each in found] == [True, False]


def test_what_is_there_is_seen():
    context = ts.Context()
    old = group(context)
    group(context, "memory://new/")

    found = plan(old, "memory://new/", context, if_exists="skip")

    assert [each.action for each in found] == ["keep", "keep", "skip"]
    with pytest.raises(ts.AlreadyExistsError, match='"/b/c" exists already'):
        plan(old, "memory://new/", context)


def test_names_that_the_format_does_not_allow():
    context = ts.Context()
    made = ts.Group.open("memory://old/", create=True, zarr_format=2, context=context).result()
    made.create_array("__x", dtype="int8", shape=[4]).result()

    with pytest.raises(ts.SpecError, match="__x"):
        plan(made, "memory://new/", context, zarr_format=3)
