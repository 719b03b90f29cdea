"""Writes tensorstore_py/typing: the TypedDicts of specs, from the JSON schema.

Run it when a spec's members change; a test says when that is so.

Usage: typed_specs.py [--print]
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import tensorstore_py as ts

ROOT = Path(__file__).resolve().parent.parent
ROOM = ROOT / "tensorstore_py/typing"
Json = dict[str, object]

#: What Python takes for the parts that have classes of their own.
NAMED = {
    "ChunkLayout": "ChunkLayoutSpec | ChunkLayout",
    "CodecSpec": "CodecSpec | Mapping[str, object]",
    "Context": "Context | Mapping[str, object]",
    "Driver": "DriverSpec | Spec | str | PathLike[str]",
    "Duration": "str",
    "Grid": "GridSpec | ChunkLayout.Grid",
    "IndexDomain": "IndexDomain | Mapping[str, object]",
    "IndexTransform": "IndexTransform | Mapping[str, object]",
    "KvstoreDriver": "KvStoreSpec | KvStore | KvStore.Spec | str | PathLike[str]",
    "Schema": "SchemaSpec | Schema",
    "Unit": "UnitLike",
    "dtype": "DTypeLike",
}
PLAIN = {
    "boolean": "bool",
    "integer": "int",
    "null": "None",
    "number": "float",
    "object": "Mapping[str, object]",
    "string": "str",
}

#: A bar between choices that are not those of the member itself.
INNER = "|"

HEAD = '''"""{title}

Written by scripts/typed_specs.py, from the models that check specs.
"""

{imports}

__all__ = [{names}]
'''
IMPORTS = {
    "parts": """
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.units import UnitLike
""",
    "kvstores": """
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, Required, TypeAlias, TypedDict

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._spec.context import Context
from tensorstore_py.typing.parts import ResourceSpec
""",
    "drivers": """
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, Required, TypeAlias, TypedDict

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.spec import Spec
from tensorstore_py._index import IndexTransform
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.dtype import DTypeLike
from tensorstore_py._spec.schema import Schema
from tensorstore_py.typing.kvstores import KvStoreSpec
from tensorstore_py.typing.parts import ResourceSpec, SchemaSpec
""",
}
TITLES = {
    "parts": "Parts of specs as TypedDicts: schemas, chunk layouts, resources.",
    "kvstores": "Specs of key-value stores as TypedDicts.",
    "drivers": "Specs of arrays as TypedDicts, by driver.",
}


def modules() -> dict[str, str]:
    """The text of each module, by its name."""
    definitions = ts.json_schema()["$defs"]
    resource = "str | bool | int | float | Mapping[str, object] | Sequence[object] | None"
    told = "#: A context resource: a reference, or what it is."
    parts = [f"{told}\nResourceSpec: TypeAlias = {resource}\n"]
    for name in ("Grid", "ChunkLayout", "Schema"):
        parts += typed_dict(f"{name}Spec", definitions[name])
    return {
        "parts": module("parts", parts),
        "kvstores": module("kvstores", union("KvStoreSpec", "KvstoreDriver", definitions)),
        "drivers": module("drivers", union("DriverSpec", "Driver", definitions)),
    }


def module(name: str, bodies: list[str]) -> str:
    """A module of some definitions."""
    text = "\n\n".join(bodies)
    names = [line.split("(")[0].split(":")[0].removeprefix("class ") for line in text.split("\n")
             if line.startswith("class ") or ": TypeAlias" in line]  # fmt: skip
    listed = ", ".join(f'"{each}"' for each in sorted(names))
    return (
        HEAD.format(title=TITLES[name], imports=IMPORTS[name].strip(), names=listed) + "\n\n" + text
    )


def union(name: str, registry: str, definitions: Mapping[str, Json]) -> list[str]:
    """The definitions of everything in a registry, and their union."""
    bodies, members = [], []
    suffix = "StoreSpec" if registry == "KvstoreDriver" else "Spec"
    for key in definitions:
        room, _, driver = key.partition(".")
        if room == registry and driver:
            words = [f"{word[:1].upper()}{word[1:]}" for word in driver.split("_")]
            members.append(f"{''.join(words)}{suffix}")
            bodies += typed_dict(members[-1], definitions[key])
    return [*bodies, f"{name}: TypeAlias = {' | '.join(members)}\n"]


def typed_dict(name: str, definition: Json) -> list[str]:
    """A class, with those of members that are objects in front of it."""
    properties, required = definition["properties"], definition.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    lines = [f"class {name}(TypedDict, total=False):", f'    """{sentence(definition)}"""', ""]
    inner: list[str] = []
    for member, schema in properties.items():
        if not member.isidentifier():
            continue  # of files: "$schema", "$comment"
        if "properties" in schema:
            below = f"{name.removesuffix('Spec')}{member[:1].upper()}{member[1:]}"
            inner += typed_dict(below, schema)
            annotation = below
        else:
            annotation = type_of(schema)
        if member in required or member == "driver":
            annotation = f"Required[{annotation}]"
        lines.append(f"    {member}: {quote(annotation)}")
    return [*inner, "\n".join(lines) + "\n"]


def quote(annotation: str) -> str:
    """Names that are defined further below need quotes."""
    late = ("DriverSpec", "KvStoreSpec")
    bare = annotation.removeprefix("Required[")
    return (
        f'"{annotation}"'
        if bare.startswith(late)
        or "[DriverSpec" in bare
        or "[KvStoreSpec" in bare
        or "UnitLike" in bare
        else annotation
    )


def sentence(definition: Json) -> str:
    """What it is, for a docstring."""
    text = str(definition["description"]).split(". ")[0].rstrip(".")
    if text.startswith("{"):  # an example, which no docstring reads well with
        properties = definition["properties"]
        assert isinstance(properties, dict)
        return f"The key-value store `{properties['driver']['const']}`."
    return (text if len(text) < 85 else text[:85].rpartition(" ")[0] + " …").replace('"', "`") + "."


def type_of(schema: Json) -> str:
    """The annotation of a member."""
    parts = list(dict.fromkeys(each for part in _types(schema) for each in part.split(" | ")))
    if "object" in parts:
        return "object"
    if "None" in parts:
        parts = [*(each for each in parts if each != "None"), "None"]
    return " | ".join(parts)


def _types(schema: Json) -> Iterator[str]:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix("#/$defs/")
        if name.startswith("Resource."):
            yield "ResourceSpec"
        elif name.startswith("Codec."):
            yield "str | Mapping[str, object]"
        else:
            yield NAMED[name]
        return
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            choices = schema[choice]
            assert isinstance(choices, list)
            for each in choices:
                yield from _types(each)
            return
    if "const" in schema:
        yield f"Literal[{literal(schema['const'])}]"
    elif "enum" in schema:
        values = schema["enum"]
        assert isinstance(values, list)
        yield f"Literal[{', '.join(map(literal, values))}]"
    elif schema.get("type") == "array":
        items = schema.get("items")
        inner = type_of(items) if isinstance(items, dict) and items else "object"
        yield f"Sequence[{inner.replace(' | ', INNER)}]"
    elif isinstance(schema.get("type"), list):
        yield from (PLAIN.get(str(each), "Sequence[object]") for each in schema["type"])  # type: ignore[attr-defined]
    else:
        yield PLAIN.get(str(schema.get("type")), "object")


def literal(value: object) -> str:
    """A value within `Literal`."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def main() -> int:
    """Writes them all, or prints them as JSON."""
    if sys.argv[1:] == ["--print"]:
        print(json.dumps(modules()))
        return 0
    ROOM.mkdir(exist_ok=True)
    for name, text in modules().items():
        (ROOM / f"{name}.py").write_text(text, encoding="utf-8")
    for step in (["format", "--quiet"], ["check", "--fix", "--quiet"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *step, str(ROOM)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
