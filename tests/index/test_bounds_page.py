import tensorstore_py as ts
from tests.display.pages import Page


def test_a_line_for_each_dimension():
    domain = ts.IndexDomain([ts.Dim(5, "<y>"), ts.Dim(label="t"), ts.Dim(inclusive_min=-3)])
    page = Page(domain._repr_html_())

    assert page.rows() == 1 + 3
    assert "<y>" in page.text
    assert repr(domain) in page.text
    assert page.text.split().count("∞") == 2
    assert "-inf*" in page.text


def test_a_dimension_alone_and_no_dimensions():
    dim = ts.Dim(7, label="x: [")
    page = Page(dim._repr_html_())

    assert page.text.split()[-2:] == ["7", "7"]
    assert Page(ts.IndexDomain(rank=0)._repr_html_()).rows() == 0
    assert Page(ts.IndexDomain(rank=32)._repr_html_()).rows() == 33
