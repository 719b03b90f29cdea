import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._interface.kept import Kept, coalesced

OLD = bytes(range(40))


def shown(parts):
    return [str(part) for part in parts]


def made(parts):
    """The value that they stand for, of `OLD`."""
    return b"".join(
        OLD[part.start : part.stop] if isinstance(part, Kept) else bytes(part) for part in parts
    )


def test_is_as_long_as_what_it_keeps():
    kept = Kept(3, 10)
    assert (kept.start, kept.stop, len(kept)) == (3, 10, 7)
    assert repr(kept) == "Kept(3, 10)"
    assert not Kept(4, 4)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], []),
        ([Kept(5, 5)], []),
        ([Kept(0, 2), Kept(2, 5), Kept(5, 6)], [Kept(0, 6)]),
        ([Kept(0, 2), Kept(2, 2), Kept(2, 5)], [Kept(0, 5)]),
        ([Kept(0, 2), Kept(9, 9), Kept(2, 5)], [Kept(0, 5)]),
        # A gap, an overlap and the wrong order are no neighbours.
        ([Kept(0, 2), Kept(3, 5)], [Kept(0, 2), Kept(3, 5)]),
        ([Kept(0, 3), Kept(2, 5)], [Kept(0, 3), Kept(2, 5)]),
        ([Kept(2, 5), Kept(0, 2)], [Kept(2, 5), Kept(0, 2)]),
        # What is new between them keeps them apart, and stays as it is.
        ([Kept(0, 2), b"new", Kept(2, 5)], [Kept(0, 2), b"new", Kept(2, 5)]),
        ([b"a", b"b", Kept(0, 1)], [b"a", b"b", Kept(0, 1)]),
    ],
    ids=str,
)
def test_neighbours_become_one_and_what_is_empty_goes(parts, expected):
    assert shown(coalesced(parts)) == shown(expected)


def test_what_is_new_is_not_copied():
    new = bytearray(b"new")
    assert coalesced([Kept(0, 1), new, Kept(1, 2)])[1] is new


def test_what_is_given_stays_as_it_was():
    parts = [Kept(0, 2), Kept(2, 5)]
    coalesced(iter(parts))
    assert shown(parts) == ["Kept(0, 2)", "Kept(2, 5)"]


@st.composite
def stretches(draw):
    start = draw(st.integers(0, len(OLD)))
    kept = Kept(start, draw(st.integers(start, len(OLD))))
    return draw(st.sampled_from([kept, b"", b"new"]))


@given(st.lists(stretches(), max_size=8))
def test_it_stands_for_the_same_value(parts):
    found = coalesced(parts)
    assert made(found) == made(parts)
    assert not [part for part in found if isinstance(part, Kept) and not len(part)]
