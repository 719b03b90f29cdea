r"""Paths of nodes, in one form: parts with one `/` in between, none at either end.

The rules are those of the format's version 2, for every format: backslashes are slashes, empty
parts vanish, and `.` and `..` are refused, since a path names one node wherever it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import HierarchyFormat

__all__ = ["check_new", "join", "normalised", "parents"]


def normalised(path: object) -> str:
    r"""A path in its one form; `""` is the group itself.

    Raises:
        TypeError: it is no text.
        SpecError: a part of it is `.` or `..`.

    Example:
        >>> normalised("/a//b/"), normalised("a\\b"), normalised("/")
        ('a/b', 'a/b', '')
        >>> normalised("a/../b")
        Traceback (most recent call last):
            ...
        tensorstore_py.errors.SpecError: path "a/../b" has the part ".."; name the node itself
    """
    if not isinstance(path, str):
        raise TypeError(f"a path must be text (str), not {type(path).__name__}")
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    for part in parts:
        if part in (".", ".."):
            raise SpecError(f'path "{path}" has the part "{part}"; name the node itself')
    return "/".join(parts)


def join(path: str, inner: str) -> str:
    """The path of a node below another one; both in their one form."""
    return f"{path}/{inner}" if path and inner else path or inner


def parents(path: str, above: str | None = None) -> list[str]:
    """The paths of the groups above a node, the outermost first; those below `above` only.

    Example:
        >>> parents("a/b/c"), parents("a/b/c", "a"), parents("a", ""), parents("")
        (['', 'a', 'a/b'], ['a/b'], [], [])
    """
    parts = path.split("/") if path else []
    found = ["/".join(parts[:count]) for count in range(len(parts))]
    return found[found.index(above) + 1 :] if above in found else found


def check_new(form: HierarchyFormat, path: str) -> None:
    """Refuse the path of a new node if a part of it is a name that the format does not allow.

    Raises:
        SpecError: names the part, and says why.
    """
    for name in path.split("/") if path else ():
        form.check_name(name)
