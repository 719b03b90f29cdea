import pytest

from tensorstore_py._spec.jsontext import parse_json_text
from tensorstore_py.errors import SpecError


def test_values():
    assert parse_json_text('{"a": [1, 2.5, null, true, "é"]}') == {"a": [1, 2.5, None, True, "é"]}
    assert parse_json_text(b'\xef\xbb\xbf{"a": "\xc3\xa9"}') == {"a": "é"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1, "a": 1}', ("a",)),
        ('{"a": [0, {"b": {"c": 1, "d": 2, "c": 3}}]}', ("a", 1, "b", "c")),
        ('[{"a": {"x": 1, "x": 2}}]', (0, "a", "x")),
    ],
)
def test_repeated_members_are_named(text, path):
    with pytest.raises(SpecError, match="given twice") as caught:
        parse_json_text(text)

    assert caught.value.path == path


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_has_not(constant):
    with pytest.raises(
        SpecError, match=f'{constant} is not JSON; write it as a string, "{constant}"'
    ):
        parse_json_text(f'{{"fill_value": {constant}}}')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1"),
        ('{"a": 1,}', "line 1"),
        ('{\n"a" 1}', "line 2, column 5"),
        (b'"\xff"', "not UTF-8"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_syntax(text, problem):
    with pytest.raises(SpecError, match=problem):
        parse_json_text(text)
