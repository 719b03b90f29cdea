from tensorstore_py._display.markup import Markup, element, join

HOSTILE = """<script>alert("x")</script><img src=x onerror='y'>&amp;"""


def test_text_cannot_become_an_element_or_leave_an_attribute():
    html = element("a", HOSTILE, title=HOSTILE)

    assert html.count("<") == 2
    assert html.count('"') == 2
    assert "'" not in html


def test_markup_is_put_in_as_it_is_and_none_is_left_out():
    assert join(element("b", "x"), None, "<", 3) == "<b>x</b>&lt;3"


def test_attributes():
    found = element("p", class_="a", stroke_width=1, open=True, hidden=False, id=None)
    assert found == '<p class="a" stroke-width="1" open></p>'


def test_long_texts_are_cut():
    html = element("p", "<" * 5000)

    assert len(html) < 8100
    assert html.endswith("… (5,000 characters)</p>")


def test_what_no_document_can_hold_is_replaced():
    html = element("p", "a\ud800b\x00c\x1bd\u202ee\n")

    assert html == "<p>a\\ud800b�c�d�e\n</p>"
    assert isinstance(html, Markup)
    html.encode()
