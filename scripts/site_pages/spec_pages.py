"""Pages of every member that a spec may have, from the JSON Schema that editors get.

`ts.json_schema()` is made of the models that check specs, so these pages cannot say anything else
than what is accepted. A definition is a section; its heading's anchor is the definition's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["spec_pages"]

Json = Mapping[str, Any]  # Any: nested JSON

FOLDER: Final = "reference/specs"


class _Page(NamedTuple):
    """One page: which definitions it has, and what is said of them all.

    Attributes:
        definitions: names, or the beginning of names if they end with a dot.
        guide: pages that explain how these are used.
    """

    file: str
    title: str
    about: str
    definitions: tuple[str, ...]
    guide: str


PAGES: Final = (
    _Page(
        "drivers",
        "Drivers",
        'What an array is stored as, or made of: the member `"driver"` of a spec names one.',
        ("Driver.",),
        "[Specs](../../specs.md), [Formats](../../formats.md)",
    ),
    _Page(
        "kvstores",
        "Key-value stores",
        'Where an array is stored: the `"driver"` of the member `kvstore`.',
        ("KvstoreDriver.",),
        "[Stores](../../stores.md), [OCDBT databases](../../ocdbt.md)",
    ),
    _Page(
        "context",
        "Context and resources",
        "What open arrays share: limits, caches, credentials. Each is a key of `context`, alone or "
        "as `kind#name`, and a member of the specs that use it.",
        ("Context", "Resource."),
        "[Contexts and resources](../../specs.md#contexts-and-resources)",
    ),
    _Page(
        "schema",
        "Schema, layout, transform",
        "Parts that all formats share.",
        (
            "Schema",
            "ChunkLayout",
            "Grid",
            "IndexDomain",
            "IndexTransform",
            "CodecSpec.",
            "dtype",
            "Unit",
            "Duration",
        ),
        "[Schema](../../specs.md#schema), [Domains and transforms](../../indexing.md)",
    ),
    _Page(
        "codecs_zarr3",
        "Codecs of zarr v3",
        'An entry of `metadata.codecs`: `{"name": …, "configuration": {…}}`, or just the name.',
        ("Codec.zarr3.",),
        "[Codecs](../../codecs.md)",
    ),
    _Page(
        "codecs_zarr",
        "Filters and compressors of zarr v2",
        'What `metadata.compressor` and `metadata.filters` take: `{"id": …}` with the members.',
        ("Codec.zarr.",),
        "[Codecs](../../codecs.md)",
    ),
    _Page(
        "codecs_n5",
        "Compressions of N5",
        'What `metadata.compression` takes: `{"type": …}` with the members.',
        ("Codec.n5.",),
        "[Codecs](../../codecs.md)",
    ),
    _Page(
        "jobs",
        "Job files",
        "What `tspy plan` and `tspy run` do: steps, and the engine that runs them.",
        ("Job", "Step.", "Engine."),
        "[Jobs](../../jobs.md)",
    ),
)

#: Definitions that only choose among others by a tag.
_CHOICES: Final = ("Driver", "KvstoreDriver", "Codec", "CodecSpec", "Step", "Engine")
#: In descriptions: JSON objects and lists, URLs.
_CODE: Final = re.compile(r"(\{[^{}]+\}|\[[^][]+\]|[a-z0-9]+://[^\s,]*[^\s,.:])")
_MARKUP: Final = re.compile(r"([\\*_<\[{`])")
#: Members that say which definition it is.
_TAGS: Final = ("driver", "id", "kind", "name", "operation", "type")
#: Members of files, which say nothing.
_NOTES: Final = ("$schema", "$comment")


def spec_pages(schema: Json) -> dict[str, tuple[str, str]]:
    """Title and Markdown of each page, by its path below the documentation.

    Args:
        schema: what `ts.json_schema()` returns.

    Raises:
        ValueError: the schema has a definition that is on no page.

    Example:
        >>> import tensorstore_py as ts
        >>> pages = spec_pages(ts.json_schema())
        >>> title, text = pages["reference/specs/kvstores.md"]
        >>> title, "## `s3` {#KvstoreDriver.s3}" in text
        ('Key-value stores', True)
    """
    definitions: Json = schema["$defs"]
    places = {
        name: page.file for page in PAGES for name in definitions if _is_on(name, page.definitions)
    }
    left = set(definitions) - set(places) - set(_CHOICES)
    left -= {f"Codec.{family}" for family in ("zarr", "zarr3", "n5")}
    if left:
        raise ValueError(f"no page of specs has the definitions {sorted(left)}: add them to PAGES")
    writer = _Writer(definitions, places)
    return {f"{FOLDER}/{page.file}.md": (page.title, writer.page(page)) for page in PAGES}


def _is_on(name: str, wanted: tuple[str, ...]) -> bool:
    return any(name == each or (each[-1] == "." and name.startswith(each)) for each in wanted)


class _Row(NamedTuple):
    """What is known of a member."""

    types: list[str]
    default: str
    meaning: str

    def merged(self, other: _Row) -> _Row:
        """The same member in another form of its object."""
        types = list(dict.fromkeys([*self.types, *other.types]))
        return _Row(types, self.default, self.meaning or other.meaning)

    def text(self, name: str) -> str:
        return f"| `{name}` | {' or '.join(self.types)} | {self.default} | {self.meaning} |"


class _Writer:
    """Writes definitions as sections; knows on which page each is, so that types are links."""

    def __init__(self, definitions: Json, places: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._places = places
        self._file = ""

    def page(self, page: _Page) -> str:
        self._file = page.file
        names = [name for name, file in self._places.items() if file == page.file]
        names.sort(key=lambda name: (_order(name, page.definitions), name))
        sections = "\n".join(self._section(name) for name in names)
        contents = " · ".join(f"[`{_shown(name)}`](#{name})" for name in names)
        return (
            f"# {page.title}\n\n{page.about}\n\nHow they are used: {page.guide}. Every object may "
            f"also have `$schema` and `$comment`.\n\n{contents}\n\n{sections}"
        )

    def _section(self, name: str) -> str:
        definition = self._definitions[name]
        described = str(definition.get("description", ""))
        text = "" if described.startswith("Asked:") else _prose(described)
        body = [f"## `{_shown(name)}` {{#{name}}}", "", text, ""]
        if name == "Context":
            return "\n".join([*body, self._kinds(definition), ""])
        if name.startswith("Codec.zarr3."):
            definition = definition["properties"].get("configuration", {})
        members = self._members(definition)
        if members:
            body += members
        elif name.startswith("Codec."):
            body += ["No members.", ""]
        else:
            body += [f"Takes: {self._type(self._told(definition))}.", ""]
        return "\n".join(body)

    def _kinds(self, definition: Json) -> str:
        rows = ["| kind | what it is |", "|---|---|"]
        for kind in definition["properties"]:
            if kind not in _NOTES:
                told = self._definitions[f"Resource.{kind}"].get("description", "")
                rows.append(f"| [`{kind}`](#Resource.{kind}) | {_cell(told)} |")
        return "\n".join(rows) + "\n"

    def _told(self, definition: Json) -> Json:
        """A resource without its references, which all resources have."""
        choices = [
            each
            for each in definition.get("anyOf", ())
            if not (each.get("pattern") or each.get("type") == "array")
        ]
        return {"anyOf": choices} if choices else definition

    def _members(self, definition: Json) -> list[str]:
        """A table of the members, those of objects within them below each."""
        rows = self._rows(definition, "")
        if not rows:
            return []
        head = ["| member | type | default | meaning |", "|---|---|---|---|"]
        return [*head, *(row.text(name) for name, row in rows.items()), ""]

    def _rows(self, definition: Json, prefix: str) -> dict[str, _Row]:
        """The members by their dotted names; forms that an object may have are merged."""
        rows: dict[str, _Row] = {}
        for each in (definition, *definition.get("anyOf", ())):
            required = each.get("required", ())
            for member, form in each.get("properties", {}).items():
                if member in _NOTES or (not prefix and member in _TAGS and "const" in form):
                    continue
                name = f"{prefix}{member}"
                default = "**required**" if member in required else _default(form)
                told = _Row([self._type(form)], default, _cell(form.get("description", "")))
                for key, row in {name: told, **self._rows(form, f"{name}.")}.items():
                    rows[key] = rows[key].merged(row) if key in rows else row
            items = each.get("items")
            if prefix and isinstance(items, Mapping):
                rows |= self._rows(items, f"{prefix.removesuffix('.')}[].")
        return rows

    def _type(self, form: Json) -> str:
        return " or ".join(dict.fromkeys(self._types(form))) or "any JSON"

    def _types(self, form: Json) -> Iterator[str]:
        reference = form.get("$ref")
        if isinstance(reference, str):
            yield self._link(reference.removeprefix("#/$defs/"))
        elif "anyOf" in form or "oneOf" in form:
            for each in form.get("anyOf", form.get("oneOf", ())):
                yield from self._types(each)
        elif "const" in form:
            yield _code(form["const"])
        elif "enum" in form:
            yield ", ".join(_code(value) for value in form["enum"])
        elif form.get("type") == "array":
            yield self._list_of(form)
        elif isinstance(form.get("type"), list):
            yield from (_plain({"type": each}) for each in form["type"])
        elif "type" in form:
            yield _plain(form)

    def _list_of(self, form: Json) -> str:
        if "prefixItems" in form:
            return "[" + ", ".join(self._type(each) for each in form["prefixItems"]) + "]"
        return (
            f"list of ({items})" if " or " in (items := self._items(form)) else f"list of {items}"
        )

    def _items(self, form: Json) -> str:
        items = form.get("items")
        return self._type(items) if isinstance(items, Mapping) else "any JSON"

    def _link(self, name: str) -> str:
        file = self._places.get(name)
        if file is None:  # a choice: all of a page
            family = name.partition(".")
            where = {
                "Driver": "drivers.md",
                "KvstoreDriver": "kvstores.md",
                "Codec": f"codecs_{family[2]}.md",
                "CodecSpec": "schema.md#CodecSpec.zarr3",
                "Step": "jobs.md",
                "Engine": "jobs.md",
            }[family[0]]
            shown = {
                "Driver": "array spec",
                "KvstoreDriver": "store spec",
                "Codec": "codec",
                "CodecSpec": "codec spec",
                "Step": "step",
                "Engine": "engine",
            }[family[0]]
            return f"[{shown}]({where})"
        anchor = f"#{name}" if file == self._file else f"{file}.md#{name}"
        return f"[{_shown(name)}]({anchor})"


def _order(name: str, wanted: tuple[str, ...]) -> int:
    return next(number for number, each in enumerate(wanted) if _is_on(name, (each,)))


def _shown(name: str) -> str:
    """A definition as people call it: `s3` for `KvstoreDriver.s3`."""
    for prefix in ("Codec.zarr3.", "Codec.zarr.", "Codec.n5."):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    first, _, rest = name.partition(".")
    return name if first == "CodecSpec" else rest or first


def _default(form: Json) -> str:
    return _code(form["default"]) if "default" in form else ""


def _code(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
    return f"`{text}`"


def _plain(form: Json) -> str:
    name = {"integer": "integer", "boolean": "bool"}.get(form["type"], str(form["type"]))
    least, most = form.get("minimum"), form.get("maximum")
    if least is None and most is None:
        return name
    if most is None or most >= 2**31 - 1:
        return f"{name} ≥ {least}"
    return f"{name} ≤ {most}" if least is None else f"{name}, {least} to {most}"


def _prose(text: str) -> str:
    """A description as Markdown: JSON and URLs are code, and nothing else is markup."""
    parts = _CODE.split(text)
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = f"`{part}`"
        else:
            parts[number] = _MARKUP.sub(r"\\\1", part)
    return "".join(parts)


def _cell(text: object) -> str:
    return " ".join(_prose(str(text)).replace("|", "\\|").split())
