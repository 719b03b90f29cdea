"""Pages of the examples: programs with what they are about, notebooks with what they gave.

Outputs of notebooks are those that are stored in them; the gate executes them and compares
(`scripts/check_examples.py`), so nothing is executed here.
"""

from __future__ import annotations

import ast
import html
import json
from pathlib import Path
from typing import Any, Final

__all__ = ["example_pages"]

#: Where the name of a file is no title.
_TITLES: Final = {
    "async_in_your_loop": "In your event loop",
    "coming_from_zarr": "Coming from zarr-python",
    "custom_kvstore": "A store of your own",
    "etl_s3": "From bucket to bucket",
    "groups_attributes": "Groups and attributes",
    "map_blocks": "A function on blocks",
    "open_create_read_write": "Open, create, read, write",
    "orbax_checkpoint": "A checkpoint of Orbax",
    "resize_append": "Resize and append",
    "slices_views_labels": "Slices, views, labels",
    "spec_file": "A spec in a file",
}

Json = dict[str, Any]  # Any: nested JSON


def example_pages(folder: Path) -> dict[str, tuple[str, str]]:
    """Title and Markdown of each page, by its path; the first is the list of them.

    Args:
        folder: where the examples are.

    Raises:
        ValueError: an example does not say what it is about.
    """
    pages, rows = {}, ["| example | shows |", "|---|---|"]
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.ipynb")]):
        text = path.read_text(encoding="utf-8")
        title, about, body = _notebook(text) if path.suffix == ".ipynb" else _program(text)
        if not about:
            raise ValueError(f"{path}: its first words do not say what it is about")
        title = title or _TITLES.get(path.stem, path.stem.replace("_", " ").capitalize())
        pages[f"examples/{path.stem}.md"] = (title, body)
        rows.append(f"| [{title}]({path.stem}.md) | {about} |")
    table = "\n".join(rows)
    listed = f"# Examples\n\nEach is run by the gate, alone and in an empty directory.\n\n{table}\n"
    return {"examples/index.md": ("All examples", listed), **pages}


def _program(text: str) -> tuple[str, str, str]:
    """Title (none), summary and page of a program."""
    about = ast.get_docstring(ast.parse(text)) or ""
    first = about.split("\n\n")[0].replace("\n", " ")
    code = text.partition('"""')[2].partition('"""')[2].strip("\n")
    return "", first, f"{about}\n\n```python\n{code}\n```\n"


def _notebook(text: str) -> tuple[str, str, str]:
    """Title, summary and page of a notebook."""
    cells = json.loads(text)["cells"]
    head = _joined(cells[0]["source"])
    title, _, about = head.partition("\n")
    parts = [_cell(cell) for cell in cells]
    parts[0] = about.strip()
    about = about.strip().split("\n\n")[0].replace("\n", " ")
    return title.lstrip("# "), about, "\n\n".join(parts) + "\n"


def _cell(cell: Json) -> str:
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    outputs = [_output(output) for output in cell["outputs"]]
    return "\n\n".join([f"```python\n{source}\n```", *(each for each in outputs if each)])


def _output(output: Json) -> str:
    if output["output_type"] == "stream":
        return _shown(_joined(output["text"]))
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            markup = "\n".join(line for line in _joined(data[kind]).split("\n") if line.strip())
            return _framed(markup)
    if "image/png" in data:
        png = _joined(data["image/png"]).replace("\n", "")
        return _framed(f'<img alt="figure" src="data:image/png;base64,{png}">')
    return _shown(_joined(data.get("text/plain", "")))


def _framed(markup: str) -> str:
    """What a cell gave, as it is; words in it are not what readers search for."""
    return f'<div class="notebook-output" data-search-exclude>\n{markup}\n</div>'


def _shown(text: str) -> str:
    """Text as it was printed, in one line of HTML where it has no blank lines."""
    text = text.rstrip()
    if not text:
        return ""
    lines = html.escape(text).replace("\n", "&#10;")
    return f'<pre class="notebook-output"><code>{lines}</code></pre>'


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
