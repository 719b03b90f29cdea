import pytest

from tensorstore_py._index.frame import MAX_RANK, Frame, check_rank, identity_maps, unbounded
from tensorstore_py._index.interval import INF
from tensorstore_py._index.maps import single
from tensorstore_py.errors import IndexingError


def frame(*bounds):
    lower, upper, implicit_lower, implicit_upper = zip(*bounds, strict=True)
    return Frame(lower, upper, implicit_lower, implicit_upper, ("",) * len(bounds), ())


def test_bounds_of_one_dimension() -> None:
    box = frame((0, 3, False, True), (-2, 5, True, False))

    assert box.rank == 2
    assert box.shape == (3, 7)
    assert box.bounds(1) == (-2, 5, True, False)
    assert box.effective(0) == (0, INF + 1)
    assert box.effective(1) == (-INF, 5)


def test_only_explicit_bounds_make_a_domain_empty_for_good() -> None:
    assert frame((0, 3, False, False), (2, 2, False, False)).is_explicitly_empty()
    assert not frame((2, 2, True, False)).is_explicitly_empty()
    assert not frame((2, 2, False, True)).is_explicitly_empty()
    assert not frame((2, 3, False, False)).is_explicitly_empty()


def test_same_domain_ignores_the_maps() -> None:
    box = frame((0, 3, False, True))

    assert box.same_domain(box.with_maps(identity_maps(1)))
    assert not box.same_domain(frame((0, 3, False, False)))


def test_identity() -> None:
    identity = unbounded(2)

    assert identity.maps == (single(0, 1, 0), single(0, 1, 1))
    assert identity.maps is identity_maps(2)
    assert identity.implicit_lower == identity.implicit_upper == (True, True)


def test_rank_is_limited() -> None:
    assert check_rank(MAX_RANK) == 32
    with pytest.raises(IndexingError, match="Rank 33"):
        check_rank(33)
