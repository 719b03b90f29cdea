"""Which shape a resize gives, and which chunks it deletes."""

from types import SimpleNamespace

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._chunked.resize import delete_outside, new_shape
from tensorstore_py._chunked.source import StoredChunks
from tensorstore_py._interface.chunk_grid import RegularAxis
from tensorstore_py._interface.chunk_keys import SeparatedKeys
from tensorstore_py._interface.driver import ResizeRequest
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import FailedPreconditionError, OutOfRangeError, UnsupportedError
from tests.chunked.stores import counting


def layout(*shape, chunk=2, fixed=0):
    """Of chunked dimensions, then as many that belong to an element."""
    chunked = len(shape) - fixed
    domain = ts.IndexDomain(shape=shape, implicit_upper_bounds=[True] * chunked + [False] * fixed)
    grid = tuple(RegularAxis(extent, chunk) for extent in shape[:chunked])
    return SimpleNamespace(domain=domain, grid=grid, keys=SeparatedKeys(chunked, "."))


def request(*high, low=None, **flags):
    return ResizeRequest((None,) * len(high) if low is None else low, high, **flags)


class TestShape:
    @pytest.mark.parametrize(
        ("asked", "shape"),
        [((None, None), (5, 6)), ((9, None), (9, 6)), ((0, 6), (0, 6)), ((5, 1), (5, 1))],
    )
    def test_is_what_it_was_but_for_what_is_asked(self, asked, shape):
        assert new_shape(layout(5, 6), request(*asked)) == shape

    def test_leaves_out_what_belongs_to_an_element(self):
        assert new_shape(layout(5, 3, fixed=1), request(7, 3)) == (7,)
        with pytest.raises(UnsupportedError, match=r"dimension 1.*part of the data type"):
            new_shape(layout(5, 3, fixed=1), request(7, 4))

    def test_begins_at_zero(self):
        assert new_shape(layout(5), request(7, low=(0,))) == (7,)
        with pytest.raises(UnsupportedError, match="lower bound of dimension 0"):
            new_shape(layout(5), request(7, low=(1,)))

    def test_is_not_negative(self):
        with pytest.raises(OutOfRangeError, match="dimension 1"):
            new_shape(layout(5, 6), request(None, -1))

    def test_obeys_the_flags(self):
        assert new_shape(layout(5), request(5, expand_only=True, shrink_only=True)) == (5,)
        with pytest.raises(FailedPreconditionError, match="shrink from 5 to 4"):
            new_shape(layout(5), request(4, expand_only=True))
        with pytest.raises(FailedPreconditionError, match="grow from 5 to 6"):
            new_shape(layout(5), request(6, shrink_only=True))


class TestChunksOutside:
    def deleted(self, before, now, keys):
        store = counting()
        source = StoredChunks(store, "a/", now.keys)
        for key in keys:
            run_inline(store.write(key, b"1"))
        forgotten: list[tuple[int, ...]] = []
        run_inline(delete_outside(source, before, now, forgotten.append))
        assert len(forgotten) == store.deletes.total()
        return sorted(store.deletes), store.lists.total()

    def test_go_and_nothing_else_does(self):
        every = [f"a/{i}.{j}" for i, j in np.ndindex(3, 3)]
        others = ["a/zarr.json", "a/7", "a/7.7.7", "a/x.1", "b/2.2"]
        gone, lists = self.deleted(layout(6, 6), layout(4, 1), every + others)
        assert gone == ["a/0.1", "a/0.2", "a/1.1", "a/1.2", "a/2.0", "a/2.1", "a/2.2"]
        assert lists == 1

    @pytest.mark.parametrize("now", [(6, 6), (9, 6), (5, 6)], ids=["same", "more", "same chunks"])
    def test_are_not_looked_for_where_there_are_none(self, now):
        assert self.deleted(layout(6, 6), layout(*now), ["a/2.2", "a/4.4"]) == ([], 0)
