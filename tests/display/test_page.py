from tensorstore_py._display.page import folded, page
from tests.display.pages import Page


def test_a_page_names_what_it_shows_and_escapes_it():
    found = Page(page("Group", "<memory>", folded("more", "&lt;"), None, open_text := "x<y"))

    assert found.text.split() == ["Group", "<memory>", "more", "&lt;", *open_text.split()]


def test_a_page_needs_no_name():
    assert "code" not in Page(page("Schema")).elements


def test_colours_are_those_of_the_theme_or_of_the_screen():
    html = page("x")

    assert "prefers-color-scheme:dark" in html
    for variable in ("--jp-content-font-color1", "--vscode-editor-foreground", "--jp-brand-color1"):
        assert f"var({variable}," in html
    style = html.partition("<style>")[2].partition("</style>")[0]
    # no rule reaches beyond the page
    rules = style.replace("@media(prefers-color-scheme:dark){", "").split("}")
    assert all(rule.strip().startswith(".tsv") for rule in rules if rule.strip())


def test_what_folds_is_closed_unless_it_is_to_be_open():
    assert "<details>" in folded("a", "b")
    assert "<details open>" in folded("a", "b", open_=True)
