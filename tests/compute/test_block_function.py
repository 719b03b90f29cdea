"""Functions, and how they get to other processes."""

import functools
import json
import pickle
import sys

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._compute.block_function import BlockFunction, PickledFunction
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._spec.guests import only_built_in
from tests.compute import functions


def called(function, *blocks, inputs=1, **kwargs):
    made = BlockFunction(function, inputs, kwargs)
    return run_inline(made(True, *blocks, domain=ts.IndexDomain(shape=[2])))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (functions.double, "tests.compute.functions:double"),
        (np.subtract, "numpy:subtract"),
        (json.JSONEncoder.default, "json.encoder:JSONEncoder.default"),
        ("tests.compute.functions:double", "tests.compute.functions:double"),
    ],
)
def test_what_can_be_imported_travels_by_its_name(function, name):
    made = BlockFunction(function, 1, {})
    assert (made.name, made.to_json(), made.portable()) == (name, name, name)


@pytest.mark.parametrize(
    "function", [lambda block: block + 1, functools.partial(functions.scaled, factor=3)]
)
def test_anything_else_is_pickled_and_part_of_no_document(function):
    made = BlockFunction(function, 1, {})
    there = pickle.loads(pickle.dumps(made.portable()))
    assert called(there.open(), 5) == function(5)
    with pytest.raises(ts.UnsupportedError, match="put it into a module"):
        made.to_json()


def test_without_cloudpickle_a_lambda_stays_here(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(
        ts.UnsupportedError, match=r"<lambda> cannot be sent.*pip install cloudpick"
    ):
        BlockFunction(lambda block: block, 1, {}).portable()
    partial = functools.partial(functions.scaled, factor=3)
    pickled = BlockFunction(partial, 1, {}).portable()
    assert isinstance(pickled, PickledFunction)
    assert pickled.open()(2) == 6


def test_a_function_whose_module_is_not_there():
    gone = pickle.dumps(functions.double).replace(b"functions", b"functionz")
    with pytest.raises(ts.UnsupportedError, match=r"cannot import the function a:b.*PYTHONPATH"):
        PickledFunction("a:b", gone).open()
    with pytest.raises(ts.UnsupportedError, match=r"cannot import the function no\.such:thing"):
        BlockFunction("no.such:thing", 1, {})


@pytest.mark.parametrize("wrong", ["double", "module:", ":f", "tests.compute.functions:NOTHING"])
def test_names_of_no_function(wrong):
    with pytest.raises(ts.SpecError, match="function: "):
        BlockFunction(wrong, 1, {})


def test_what_is_no_function():
    with pytest.raises(TypeError, match="expected a function"):
        BlockFunction(7, 1, {})  # type: ignore[arg-type]


def test_a_document_that_is_not_trusted_names_no_code():
    with only_built_in(frozenset()), pytest.raises(ts.SpecError, match=r'plugins=\["os:system"\]'):
        BlockFunction("os:system", 1, {})
    with only_built_in(frozenset({"tests.compute.functions:double"})):
        assert BlockFunction("tests.compute.functions:double", 1, {}).inline


def told(_, domain):
    return domain.shape


def told_by_keyword(_, *, domain=None):
    return domain.shape


def untold(domain):
    return domain


def test_who_wants_it_is_told_the_domain():
    assert called(told, 0) == called(told_by_keyword, 0) == (2,)
    assert called(untold, 7) == 7  # it is the name of the block
    assert called(told, 0, domain=ts.IndexDomain(shape=[5])) == (5,)
    assert called(np.negative, 3) == -3  # has no signature


def test_arguments():
    assert called(functions.scaled, 4, factor=3) == 12


@pytest.mark.parametrize("function", [functions.plus_one, functools.partial(functions.plus_one)])
def test_coroutine_functions_are_no_work_for_threads(function):
    assert not BlockFunction(function, 1, {}).inline


def test_what_a_plain_function_gives_may_have_to_be_awaited():
    assert called(lambda block: functions.plus_one(block + 1), 3) == 5
