import pytest

from tensorstore_py._index import Dim, IndexDomain, IndexTransform, d
from tensorstore_py._index.apply import IndexTerm, index_into
from tensorstore_py.errors import IndexingError

FRAME = IndexTransform(input_shape=[4, 6])._frame


@pytest.mark.parametrize(
    "term",
    [
        (slice(1, 3), 2),
        [1, 2],
        IndexDomain([Dim(1, 3), Dim(2, 3)]),
        IndexTransform([Dim(2)]).T[None],
        d[0].translate_by[1],
    ],
)
def test_one_dispatch_point_for_all_terms(term) -> None:
    x = IndexTransform._from_frame(FRAME)
    if isinstance(term, IndexTransform):
        x = x[0]

    assert IndexTransform._from_frame(index_into(x._frame, term, "default")) == x[term]


@pytest.mark.parametrize("term", [IndexTransform(2), IndexDomain(2), d[0].translate_by[1]])
def test_other_modes_take_numpy_expressions_only(term) -> None:
    assert isinstance(term, IndexTerm)
    with pytest.raises(IndexingError, match="are valid indices"):
        index_into(FRAME, term, "oindex")
