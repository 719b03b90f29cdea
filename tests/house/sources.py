"""The package's source files, parsed once, for the laws that are about text and imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tensorstore_py"


@dataclass(frozen=True)
class Source:
    """One module: its path below the package, its text, its tree."""

    name: str
    text: str
    tree: ast.Module

    def imports(self) -> Iterator[tuple[str, int]]:
        """The absolute names that this module imports, wherever it does, with the line."""
        for node in ast.walk(self.tree):
            yield from imported(node, self.name)


def imported(node: ast.AST, importer: str) -> Iterator[tuple[str, int]]:
    """The absolute names that one statement imports; a `from` import gives `module.name`."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            folders = ["tensorstore_py", *importer.split("/")[:-1]]
            above = folders[: len(folders) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        for alias in node.names:
            yield f"{base}.{alias.name}", node.lineno


@cache
def sources() -> tuple[Source, ...]:
    """Every module of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(PACKAGE).as_posix()
        found.append(Source(name, text, ast.parse(text)))
    return tuple(found)


def is_inside(name: str, module: str) -> bool:
    """Whether a dotted name is a module or something below it."""
    return name == module or name.startswith(f"{module}.")
