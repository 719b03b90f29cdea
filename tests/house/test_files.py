"""Laws about files: their twins, their lengths, their first lines, their names."""

import ast
import re
import statistics
from collections.abc import Iterator

from tests.house.sources import PACKAGE, ROOT, Source, sources

MEDIAN_LINES = 200
LONG_FILE_LINES = 400
# Each of the eight is about one noun, or a pair of them, so none is cut for its length alone:
# three promise an interface with its documentation (`_api/tensorstore`, `_interface/kvstore`,
# `_interface/driver`), one lists the names of a door (`plugin`), one speaks to one service
# (`kvstores/gcs/store`), one is a server (`testing/fault_server`), and `_chunked/update` and
# `_runtime/future` are over the limit by a few lines.
LONG_FILES_ALLOWED = 8
LONGEST_FILE_LINES = 600
FUNCTION_LINES = 60
HEAD_LINES = (3, 15)

# Modules without a test file of their own name, and where their promises are held instead.
TWINLESS: dict[str, str] = {
    "plugin.py": "tests/house/test_doors.py",
}

DRAWERS = {"common", "core", "helpers", "misc", "util", "utils"}


def twin(name: str) -> str:
    """Where the test file of a module belongs: the same path, without the underscores."""
    *folders, file = name.split("/")
    inner = [folder.lstrip("_") for folder in folders]
    return "/".join(["tests", *inner, f"test_{file.lstrip('_')}"])


def modules() -> list[Source]:
    return [source for source in sources() if not source.name.endswith("__init__.py")]


def test_each_source_has_its_test_twin() -> None:
    missing = [
        f"{source.name} -> {twin(source.name)}"
        for source in modules()
        if source.name not in TWINLESS and not (ROOT / twin(source.name)).exists()
    ]

    assert missing == [], "\n".join(missing)


def test_an_exemption_from_the_twin_law_is_alive() -> None:
    names = {source.name for source in sources()}

    dead = [
        name for name, where in TWINLESS.items() if name not in names or not (ROOT / where).exists()
    ]

    assert dead == [], "\n".join(dead)


def test_files_stay_small() -> None:
    lines = {source.name: source.text.count("\n") for source in modules()}
    long = {name: count for name, count in lines.items() if count > LONG_FILE_LINES}

    assert statistics.median(lines.values()) <= MEDIAN_LINES
    assert len(long) <= LONG_FILES_ALLOWED, long
    assert max(lines.values()) <= LONGEST_FILE_LINES, long


def functions(source: Source) -> Iterator[tuple[str, int]]:
    """Every function with its length, its docstring not counted."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None and first.end_lineno is not None:
                length -= first.end_lineno - first.lineno + 1
            yield f"{source.name}:{node.lineno} {node.name}", length


def test_functions_fit_on_a_screen() -> None:
    long = [
        f"{name}: {length} lines"
        for source in sources()
        for name, length in functions(source)
        if length > FUNCTION_LINES
    ]

    assert long == [], "\n".join(long)


def test_engine_modules_open_with_their_rules() -> None:
    low, high = HEAD_LINES
    wrong = []
    for source in modules():
        if not source.name.startswith("_"):
            continue
        head = (ast.get_docstring(source.tree) or "").split("\n")
        if not low <= len(head) <= high:
            wrong.append(f"{source.name}: {len(head)} lines")

    assert wrong == [], "\n".join(wrong)


def test_every_module_says_what_it_is() -> None:
    assert [source.name for source in sources() if not ast.get_docstring(source.tree)] == []


def test_no_module_is_a_drawer() -> None:
    drawers = [
        source.name
        for source in sources()
        for part in source.name.removesuffix(".py").split("/")
        if part.strip("_") in DRAWERS
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
