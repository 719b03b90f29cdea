"""Answers in XML, by a parser: whole documents, or none.

A document that was cut is refused, since what is missing of it would look like nothing. So is one
that declares types or entities, which services never do: what they stand for is no answer, and may
be as large as it likes. Names are compared without their namespace, which servers leave out or
change. The invariant: what is handed on was closed by its last tag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py.plugin import Buffer

__all__ = ["XmlElement", "first_text", "local_name", "named", "parse_xml"]

XmlElement = ET.Element

_DECLARATIONS: Final = ("<!DOCTYPE", "<!ENTITY")


def parse_xml(body: Buffer, *roots: str) -> XmlElement:
    """The root of a document.

    Args:
        body: all of it. Long operations send blanks before it.
        roots: what the root may be called; any name by default.

    Raises:
        DataLossError: it is not whole, no XML in UTF-8, has declarations, or another root.

    Example:
        >>> local_name(parse_xml(b'<A xmlns="urn:x"><B>1</B></A>'))
        'A'
        >>> parse_xml(b"<A><B>1</B>")
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.DataLossError: the server's answer is no whole XML document (...)
    """
    try:
        # Text and not bytes: a parser would try other encodings, in which the words look different.
        text = bytes(body).decode().strip()
        if any(word in text for word in _DECLARATIONS):
            raise DataLossError("the server's answer is XML that declares types or entities")
        root = ET.fromstring(text)  # noqa: S314 - as above
    except (ET.ParseError, ValueError) as error:
        raise DataLossError(f"the server's answer is no whole XML document ({error})") from None
    if roots and local_name(root) not in roots:
        raise DataLossError(
            f"the server's answer is about <{local_name(root)[:40]}> instead of <{roots[0]}>"
        )
    return root


def local_name(element: XmlElement) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def named(root: XmlElement, name: str) -> str:
    """The tag of what is called `name` in the document of a root: with the root's namespace."""
    space, brace, _ = root.tag.rpartition("}")
    return f"{space}{brace}{name}"


def first_text(root: XmlElement, name: str) -> str | None:
    """The text of the first element of that name, wherever it is; None if there is none."""
    found: Iterator[XmlElement] = (each for each in root.iter() if local_name(each) == name)
    first = next(found, None)
    return None if first is None else (first.text or "")
