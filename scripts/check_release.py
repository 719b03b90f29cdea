"""Holds a tag to what it names: the version of the package, and a dated section of the changelog.

    python scripts/check_release.py v0.1.0

No fragment of the changelog may be left, since what it says would be released and not told.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version(root: Path) -> str:
    """The version as the package says it, read without importing it."""
    text = (root / "tensorstore_py" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("tensorstore_py/__init__.py has no line __version__ = …")
    return found[1]


def fragments(root: Path) -> list[str]:
    """The names of the fragments that no released version has told yet."""
    return sorted(
        path.name for path in (root / "changelog.d").glob("*.md") if path.name != "README.md"
    )


def problems(tag: str, root: Path) -> list[str]:
    """Says what keeps a tag from being released, with what is to be done."""
    found = []
    said = version(root)
    if tag != f"v{said}":
        found.append(f"the tag is {tag}, and __version__ {said}: the tag should be v{said}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(
        rf"^## {re.escape(said)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", changelog, re.MULTILINE
    ):
        found.append(f'CHANGELOG.md has no heading "## {said} (YYYY-MM-DD)"')
    if left := fragments(root):
        found.append(f"towncrier has not put in the fragments {', '.join(left)}")
    return found


def main(arguments: list[str]) -> int:
    """Checks one tag; prints what is wrong and returns the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    found = problems(arguments[0], ROOT)
    for problem in found:
        print(problem)
    if not found:
        print(f"{arguments[0]}: ready")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
