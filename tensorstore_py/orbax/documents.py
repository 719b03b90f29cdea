"""What Orbax stores of a tree: `_METADATA`, texts, the legacy msgpack file, metadata of arrays.

Format: https://github.com/google/orbax, `checkpoint/orbax/checkpoint/_src/metadata`; msgpack files
are those of flax.serialization.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.errors import DataLossError, UnsupportedError
from tensorstore_py.orbax.leaves import Keys, Leaf, Node, branches, fields_of, named_tuple

__all__ = ["AGGREGATE", "CHECKPOINT_METADATA", "COMMITTED", "MANIFEST", "MARK_OF_V1", "METADATA",
           "NOTES", "PROCESS", "ROOT", "SHARDING", "STRINGS", "UNFINISHED", "Entry", "TreeDocument",
           "array_notes", "container_said", "leaf_said", "parse_aggregate",
           "parse_containers", "parse_json", "parse_tree", "placeholder", "text_of",
           "tuples_said"]  # fmt: skip

METADATA: Final = "_METADATA"
CHECKPOINT_METADATA: Final = "_CHECKPOINT_METADATA"
STRINGS: Final = "_strings.json"
AGGREGATE: Final = "checkpoint"
MANIFEST: Final = "manifest.ocdbt"
SHARDING: Final = "_sharding"
NOTES: Final = "array_metadatas"
ROOT: Final = "_ROOT_METADATA"
MARK_OF_V1: Final = "orbax.checkpoint"
PROCESS: Final = "ocdbt.process_"
COMMITTED: Final = "commit_success.txt"
UNFINISHED: Final = ".orbax-checkpoint-tmp"

_SEQUENCE: Final = 1
_PLACEHOLDER: Final = "PLACEHOLDER://"
#: What `value_type` says of values that no array is stored of.
_EMPTY: Final[Mapping[str, object]] = {
    "None": None, "Dict": {}, "List": [], "Tuple": (), "NamedTuple": (),
}  # fmt: skip
_NDARRAY, _COMPLEX, _SCALAR, _TUPLE = 1, 2, 3, 4


class Entry(NamedTuple):
    """What `_METADATA` says of a leaf.

    Attributes:
        value_type: such as `jax.Array`, `scalar` or `string`.
        empty: whether nothing is stored of it; then `value` is its value.
    """

    keys: Keys
    value_type: str
    empty: bool
    value: object
    shape: tuple[int, ...] | None


class TreeDocument(NamedTuple):
    """`_METADATA`.

    Attributes:
        entries: the leaves.
        zarr3: which format the arrays have; else it is zarr.
        ocdbt: whether they are in a database; None: it is not said.
        every_chunk: whether chunks were stored whatever is in them.
        pattern: which containers are tuples, and named ones: containers of the same keys. None: it
            is not said, as where Orbax was not told to keep them; then it gives lists and dicts.
    """

    entries: list[Entry]
    zarr3: bool
    ocdbt: bool | None
    every_chunk: bool
    pattern: object


def parse_json(text: bytes, where: str) -> Any:  # noqa: ANN401 - any JSON
    """Raises DataLossError: it is no JSON; names it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"{where} is no JSON: {error}") from None


def parse_tree(text: bytes, where: str) -> TreeDocument:
    """`_METADATA`.

    Raises:
        DataLossError: it is damaged; names it and the JSON path.
    """
    document = parse_json(text, where)
    match document:
        case {"tree_metadata": dict(entries)}:
            pass
        case _:
            raise DataLossError(f'{where} has no object "tree_metadata"; it is damaged')
    return TreeDocument(
        [_entry(name, entry, where) for name, entry in entries.items()],
        bool(document.get("use_zarr3", False)),
        document.get("use_ocdbt"),
        bool(document.get("store_array_data_equal_to_fill_value", False)),
        parse_containers(document.get("value_metadata_tree"), f'"value_metadata_tree" of {where}'),
    )


def parse_containers(text: object, where: str) -> object:
    """Containers as the text of `value_metadata_tree` describes them; None where there is none.

    Raises:
        DataLossError: it is damaged; names it.
    """
    if not isinstance(text, str):
        return None
    try:
        return _containers(parse_json(text.encode(), where))
    except RecursionError as error:
        raise DataLossError(f"{where} is too deep: {error}") from None


def _containers(said: object) -> object:
    """Containers as the JSON of `value_metadata_tree` describes them; None for leaves."""
    match said:
        case {"category": "custom", "clazz": "tuple", "entries": [*values]}:
            return tuple(map(_containers, values))
        case {"category": "namedtuple", "clazz": str(name), "entries": [*fields]} if all(
            isinstance(field, dict) and "key" in field for field in fields
        ):
            found = {str(field["key"]): _containers(field.get("value")) for field in fields}
            try:
                return named_tuple(name, tuple(found))(*found.values())
            except ValueError:  # names that Python has not
                return found
        case {"category": "custom"}:
            return None
        case {**members}:
            return {str(key): _containers(value) for key, value in members.items()}
        case [*values]:
            return list(map(_containers, values))
    return None


def leaf_said(value_metadata: Mapping[str, object]) -> dict[str, object]:
    """What `value_metadata_tree` says of a leaf."""
    return {"category": "custom", "clazz": "ValueMetadataEntry", "data": dict(value_metadata)}


def tuples_said(node: Node) -> str | None:
    """The containers of a tree as JSON, as in `value_metadata_tree`; None: it has no tuples."""
    tuples = 0

    def said(at: object) -> object:
        nonlocal tuples
        value = (at.value if at.kind == "value" else None) if isinstance(at, Leaf) else at
        if not isinstance(value, dict | list | tuple):
            return None
        tuples += isinstance(value, tuple)
        return container_said(value, [(key, said(below)) for key, below in branches(value)])

    text = json.dumps(said(node), separators=(",", ":"))
    return text if tuples else None


def container_said(node: object, inside: Sequence[tuple[str | int, object]]) -> object:
    """What it says of a container, whose keys and values are said already."""
    values = [value for _, value in inside]
    if isinstance(node, list):
        return values
    if not isinstance(node, tuple):
        return dict(inside)
    if fields_of(node) is None:
        return {"category": "custom", "clazz": "tuple", "entries": values}
    return {
        "category": "namedtuple",
        "module": type(node).__module__,
        "clazz": type(node).__qualname__,
        "entries": [{"key": key, "value": value} for key, value in inside],
    }


def _entry(name: str, entry: object, where: str) -> Entry:
    match entry:
        case {
            "key_metadata": [*keys],
            "value_metadata": {"value_type": str(value_type), **rest},
        } if all(isinstance(key, dict) and "key" in key for key in keys):
            shape = rest.get("write_shape")
        case _:
            raise DataLossError(
                f"{where} is damaged at tree_metadata[{name!r}]: expected key_metadata and "
                f"value_metadata, but found {json.dumps(entry)[:200]}"
            )
    return Entry(
        tuple(_key(key) for key in keys),
        value_type,
        value_type in _EMPTY or bool(rest.get("skip_deserialize", False)),
        _EMPTY.get(value_type),
        tuple(shape) if isinstance(shape, list) else None,
    )


def _key(said: Mapping[str, Any]) -> str | int:
    name = str(said["key"])
    return int(name) if said.get("key_type") == _SEQUENCE and name.isdecimal() else name


def text_of(strings: object, param: str) -> str | None:
    """A text of `_strings.json`: its name is a path of JSON members."""
    found = strings
    for part in param.split("/"):
        found = found.get(part) if isinstance(found, dict) else None
    return None if found is None else str(found)


def array_notes(document: object) -> dict[str, tuple[tuple[int, ...] | None, object]]:
    """Of a file of `array_metadatas/`: shape and further metadata of arrays, by name."""
    found: dict[str, tuple[tuple[int, ...] | None, object]] = {}
    listed = document.get("array_metadatas") if isinstance(document, dict) else None
    for each in listed or ():
        match each:
            case {"array_metadata": {"param_name": str(name), **rest}}:
                shape = rest.get("write_shape")
                found[name] = (
                    tuple(shape) if isinstance(shape, list) else None,
                    rest.get("ext_metadata"),
                )
    return found


def placeholder(value: object) -> str | None:
    """The name of the array that a value of a msgpack file stands for; None: it is a value."""
    if isinstance(value, str) and value.startswith(_PLACEHOLDER):
        return value.removeprefix(_PLACEHOLDER)
    return None


def parse_aggregate(data: bytes, where: str) -> object:
    """A msgpack file: nested dicts, lists and tuples of arrays, numbers and texts.

    Raises:
        DataLossError: it is damaged; names it.
        UnsupportedError: msgpack is not installed.
    """
    try:
        import msgpack  # noqa: PLC0415 - an extra, for old checkpoints only
    except ModuleNotFoundError:
        raise UnsupportedError(
            f"{where} is a msgpack file, of an old checkpoint: pip install tensorstore-py[codecs]"
        ) from None

    def extension(code: int, inner: bytes) -> object:
        if code in (_NDARRAY, _SCALAR):
            shape, name, elements = msgpack.unpackb(inner, raw=True)
            numpy_type = DType(name.decode()).numpy_dtype
            array = np.frombuffer(elements, dtype=numpy_type).reshape(shape)
            return array[()] if code == _SCALAR else array
        if code == _COMPLEX:
            return complex(*msgpack.unpackb(inner))
        if code == _TUPLE:
            return tuple(msgpack.unpackb(inner, raw=False, ext_hook=extension))
        raise ValueError(f"a value of the unknown kind {code}")

    try:
        tree = msgpack.unpackb(data, raw=False, ext_hook=extension, strict_map_key=False)
        return _joined(tree)
    except (ValueError, TypeError, KeyError, RecursionError, msgpack.UnpackException) as error:
        raise DataLossError(f"{where} is damaged: {error}") from error


def _joined(node: object) -> object:
    """Arrays that were too large for one value are stored in pieces."""
    if isinstance(node, dict):
        if "__msgpack_chunked_array__" in node:
            shape, pieces = _counted(node["shape"]), _counted(node["chunks"])
            return np.concatenate(list(pieces)).reshape(tuple(shape))
        return {key: _joined(below) for key, below in node.items()}
    if isinstance(node, list | tuple):
        return type(node)(_joined(below) for below in node)
    return node


def _counted(numbered: Mapping[str, Any]) -> Iterable[Any]:
    return [numbered[str(number)] for number in range(len(numbered))]
