"""Docstrings as mkdocstrings reads them: `Example:` is a section, as `Examples:` is."""

from __future__ import annotations

import re
from typing import Any, Final

from griffe import Extension, Object

__all__ = ["ExampleSections"]

_HEAD: Final = re.compile(r"^( *)Example:$", re.MULTILINE)


class ExampleSections(Extension):
    """Has the sections of examples recognized."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # Any: what griffe passes on
        """Renames the section."""
        if obj.docstring is not None:
            obj.docstring.value = _HEAD.sub(r"\1Examples:", obj.docstring.value)
