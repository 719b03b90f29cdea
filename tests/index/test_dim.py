import copy
import pickle

import numpy as np
import pytest

from tensorstore_py._index import Dim, inf


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (Dim(), "Dim()"),
        (Dim("x"), 'Dim(label="x")'),
        (Dim(None), "Dim()"),
        (Dim("x", implicit_lower=False), 'Dim(implicit_lower=False, label="x")'),
        (Dim(5), "Dim(inclusive_min=0, exclusive_max=5)"),
        (Dim(np.int64(5), "x"), 'Dim(inclusive_min=0, exclusive_max=5, label="x")'),
        (Dim(5, None), "Dim(inclusive_min=0, exclusive_max=5)"),
        (Dim(None, "x"), 'Dim(inclusive_min=0, label="x")'),
        (Dim(None, None), "Dim(inclusive_min=0)"),
        (Dim(size=None), "Dim(inclusive_min=0)"),
        (Dim(size=4, inclusive_min=2), "Dim(inclusive_min=2, exclusive_max=6)"),
        (Dim(3, 5), "Dim(inclusive_min=3, exclusive_max=5)"),
        (Dim(None, 5), "Dim(exclusive_max=5)"),
        (Dim(3, None, label="x"), 'Dim(inclusive_min=3, label="x")'),
        (Dim(inclusive_min=3), "Dim(inclusive_min=3)"),
        (Dim(3, exclusive_max=5), "Dim(inclusive_min=3, exclusive_max=5)"),
        (Dim(exclusive_max=5, implicit_lower=False), "Dim(implicit_lower=False, exclusive_max=5)"),
        (Dim(inclusive_min=3, inclusive_max=5), "Dim(inclusive_min=3, exclusive_max=6)"),
        (Dim(3, implicit_upper=True), "Dim(inclusive_min=0, exclusive_max=3, implicit_upper=True)"),
    ],
)
def test_forms(dim, text) -> None:
    assert repr(dim) == text
    assert eval(text) == dim


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((1.5,), {}),
        ((2**70,), {}),
        ((1, 2, 3), {}),
        ((1,), {"size": 2}),
        ((), {"size": 2, "exclusive_max": 3}),
        ((), {"colour": 3}),
        ((3, "x"), {"label": "y"}),
        ((), {"label": 3}),
    ],
)
def test_arguments_that_fit_no_form(args, named) -> None:
    with pytest.raises(TypeError, match="Dim"):
        Dim(*args, **named)


def test_bounds_that_form_no_interval() -> None:
    with pytest.raises(ValueError, match="sized"):
        Dim(-1)
    with pytest.raises(ValueError, match="half-open"):
        Dim(3, 1)


def test_properties() -> None:
    dim = Dim(3, 6)

    assert (dim.inclusive_min, dim.inclusive_max, dim.exclusive_min, dim.exclusive_max) == (
        3,
        5,
        2,
        6,
    )
    assert (dim.size, len(dim), list(dim)) == (3, 3, [3, 4, 5])
    assert (dim.empty, dim.finite, Dim(2, 2).empty, Dim().finite) == (False, True, True, False)
    assert len(Dim()) == 2 * inf + 1
    with pytest.raises(ValueError, match="infinite"):
        iter(Dim())


def test_contains() -> None:
    dim = Dim(3, 6)

    assert 3 in dim
    assert 6 not in dim
    assert Dim(4, 6) in dim
    assert Dim(4, 7) not in dim
    assert Dim(9, 9) in dim
    with pytest.raises(TypeError):
        "a" in dim  # noqa: B015


def test_only_flags_and_label_may_change() -> None:
    dim = Dim(3)
    dim.implicit_lower, dim.label = True, "x"

    assert str(dim) == '"x": [0*, 3)'
    with pytest.raises(AttributeError):
        dim.inclusive_min = 1  # type: ignore[misc]


def test_equality_copies_and_pickles() -> None:
    dim = Dim(1, 4, label="x", implicit_upper=True)

    assert dim == copy.copy(dim) == copy.deepcopy(dim) == pickle.loads(pickle.dumps(dim))
    assert copy.copy(dim) is not dim
    assert dim != Dim(1, 4, label="x")
    assert dim != 3
    with pytest.raises(TypeError):
        hash(dim)


def test_intersect_and_hull_merge_labels() -> None:
    assert Dim(1, 5, label="x").intersect(Dim(3)) == Dim(1, 3, label="x")
    assert Dim(3).hull(Dim(1, 5, label="x")) == Dim(0, 5, label="x")
    for merge in (Dim(3, "x").intersect, Dim(3, "x").hull):
        with pytest.raises(ValueError, match="labels do not match"):
            merge(Dim(3, "y"))
