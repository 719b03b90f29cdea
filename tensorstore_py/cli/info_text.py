"""What `tspy info` says to people: facts a line each, tables, and how an array is laid out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from tensorstore_py._display.codec_words import codec_words
from tensorstore_py._display.info import human_size
from tensorstore_py._display.text_drawing import BOXES, text_drawing
from tensorstore_py.cli.facts import entry_table, extents
from tensorstore_py.cli.output import can_draw, columns_of_terminal, painted, printable, table
from tensorstore_py.cli.tree import tree_lines

if TYPE_CHECKING:
    from tensorstore_py._display.geometry import Axis

__all__ = ["info_text"]

Facts = dict[str, Any]  # Any: JSON, to be walked through
Sizes = Sequence[tuple[str, list[int | None], int | None]]

#: What the layout, or a table, tells anyway.
_LAID_OUT: Final = frozenset({"shape", "chunks", "shards", "labels", "origin", "dimension_units",
                              "chunk_count", "shard_count", "elements"})  # fmt: skip
_LONGEST: Final = 400


def info_text(facts: Facts, axes: Sequence[Axis], sizes: Sizes) -> str:
    """The text.

    Args:
        facts: what `tspy info --json` prints.
        axes: of an array, as they are drawn; none of anything else.
        sizes: of an array, its shards and its chunks.
    """
    plain = {name: value for name, value in facts.items() if _is_line(name, value, facts)}
    width = max(map(len, plain)) + 1
    lines = []
    for name, value in plain.items():
        shown = _LINES.get(name, _word)(value)
        lines.append(f"{painted(f'{name}:'.replace('_', ' '), 'name', sent=True)}"
                     f"{' ' * (width - len(name))}{printable(shown)}")  # fmt: skip
    for name, lay_out in _SECTIONS.items():
        if facts.get(name):
            lines += ["", painted(f"{name}:".replace("_", " "), "name", sent=True)]
            lines += (f"  {line}".rstrip() for line in lay_out(facts[name]))
    if axes:
        lines += ["", painted("layout:", "name", sent=True), *_layout(facts, axes, sizes)]
    if facts.get("attributes"):
        known = ("ome", "multiscales", "omero") if facts.get("image") else ()
        told = {name: value for name, value in facts["attributes"].items() if name not in known}
        lines += ["", painted("attributes:", "name", sent=True), *_attributes(told)] * bool(told)
    if facts.get("more_versions"):
        lines.append("  and older ones: tspy ocdbt versions")
    return "\n".join(lines)


def _is_line(name: str, value: object, facts: Facts) -> bool:
    if value in (None, {}, []) or name in _SECTIONS or name in ("attributes", "more_versions"):
        return False
    return facts["kind"] != "array" or name not in _LAID_OUT


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _bytes(size: int) -> str:
    return human_size(size) if size < 1024 else f"{human_size(size)} ({size:,})"


_LINES: Final[Mapping[str, Callable[[Any], str]]] = {
    "bytes": _bytes,
    "stored_bytes": _bytes,
    "elements_bytes": _bytes,
    "keys": "{:,}".format,
    "codec": codec_words,
    "consolidated": lambda value: "yes" if value else "no",
    "layout": ", ".join,
    "steps": lambda value: ", ".join(map(str, value)),
    "incomplete_steps": lambda value: ", ".join(map(str, value)),
}


def _layout(facts: Facts, axes: Sequence[Axis], sizes: Sizes) -> Iterator[str]:
    """A table of extents along each dimension, and a drawing."""
    names = ["array", *(f"{name.lower()}s" for name, _, _ in sizes[1:])]
    columns = ["", *names, "from", "unit"]
    units = facts.get("dimension_units") or [None] * len(axes)
    rows = []
    for number, (axis, unit) in enumerate(zip(axes, units, strict=True)):
        of = ["∞" if shape[number] is None else f"{shape[number]:,}" for _, shape, _ in sizes]
        low = f"{axis.low:,}" if axis.low else ""
        rows.append([axis.label or f"dim {number}", *of, low, unit or ""])
    if "bytes" in facts and facts["elements"]:
        item = facts["bytes"] // facts["elements"]
        known = [None if None in shape else prod(filter(None, shape)) for _, shape, _ in sizes]
        words = ["∞" if size is None else human_size(size * item) for size in known]
        rows.append(["bytes", *words, "", ""])
    if len(sizes) > 1:
        counts = ["" if count is None else f"{count:,}" for _, _, count in sizes]
        rows.append(["count", *counts, "", ""])
    shown = table(columns, rows, (*names, "from")).splitlines()
    yield from (f"  {line}" for line in shown)
    width = columns_of_terminal() - 4
    drawn = text_drawing(axes, width, plain=not can_draw(BOXES))
    if drawn and any(axis.chunk for axis in axes):
        yield ""
        yield from (f"  {printable(line)}" for line in drawn)


def _attributes(attributes: Facts) -> Iterator[str]:
    for name, value in attributes.items():
        yield f"  {painted(f'{name}:', 'muted', sent=True)} {printable(_word(value))}"


def _image(image: Facts) -> list[str]:
    """An image of several levels."""
    if "problem" in image:
        return [painted(image["problem"], "damage", sent=True)]
    axes = ", ".join(f"{axis['name']} ({axis['unit'] or axis['type'] or 'no unit'})"
                     for axis in image["axes"])  # fmt: skip
    named = f"{image['name']}, " if image["name"] else ""
    columns = ("level", "shape", "dtype", "chunks", "shards", "pixel size", "translation")
    rows = [
        [each["path"], extents(each["shape"]), each["dtype"],
         *(extents(each[name]) if name in each else "" for name in ("chunks", "shards")),
         *(" x ".join(f"{value:g}" for value in each[name]) for name in ("scale", "translation"))]
        for each in image["levels"]
    ]  # fmt: skip
    head = printable(f"{named}OME-Zarr {image['version']}, axes {axes}")
    return [head, *table(columns, rows, (), {"dtype": "dtype"}).splitlines()]


def _versions(found: list[Facts]) -> list[str]:
    columns = ("version", "committed", "keys", "values", "nodes", "names")
    rows = [
        [f"v{each['generation']}", f"{each['time'][:-7]}Z", f"{each['keys']:,}",
         human_size(each["value_bytes"]), human_size(each["node_bytes"]),
         ", ".join(each.get("names", ()))]
        for each in found
    ]  # fmt: skip
    return table(columns, rows, ("version", "keys", "values", "nodes")).splitlines()


_SECTIONS: Final[Mapping[str, Callable[[Any], Sequence[str]]]] = {
    "image": _image,
    "members": lambda found: tree_lines({"members": found}),
    "arrays": lambda found: entry_table(found, long=True).splitlines(),
    "latest_versions": _versions,
    "first_keys": lambda found: [printable(key) for key in found],
}
