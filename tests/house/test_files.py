"""Laws about files: how long functions are, what modules open with, how they are named."""

import ast
import re

from tests.house.sources import PACKAGE, Source, sources

FUNCTION_LINES = 60
HEAD_LINES = 3
DRAWERS = {"common", "core", "helpers", "misc", "util", "utils"}


def test_functions_fit_on_a_screen() -> None:
    long = [
        f"{source.name}:{node.lineno} {node.name}: {length} lines"
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := lines_of_code(node)) > FUNCTION_LINES
    ]

    assert long == [], "\n".join(long)


def lines_of_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, those of its docstring not counted."""
    first = function.body[0]
    docstring = ast.get_docstring(function) is not None
    documented = (first.end_lineno or 0) - first.lineno + 1 if docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - documented


def test_engine_modules_open_with_their_rules() -> None:
    short = [
        f"{source.name}: {lines} lines"
        for source in sources()
        if is_of_the_engine(source)
        and (lines := len((ast.get_docstring(source.tree) or "").split("\n"))) < HEAD_LINES
    ]

    assert short == [], "\n".join(short)


def is_of_the_engine(source: Source) -> bool:
    return source.name.startswith("_") and not source.name.endswith("__init__.py")


def test_no_module_is_a_drawer() -> None:
    drawers = [
        source.name
        for source in sources()
        if DRAWERS & {part.strip("_") for part in source.name.removesuffix(".py").split("/")}
    ]

    assert drawers == [], "\n".join(drawers)


def test_nothing_is_left_for_later() -> None:
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
    left = [
        f"{source.name}:{number} {line.strip()}"
        for source in sources()
        for number, line in enumerate(source.text.split("\n"), start=1)
        if pattern.search(line)
    ]

    assert left == [], "\n".join(left)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
