"""Names of chunks: one for each, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._interface.chunk_keys import OuterKeys, SeparatedKeys

RULES = st.sampled_from([("/", "c/", "c"), (".", "c.", "c"), (".", "", "0"), ("/", "", "0")])
CELLS = st.lists(st.integers(0, 10**12), max_size=5).map(tuple)


@given(RULES, CELLS)
def test_a_name_is_read_back_as_the_cell_it_stands_for(rule, cell):
    separator, prefix, scalar = rule
    keys = SeparatedKeys(len(cell), separator, prefix=prefix, scalar=scalar)
    assert keys.decode(keys.encode(cell)) == cell


@given(RULES, st.integers(1, 3), st.text("0123456789c./-x", max_size=8))
def test_what_is_read_as_a_cell_is_its_name(rule, rank, name):
    separator, prefix, scalar = rule
    keys = SeparatedKeys(rank, separator, prefix=prefix, scalar=scalar)
    cell = keys.decode(name)
    assert cell is None or keys.encode(cell) == name


@pytest.mark.parametrize(
    "name",
    ["", "c", "c/", "c/1", "c/1/2/3", "c/01/2", "c/-1/2", "c/+1/2", "c/1_0/2", "c/ 1/2", "c/1/2/",
     "c//2", "c/1.2", "1/2", "d/1/2", "c/١/2", "c/²/2", "zarr.json"],
)  # fmt: skip
def test_other_names_stand_for_nothing(name):
    assert SeparatedKeys(2, "/", prefix="c/", scalar="c").decode(name) is None


@pytest.mark.parametrize(("prefix", "scalar"), [("c/", "c"), ("", "0")])
def test_rank_zero_has_one_name(prefix, scalar):
    keys = SeparatedKeys(0, "/", prefix=prefix, scalar=scalar)
    assert keys.encode(()) == scalar
    assert keys.decode(scalar) == ()
    assert keys.decode(prefix) is None or prefix == scalar
    assert keys.decode(scalar + "0") is None


def test_names_by_the_outer_dimensions_only():
    keys = OuterKeys(SeparatedKeys(2, "/", prefix="c/", scalar="c"), 2, 1)

    assert keys.encode((3, 14, 0)) == "c/3/14"
    assert keys.decode("c/3/14") == (3, 14, 0)
    assert keys.decode("c/3") is None
