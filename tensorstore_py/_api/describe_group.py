"""What is known of an open group without reading anything: `info`, and notebooks.

What is in it is known only if consolidated metadata tells; else the store has to be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._api.kvstore_spec import place
from tensorstore_py._display.info import Info, rows
from tensorstore_py._display.json_view import json_view
from tensorstore_py._display.markup import element
from tensorstore_py._display.outline import outline
from tensorstore_py._display.page import folded, page
from tensorstore_py._hierarchy.node import known_node
from tensorstore_py._hierarchy.path import join
from tensorstore_py.errors import DataLossError, SpecError

if TYPE_CHECKING:
    from tensorstore_py._api.group_contents import GroupContents
    from tensorstore_py._hierarchy.consolidated import Consolidated

__all__ = ["group_facts", "group_html", "group_info"]

#: So many nodes are looked at, of consolidated metadata of however many.
_NODES = 1000


def group_facts(group: GroupContents) -> dict[str, object]:
    """What is known of an open group, as JSON."""
    return {
        "kind": "group",
        "zarr_format": group.zarr_format,
        "place": place(group._place.at(group._path)),
        "consolidated": group.consolidated,
    }


def _lines(group: GroupContents) -> list[tuple[str, object]]:
    facts = group_facts(group)
    version = facts["zarr_format"]
    found = [
        ("Format", f"Zarr, version {version}" if version else group._tree.form.format_id),
        ("Consolidated", "yes" if group.consolidated else "no"),
        ("Transaction", None if group.transaction is None else "its changes are staged"),
        ("Closed", "open it again" if group._life.closed else None),
    ]
    return [(name, value) for name, value in found if value is not None]


def group_info(group: GroupContents) -> Info:
    """The short text."""
    where = group_facts(group)["place"]
    return Info(
        [("Type", "Group"), ("Path", group.name), ("Place", where), *_lines(group)], "Group"
    )


def group_html(group: GroupContents, title: str) -> str:
    """The page of a group, for notebooks."""
    where = place(group._place.at(group._path))
    table, known = rows(_lines(group)), group._known
    if known is None or known.stale:
        hint = element("div", element("code", ".tree()"), " shows what is in it")
        return page(title, where, table, hint)
    children, labels = _outline(group, known)
    try:
        node = known_node(group._tree, group._path, known)
        attributes = (
            {}
            if node is None
            else group._tree.form.attributes(node.documents.get(group._tree.form.attributes_key))
        )
    except (DataLossError, SpecError):
        attributes = {}
    summary = f"Attributes, {len(attributes):,}"
    below = folded(summary, json_view(attributes)) if attributes else None
    return page(title, where, table, below, outline(children, labels))


def _outline(
    group: GroupContents, known: Consolidated
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The nodes below a group, by group, and what to say of them; level by level, so many."""
    tree, children, labels = group._tree, dict[str, list[str]](), dict[str, str]()
    waiting = [""]
    for path in waiting:
        names = known.names(join(group._path, path))
        children[path] = [join(path, name) for name in names]
        for child in children[path][: max(0, _NODES - len(labels))]:
            try:
                node = known_node(tree, join(group._path, child), known)
            except DataLossError:
                labels[child] = "corrupt"
                continue
            if node is not None and node.kind == "array":
                labels[child] = tree.form.summary(node.documents[tree.form.array_key])
            else:
                waiting.append(child)
    return children, labels
