"""Calls by function and by name; what calls do is in test_running."""

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.call import call_named, call_of


def test_a_call_of_a_function_and_by_its_name_are_the_same(tmp_path):
    options = {"chunks": [2, 3], "codec": "zstd", "includes": ["a/*"], "dtype": ts.int16}
    one = call_of(ts.copy, (tmp_path / "old", tmp_path / "new"), options)

    other = call_named(one.operation, one.request())

    assert one.operation == "copy"
    assert other.request() == one.request()
    assert other.identity() == one.identity()
    assert one.request()["dtype"] == "int16"


def test_how_it_is_run_is_no_part_of_it(tmp_path):
    ends = (tmp_path / "old", tmp_path / "new")

    plain = call_of(ts.rechunk, ends, {"chunks": 4})
    other = call_of(ts.rechunk, ends, {"chunks": 4, "progress": True, "executor": None})

    assert plain.request() == other.request()


def test_an_unknown_name():
    with pytest.raises(ts.SpecError, match=r"no operation 'rechunks' .did you mean \"rechunk\"."):
        call_named("rechunks", {})
