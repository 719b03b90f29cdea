"""Which file of the repository is which page of the site, and links between them.

Pages link to files as they lie in the repository, so that they can be read on a forge. On the site
a link leads to the page that shows the file; where there is none, only its text stays.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["LANGUAGES", "PROJECT", "ROOT", "Sources", "links", "outside_of_code"]

ROOT: Final = Path(__file__).resolve().parents[2]

#: Files at the top that are pages.
PROJECT: Final = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CODE_OF_CONDUCT.md": "project/code_of_conduct.md",
    "SECURITY.md": "project/reporting.md",
    "changelog.d/README.md": "project/changelog_fragments.md",
}
#: How a language is called where code is shown.
LANGUAGES: Final = {".py": "python", ".json": "json", ".toml": "toml", ".yml": "yaml", ".sh": "sh"}

_FENCED: Final = re.compile(r"^ *(```+|~~~+).*?^ *\1[ ]*$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
_ELSEWHERE: Final = re.compile(r"[a-z]+:")


class Sources:
    """The files that pages are made of.

    Attributes:
        shown: files that some page links to and that are shown as code, with their pages.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self.shown: dict[str, str] = {}
        self._find()

    def text(self, source: str) -> str:
        """What is in a file of the repository."""
        return (self._root / source).read_text(encoding="utf-8")

    def page(self, source: str) -> str | None:
        """The page that shows a file; None if there is none.

        Args:
            source: path of a file or directory in the repository.
        """
        source = source.rstrip("/")
        if source in PROJECT:
            return PROJECT[source]
        folder, _, name = source.partition("/")
        if folder == "docs" and name:
            return name
        if source == "examples":
            return "examples/index.md"
        if folder == "examples" and name.endswith((".py", ".ipynb")):
            return f"examples/{Path(name).stem}.md"
        return self.shown.get(source)

    def linked(self, text: str, source: str, page: str) -> str:
        """Markdown with its links as they are on the site.

        Args:
            text: what is in the file.
            source: the file's path in the repository.
            page: its page.
        """

        def relinked(match: re.Match[str]) -> str:
            image, words, target, anchor = match.groups()
            if image or not target or _ELSEWHERE.match(target):
                return match[0]
            found = self.page(_joined(source, target))
            if found is None:
                return words
            there = posixpath.relpath(found, posixpath.dirname(page) or ".")
            return f"[{words}]({there}{anchor or ''})"

        return outside_of_code(text, lambda prose: _LINK.sub(relinked, prose))

    def _find(self) -> None:
        """Notes the files that pages link to, and that nothing else shows."""
        pages = [*PROJECT, *(f"docs/{each.name}" for each in (self._root / "docs").glob("*.md"))]
        for source in pages:
            for target in links(self.text(source)):
                path = _joined(source, target)
                file = self._root / path
                if file.is_file() and self.page(path) is None:
                    self.shown[path] = f"source/{path}.md"


def links(text: str) -> Iterator[str]:
    """The relative targets of links, without anchors."""
    for match in _LINK.finditer(_FENCED.sub("", text)):
        if match[3] and not _ELSEWHERE.match(match[3]):
            yield match[3]


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Markdown, changed wherever it is not a fenced block."""
    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def _joined(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
