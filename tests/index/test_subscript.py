import numpy as np
import pytest

from tensorstore_py._index import IndexDomain, IndexTransform, d
from tensorstore_py._index.subscript import parse_implicit, parse_index_vector, parse_labels


def test_a_helper_names_its_parent_and_does_not_iterate() -> None:
    assert repr(IndexDomain(1).label) == "{ (-inf*, +inf*) }.label"
    assert repr(d[0].translate_to) == "d[0].translate_to"
    assert repr(IndexTransform(0).vindex).endswith(".vindex")
    for helper in (IndexTransform(1).oindex, IndexDomain(1).label, d[0].stride):
        with pytest.raises(TypeError):
            iter(helper)


def test_vectors() -> None:
    assert parse_index_vector(3) == 3
    assert parse_index_vector(None) is None
    assert parse_index_vector([1, None, np.int8(2)]) == (1, None, 2)
    assert parse_index_vector(()) == ()
    for wrong in ("a", 1.5, 2**63, ["a"], slice(1)):
        with pytest.raises(TypeError):
            parse_index_vector(wrong)


def test_labels() -> None:
    assert parse_labels("ab") == ("ab",)
    assert parse_labels(["a", "b"]) == ("a", "b")
    for wrong in (3, ["a", None]):
        with pytest.raises(TypeError):
            parse_labels(wrong)


def test_implicit_flags() -> None:
    assert parse_implicit(True) == (True, True)
    assert parse_implicit(slice(False, None)) == (False, None)
    assert parse_implicit(np.True_) == (True, True)
    assert parse_implicit(None) == (None, None)
    for wrong in ("a", slice(True, True, 1), 1.5):
        with pytest.raises(TypeError):
            parse_implicit(wrong)
