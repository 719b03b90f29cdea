from tensorstore_py._display.json_view import json_view
from tests.display.pages import Page


def test_what_is_short_is_a_line_and_what_is_long_is_folded():
    page = Page(json_view({"a": {"x": 1}, "b": {str(each): "long" * 9 for each in range(9)}}))

    assert page.elements.count("details") == 1
    assert "{'x': 1}" in page.text
    assert "9 members" in page.text


def test_hostile_members_are_text():
    page = Page(json_view({"<script>": "<img src=x onerror=alert(1)>", "x": ["</ul></div>"] * 90}))

    assert "<script>" in page.text
    assert "<img src=x onerror=alert(1)>" in page.text


def test_however_much_there_is_so_much_is_shown():
    deep: object = 1
    for _ in range(500):
        deep = [deep]
    wide = {str(one): {str(two): "x" * 100 for two in range(500)} for one in range(500)}

    assert Page(json_view({"deep": deep})).size < 5000
    page = Page(json_view({"wide": wide, "long": 5}))
    assert page.size < 300_000
    assert "411 more" in page.text
    assert "(1,000,002 characters)" in Page(json_view(["y" * 10**6])).text


def test_values_without_members():
    assert "5" in Page(json_view(5)).text
    assert Page(json_view({})).text == ""
    assert "nan" in Page(json_view({"a": float("nan")})).text
