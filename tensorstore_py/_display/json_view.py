"""JSON that opens and closes: objects and lists are folded, and what is long is cut.

However much there is, so much is shown at most, and the rest is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from tensorstore_py._display.markup import Markup, element, join
from tensorstore_py._display.page import folded

__all__ = ["json_view"]

#: So many members of one object are shown, so many in all, and so many levels.
_MEMBERS = 100
_IN_ALL = 1000
_LEVELS = 12
#: What fits a line is not folded.
_LINE = 72


def json_view(json: object) -> Markup:
    """A JSON value.

    Example:
        >>> json_view({"a": 1, "b": [1, "<"]})
        '<ul><li class="tsv-leaf">a: <code>1</code></li><li class="tsv-leaf">b: <code>[1, &#x27;&lt;&#x27;]</code></li></ul>'
    """  # noqa: E501 - one line of HTML
    return _members(json, 0, [_IN_ALL])


def _members(json: object, level: int, left: list[int]) -> Markup:
    pairs = json.items() if isinstance(json, Mapping) else enumerate(_as_list(json))
    count = len(json) if isinstance(json, Mapping) else len(_as_list(json))
    shown = []
    for name, value in islice(pairs, min(count, _MEMBERS)):
        if left[0] <= 0:
            break
        left[0] -= 1
        shown.append(_member(name, value, level, left))
    if len(shown) < count:
        shown.append(element("li", f"… {count - len(shown):,} more", class_="tsv-leaf tsv-muted"))
    return element("ul", join(*shown))


def _member(name: object, value: object, level: int, left: list[int]) -> Markup:
    line = _line(value)
    if line is not None or level >= _LEVELS:
        text = _cut(value) if line is None else line
        return element("li", f"{name}: ", element("code", text), class_="tsv-leaf")
    assert isinstance(value, Mapping | list | tuple)
    kind = "member" if isinstance(value, Mapping) else "element"
    what = f"{len(value):,} {kind}{'s' * (len(value) != 1)}"
    summary = join(str(name), element("span", f"  {what}", class_="tsv-muted"))
    return element("li", folded(summary, _members(value, level + 1, left)))


def _line(value: object) -> str | None:
    """The value, if it fits a line; whatever is no container has one."""
    if not isinstance(value, Mapping | list | tuple):
        return repr(value) if isinstance(value, str) else str(value)
    if len(value) > _LINE // 3 or _depth(value, 4) == 0:
        return None
    inner = value.values() if isinstance(value, Mapping) else value
    if any(isinstance(each, str) and len(each) > _LINE for each in inner):
        return None
    line = repr(value)
    return line if len(line) <= _LINE else None


def _depth(value: object, most: int) -> int:
    """How many levels are left below, of so many; 0: it is deeper, or wide."""
    if not isinstance(value, Mapping | list | tuple) or most == 0:
        return most
    if len(value) > _LINE:
        return 0
    inner = value.values() if isinstance(value, Mapping) else value
    return min((_depth(each, most - 1) for each in inner), default=most)


def _cut(value: object) -> str:
    return "{…}" if isinstance(value, Mapping) else "[…]"


def _as_list(json: object) -> list[object] | tuple[object, ...]:
    return json if isinstance(json, list | tuple) else [json]
