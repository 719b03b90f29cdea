"""How commands print: JSON for programs, tables for people, and why something failed.

A table is aligned text; on a terminal its head is bold, unless `NO_COLOR` says no. Whatever a
store says may hold characters that move a terminal's cursor: they are shown, not sent.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.errors import TensorStoreError

__all__ = ["add_json", "can_draw", "examples", "printable", "printed", "table", "to_json", "tried"]

T = TypeVar("T")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def examples(parser: argparse.ArgumentParser, text: str) -> None:
    """Put examples below a command's help, as they are."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"examples:\n{text}"


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
    """JSON text; numbers that JSON has not are the texts `"nan"`, `"inf"` and `"-inf"`."""
    return json.dumps(_finite(found), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(found: object) -> object:
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    if isinstance(found, dict):
        return {name: _finite(value) for name, value in found.items()}
    return [_finite(each) for each in found] if isinstance(found, list | tuple) else found


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()
) -> str:
    """Lines of aligned columns, with their names above; "" if there are no rows.

    Args:
        columns: their names. A column in which nothing is said is left out.
        rows: texts.
        right: names of columns that are aligned on the right.

    Example:
        >>> print(table(["name", "size"], [["a", "800"], ["image", "1,024"]], right=["size"]))
        name    size
        a        800
        image  1,024
    """
    lines = [[printable(cell) for cell in row] for row in rows]
    if not lines:
        return ""
    kept = [at for at in range(len(columns)) if any(line[at] for line in lines)]
    lines = [[line[at] for at in kept] for line in lines]
    head = [columns[at] for at in kept]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]

    def laid_out(cells: Sequence[str]) -> str:
        fitted = (
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, cells, widths, strict=True)
        )
        return "  ".join(fitted).rstrip()

    return "\n".join([_bold(laid_out(head)), *map(laid_out, lines)])


def _bold(text: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[1m{text}\x1b[0m"


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
