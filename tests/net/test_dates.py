import pytest

from tensorstore_py._net.dates import http_date, retry_after_s


@pytest.mark.parametrize(
    "text", [None, "", "soon", "0", "Wed, 99 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 99999 0:0:0 GMT"]
)
def test_what_is_no_date_is_none(text):
    assert http_date(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("-3", None),
        ("1.5", None),
        ("9" * 30, None),
        ("٣", None),
        ("later", None),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
    ],
)
def test_how_long_to_wait(text, seconds):
    assert retry_after_s(text, 1445412480.0) == seconds
