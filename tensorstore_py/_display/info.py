"""What there is to say of something, as a table: as text, and as HTML for notebooks.

Numbers are written for people: with separators, and bytes in units of 1,024.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensorstore_py._display.markup import Markup, element, join
from tensorstore_py._display.page import page

__all__ = ["Info", "columns", "human_size", "rows", "times"]


class Info:
    """Names and values, one in a line.

    Args:
        items: the lines.
        title: what it is of, for notebooks.

    Example:
        >>> Info([("Type", "Array"), ("No. bytes", 800)])
        Type      : Array
        No. bytes : 800
    """

    __slots__ = ("items", "title")

    def __init__(self, items: Sequence[tuple[str, object]], title: str = "Info") -> None:
        self.items = list(items)
        self.title = title

    def __repr__(self) -> str:
        width = max((len(name) for name, _ in self.items), default=0)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in self.items)

    def __getitem__(self, name: str) -> object:
        return dict(self.items)[name]

    def _repr_html_(self) -> str:
        return page(self.title, "", rows(self.items))


def rows(items: Iterable[tuple[str, object]]) -> Markup | None:
    """A table of names and values; None if there are none."""
    found = [
        element("tr", element("th", name, scope="row"), element("td", value))
        for name, value in items
    ]
    return element("table", element("tbody", join(*found))) if found else None


def columns(names: Sequence[str], lines: Iterable[Sequence[object]]) -> Markup:
    """A table with a name above each column; the first column names the lines."""
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = [
        element(
            "tr",
            element("th", line[0], scope="row"),
            *(element("td", value) for value in line[1:]),
        )
        for line in lines
    ]
    return element(
        "table", element("thead", head), element("tbody", join(*body)), class_="tsv-grid"
    )


def human_size(size: int) -> str:
    """A number of bytes for people.

    Example:
        >>> human_size(800), human_size(400_000_000), human_size(0)
        ('800 B', '381.5 MiB', '0 B')
    """
    if size < 1024:
        return f"{size} B"
    power = min(6, (size.bit_length() - 1) // 10)
    scaled = size / 1024**power
    return f"{scaled:.1f} {'KMGTPE'[power - 1]}iB" if scaled < 1e6 else f"{size:.1e} B"


def times(sizes: Iterable[int | None]) -> str:
    """Extents; None has no end.

    Example:
        >>> times([1000, 20]), times([])
        ('1,000 × 20', '()')
    """
    return " × ".join("∞" if size is None else f"{size:,}" for size in sizes) or "()"
