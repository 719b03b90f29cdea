"""The page of the command line, from what the commands print with `--help`."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Sequence
from typing import Final

from tensorstore_py.cli.main import COMMANDS, main

__all__ = ["command_page", "help_of"]

#: How wide text is for the parsers.
_COLUMNS: Final = "96"
_CHOICE: Final = re.compile(r"^    ([a-z][a-z-]+)(?:  |$)", re.MULTILINE)
_NESTED: Final = re.compile(r"^positional arguments:\n  [A-Z]+\n", re.MULTILINE)


def command_page() -> str:
    """Everything that `tspy` takes, as Markdown.

    Example:
        >>> text = command_page()
        >>> "### `tspy ls` {#tspy-ls}" in text, "#### `tspy ocdbt compact`" in text
        (True, True)
    """
    lines = [
        "# The commands of `tspy`",
        "",
        "What each prints with `--help`. How they are used: [Command line](../command_line.md).",
        "",
    ]
    for about, commands in COMMANDS.items():
        lines += [f"## {about[:1].upper()}{about[1:]}", ""]
        for name in commands:
            lines += _section([name], 3)
    return "\n".join(lines)


def help_of(words: Sequence[str]) -> str:
    """What a command prints with `--help`.

    Raises:
        ValueError: it printed nothing.
    """
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _COLUMNS
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
    text = printed.getvalue().strip()
    if not text:
        raise ValueError(f"tspy {' '.join(words)} --help printed nothing")
    return text


def _section(words: list[str], level: int) -> list[str]:
    text = help_of(words)
    lines = [f"{'#' * level} `tspy {' '.join(words)}` {{#tspy-{'-'.join(words)}}}", ""]
    lines += ["```text", text, "```", ""]
    nested = _NESTED.search(text)
    if nested is not None:
        below = text[nested.end() :].split("\n\n")[0]
        for name in _CHOICE.findall(below):
            lines += _section([*words, name], level + 1)
    return lines
