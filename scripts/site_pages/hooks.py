"""What MkDocs calls while it builds the site: pages that are made, and pages that are changed.

`docs/*.md` stays what it is on a forge. Made are the reference (from docstrings, models and
parsers), the examples, and pages of the files at the top of the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import tensorstore_py as ts
from scripts.site_pages.api_pages import api_pages
from scripts.site_pages.command_pages import command_page
from scripts.site_pages.examples import example_pages
from scripts.site_pages.figures import drawn, inlined
from scripts.site_pages.references import with_references
from scripts.site_pages.sources import LANGUAGES, PROJECT, ROOT, Sources, outside_of_code
from scripts.site_pages.spec_pages import spec_pages

__all__ = ["on_config", "on_files", "on_page_markdown"]

_PROMPTS: Final = re.compile(r"^( *```)python( *\n *>>> )", re.MULTILINE)
#: Stands where the site shows a table of another page: what is measured is written down once.
_TABLE: Final = re.compile(r"<!-- the table below \"(.+)\" of (\S+) -->")
#: How doctest writes a line without anything on it.
_BLANK: Final = re.compile(r"(?<=\n)<BLANKLINE>(?=\n)")
_ROW: Final = re.compile(r"^ *\|.*\|$", re.MULTILINE)
_CODE: Final = re.compile(r"(`+)(.+?)\1")
_CHOICES: Final = re.compile(r"^\[[^]]*\]\([^)]*\) · .*$", re.MULTILINE)
_FIRST_TABLE: Final = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


class _Made:
    """The pages that are made, once a build."""

    def __init__(self) -> None:
        self.sources = Sources()
        self.python = api_pages()
        self.specs = spec_pages(ts.json_schema())
        self.examples = example_pages(ROOT / "examples")

    def pages(self) -> Iterator[tuple[str, str]]:
        """Path and Markdown of those in the navigation."""
        for made in (self.python, self.specs, self.examples):
            for path, (title, text) in made.items():
                linked = self.sources.linked(text, path, path) if made is self.examples else text
                yield path, f"---\ntitle: {title!r}\n---\n\n{linked}"
        yield "reference/tspy.md", command_page()
        for source, path in PROJECT.items():
            yield path, self.sources.linked(self.sources.text(source), source, path)

    def listings(self) -> Iterator[tuple[str, str]]:
        """Path and Markdown of files of code that pages link to."""
        for source, path in self.sources.shown.items():
            language = LANGUAGES.get(f".{source.rpartition('.')[2]}", "text")
            code = self.sources.text(source).rstrip()
            yield path, f"# `{source}`\n\n````{language}\n{code}\n````\n"


_made: _Made | None = None


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the pages, and puts them into the navigation where it names their kind."""
    global _made  # noqa: PLW0603 - MkDocs calls functions, one after the other
    _made = _Made()
    kinds = {
        "made: python": list(_made.python),
        "made: specs": list(_made.specs),
        "made: examples": list(_made.examples),
    }
    nav = _expanded(config.nav, kinds)
    assert isinstance(nav, list)
    config.nav = nav
    return config


def _expanded(nav: object, kinds: dict[str, list[str]]) -> object:
    if isinstance(nav, dict):
        return {title: _expanded(entry, kinds) for title, entry in nav.items()}
    if isinstance(nav, list):
        return [_expanded(entry, kinds) for entry in nav]
    return kinds.get(nav, nav) if isinstance(nav, str) else nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made."""
    assert _made is not None
    for path, text in _made.pages():
        files.append(File.generated(config, path, content=text))
    for path, text in _made.listings():
        file = File.generated(config, path, content=text, inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Changes what only a forge understands: links to files, figures, consoles."""
    assert _made is not None
    path = page.file.src_uri
    if page.file.generated_by is None:
        markdown = _made.sources.linked(markdown, f"docs/{path}", path)
    if path == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
        markdown = _CHOICES.sub(lambda line: _buttons(line[0]), markdown, count=1)
    markdown = _TABLE.sub(lambda mark: _table(mark[2], mark[1], path), markdown)
    markdown = inlined(markdown, ROOT / "docs" / Path(path).parent)
    markdown = outside_of_code(markdown, lambda text: with_references(_ROW.sub(_unescaped, text)))
    markdown = _BLANK.sub("", markdown)
    return drawn(_PROMPTS.sub(r"\1pycon\2", markdown))


def _unescaped(row: re.Match[str]) -> str:
    """A row of a table without backslashes before bars in code: a forge needs them."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def _buttons(links: str) -> str:
    """The first line of links of the landing page as buttons, the first of them in colour."""
    first, *others = links.split(" · ")
    each = [f"{first}{{ .md-button .md-button--primary }}"]
    return " ".join([*each, *(f"{link}{{ .md-button }}" for link in others)])


def _table(source: str, heading: str, path: str) -> str:
    """The first table below a heading of a page.

    Raises:
        ValueError: there is none.
    """
    assert _made is not None
    below = _made.sources.text(source).partition(f"{heading}\n")[2]
    found = _FIRST_TABLE.search(below)
    if found is None:
        raise ValueError(f"{path}: {source} has no table below {heading!r}")
    return _made.sources.linked(found[0], source, path)
