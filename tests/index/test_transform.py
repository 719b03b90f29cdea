import copy
import pickle

import pytest

from tensorstore_py._index import (
    Dim,
    Indexable,
    IndexDomain,
    IndexTransform,
    OutputIndexMap,
    identity,
    inf,
)


def test_forms_of_the_domain() -> None:
    expected = IndexTransform(input_shape=[3], input_labels=["x"])

    assert IndexTransform(IndexDomain([Dim(3, "x")])) == expected
    assert IndexTransform([Dim(3, "x")]) == IndexTransform(domain=(Dim(3, "x"),)) == expected
    assert identity(expected.domain) == expected
    assert IndexTransform(2) == IndexTransform(input_rank=2)
    assert IndexTransform([Dim(3)], [OutputIndexMap(1)]).output_rank == 1


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((1, 2), {}),
        (([Dim()],), {"input_shape": [3]}),
        ((1,), {"input_rank": 1}),
        ((), {"shape": [3]}),
        (([Dim()], [], 3), {}),
        ((3.5,), {}),
    ],
)
def test_arguments_that_fit_no_form(args, named) -> None:
    with pytest.raises(TypeError):
        IndexTransform(*args, **named)


def test_messages_name_the_keywords_of_a_transform() -> None:
    with pytest.raises(ValueError, match="Must specify `input_rank`"):
        IndexTransform()
    with pytest.raises(ValueError, match=r"`input_shape` \(1\) .* `input_rank` \(2\)"):
        IndexTransform(2, input_shape=[3])


def test_what_the_engine_reads() -> None:
    x = IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, implicit_upper=True)])[:, 2]

    assert (x.input_rank, x.output_rank) == (1, 2)
    assert x.input_origin == x.input_inclusive_min == (1,)
    assert (x.input_shape, x.input_exclusive_max, x.input_inclusive_max) == ((4,), (5,), (4,))
    assert x.input_labels == ("x",)
    assert (x.implicit_lower_bounds, x.implicit_upper_bounds) == ((False,), (False,))
    assert x.maps == (OutputIndexMap(0, 0), OutputIndexMap(2))
    assert list(x.output) == list(x.maps)


def test_infinite_bounds() -> None:
    x = IndexTransform(1)

    assert (x.input_exclusive_max, x.input_shape) == ((inf + 1,), (2 * inf + 1,))


def test_values() -> None:
    x = IndexTransform([Dim(4, "x"), Dim(5)]).vindex[[1, 2], [3, 4]]
    other = pickle.loads(pickle.dumps(x))

    assert x == other == copy.copy(x) == copy.deepcopy(x)
    assert not other.maps[0].index_array.flags.writeable
    assert x != IndexTransform(1)
    assert x != 3
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        len(x)  # type: ignore[arg-type]
    assert isinstance(x, Indexable)
