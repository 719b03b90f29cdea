"""A tree that opens and closes, of however many nodes.

So many are shown at most, of one group and in all; the rest is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._display.markup import Markup, element, join
from tensorstore_py._display.page import folded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["outline"]

#: So many nodes of one group are shown, so many in all; so many levels are open.
_SIBLINGS = 100
_IN_ALL = 1000
_OPEN_LEVELS = 2
#: HTML that is nested more deeply is a burden to browsers.
_LEVELS = 64


def outline(children: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> Markup | None:
    """The nodes below a root.

    Args:
        children: the paths of the nodes in each group, by the group's path; `""` is the root.
        labels: what to say of each node besides its name, by path. What has none is a group.

    Example:
        >>> outline({"": ["a", "b"]}, {"a": "(3,) int8", "b": ""})
        '<ul><li class="tsv-leaf">a <span class="tsv-mono tsv-muted">(3,) int8</span></li><li class="tsv-leaf">b/</li></ul>'
    """  # noqa: E501 - one line of HTML
    return _level("", children, labels, 0, [_IN_ALL])


def _level(
    path: str,
    children: Mapping[str, Sequence[str]],
    labels: Mapping[str, str],
    level: int,
    left: list[int],
) -> Markup | None:
    inner = children.get(path, ())
    if not inner:
        return None
    shown: list[Markup] = []
    for child in inner[:_SIBLINGS]:
        if left[0] <= 0:
            break
        left[0] -= 1
        shown.append(_node(child, children, labels, level, left))
    if len(shown) < len(inner):
        shown.append(
            element("li", f"… {len(inner) - len(shown):,} more", class_="tsv-leaf tsv-muted")
        )
    return element("ul", join(*shown))


def _node(
    path: str,
    children: Mapping[str, Sequence[str]],
    labels: Mapping[str, str],
    level: int,
    left: list[int],
) -> Markup:
    name = path.rpartition("/")[2]
    label = labels.get(path, "")
    if label:
        text = element("span", label, class_="tsv-mono tsv-muted")
        return element("li", f"{name} ", text, class_="tsv-leaf")
    count = len(children.get(path, ()))
    if not count or level >= _LEVELS:
        return element("li", f"{name}/", class_="tsv-leaf")
    summary = join(f"{name}/ ", element("span", f"{count:,}", class_="tsv-muted"))
    content = _level(path, children, labels, level + 1, left)
    return element("li", folded(summary, content, open_=level < _OPEN_LEVELS))
