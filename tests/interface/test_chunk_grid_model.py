"""A grid's own word on its sizes, and what follows from it."""

from typing import ClassVar

import pytest

from tensorstore_py._interface.chunk_grid_model import ChunkGridModel
from tensorstore_py.errors import UnsupportedError


class Sized(ChunkGridModel):
    grid_id: ClassVar[str] = "sized"

    said: tuple[tuple[int, ...], ...] = ()

    @property
    def sizes(self) -> tuple[frozenset[int], ...]:
        return tuple(map(frozenset, self.said))


def test_shapes_follow_from_sizes() -> None:
    grid = Sized(said=((6, 9, 12), (4,), ()))

    assert (grid.rank, grid.is_even) == (3, False)
    assert (grid.shape, grid.largest, grid.common) == ((None, 4, None), (12, 4, 1), (3, 4, 1))


def test_one_size_a_dimension_is_even() -> None:
    assert Sized(said=((4,), (5,))).is_even
    assert Sized().is_even


def test_by_default_a_grid_covers_everything_and_stays_as_it_is() -> None:
    grid = Sized(said=((4,),))

    grid.check_reaches([10**9])
    assert grid.resized([10**9], [1]) is grid
    assert grid.cuts_like(Sized(said=((4,),)))
    assert not grid.cuts_like(Sized(said=((5,),)))


def test_a_name_alone_cuts_nothing() -> None:
    class Named(ChunkGridModel):
        grid_id: ClassVar[str] = "named"

    with pytest.raises(UnsupportedError, match='"named" only exists as a name'):
        _ = Named().sizes
    with pytest.raises(UnsupportedError, match='"named" only exists as a name'):
        Named().axes([4])
