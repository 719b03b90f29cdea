import pytest
import tensorstore as reference

from tensorstore_py._spec.pretty import pretty


@pytest.mark.parametrize(
    "json",
    [
        {},
        {"rank": 2},
        {"dimension_units": [[4.0, "nm"], None, [1e15, "é\n'\"\\"], [1.5e15, "\x01f"]]},
        {"dimension_units": [[4.0, "n" * length] for length in (20, 20, 20)]},
        {"fill_value": {"a" * 30: "b" * 30, "c": [1, 2.5, True, None, 1e-7, 123456789012345680.0]}},
        {"fill_value": {"a": {"b": {"c": {"d": "x" * 48}}}}},
        {"fill_value": {"a": {"b": {"c": {"d": "x" * 49}}}}},
        {"fill_value": {"a": list(range(26))}},
        {"fill_value": {"a": list(range(27))}},
    ],
)
def test_reads_like_the_reference(json):
    expected = reference.Schema(json)

    assert repr(expected) == pretty("Schema", expected.to_json())


def test_infinities_have_no_literal():
    assert pretty("Schema", {"a": [float("nan"), float("inf")]}) == "Schema({'a': [null, null]})"
