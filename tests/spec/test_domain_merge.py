import pytest
import tensorstore as reference

from tensorstore_py import _index as ours
from tensorstore_py._index import Dim, IndexDomain, IndexTransform
from tensorstore_py._spec.domain_merge import domain_to_output, merge_domains
from tensorstore_py.errors import MismatchError

DIMS = [
    {},
    {"label": "x"},
    {"label": "y"},
    {"inclusive_min": 0, "exclusive_max": 5},
    {"inclusive_min": 0, "exclusive_max": 6},
    {"inclusive_min": 1, "exclusive_max": 5, "label": "x"},
    {"inclusive_min": 0, "exclusive_max": 5, "implicit_upper": True},
    {"inclusive_min": 0, "exclusive_max": 5, "implicit_lower": True, "label": "y"},
    {"inclusive_min": 0},
    {"exclusive_max": 5},
    {"implicit_lower": False, "implicit_upper": False},
]


@pytest.mark.parametrize("a", DIMS, ids=repr)
@pytest.mark.parametrize("b", DIMS, ids=repr)
def test_as_the_reference_merges(a, b):
    def merged(package, schema):
        return schema(
            package.IndexDomain([package.Dim(**a)]), package.IndexDomain([package.Dim(**b)])
        )

    def by_schema(one, other):
        return reference.Schema(domain=one, schema=reference.Schema(domain=other)).domain

    try:
        expected = merged(reference, by_schema)
    except ValueError as error:
        what = str(error).rpartition(": ")[2]
        with pytest.raises(MismatchError, match=what):
            merged(ours, merge_domains)
        return
    assert repr(expected) == repr(merged(ours, merge_domains))


def test_nothing_and_ranks():
    domain = IndexDomain(shape=[3])

    assert merge_domains(None, domain) is domain
    assert merge_domains(domain, None) is domain
    with pytest.raises(MismatchError, match="Ranks do not match"):
        merge_domains(domain, IndexDomain(rank=2))


class TestToOutput:
    def test_moved_and_flipped(self):
        domain = IndexDomain([Dim(2, 7, label="x", implicit_upper=True), Dim(label="y")])
        transform = IndexTransform(
            json={
                "input_rank": 2,
                "output": [
                    {"input_dimension": 1, "stride": -3, "offset": 4},
                    {"input_dimension": 0, "stride": -1, "offset": 10},
                ],
            }
        )

        assert repr(domain_to_output(domain, transform)) == '{ "y": (-inf*, +inf*), "x": [4*, 9) }'

    @pytest.mark.parametrize(
        ("output", "problem"),
        [
            ([{"offset": 3}], "constant output index map"),
            ([{"input_dimension": 0}, {"input_dimension": 0}], "same input dimension"),
            ([{"input_dimension": 0, "stride": 2}], "non-unit-stride"),
        ],
    )
    def test_refused(self, output, problem):
        transform = IndexTransform(json={"input_rank": 1, "output": output})

        with pytest.raises(MismatchError, match=problem):
            domain_to_output(IndexDomain(shape=[5]), transform)
