import pytest

from tensorstore_py.kvstores.gcs.generations import (
    FOREIGN,
    generation_of,
    is_condition,
    number_of,
)
from tensorstore_py.plugin import NO_VALUE, UNKNOWN


@pytest.mark.parametrize("number", [1, 5, 1700000000123456, 2**64 - 1])
def test_numbers_survive(number):
    generation = generation_of(str(number))

    assert generation is not None
    assert len(generation) == 9
    assert number_of(generation) == number


@pytest.mark.parametrize("text", [None, "", "0", "-5", "x", "5.0", "٥", str(2**64), 5])
def test_what_is_no_number_is_no_generation(text):
    assert generation_of(text) is None


@pytest.mark.parametrize(
    ("generation", "number"),
    [
        (NO_VALUE, 0),
        (b"\0" + bytes(8), FOREIGN),
        (b"\0abc", FOREIGN),
        (b"\1" + bytes([5]) + bytes(7), FOREIGN),
        (b"x" * 9, FOREIGN),
        (b"\0" + bytes(9), FOREIGN),
    ],
)
def test_generations_of_others_match_nothing(generation, number):
    assert number_of(generation) == number


def test_no_generation_asks_for_nothing():
    assert not is_condition(None)
    assert not is_condition(UNKNOWN)
    assert is_condition(NO_VALUE)
    assert is_condition(b"\0abc")
