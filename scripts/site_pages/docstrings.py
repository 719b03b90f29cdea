"""Docstrings as mkdocstrings reads them: `Example:` is a section, and names are links."""

from __future__ import annotations

import re
from typing import Any, Final

from griffe import Extension, Object

from scripts.site_pages.references import with_references

__all__ = ["HouseStyle"]

_HEAD: Final = re.compile(r"^( *)Example:$", re.MULTILINE)


class HouseStyle(Extension):
    """Makes of this package's docstrings what the handler knows."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # Any: what griffe passes on
        """Changes a docstring before it is parsed."""
        if obj.docstring is not None:
            text = _HEAD.sub(r"\1Examples:", obj.docstring.value)
            obj.docstring.value = with_references(text)
