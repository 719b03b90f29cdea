import pytest
import tensorstore as reference

from tensorstore_py._index import IndexDomain, IndexTransform, d
from tensorstore_py._spec.fill_value import fill_value_like
from tensorstore_py._spec.fill_value_view import fill_value_to_input, fill_value_to_output
from tensorstore_py.errors import MismatchError

VALUE = [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    "term",
    [
        (slice(None), 1),
        (1,),
        (slice(None), slice(None, None, -1)),
        (slice(None), slice(0, 3, 2)),
        (slice(None), [2, 0, 2]),
        (Ellipsis, None),
        (None, 0),
    ],
    ids=repr,
)
def test_through_a_transform_as_in_the_reference(term):
    expected = reference.Schema(fill_value=VALUE, shape=[2, 3])[term].fill_value
    domain = IndexDomain(shape=[2, 3])
    transform = IndexTransform(domain)[term]

    mine = fill_value_to_input(fill_value_like(VALUE, None), transform, domain)

    assert repr(expected) == repr(mine)


def test_diagonal():
    domain = IndexDomain(shape=[2, 2])
    transform = IndexTransform(domain)[d[0, 1].diagonal]

    mine = fill_value_to_input(fill_value_like([[1, 2], [3, 4]], None), transform, domain)

    assert mine.tolist() == [1, 4]


def test_without_a_domain():
    array = fill_value_like([1, 2], None)
    whole = IndexTransform(input_rank=2)

    assert fill_value_to_input(array, whole.T, None).tolist() == [[1], [2]]
    with pytest.raises(MismatchError, match="bounds are unknown"):
        fill_value_to_input(array, whole[:, 0], None)
    with pytest.raises(MismatchError, match="Cannot broadcast"):
        fill_value_to_input(array, whole[:, 0:1], None)


class TestToOutput:
    array = fill_value_like([[1, 2, 3], [4, 5, 6]], None)

    def moved(self, *output):
        json = {"input_rank": 3, "output": list(output)}
        return fill_value_to_output(self.array, IndexTransform(json=json))

    def test_permuted_and_flipped(self):
        moved = self.moved(
            {"input_dimension": 2, "stride": -1}, {"offset": 4}, {"input_dimension": 1}
        )

        assert moved.tolist() == [[[3, 6]], [[2, 5]], [[1, 4]]]

    def test_refused(self):
        with pytest.raises(MismatchError, match="input dimension 1, which no output"):
            self.moved({"input_dimension": 2})
        with pytest.raises(MismatchError, match="strided"):
            self.moved({"input_dimension": 2, "stride": 2}, {"input_dimension": 1})
