"""What listings say of an entry: kind, data type, shape, chunks and bytes, as JSON and as texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._display.info import human_size
from tensorstore_py.cli.output import painted, printable, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py.cli.found import Entry

__all__ = ["by_label", "entry_facts", "entry_table", "extents", "problem_lines"]

Facts = dict[str, Any]  # Any: JSON, to be walked through

_SHORT = ("name", "kind", "shape", "dtype")
_LONG = (*_SHORT, "chunks", "shards", "driver", "bytes", "labels")


def entry_facts(entry: Entry) -> Facts:
    """An entry as JSON."""
    told: Facts = {"name": entry.name, "kind": entry.kind}
    if isinstance(entry.found, TensorStore):
        known = array_facts(entry.found)
        told |= {name: known[name] for name in ("shape", "dtype", "labels", "chunks", "shards",
                                                "driver", "bytes") if name in known}  # fmt: skip
    if entry.size is not None:
        told["bytes"] = entry.size
    if entry.problem:
        told["problem"] = entry.problem
    return told


def entry_table(found: Iterable[Facts], *, long: bool = False) -> str:
    """Entries as a table, and below it what is unreadable."""
    rows = list(found)
    columns = _LONG if long else _SHORT
    text = table(
        columns,
        ([_cell(row, name) for name in columns] for row in rows),
        ["bytes"],
        {"dtype": "dtype", "kind": "muted"},
    )
    return "\n".join(filter(None, [text, *problem_lines(rows, "name")]))


def problem_lines(rows: Iterable[Facts], name: str) -> list[str]:
    """What is wrong with some rows, a line for each; `name`: the member that names them."""
    return [
        f"{painted(row[name] or '.', 'damage', sent=True)}: {printable(row['problem'], lines=True)}"
        for row in rows
        if "problem" in row
    ]


def _cell(row: Facts, name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if name == "name":
        kind = row["kind"]
        if kind in ("group", "directory"):
            return painted(f"{value}/", kind)
        return painted(str(value), {"key": "", "unreadable": "damage"}.get(kind) or str(kind))
    if name == "bytes":
        return human_size(value)
    if name == "labels":
        return ", ".join(label or "-" for label in value)
    return extents(value) if isinstance(value, list) else str(value)


def extents(shape: Sequence[int]) -> str:
    """A shape in a line.

    Example:
        >>> extents([64, 32]), extents([])
        ('64 x 32', 'scalar')
    """
    return " x ".join(map(str, shape)) or "scalar"


def by_label(array: TensorStore) -> str:
    """The domain of an array, as a selection is written.

    Example:
        >>> import tensorstore_py as ts
        >>> by_label(ts.array([1, 2, 3], dtype="int8")[1:])
        '[1:3]'
    """
    dims = [
        f"{dim.label}={dim.inclusive_min}:{dim.exclusive_max}"
        if dim.label
        else f"{dim.inclusive_min}:{dim.exclusive_max}"
        for dim in array.domain
    ]
    return f"[{', '.join(dims)}]"
