"""How commands print: JSON for programs, tables for people, and why something failed.

A table is aligned text. On a terminal rich lays it out, in colours and in as many columns as there
are, if it is installed and `NO_COLOR` does not say no; what is piped is the same text without.
Colours are those of the terminal's own palette, so that light and dark ones can show them. Whatever
a store says may hold characters that move a terminal's cursor: they are shown, not sent.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Final, TypeVar

from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.errors import TensorStoreError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "add_json",
    "can_draw",
    "columns_of_terminal",
    "examples",
    "painted",
    "printable",
    "printed",
    "table",
    "to_json",
    "tried",
]

T = TypeVar("T")

#: Columns of texts have at least so many characters, if texts are as long.
_FOLDED: Final = 20

#: How something looks, by what it is: names of the terminal's own colours.
STYLES: Final[Mapping[str, str]] = {
    "head": "bold",
    "name": "bold",
    "group": "bold blue",
    "directory": "bold blue",
    "array": "green",
    "dtype": "cyan",
    "muted": "dim",
    "damage": "red",
    "good": "green",
}


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def examples(parser: argparse.ArgumentParser, text: str, after: str = "") -> None:
    """Put examples below a command's help, as they are, and something after them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"examples:\n{text}{after and chr(10)}{after}"


def tried(work: Callable[[], int]) -> int:
    """What some work returns; if it fails, why, and the exit code for that."""
    try:
        return work()
    except (TensorStoreError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        sys.stderr.write(f"{printable(str(error), lines=True)}\n")
        return FAILED


def printed(
    options: argparse.Namespace,
    find: Callable[[], T],
    text: Callable[[T], str],
    code: Callable[[T], int] = lambda _: DONE,
) -> int:
    """Print what is found, as JSON or as text; the exit code.

    Args:
        options: with `json`.
        find: collects what there is to say, as JSON.
        text: lays it out for people; without the last newline.
        code: the exit code for it.
    """

    def work() -> int:
        found = find()
        told = to_json(found) if options.json else text(found)
        sys.stdout.write(f"{told}\n" if told else "")
        return code(found)

    return tried(work)


def to_json(found: object) -> str:
    """JSON text; numbers that JSON has not are the texts `"nan"`, `"inf"` and `"-inf"`.

    Named tuples are objects.
    """
    return json.dumps(_finite(found), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(found: object) -> object:
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    if hasattr(found, "_asdict"):
        found = {name.rstrip("_"): value for name, value in found._asdict().items()}
    if isinstance(found, dict):
        return {name: _finite(value) for name, value in found.items()}
    return [_finite(each) for each in found] if isinstance(found, list | tuple) else found


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
) -> str:
    """Lines of aligned columns, with their names above; "" if there are no rows.

    Args:
        columns: their names. A column in which nothing is said is left out.
        rows: texts, which `painted` may have made.
        right: names of columns that are aligned on the right.
        styles: of columns, by name.

    Example:
        >>> print(table(["name", "size"], [["a", "800"], ["image", "1,024"]], right=["size"]))
        name    size
        a        800
        image  1,024
    """
    lines = [list(row) for row in rows]
    if not lines:
        return ""
    kept = [at for at in range(len(columns)) if any(line[at] for line in lines)]
    lines = [[line[at] for at in kept] for line in lines]
    head = [columns[at] for at in kept]
    rich = _rich()
    if rich is not None:
        return _rich_table(rich, head, lines, right, styles or {})
    lines = [[printable(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]

    def laid_out(cells: Sequence[str]) -> str:
        fitted = (
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, cells, widths, strict=True)
        )
        return "  ".join(fitted).rstrip()

    return "\n".join(map(laid_out, [head, *lines]))


def _rich_table(
    rich: ModuleType,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    right: Collection[str],
    styles: Mapping[str, str],
) -> str:
    """The same on a terminal: where it is too narrow, texts go on in a second line."""
    text = import_module("rich.text").Text
    found = import_module("rich.table").Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=STYLES["head"]
    )
    for name in head:
        is_right = name in right
        size = max(len(printable(line[len(found.columns)])) for line in lines)
        found.add_column(
            text(name),
            min_width=max(len(name), size if is_right else min(size, _FOLDED)),
            justify="right" if is_right else "left",
            style=STYLES.get(styles.get(name, ""), ""),
            no_wrap=is_right,
            overflow="fold",
        )
    for line in lines:
        found.add_row(
            *(text(printable(cell), STYLES.get(getattr(cell, "style", ""), "")) for cell in line)
        )
    widths = [max(map(len, map(printable, column))) for column in zip(head, *lines, strict=True)]
    # Numbers are never cut: rather the terminal breaks the lines.
    least = (
        size if name in right else min(size, _FOLDED)
        for name, size in zip(head, widths, strict=True)
    )
    to = StringIO()
    rich.Console(
        file=to,
        width=max(columns_of_terminal(), sum(least) + 2 * len(widths)),
        force_terminal=True,
        color_system="standard",
    ).print(found)
    return "\n".join(line.rstrip() for line in to.getvalue().splitlines())


class _Painted(str):
    """A text with the style that it has on a terminal."""

    __slots__ = ("style",)

    style: str


def painted(text: str, style: str, *, sent: bool = False) -> str:
    """A text that is shown in one of the `STYLES`.

    Args:
        text: whose control characters are escaped by what prints it, or here if it is sent.
        style: of `STYLES`.
        sent: with the terminal's codes for it, if there is a terminal that wants them; else the
            text is one for `table`.
    """
    if not sent:
        found = _Painted(text)
        found.style = style
        return found
    text = printable(text)
    if _rich() is None:
        return text
    style_class = import_module("rich.style").Style
    standard = import_module("rich.color").ColorSystem.STANDARD
    return str(style_class.parse(STYLES[style]).render(text, color_system=standard))


def _rich() -> ModuleType | None:
    """rich, if there is a terminal that wants colours."""
    if (
        not sys.stdout.isatty()
        or os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
        or not can_draw("…")
    ):
        return None
    return _found_rich()


@cache
def _found_rich() -> ModuleType | None:
    try:
        return import_module("rich.console")
    except ImportError:
        return None


def columns_of_terminal(default: int = 80) -> int:
    """How many columns standard output has; a default if it is no terminal."""
    return shutil.get_terminal_size((default, 0)).columns if sys.stdout.isatty() else default


def printable(text: str, *, lines: bool = False) -> str:
    r"""A text whose control characters are shown as escapes; `lines`: but for newlines.

    Example:
        >>> printable("a\x1b[2Jb"), printable("a\nb", lines=True)
        ('a\\x1b[2Jb', 'a\nb')
    """
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or (lines and each == "\n")
        else each.encode("unicode_escape", "surrogatepass").decode("ascii")
        for each in text
    )


def can_draw(text: str) -> bool:
    """Whether standard output has the characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
