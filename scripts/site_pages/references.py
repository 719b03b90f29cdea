"""Code in prose as links to the reference: `ts.open`, `ts.Transaction(atomic=True)`, `Spec.url`.

On a forge it stays code. What is no documented name stays code on the site, too.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["with_references"]

_CODE: Final = re.compile(
    r"(?<![`\[])`(?P<code>(?:ts\.(?P<name>[A-Za-z]\w*(?:\.[a-zA-Z]\w*){0,2})"
    r"|(?P<member>[A-Z][A-Za-z]+\.[a-z]\w*))(?:\([^`]*\))?)`(?![`\]])"
)
_HEADING: Final = re.compile(r"^#+ .*$", re.MULTILINE)


def with_references(prose: str) -> str:
    """Markdown without fenced blocks, in which public names lead to where they are described.

    Example:
        >>> print(with_references("`ts.open` and [`ts.copy`](x.md)"))
        <autoref optional identifier="tensorstore_py.open">`ts.open`</autoref> and [`ts.copy`](x.md)
    """
    parts, end = [], 0
    for heading in _HEADING.finditer(prose):  # is a link by itself
        parts += [_CODE.sub(_reference, prose[end : heading.start()]), heading[0]]
        end = heading.end()
    return "".join([*parts, _CODE.sub(_reference, prose[end:])])


def _reference(code: re.Match[str]) -> str:
    name = code["name"] or code["member"]
    return f'<autoref optional identifier="tensorstore_py.{name}">{code[0]}</autoref>'
