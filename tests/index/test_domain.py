import copy
import pickle

import pytest

from tensorstore_py._index import Dim, IndexDomain, IndexTransform, OutputIndexMap, d


@pytest.fixture
def domain():
    return IndexDomain(
        inclusive_min=[1, 0],
        exclusive_max=[5, 6],
        labels=["x", "y"],
        implicit_upper_bounds=[False, True],
    )


def test_properties(domain) -> None:
    assert (domain.rank, domain.ndim, len(domain)) == (2, 2, 2)
    assert domain.origin == domain.inclusive_min == (1, 0)
    assert (domain.exclusive_max, domain.inclusive_max) == ((5, 6), (4, 5))
    assert (domain.shape, domain.size, domain.labels) == ((4, 6), 24, ("x", "y"))
    assert domain.implicit_lower_bounds == (False, False)
    assert domain.implicit_upper_bounds == (False, True)
    assert list(domain) == [domain[0], domain[1]]


def test_size_is_limited_to_64_bits() -> None:
    assert IndexDomain(2).size == 2**63 - 1
    assert IndexDomain([Dim(0, 0), Dim()]).size == 0


def test_index_exp(domain) -> None:
    assert domain.index_exp == (slice(1, 5), slice(0, 6))
    assert IndexDomain(1).index_exp == (slice(None),)
    with pytest.raises(ValueError, match="negative bounds"):
        _ = IndexDomain([Dim(-1, 3)]).index_exp


def test_one_dimension(domain) -> None:
    assert domain["x"] == domain[0] == domain[-2] == Dim(1, 5, label="x")
    domain[0].label = "changed"
    assert domain.labels == ("x", "y")
    for wrong in ("z", 2, -3, ""):
        with pytest.raises(IndexError):
            domain[wrong]


def test_several_dimensions(domain) -> None:
    assert domain["y", "x"] == domain[::-1] == domain[d["y", 0]] == domain[[1, 0]] == domain.T
    assert domain[("y",)] == domain[1:] == IndexDomain([domain[1]])
    assert domain[()] == IndexDomain(0)
    for wrong in ([0, 0], ("z",), slice(1, 3)):
        with pytest.raises(ValueError):
            domain[wrong]


def test_operations_that_make_domains(domain) -> None:
    assert domain[IndexDomain([Dim(2, 4, label="y")])]["y"] == Dim(2, 4, label="y")
    assert domain[d["x"].translate_to[0]]["x"] == Dim(4, label="x")
    assert domain.translate_to[0, 7].origin == (0, 7)
    assert domain.translate_by[2].origin == (3, 2)
    assert domain.translate_backward_by[None, 2].origin == (1, -2)
    assert domain.label["a", ""].labels == ("a", "")
    assert domain.mark_bounds_implicit[True:].implicit_lower_bounds == (True, True)
    assert domain.transpose(["y", "x"]) == domain.transpose() == domain.T


def test_a_transform_maps_its_own_domain(domain) -> None:
    inner = IndexTransform(1, output=[OutputIndexMap(2), OutputIndexMap(0, 1)])

    assert domain[inner] == IndexDomain([Dim(-1, 5, implicit_upper=True)])
    with pytest.raises(IndexError):
        domain[IndexTransform(3)]


def test_intersect_and_hull(domain) -> None:
    other = IndexDomain([Dim(3, 9), Dim(2, 4, label="y")])

    assert domain.intersect(other) == IndexDomain([Dim(3, 5, label="x"), Dim(2, 4, label="y")])
    assert domain.hull(other)["x"] == Dim(1, 9, label="x")
    with pytest.raises(ValueError, match="Ranks do not match"):
        domain.hull(IndexDomain(3))
    with pytest.raises(ValueError, match="Mismatch in dimension 1"):
        domain.intersect(IndexDomain(labels=["", "z"]))


def test_values(domain) -> None:
    assert (
        domain == copy.copy(domain) == copy.deepcopy(domain) == pickle.loads(pickle.dumps(domain))
    )
    assert domain != domain.T
    assert domain != 3
    with pytest.raises(TypeError):
        hash(domain)
    with pytest.raises(AttributeError):
        domain.rank = 3


@pytest.mark.parametrize(
    ("args", "named"),
    [((1, 2), {}), (([Dim()],), {"shape": [3]}), ((1,), {"rank": 1}), ((1,), {"json": {}})],
)
def test_arguments_that_fit_no_form(args, named) -> None:
    with pytest.raises(TypeError, match="IndexDomain"):
        IndexDomain(*args, **named)
