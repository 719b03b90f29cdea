import copy
import pickle

import pytest
import tensorstore as reference

from tensorstore_py._api.key_range import KeyRange, as_key

BOTH = pytest.mark.parametrize("cls", [KeyRange, reference.KvStore.KeyRange])


@BOTH
def test_is_everything_by_default(cls):
    everything = cls()

    assert repr(everything) == "KvStore.KeyRange(b'', b'')"
    assert not everything.empty


@BOTH
@pytest.mark.parametrize(
    ("low", "high", "empty"),
    [("a", "b", False), ("a", "a", True), ("b", "a", True), ("b", "", False)],
)
def test_knows_when_no_key_is_inside(cls, low, high, empty):
    assert cls(low, high).empty is empty


@BOTH
def test_takes_text_and_bytes(cls):
    assert cls("é", b"\xff") == cls("é".encode(), b"\xff")
    assert repr(cls(inclusive_min="é", exclusive_max=b"\xff")) == (
        "KvStore.KeyRange(b'\\xc3\\xa9', b'\\xff')"
    )


@BOTH
def test_can_be_changed(cls):
    changed = cls("a")
    other = changed.copy()
    changed.inclusive_min = "q"
    changed.exclusive_max = b"z"

    assert (changed.inclusive_min, changed.exclusive_max) == (b"q", b"z")
    assert other == cls("a")
    with pytest.raises(TypeError):
        hash(changed)


@BOTH
def test_copies_are_equal(cls):
    original = cls("a", "b")

    for clone in (
        copy.copy(original),
        copy.deepcopy(original),
        pickle.loads(pickle.dumps(original)),
    ):
        assert clone == original
        assert clone is not original


@BOTH
@pytest.mark.parametrize("key", [5, None, ["a"]])
def test_other_keys_are_type_errors(cls, key):
    with pytest.raises(TypeError):
        cls(key)


def test_is_unequal_to_anything_else():
    assert KeyRange() != 5


def test_the_error_says_which_argument():
    with pytest.raises(TypeError, match="exclusive_max must be str or bytes, not int"):
        KeyRange("a", 5)  # type: ignore[arg-type]


def test_bytes_that_are_no_text_are_kept():
    assert as_key(b"a\xff").encode("utf-8", "surrogateescape") == b"a\xff"
