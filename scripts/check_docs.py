"""Runs what *.md and docs/*.md show, so that no page promises what the code does not do.

A page is one story: its blocks run from top to bottom in one namespace and one empty directory.

- ```python: runs, as a doctest if it has `>>>` prompts, else as a script that may `await`;
- ```json: must parse; with a title (```json title="volume.json") it becomes that file;
- `<!-- not run: reason -->` on the line above a block exempts it, and the reason is demanded;
- a relative link must lead to a file that exists.

Usage: check_docs.py [PAGE...]
"""

import ast
import asyncio
import doctest
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120.0
Loop = asyncio.AbstractEventLoop

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
TITLE = re.compile(r'title="([^"]+)"')
EXEMPT = re.compile(r"<!-- *not run:(.*)-->")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it starts (the fence's 1-based line), what it is, what it says."""

    line: int
    language: str
    title: str | None
    text: str
    exempt: str | None


class PageError(Exception):
    """A page does not hold what it promises; the message names the line."""


def blocks(text: str) -> Iterator[Block]:
    """Yields the fenced blocks of a page in order."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        start, indent, ticks = number, len(opening["indent"]), opening["ticks"]
        body = []
        number += 1
        while number < len(lines) and lines[number].strip() != ticks:
            body.append(lines[number][indent:])
            number += 1
        if number == len(lines):
            raise PageError(f"line {start + 1}: this block is never closed")
        number += 1
        words = opening["info"].split()
        title = TITLE.search(opening["info"])
        exempt = EXEMPT.search(lines[start - 1]) if start else None
        yield Block(
            line=start + 1,
            language=words[0] if words else "",
            title=title[1] if title else None,
            text="\n".join(body) + "\n",
            exempt=exempt[1].strip() if exempt else None,
        )


def run_doctest(block: Block, page: Path, namespace: dict[str, object]) -> None:
    """Runs a block with prompts; raises PageError with doctest's own report."""
    test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line)
    test.globs = namespace
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    if runner.run(test, out=report.append, clear_globs=False).failed:
        raise PageError("".join(report))


def run_script(block: Block, page: Path, namespace: dict[str, object], loop: Loop) -> None:
    """Runs a block without prompts; line numbers in a traceback are the page's."""
    source = "\n" * block.line + block.text
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        code: CodeType = compile(source, str(page), "exec", flags=flags, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            loop.run_until_complete(eval(code, namespace))  # noqa: S307 - our own page
        else:
            exec(code, namespace)  # noqa: S102 - our own page
    except Exception as error:
        raise PageError(f"line {block.line}:\n{traceback.format_exc()}") from error


def run_block(block: Block, page: Path, namespace: dict[str, object], loop: Loop) -> None:
    """Does with one block what its language asks for."""
    if block.exempt is not None:
        if not block.exempt:
            raise PageError(f"line {block.line}: `not run` needs its reason")
        return
    if block.title is not None:
        Path(block.title).write_text(block.text, encoding="utf-8")
    if block.language == "json":
        try:
            json.loads(block.text)
        except ValueError as error:
            raise PageError(f"line {block.line}: no JSON: {error}") from error
    elif block.language in {"python", "py", "pycon"}:
        if ">>>" in block.text:
            run_doctest(block, page, namespace)
        else:
            run_script(block, page, namespace, loop)


def run_page(page: Path) -> None:
    """Runs one page in the current directory; raises PageError at the first broken promise."""
    text = page.read_text(encoding="utf-8")
    for link in LINK.finditer(text):
        if not (page.parent / link[1]).exists():
            line = text.count("\n", 0, link.start()) + 1
            raise PageError(f"line {line}: the link to {link[1]} leads nowhere")
    namespace: dict[str, object] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block in blocks(text):
            run_block(block, page, namespace, runner.get_loop())


def complaint(page: Path) -> str | None:
    """Runs one page in a process and an empty directory of its own; returns what went wrong."""
    with tempfile.TemporaryDirectory(prefix="page-") as directory:
        try:
            done = subprocess.run(
                [sys.executable, "-W", "error", __file__, "--here", str(page)],
                cwd=directory,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S:.0f} s"
    return None if done.returncode == 0 else done.stdout or f"ended with code {done.returncode}"


def main(arguments: list[str]) -> int:
    """Runs the named pages, or all; prints a line each and returns the exit code."""
    if arguments[:1] == ["--here"]:
        try:
            run_page(Path(arguments[1]))
        except PageError as error:
            print(error)
            return 1
        return 0
    pages = [Path(name).resolve() for name in arguments]
    pages = pages or [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    failures = 0
    with ThreadPoolExecutor(os.cpu_count()) as several:
        for page, problem in zip(pages, several.map(complaint, pages), strict=True):
            failures += problem is not None
            print(f"{os.path.relpath(page, ROOT)}: {problem or 'ok'}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
