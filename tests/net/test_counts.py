"""What is counted of requests, whichever threads they begin and end on."""

import pytest

from tests.internals import points_of_requests

ENDED = (1.0, 0, 200, 5)  # how long it took, bytes sent, status, bytes received


@pytest.mark.parametrize(
    ("notes", "most"),
    [
        ([(2.0, *ENDED), 1.0], 1),
        ([(2.0, *ENDED), (4.0, *ENDED), 1.0, 3.0], 1),
        ([(3.0, *ENDED), (4.0, *ENDED), 2.0, 1.0], 2),
        ([(2.0, *ENDED), (2.0, *ENDED), 2.0, 1.0], 2),
        ([1.0, 2.0, 3.0], 3),
    ],
)
def test_how_many_are_under_way_is_told_by_time(notes: list, most: int) -> None:
    found = points_of_requests(notes)

    ended = sum(isinstance(each, tuple) for each in notes)
    begun = len(notes) - ended
    assert (found["active"][0].value, found["active"][0].most) == (begun - ended, most)
    assert found["request_started"][0].value == begun
    assert found["request_completed"][0].value == ended
