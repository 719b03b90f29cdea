"""What there is to say of an array or a group, as a table: as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["Info", "human_size"]


class Info:
    """Names and values, one in a line.

    Args:
        items: the lines.

    Example:
        >>> Info([("Type", "Array"), ("No. bytes", 800)])
        Type      : Array
        No. bytes : 800
    """

    __slots__ = ("items",)

    def __init__(self, items: Sequence[tuple[str, object]]) -> None:
        self.items = list(items)

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.items)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in self.items)

    def __getitem__(self, name: str) -> object:
        return dict(self.items)[name]

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align: left">{escape(name)}</th>'
            f'<td style="text-align: left">{escape(str(value))}</td></tr>'
            for name, value in self.items
        )
        return f"<table><tbody>{rows}</tbody></table>"


def human_size(size: int) -> str:
    """A number of bytes for people.

    Example:
        >>> human_size(800), human_size(400_000_000)
        ('800', '381.5M')
    """
    if size < 1024:
        return str(size)
    scaled = float(size)
    for unit in "KMGTPE":
        scaled /= 1024
        if scaled < 1024 or unit == "E":
            break
    return f"{scaled:.1f}{unit}"
