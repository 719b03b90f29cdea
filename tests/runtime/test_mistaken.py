import asyncio
import inspect
from collections.abc import Iterable

import numpy as np
import pytest

import tensorstore_py as ts

REMEDY = r"call \.result\(\) or await it"


@pytest.fixture
def future():
    return ts.Future(3)


@pytest.mark.parametrize(
    "name", ["shape", "dtype", "read", "keys", "mean", "create_group", "value"]
)
def test_an_attribute_of_the_value_names_the_remedy(future, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; {REMEDY}"):
        getattr(future, name)
    assert not hasattr(future, name)


def test_every_public_attribute_of_what_is_opened_is_known(future):
    for value in (ts.TensorStore, ts.Group, ts.KvStore):
        for name in dir(value):
            if not name.startswith("_"):
                with pytest.raises(AttributeError, match=REMEDY):
                    getattr(future, name)


@pytest.mark.parametrize(
    "mistake",
    [
        np.asarray,
        np.sum,
        lambda future: np.ones(2) + future,
        lambda future: future[0],
        lambda future: future[0, 1:],
        lambda future: future.__setitem__(0, 1),
        len,
        list,
        iter,
        float,
        int,
        abs,
        lambda future: future + 1,
        lambda future: 1 + future,
        lambda future: -future,
        lambda future: future @ future,
        lambda future: future < 2,
        lambda future: 1 in future,
        lambda future: future.__enter__(),
    ],
)
def test_what_only_the_value_can_do_names_the_remedy(future, mistake):
    with pytest.raises(TypeError, match=REMEDY):
        for _ in mistake(future):
            pass


def test_a_with_statement_names_the_remedy(future):
    with pytest.raises(TypeError, match=REMEDY), future:
        pass


def test_a_future_written_to_an_array_names_the_remedy(future):
    store = ts.array(np.zeros(3, np.uint8))

    with pytest.raises(TypeError, match=REMEDY):
        store[0] = future
    with pytest.raises(TypeError, match=REMEDY):
        store.write(store.read()).result()


async def test_all_else_of_a_future_is_as_before(future):
    assert future
    assert future == future  # noqa: PLR0124 - equality is identity
    assert future != ts.Future(3)
    assert {future: 1}[future] == 1
    assert not isinstance(future, Iterable)
    assert inspect.isawaitable(future)
    assert not hasattr(future, "nonsense")
    assert not hasattr(future, "__iter__")
    assert list(await asyncio.gather(future, future)) == [3, 3]
    assert [future, None].index(future) == 0


def test_what_is_not_there_is_not_listed(future):
    assert "shape" not in dir(future)
    assert {"result", "done", "exception", "cancel"} <= set(dir(future))
    assert dict(inspect.getmembers(future))["result"]() == 3
