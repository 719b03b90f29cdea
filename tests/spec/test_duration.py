import pytest
import tensorstore as reference
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._spec.duration import Duration
from tensorstore_py.errors import SpecError

UNIT = st.sampled_from(["ns", "us", "ms", "s", "m", "h", "", "d"])
NUMBER = st.from_regex(r"[0-9]{0,7}(\.[0-9]{0,4})?", fullmatch=True)
SIGN = st.sampled_from(["", "", "", "-", "+"])
TERMS = st.lists(st.tuples(NUMBER, UNIT).map("".join), min_size=1, max_size=3).map("".join)


def reference_text(text):
    """The reference's printing of a duration, or None if it refuses it."""
    json = {"driver": "file", "path": "/a", "file_io_retries": {"initial_delay": text}}
    try:
        spec = reference.KvStore.Spec(json).to_json()
    except ValueError:
        return None
    return spec["file_io_retries"].get("initial_delay", "1s")


def our_text(text):
    try:
        return Duration.parse(text).to_json()
    except SpecError:
        return None


@given(st.tuples(SIGN, TERMS).map("".join))
def test_reads_and_prints_what_the_reference_does(text):
    assert our_text(text) == reference_text(text)


@pytest.mark.parametrize(
    "text",
    ["1h2m3.5s", "1.5ms", "60s", "90s", "3600s", "24h", "0", "0s", "1ns", "1us", "inf", "-inf",
     "-1s", "+1s", "1s1s", ".5s", "1.s", "1500ms", "0.1ns", "0.25ns", "59.999999999s", "100h",
     "5", "", "bad", "1d", "1 s", "1e3s", "s", "inf s", ".s", "--1s", "1s ", "1S"],
)  # fmt: skip
def test_agrees_with_the_reference_at_the_edges(text):
    assert our_text(text) == reference_text(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h", 3600), ("1m30s", 90), ("1.5ms", 0.0015), ("-2s", -2), ("inf", float("inf")), ("0", 0)],
)
def test_is_so_many_seconds(text, seconds):
    assert Duration.parse(text).seconds == seconds


@given(st.integers(-(10**24), 10**24))
def test_printing_and_parsing_are_inverse(ticks):
    duration = Duration(ticks)

    assert Duration.parse(duration.to_json()) == duration


@pytest.mark.parametrize("json", [5, 1.5, None, True, "1 second", ["1s"]])
def test_says_what_a_duration_looks_like(json):
    with pytest.raises(SpecError, match=r'expected a duration such as "1\.5s"'):
        Duration.parse(json)
