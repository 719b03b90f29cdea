"""Pages of the public names: each door's `__all__`, by subject, for mkdocstrings to fill.

What stands on them comes from signatures and docstrings. A name that leaves by a door is on exactly
one page of that door; names of the main door that no subject lists are on the last page.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np

import tensorstore_py as ts

__all__ = ["api_pages"]

FOLDER: Final = "reference/python"

#: The names of `tensorstore_py`, by subject: file, title, names.
SUBJECTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "arrays": (
        "Opening arrays",
        ("open", "TensorStore", "NumpyView", "array", "virtual_chunked",
         "VirtualChunkedReadParameters", "VirtualChunkedWriteParameters"),
    ),
    "specs": (
        "Specs and schemas",
        ("Spec", "load_spec", "json_schema", "Schema", "ChunkLayout", "CodecSpec", "OpenMode",
         "RecheckCacheOption", "Trust"),
    ),
    "stores": ("Stores and groups", ("KvStore", "Group", "Attributes", "download", "upload")),
    "indexing": (
        "Domains and transforms",
        ("Dim", "IndexDomain", "IndexTransform", "DimExpression", "Indexable", "OutputIndexMap",
         "OutputIndexMaps", "OutputIndexMethod", "DimSelection", "DimSelectionLike",
         "NumpyIndexTerm", "NumpyIndexingSpec", "d", "inf", "newaxis"),
    ),
    "views": (
        "Views of arrays",
        ("cast", "concat", "stack", "overlay", "downsample", "DownsampleMethod"),
    ),
    "futures": (
        "Futures and progress",
        ("Future", "FutureLike", "Promise", "WriteFutures", "Progress", "ProgressStream"),
    ),
    "sharing": ("Contexts, transactions, batches", ("Context", "Transaction", "Batch")),
    "copying": (
        "Copying and migrating",
        ("copy", "rechunk", "migrate", "CopySummary", "CopiedMember", "Migration",
         "MigrationStep"),
    ),
    "computing": (
        "Computing and comparing",
        ("map_blocks", "reduce", "Histogram", "digest", "Digest", "diff", "Difference",
         "DifferingBlock", "DifferingMember", "pyramid", "plan", "Plan"),
    ),
    "metrics": (
        "Metrics and logging",
        ("experimental_collect_matching_metrics",
         "experimental_collect_prometheus_format_metrics",
         "experimental_push_metrics_to_prometheus", "experimental_update_verbose_logging",
         "parse_tensorstore_flags"),
    ),
}  # fmt: skip

#: Members of public classes that are objects with a call of their own.
_CALLED: Final = {
    "Group.open": ("tensorstore_py._api.group.OpenGroup.__call__", "Group.open"),
    "Group.open-of": ("tensorstore_py._api.group.OpenNode.__call__", "Group.open, of a group"),
}

#: Other doors: file, title, and what is said above their names.
DOORS: Final[Mapping[str, tuple[str, str]]] = {
    "errors": ("Errors", "Every error is also the builtin class that TensorStore raises."),
    "multiscale": ("ts.multiscale", "How it is used: [OME-Zarr](../../ome_zarr.md)."),
    "ocdbt": ("ts.ocdbt", "How it is used: [OCDBT databases](../../ocdbt.md)."),
    "orbax": ("ts.orbax", "How it is used: [Checkpoints of Orbax](../../orbax.md)."),
    "zarr": ("ts.zarr", "How it is used: [Coming from zarr-python](../../coming_from_zarr.md)."),
    "integrations.dask": ("integrations.dask", "How it is used: [dask](../../dask.md)."),
    "integrations.xarray": ("integrations.xarray", "How it is used: [xarray](../../xarray.md)."),
    "typing": ("typing", "Types of dicts for mypy and pyright: [Notebooks](../../notebooks.md)."),
    "plugin.codec": ("plugin.codec", "[Writing a codec](../../writing_a_codec.md) builds one."),
    "plugin.kvstore": ("plugin.kvstore", "[Writing a store](../../writing_a_store.md) builds one."),
    "plugin.http": (
        "plugin.http",
        "[Writing an HTTP store](../../writing_an_http_store.md) builds one.",
    ),
    "plugin.driver": (
        "plugin.driver",
        "[Writing a driver](../../writing_a_driver.md) builds one.",
    ),
    "testing": ("testing", "Suites that plug-ins inherit: [Plug-ins](../../plugins.md)."),
}


class Page(NamedTuple):
    """A page: its title in the navigation, and its Markdown."""

    title: str
    text: str


def api_pages() -> dict[str, Page]:
    """The pages of all doors, by their paths below the documentation.

    Example:
        >>> pages = api_pages()
        >>> "::: tensorstore_py.open" in pages["reference/python/arrays.md"].text
        True
    """
    listed = {name for _, names in SUBJECTS.values() for name in names}
    errors = set(_source("errors").names)
    types = {name for name in ts.__all__ if isinstance(getattr(ts, name), ts.dtype)}
    rooms = {name for name in ts.__all__ if isinstance(getattr(ts, name), ModuleType)}
    rest = set(ts.__all__) - listed - errors - types - rooms - {"dtype", "DTypeLike", "Unit"}
    pages = {}
    for file, (title, listed_there) in SUBJECTS.items():
        pages[file] = Page(title, _page(title, "", "tensorstore_py", listed_there))
    about = f"{_table_of_types(types)}\n"
    pages["data_types"] = Page(
        "Data types", _page("Data types", about, "tensorstore_py", ("dtype", "DTypeLike", "Unit"))
    )
    if rest:
        pages["more"] = Page("More", _page("More", "", "tensorstore_py", sorted(rest)))
    for room, (title, about) in DOORS.items():
        module = f"tensorstore_py.{room}"
        names = _source(room).names
        others = _of_others(module, names) if room.startswith("plugin.") else {}
        if others:
            passed_on = ", ".join(f"`{name}` (`{origin}`)" for name, origin in others.items())
            about = f"{about} Besides what is below, from other libraries: {passed_on}."
        own = [name for name in names if name not in others]
        pages[room.replace(".", "_")] = Page(title, _page(f"`{module}`", about, module, own))
    index = _index(pages, types)
    return {
        f"{FOLDER}/index.md": index,
        **{f"{FOLDER}/{file}.md": page for file, page in pages.items()},
    }


def _page(title: str, about: str, module: str, names: Iterable[str]) -> str:
    lines = [f"# {title}", ""]
    if module != "tensorstore_py":
        lines += [_source(module.removeprefix("tensorstore_py.")).summary, ""]
    if about:
        lines += [about, ""]
    for name in names:
        lines.append(f"::: {module}.{name}\n")
        if module == "tensorstore_py":
            lines += _inner(name)
    return "\n".join(lines)


def _inner(name: str) -> Iterator[str]:
    """The classes that a public class has as members, and what else is called by such a name."""
    for key, (path, heading) in _CALLED.items():
        if key.partition(".")[0] == name:
            yield _named(key, path, heading)
    found = getattr(ts, name)
    for member, value in sorted(vars(found).items()) if inspect.isclass(found) else ():
        if inspect.isclass(value) and not member.startswith("_"):
            yield _named(f"{name}.{member}", _place(value), f"{name}.{member}")


def _named(name: str, path: str, heading: str) -> str:
    options = f"      heading: {heading}\n      toc_label: {heading}\n      heading_level: 3\n"
    return f"[](){{#tensorstore_py.{name}}}\n\n::: {path}\n    options:\n{options}"


def _place(cls: type) -> str:
    """Where a class is defined, whatever it says of itself."""
    line = re.compile(rf"^class {cls.__name__}\b", re.MULTILINE)
    for name, module in sorted(sys.modules.items()):
        if name.startswith("tensorstore_py.") and vars(module).get(cls.__name__) is cls:
            file = module.__file__
            if file is not None and line.search(Path(file).read_text(encoding="utf-8")):
                return f"{name}.{cls.__name__}"
    raise ValueError(f"no module of the package defines {cls}")


def _index(pages: Mapping[str, Page], types: Iterable[str]) -> Page:
    lines = [
        "# Python",
        "",
        (
            "Every public name of `tensorstore_py`, by subject, and the modules beside it. Below, "
            "`ts` is what `import tensorstore_py as ts` gives."
        ),
        "",
    ]
    for file in [*SUBJECTS, *(each for each in ("more",) if each in pages)]:
        title, text = pages[file]
        names = re.findall(r"^::: tensorstore_py\.(\w+)$", text, re.MULTILINE)
        lines += [f"## [{title}]({file}.md)", "", "| name | |", "|---|---|"]
        lines += [f"| [`{name}`][tensorstore_py.{name}] | {_first(name)} |" for name in names]
        lines.append("")
    lines += ["## [Data types](data_types.md)", ""]
    lines += [", ".join(f"`{name}`" for name in sorted(types, key=_by_kind)), ""]
    lines += ["## Modules", "", "| module | |", "|---|---|"]
    for room in DOORS:
        link = f"[`tensorstore_py.{room}`]({room.replace('.', '_')}.md)"
        lines.append(f"| {link} | {_source(room).summary} |")
    return Page("Overview", "\n".join([*lines, ""]))


def _first(name: str) -> str:
    """What a public name is, in one line; nothing for values, whose type would be described."""
    value = getattr(ts, name)
    told = inspect.isclass(value) or inspect.isroutine(value)
    return _summary(inspect.getdoc(value)) if told and not hasattr(value, "__origin__") else ""


def _of_others(module: str, names: Iterable[str]) -> dict[str, str]:
    """Names that are passed on from other libraries, with where they are from."""
    door = importlib.import_module(module)
    values = {name: getattr(door, name) for name in names}
    return {
        name: f"{value.__module__}.{name}"
        for name, value in values.items()
        if getattr(value, "__name__", None) == name
        and value.__module__.partition(".")[0] not in ("tensorstore_py", "typing")
    }


class _Source(NamedTuple):
    """What a module's file says: some modules need libraries when they are imported."""

    summary: str
    names: list[str]


@cache
def _source(room: str) -> _Source:
    path = Path(ts.__file__).parent / room.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return _Source(_summary(ast.get_docstring(tree)), names)


def _summary(docstring: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    text = (docstring or "").split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _table_of_types(names: Iterable[str]) -> str:
    rows = ["| name | NumPy's type | bytes |", "|---|---|---|"]
    return "\n".join([*rows, *_rows_of_types(names)]) + "\n"


def _rows_of_types(names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names, key=_by_kind):
        kept: np.dtype[np.generic] = getattr(ts, name).numpy_dtype
        if kept.itemsize == 0:  # as many as there are
            kept = np.dtype(f"{kept.kind}1")
        size = "" if kept == np.dtype(object) else kept.itemsize
        yield f"| `ts.{name}` | `{str(kept).removeprefix('|')}` | {size} |"


def _by_kind(name: str) -> tuple[str, int, str]:
    """Names of one kind together, by their numbers of bits."""
    kind = name.rstrip("0123456789")
    bits = name.removeprefix(kind)
    return (kind.partition("_")[0].rstrip("0123456789"), int(bits or 0), name)
