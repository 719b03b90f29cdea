"""The pages of the site that are made: nothing that they are made of is missing on them."""

import doctest
import html
import re
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tensorstore_py as ts
from scripts.site_pages import (
    api_pages,
    check,
    command_pages,
    figures,
    grids,
    references,
    sources,
    spec_pages,
)
from scripts.site_pages.examples import example_pages
from tensorstore_py.cli.main import COMMANDS
from tests.house.sources import ROOT

TAGS = {"driver", "operation", "kind", "name", "id", "type", "configuration"}


def members(definition: object) -> set[str]:
    """The names of all members in a definition, those of objects in it included."""
    found: set[str] = set()
    if isinstance(definition, dict):
        properties = definition.get("properties", {})
        found |= {name for name in properties if not name.startswith("$")}
        for value in [*properties.values(), *definition.get("anyOf", ()), definition.get("items")]:
            found |= members(value)
    return found


def test_every_member_of_every_spec_has_its_row() -> None:
    schema = ts.json_schema()
    text = "\n".join(text for _, text in spec_pages.spec_pages(schema).values())
    found = re.findall(r"^## `[^`]+` \{#(\S+)\}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    sections = dict(found)
    missing = [
        f"{name}: {member}"
        for name, definition in schema["$defs"].items()
        if name in sections and name != "Context"
        for member in members(definition) - TAGS
        if not re.search(rf"[`.]{re.escape(member)}`", sections[name])
    ]

    assert len(sections) > 100
    assert missing == []
    assert all(
        f"](#Resource.{kind})" in sections["Context"] for kind in ("cache_pool", "file_io_sync")
    )


def test_a_definition_without_a_page_is_an_error() -> None:
    with pytest.raises(ValueError, match="Novelty"):
        spec_pages.spec_pages({"$defs": {"Novelty": {"description": "new"}}})


def test_types_of_members_are_links_that_lead_somewhere() -> None:
    pages = {path: text for path, (_, text) in spec_pages.spec_pages(ts.json_schema()).items()}
    anchors = {path: set(re.findall(r"\{#(\S+)\}", text)) for path, text in pages.items()}
    dead = [
        f"{path}: {target}"
        for path, text in pages.items()
        for target in re.findall(r"\]\((?!\.\./)([^)]+)\)", text)
        for file, _, anchor in [target.partition("#")]
        if anchor and anchor not in anchors[f"reference/specs/{file}" if file else path]
    ]

    assert dead == []


def test_every_name_of_the_main_door_is_on_one_page() -> None:
    pages = api_pages.api_pages()
    named = [
        name
        for path, page in pages.items()
        if "plugin" not in path
        for name in re.findall(r"^::: tensorstore_py\.(\w+)$", page.text, re.MULTILINE)
    ]
    types = re.findall(
        r"^\| `ts\.(\w+)` \|", pages["reference/python/data_types.md"].text, re.MULTILINE
    )
    errors = re.findall(r"errors\.(\w+)$", pages["reference/python/errors.md"].text, re.MULTILINE)
    rooms = {"multiscale", "ocdbt", "orbax", "zarr"}

    assert len(named) == len(set(named))
    assert set(ts.__all__) == {*named, *types, *rooms, *(set(errors) & set(ts.__all__))}


def test_every_door_has_its_page() -> None:
    package = ROOT / "tensorstore_py"
    inside = {"cli", "codecs", "drivers", "kvstores"}  # entered by the command, or by JSON
    rooms = {
        path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        for folder in (package, package / "plugin", package / "integrations")
        for path in folder.iterdir()
        if not path.name.startswith("_")
        and (path.suffix == ".py" or (path / "__init__.py").exists())
    }

    assert set(api_pages.DOORS) == rooms - inside - {"plugin", "integrations"}


def test_every_command_prints_its_help_there() -> None:
    text = command_pages.command_page()

    for commands in COMMANDS.values():
        for name in commands:
            assert f"### `tspy {name}` {{#tspy-{name}}}" in text
    assert "#### `tspy ocdbt compact`" in text
    assert "usage: tspy orbax to-safetensors" in text


@pytest.mark.parametrize(
    ("source", "page", "text", "expected"),
    [
        ("docs/a.md", "a.md", "[x](../SECURITY.md)", "[x](project/reporting.md)"),
        ("docs/a.md", "a.md", "[x](b.md#c)", "[x](b.md#c)"),
        ("README.md", "project/readme.md", "[x](docs/b.md#c)", "[x](../b.md#c)"),
        ("docs/a.md", "a.md", "[x](../examples/notebook.ipynb)", "[x](examples/notebook.md)"),
        ("docs/a.md", "a.md", "[x](../tensorstore_py/codecs)", "x"),
        ("docs/a.md", "a.md", "[x](https://e.org/y)", "[x](https://e.org/y)"),
        ("docs/a.md", "a.md", "```\n[x](../README.md)\n```", "```\n[x](../README.md)\n```"),
    ],
)
def test_links_lead_to_the_pages_of_files(source: str, page: str, text: str, expected: str) -> None:
    assert sources.Sources().linked(text, source, page) == expected


def test_figures_have_all_that_is_said_in_them() -> None:
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```mermaid\n.*?^```$", text, re.MULTILINE | re.DOTALL):
            drawn = figures.drawn(block)
            words = html.unescape(" ".join(re.findall(r"<tspan[^>]*>([^<]*)", drawn)))
            said = re.findall(r'"([^"]+)"|: (.+)$|(?:alt|else|loop) (.+)$', block, re.MULTILINE)
            for word in " ".join("".join(each) for each in said).replace("<br/>", " ").split():
                assert word in words, f"{path.name}: {word}"
            assert drawn.startswith('<div class="figure"><svg')


@pytest.mark.parametrize(
    "line", ["a ==> b", "subgraph one", "a[text without quotes( --> b", "style a fill:#f00"]
)
def test_a_line_of_a_figure_that_is_not_understood_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        figures.drawn(f"```mermaid\nflowchart LR\n    {line}\n```")
    with pytest.raises(ValueError, match="not understood"):
        figures.drawn(f"```mermaid\nsequenceDiagram\n    {line}\n```")


def test_drawings_are_those_that_are_stored() -> None:
    for name, text in grids.drawings().items():
        stored = (ROOT / "docs" / "assets" / name).read_text(encoding="utf-8")
        assert stored == text, "run: python -m scripts.site_pages.grids"


def test_examples_show_code_and_outputs() -> None:
    pages = example_pages(ROOT / "examples")
    title, text = pages["examples/notebook.md"]

    assert title == "tensorstore_py in a notebook"
    assert '<div class="notebook-output" data-search-exclude>' in text
    examples = [path for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".ipynb")]
    assert len(pages) == 1 + len(examples)
    assert "```python\nimport " in pages["examples/open_create_read_write.md"][1]


def test_what_a_browser_would_load_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://e.org/">a link</a><script src="https://cdn.e.org/x.js"></script>'
        '<link rel="canonical" href="https://e.org/"><link rel="stylesheet" href="//e.org/a.css">'
        '<pre class="mermaid">', "utf-8",
    )  # fmt: skip
    (tmp_path / "a.css").write_text("@import url(https://e.org/f.css);a{color:red}", "utf-8")
    found = [each.partition(": ")[0] for each in check.loaded_from_elsewhere(tmp_path)]

    assert found == ["a.html", "a.html", "a.html", "a.css"]


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    navigation = text.partition("\nnav:\n")[2]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    named = set(re.findall(r"^ +- (?:[^:#\n]*: )?([a-z_]+\.md)$", navigation, re.MULTILINE))

    assert named == pages
    for path in sources.PROJECT.values():
        assert path in navigation


def test_the_table_of_the_front_page_is_that_of_the_measurements() -> None:
    """README.md, and through it the landing page, has medians of what docs/performance.md has."""
    layouts = {"v3 zstd 32³ in 256³ shards": "v3 shards"}
    measured = {}
    performance = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (v\d .*) \|$", performance, re.MULTILINE):
        layout, workload, _, runs, zarr, *_ = row.split(" | ")
        times = [float(each.strip("~")) for each in runs.split(" / ") if each != "–"]
        if times:
            middle = statistics.median(times)
            measured[workload, layouts.get(layout, layout)] = f"{middle:.2f} / {zarr.strip('~')}"
    block = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- benchmark:begin -->")[2]
    )
    head, _, *rows = re.findall(
        r"^\|.*\|$", block.partition("<!-- benchmark:end -->")[0], re.MULTILINE
    )
    columns = [name.strip() for name in head.strip("|").split("|")[1:]]

    assert len(rows) > 5
    for row in rows:
        workload, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for layout, cell in zip(columns, cells, strict=True):
            assert cell == measured[workload, layout], (workload, layout)


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("[to](index.md#nowhere)", "does not contain an anchor"),
        ("[to](gone.md)", "not found among documentation files"),
        ("[to](/index.md)", "absolute link"),
        ("[to](index.md)", ""),
    ],
)
def test_what_is_wrong_on_a_page_ends_the_build(tmp_path: Path, page: str, wrong: str) -> None:
    """With the options and the checks with which the site is built."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    checks = settings.partition("\nvalidation:\n")[2].partition("\n\n")[0]
    script = (ROOT / "scripts/site").read_text(encoding="utf-8")
    found = re.search(r"-m mkdocs build (.*) --site-dir", script)
    assert found
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n", "utf-8")
    (tmp_path / "docs/a.md").write_text(f"# A page\n\n{page}\n", "utf-8")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: a\nvalidation:\n{checks}\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *found[1].split()],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert (done.returncode == 0) == (not wrong), done.stderr
    assert wrong in done.stderr


@pytest.mark.parametrize(
    "module", [api_pages, command_pages, figures, references, spec_pages], ids=lambda m: m.__name__
)
def test_examples_of_these_modules_run(module: ModuleType) -> None:
    found = doctest.testmod(module)

    assert found.attempted
    assert not found.failed


def test_what_must_be_documented_are_own_methods_that_explain_themselves() -> None:
    assert {"read", "write", "domain", "resize"} <= set(check.members(ts.TensorStore))
    assert "upper" not in set(check.members(ts.Digest))  # of str
    assert list(check.members(ts.open)) == []


def test_a_name_that_a_page_lacks_is_found(tmp_path: Path) -> None:
    for page, (_, text) in api_pages.api_pages().items():
        folder = tmp_path / page.removesuffix(".md").removesuffix("/index")
        folder.mkdir(parents=True, exist_ok=True)
        names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
        every = [f'<h2 id="{name}">' for name in names if name != "tensorstore_py.open"]
        (folder / "index.html").write_text("".join(every), "utf-8")
    missing = set(check.undocumented(tmp_path))

    assert "reference/python/arrays/index.html: tensorstore_py.open is not there" in missing
    assert (
        "reference/python/arrays/index.html: tensorstore_py.TensorStore.read is not there"
        in missing
    )
    assert not any("tensorstore_py.copy is" in each for each in missing)


@pytest.mark.parametrize("driver", ["zarr3", "zarr", "cast", "array"])
def test_the_guide_to_specs_has_every_member(driver: str) -> None:
    """docs/specs.md is written by hand, in other words; no member is left out there."""
    guide = (ROOT / "docs/specs.md").read_text(encoding="utf-8")
    properties = ts.json_schema()["$defs"][f"Driver.{driver}"]["properties"]
    names = set(properties) | set(properties.get("metadata", {}).get("properties", {}))
    names -= {"$schema", "$comment", "storage_transformers"}  # of which an array must have none

    assert [name for name in sorted(names) if f"`{name}`" not in guide] == []
