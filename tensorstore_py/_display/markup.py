"""Markup: HTML that is known to be well-formed, made of elements whose text is escaped.

The one invariant: whatever is not a `Markup` is text, and is escaped where it is put in. So names,
attributes and URLs, which may come from untrusted authors, cannot become elements.
"""

from __future__ import annotations

from html import escape

__all__ = ["Markup", "element", "join"]

#: Longer texts are cut: they are not read, and a notebook keeps every output.
_LONGEST_TEXT = 2000


class Markup(str):
    """HTML, as opposed to text.

    Example:
        >>> element("b", "a < b"), isinstance(element("b"), Markup)
        ('<b>a &lt; b</b>', True)
    """

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Markup:
    """An element.

    Args:
        name: of the element.
        *children: Markup, or anything else, whose `str` is shown as text; None is left out.
        **attributes: by name; `_` stands for `-`, and one at the end is dropped. True has no
            value; None and False are left out.

    Example:
        >>> element("td", "x", element("br"), class_="a", stroke_width=2, open=True, id=None)
        '<td class="a" stroke-width="2" open>x<br></br></td>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{escape(str(value))}"')
    return Markup(f"<{' '.join(parts)}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Several, one after the other."""
    return Markup("".join(map(_markup, children)))


def _markup(child: object) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    text = str(child)
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters)"
    return escape(_printable(text))


def _printable(text: str) -> str:
    """Without lone surrogates, which no document can hold, and control characters."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else "�" for each in text)
