"""Checks of a built site that MkDocs does not make.

Usage: python -m scripts.site_pages.check DIRECTORY
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import tensorstore_py as ts
from scripts.site_pages.api_pages import api_pages

__all__ = ["loaded_from_elsewhere", "main", "members", "undocumented"]

#: What a browser loads by itself: not links that a reader may follow.
_LOADED: Final = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|object|embed)\b[^>]*\s(?:src|data)=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev|alternate)\b)[^>]*\shref=["']?(?:https?:)?//[^\s"'>]+"""
    r"""|class=["']?mermaid\b"""
)
_STYLES: Final = re.compile(r"""(?:@import\s*(?:url\()?|url\()\s*["']?(?:https?:)?//[^\s"')]+""")


def loaded_from_elsewhere(site: Path) -> Iterator[str]:
    """What pages and styles load from other servers, with where it stands."""
    for pattern, ending in ((_LOADED, "*.html"), (_STYLES, "*.html"), (_STYLES, "*.css")):
        for path in sorted(site.rglob(ending)):
            for found in pattern.finditer(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(site)}: {found[0]}"


def undocumented(site: Path) -> Iterator[str]:
    """Public names that the reference should have, and has not."""
    for page, (_, text) in api_pages().items():
        path = site / page.removesuffix(".md").removesuffix("/index") / "index.html"
        shown = path.read_text(encoding="utf-8")
        for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
            if f'id="{name}"' not in shown:
                yield f"{path.relative_to(site)}: {name} is not there"
            if name.startswith("tensorstore_py.") and name.count(".") == 1:
                for member in members(getattr(ts, name.rpartition(".")[2])):
                    if f'id="{name}.{member}"' not in shown:
                        yield f"{path.relative_to(site)}: {name}.{member} is not there"


def members(value: object) -> Iterator[str]:
    """The public methods and properties of a class of this package that explain themselves."""
    if not inspect.isclass(value):
        return
    for name, static in inspect.getmembers_static(value):
        found = getattr(static, "fget", getattr(static, "__func__", static))
        if name.startswith("_") or not inspect.isfunction(found) or not found.__doc__:
            continue
        if found.__name__ == name and found.__module__.startswith("tensorstore_py"):
            yield name


def main(arguments: list[str]) -> int:
    """Prints what is wrong with a site; returns the exit code."""
    (directory,) = arguments
    site = Path(directory)
    wrong = [*loaded_from_elsewhere(site), *undocumented(site)]
    for each in wrong:
        print(each)
    pages = sum(1 for _ in site.rglob("index.html"))
    print(f"{directory}: {pages} pages, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
