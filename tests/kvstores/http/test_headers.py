import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.http.headers import check_header, parse_headers


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("bad", "no colon"),
        (":x", "header name"),
        ("A B: c", "'A B'"),
        ("Ä: b", "header name"),
        ("A: b\r\nC: d", '"A" has control'),
        ("A: \0", "control"),
    ],
)
def test_refuses_what_cannot_be_sent(line, problem):
    with pytest.raises(SpecError, match=problem):
        check_header(line)


@pytest.mark.parametrize("line", ["a:b", "A:", "A: é", "X-Y_z: a: b", "A: \t1"])
def test_accepts_the_rest_as_it_is(line):
    assert check_header(line) == line


def test_an_error_does_not_repeat_the_value():
    with pytest.raises(SpecError) as error:
        check_header("Authorization: s3cret\n")

    assert "s3cret" not in str(error.value)


def test_the_last_one_of_a_name_counts_and_empty_ones_do_not():
    lines = ["X-A: 1", "B:", "x-a:  2 ", "Authorization: Bearer a:b"]

    assert parse_headers(lines) == {"x-a": "2", "Authorization": "Bearer a:b"}
