"""Dimensions and domains: what they are made of, what they do, what they show."""

import copy
import pickle

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import Dim, IndexDomain, IndexTransform, OutputIndexMap, d, inf
from tests.display.pages import Page


class TestDim:
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
            (
                Dim(exclusive_max=5, implicit_lower=False),
                "Dim(implicit_lower=False, exclusive_max=5)",
            ),
            (Dim(inclusive_min=3, inclusive_max=5), "Dim(inclusive_min=3, exclusive_max=6)"),
            (
                Dim(3, implicit_upper=True),
                "Dim(inclusive_min=0, exclusive_max=3, implicit_upper=True)",
            ),
        ],
    )
    def test_forms(self, dim, text) -> None:
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
    def test_arguments_that_fit_no_form(self, args, named) -> None:
        with pytest.raises(TypeError, match="Dim"):
            Dim(*args, **named)

    def test_bounds_that_form_no_interval(self) -> None:
        with pytest.raises(ValueError, match="sized"):
            Dim(-1)
        with pytest.raises(ValueError, match="half-open"):
            Dim(3, 1)

    def test_properties(self) -> None:
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

    def test_contains(self) -> None:
        dim = Dim(3, 6)

        assert 3 in dim
        assert 6 not in dim
        assert Dim(4, 6) in dim
        assert Dim(4, 7) not in dim
        assert Dim(9, 9) in dim
        with pytest.raises(TypeError):
            "a" in dim  # noqa: B015

    def test_only_flags_and_label_may_change(self) -> None:
        dim = Dim(3)
        dim.implicit_lower, dim.label = True, "x"

        assert str(dim) == '"x": [0*, 3)'
        with pytest.raises(AttributeError):
            dim.inclusive_min = 1  # type: ignore[misc]

    def test_equality_copies_and_pickles(self) -> None:
        dim = Dim(1, 4, label="x", implicit_upper=True)

        assert dim == copy.copy(dim) == copy.deepcopy(dim) == pickle.loads(pickle.dumps(dim))
        assert copy.copy(dim) is not dim
        assert dim != Dim(1, 4, label="x")
        assert dim != 3
        with pytest.raises(TypeError):
            hash(dim)

    def test_intersect_and_hull_merge_labels(self) -> None:
        assert Dim(1, 5, label="x").intersect(Dim(3)) == Dim(1, 3, label="x")
        assert Dim(3).hull(Dim(1, 5, label="x")) == Dim(0, 5, label="x")
        for merge in (Dim(3, "x").intersect, Dim(3, "x").hull):
            with pytest.raises(ValueError, match="labels do not match"):
                merge(Dim(3, "y"))


@pytest.fixture
def domain():
    return IndexDomain(
        inclusive_min=[1, 0],
        exclusive_max=[5, 6],
        labels=["x", "y"],
        implicit_upper_bounds=[False, True],
    )


class TestDomain:
    def test_properties(self, domain) -> None:
        assert (domain.rank, domain.ndim, len(domain)) == (2, 2, 2)
        assert domain.origin == domain.inclusive_min == (1, 0)
        assert (domain.exclusive_max, domain.inclusive_max) == ((5, 6), (4, 5))
        assert (domain.shape, domain.size, domain.labels) == ((4, 6), 24, ("x", "y"))
        assert domain.implicit_lower_bounds == (False, False)
        assert domain.implicit_upper_bounds == (False, True)
        assert list(domain) == [domain[0], domain[1]]

    def test_size_is_limited_to_64_bits(self) -> None:
        assert IndexDomain(2).size == 2**63 - 1
        assert IndexDomain([Dim(0, 0), Dim()]).size == 0

    def test_index_exp(self, domain) -> None:
        assert domain.index_exp == (slice(1, 5), slice(0, 6))
        assert IndexDomain(1).index_exp == (slice(None),)
        with pytest.raises(ValueError, match="negative bounds"):
            _ = IndexDomain([Dim(-1, 3)]).index_exp

    def test_one_dimension(self, domain) -> None:
        assert domain["x"] == domain[0] == domain[-2] == Dim(1, 5, label="x")
        domain[0].label = "changed"
        assert domain.labels == ("x", "y")
        for wrong in ("z", 2, -3, ""):
            with pytest.raises(IndexError):
                domain[wrong]

    def test_several_dimensions(self, domain) -> None:
        assert domain["y", "x"] == domain[::-1] == domain[d["y", 0]] == domain[[1, 0]] == domain.T
        assert domain[("y",)] == domain[1:] == IndexDomain([domain[1]])
        assert domain[()] == IndexDomain(0)
        for wrong in ([0, 0], ("z",), slice(1, 3)):
            with pytest.raises(ValueError):
                domain[wrong]

    def test_operations_that_make_domains(self, domain) -> None:
        assert domain[IndexDomain([Dim(2, 4, label="y")])]["y"] == Dim(2, 4, label="y")
        assert domain[d["x"].translate_to[0]]["x"] == Dim(4, label="x")
        assert domain.translate_to[0, 7].origin == (0, 7)
        assert domain.translate_by[2].origin == (3, 2)
        assert domain.translate_backward_by[None, 2].origin == (1, -2)
        assert domain.label["a", ""].labels == ("a", "")
        assert domain.mark_bounds_implicit[True:].implicit_lower_bounds == (True, True)
        assert domain.transpose(["y", "x"]) == domain.transpose() == domain.T

    def test_a_transform_maps_its_own_domain(self, domain) -> None:
        inner = IndexTransform(1, output=[OutputIndexMap(2), OutputIndexMap(0, 1)])

        assert domain[inner] == IndexDomain([Dim(-1, 5, implicit_upper=True)])
        with pytest.raises(IndexError):
            domain[IndexTransform(3)]

    def test_intersect_and_hull(self, domain) -> None:
        other = IndexDomain([Dim(3, 9), Dim(2, 4, label="y")])

        assert domain.intersect(other) == IndexDomain([Dim(3, 5, label="x"), Dim(2, 4, label="y")])
        assert domain.hull(other)["x"] == Dim(1, 9, label="x")
        with pytest.raises(ValueError, match="Ranks do not match"):
            domain.hull(IndexDomain(3))
        with pytest.raises(ValueError, match="Mismatch in dimension 1"):
            domain.intersect(IndexDomain(labels=["", "z"]))

    def test_values(self, domain) -> None:
        assert (
            domain
            == copy.copy(domain)
            == copy.deepcopy(domain)
            == pickle.loads(pickle.dumps(domain))
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
    def test_arguments_that_fit_no_form(self, args, named) -> None:
        with pytest.raises(TypeError, match="IndexDomain"):
            IndexDomain(*args, **named)


class TestPage:
    def test_a_line_for_each_dimension(self):
        domain = ts.IndexDomain([ts.Dim(5, "<y>"), ts.Dim(label="t"), ts.Dim(inclusive_min=-3)])
        page = Page(domain._repr_html_())

        assert page.rows() == 1 + 3
        assert "<y>" in page.text
        assert repr(domain) in page.text
        assert page.text.split().count("∞") == 2
        assert "-inf*" in page.text

    def test_a_dimension_alone_and_no_dimensions(self):
        dim = ts.Dim(7, label="x: [")
        page = Page(dim._repr_html_())

        assert page.text.split()[-2:] == ["7", "7"]
        assert Page(ts.IndexDomain(rank=0)._repr_html_()).rows() == 0
        assert Page(ts.IndexDomain(rank=32)._repr_html_()).rows() == 33
