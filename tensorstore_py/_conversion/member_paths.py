"""Which members of a hierarchy are meant: glob patterns on their paths.

A pattern is matched with the whole path: `*` and `?` stay within a name, `**` stands for any number
of names. The one invariant: who means a group means everything in it, for better or worse, and what
is left out is left out whatever else says it is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tensorstore_py._hierarchy.path import parents
from tensorstore_py.errors import NotFoundError, SpecError

__all__ = ["MemberPaths"]

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", re.DOTALL)


class MemberPaths(NamedTuple):
    """Some members.

    Attributes:
        includes: patterns of which one must match; all members if there are none.
        excludes: patterns of which none may match.

    Example:
        >>> paths = MemberPaths.of(["raw", "**/mask"], "raw/old")
        >>> [paths.means(path) for path in ("raw/image", "raw/old/image", "a/b/mask", "other")]
        [True, False, True, False]
    """

    includes: tuple[str, ...]
    excludes: tuple[str, ...]

    @staticmethod
    def of(
        includes: str | Iterable[str] | None, excludes: str | Iterable[str] | None
    ) -> MemberPaths:
        """What a caller said: one pattern or several.

        Raises:
            TypeError: a pattern is no text.
            SpecError: it is empty.
        """
        return MemberPaths(_patterns("includes", includes), _patterns("excludes", excludes))

    def means(self, path: str) -> bool:
        """Whether the member at a path is meant; the outermost group, `""`, always is."""
        if not path:
            return True
        above = [*parents(path, ""), path]
        if any(_matches(pattern, each) for pattern in self.excludes for each in above):
            return False
        return not self.includes or any(
            _matches(pattern, each) for pattern in self.includes for each in above
        )

    def among(self, paths: Iterable[str]) -> set[str]:
        """Those that are meant, and the groups above them.

        Raises:
            NotFoundError: a pattern of `includes` matches none; names it.
        """
        known = list(paths)
        for pattern in self.includes:
            if not any(_matches(pattern, path) for path in known):
                raise NotFoundError(
                    f"includes: nothing matches {pattern!r}; patterns are matched with whole "
                    f"paths, as in 'a/b', 'a/*' or '**/b'"
                )
        meant = {path for path in known if self.means(path)}
        return meant.union(*(parents(path) for path in meant))


def _patterns(name: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    listed = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for pattern in listed:
        if not isinstance(pattern, str):
            raise TypeError(f"{name} are patterns (str), not {type(pattern).__name__}")
        if not pattern.strip("/"):
            raise SpecError("a pattern is empty; leave it out to mean everything", (name,))
    return tuple(pattern.strip("/") for pattern in listed)


def _matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).fullmatch(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = []
    for part in _TOKEN.findall(pattern):
        if part == "**/":
            parts.append("(?:[^/]+/)*")
        elif part == "**":
            parts.append(".*")
        elif part in "*?":
            parts.append("[^/]*" if part == "*" else "[^/]")
        elif len(part) > 2 and part[0] == "[":
            inner = part[1:-1].replace("\\", "\\\\")
            parts.append(f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts), re.DOTALL)
