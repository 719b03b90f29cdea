import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.forms import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    check_form,
    or_named,
    or_several,
)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (3, INTEGER),
        (3, NUMBER),
        (0.5, NUMBER),
        ("a", STRING),
        (True, BOOLEAN),
        ([1, 2], or_several(INTEGER)),
        ({"x": 1}, or_named(INTEGER)),
        ("raise", {"enum": ["raise", "skip"]}),
        (4, {"type": "integer", "minimum": 4}),
        ([1, "a"], {"type": "array"}),
        (object, {}),
    ],
)
def test_fits(value, form):
    check_form(value, form)


@pytest.mark.parametrize(
    ("value", "form", "problem"),
    [
        (True, INTEGER, "an integer, but found true"),
        (0.5, INTEGER, "an integer, but found 0.5"),
        (1, BOOLEAN, "true or false, but found 1"),
        (1, {"enum": ["a"]}, 'one of "a", but found 1'),
        ("skp", {"enum": ["raise", "skip"]}, r'found "skp" \(did you mean "skip"\?\)'),
        ([1, "a"], or_several(INTEGER), 'an integer or a list of integers, but found \\[1, "a"\\]'),
        ({"x": "a"}, or_named(INTEGER), "or an object of integers"),
        (0, {"type": "integer", "minimum": 1}, "an integer from 1 on, but found 0"),
        ({}, {"type": "array"}, "a list, but found {}"),
    ],
)
def test_does_not_fit(value, form, problem):
    with pytest.raises(ts.SpecError, match=problem):
        check_form(value, form)
