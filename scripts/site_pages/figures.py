"""Mermaid figures as SVG, so that the site needs no script to draw them.

A forge draws the blocks of language `mermaid` itself; here they are drawn when the site is built.
What is understood is what the pages use: flowcharts (`flowchart`) and sequence diagrams
(`sequence`). Anything else is an error, never a figure that lacks a part. Colours are the style
sheet's.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Final

from scripts.site_pages.flowchart import flowchart
from scripts.site_pages.sequence import sequence_diagram

__all__ = ["drawn", "inlined"]

_IMAGE: Final = re.compile(r"^!\[([^]]*)\]\(([\w/]+\.svg)\)$", re.MULTILINE)
_STYLE: Final = re.compile(r"<style>.*?</style>", re.DOTALL)
_BLOCK: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def drawn(markdown: str) -> str:
    """A page with its figures as SVG.

    Raises:
        ValueError: a figure has a line that is not understood; it is named.

    Example:
        >>> page = drawn('''```mermaid
        ... flowchart LR
        ...     a["spec"] --> b["array"]
        ... ```''')
        >>> page.count("<rect"), page.count("<path"), "mermaid" in page
        (2, 1, False)
    """
    return _BLOCK.sub(lambda block: _figure(block[1]), markdown)


def inlined(markdown: str, folder: Path) -> str:
    """A page with its SVG files in it, in the colours of the style sheet.

    Args:
        markdown: the page.
        folder: what the paths of images are relative to.
    """

    def replaced(image: re.Match[str]) -> str:
        picture = _STYLE.sub("", (folder / image[2]).read_text(encoding="utf-8")).strip()
        named = picture.replace("<svg", f'<svg role="img" aria-label="{html.escape(image[1])}"', 1)
        return f'<div class="figure">{named}</div>'

    return _IMAGE.sub(replaced, markdown)


def _figure(source: str) -> str:
    lines = [line.strip() for line in source.split("\n") if line.strip()]
    kind, _, direction = lines[0].partition(" ")
    if kind == "flowchart":
        body = flowchart(lines[1:], downwards=direction in ("TD", "TB"))
    elif kind == "sequenceDiagram":
        body = sequence_diagram(lines[1:])
    else:
        raise ValueError(f"no figure of this kind can be drawn: {lines[0]}")
    return f'<div class="figure">{body}</div>'
