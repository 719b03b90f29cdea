"""Checkpoints as Orbax writes them, made by hand: its documents, and arrays stored by this library.

Each layout is made of the same tree. What is written here was compared with what Orbax 0.12 writes.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tensorstore_py as ts

#: What `read()` gives of each layout.
TREE: dict[str, Any] = {
    "params": {
        "dense": {
            "kernel": np.arange(12, dtype="float32").reshape(3, 4),
            "bias": np.array([1, 2, 3, 4], ml_dtypes.bfloat16),
        },
        "mlp/~/linear_0": {"w": np.ones((2, 2), ml_dtypes.float8_e4m3fn)},
    },
    "opt": [{"mu": np.array([1, -2], ml_dtypes.int4)}, {"mu": np.zeros(0, "int8")}],
    "step": 7,
    "rate": 0.5,
    "done": True,
    "name": "run é",
    "nothing": None,
    "no_keys": {},
    "no_items": [],
}


class Layout(NamedTuple):
    """How a tree is stored."""

    ocdbt: bool = True
    zarr3: bool = True
    processes: int = 0
    merged: bool = True
    metadata: bool = True


LAYOUTS = {
    "zarr": Layout(ocdbt=False, zarr3=False),
    "zarr3": Layout(ocdbt=False),
    "ocdbt-zarr": Layout(zarr3=False),
    "ocdbt-zarr3": Layout(),
    "merged": Layout(processes=3),
    "one process": Layout(processes=1, merged=False),
    "not merged": Layout(processes=3, merged=False),
    "not merged, zarr": Layout(zarr3=False, processes=2, merged=False),
}

_TYPES = {type(None): "None", dict: "Dict", list: "List", str: "string"}


def flattened(node, keys=()):
    if isinstance(node, dict | list) and node:
        for key, below in node.items() if isinstance(node, dict) else enumerate(node):
            yield from flattened(below, (*keys, key))
    else:
        yield keys, node


def value_type(value):
    if isinstance(value, bool | int | float):
        return "scalar"
    return _TYPES.get(type(value), "jax.Array")


def tree_metadata(tree, *, ocdbt, zarr3):
    """`_METADATA`."""
    entries = {}
    for keys, value in flattened(tree):
        kind = value_type(value)
        said = {"value_type": kind, "skip_deserialize": kind in ("None", "Dict", "List")}
        if kind == "jax.Array":
            said["write_shape"] = list(value.shape)
        entries[str(tuple(map(str, keys)))] = {
            "key_metadata": [
                {"key": str(key), "key_type": 1 if isinstance(key, int) else 2} for key in keys
            ],
            "value_metadata": said,
        }
    return {
        "tree_metadata": entries,
        "use_ocdbt": ocdbt,
        "use_zarr3": zarr3,
        "store_array_data_equal_to_fill_value": True,
        "custom_metadata": None,
    }


def store_arrays(tree, where, *, zarr3, part=None):
    """All arrays of a tree, or of each of several processes the chunks that are its own."""
    for keys, value in flattened(tree):
        if value_type(value) not in ("scalar", "jax.Array"):
            continue
        data = np.asarray(value)
        chunks = [max(1, -(-n // 2)) for n in data.shape]
        path = f"{where.get('path', '')}{'.'.join(map(str, keys))}/"
        array = ts.open(
            {
                "driver": "zarr3" if zarr3 else "zarr",
                "kvstore": {**where, "path": path},
                "store_data_equal_to_fill_value": True,
            },
            create=True,
            dtype=data.dtype,
            shape=data.shape,
            chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
        ).result()  # fmt: skip
        if part is None or not data.ndim:
            array[...] = data
            continue
        process, count = part
        for number, low in enumerate(range(0, data.shape[0], chunks[0])):
            if number % count == process:
                rows = slice(low, min(low + chunks[0], data.shape[0]))
                array[rows] = data[rows]


def write_tree(root: Path, layout: Layout = LAYOUTS["ocdbt-zarr3"], tree=None) -> Path:
    """An item: a tree in a directory."""
    tree = TREE if tree is None else tree
    root.mkdir(parents=True, exist_ok=True)
    base = f"{root.absolute().as_uri()}/"
    if layout.processes:
        children = []
        for process in range(layout.processes):
            where = {"driver": "ocdbt", "base": f"{base}ocdbt.process_{process}/"}
            store_arrays(tree, where, zarr3=layout.zarr3, part=(process, layout.processes))
            children.append(ts.KvStore.open(where).result())
        if layout.merged:
            whole = ts.KvStore.open({"driver": "ocdbt", "base": base}).result()
            with ts.Transaction() as transaction:
                for child in children:
                    child.experimental_copy_range_to(whole.with_transaction(transaction)).result()
    elif layout.ocdbt:
        store_arrays(tree, {"driver": "ocdbt", "base": base}, zarr3=layout.zarr3)
    else:
        where = {"driver": "file", "path": f"{root.absolute()}/"}
        store_arrays(tree, where, zarr3=layout.zarr3)
    if layout.metadata:
        metadata = tree_metadata(tree, ocdbt=layout.ocdbt, zarr3=layout.zarr3)
        (root / "_METADATA").write_text(json.dumps(metadata))
    strings = {".".join(map(str, keys)): v for keys, v in flattened(tree) if isinstance(v, str)}
    if strings:
        (root / "_strings.json").write_text(json.dumps(strings))
    (root / "_sharding").write_text("{}")
    (root / "array_metadatas").mkdir(exist_ok=True)
    notes = [
        {"array_metadata": {
            "param_name": ".".join(map(str, keys)), "write_shape": list(np.shape(value)),
            "chunk_shape": list(np.shape(value)), "ext_metadata": None,
        }}
        for keys, value in flattened(tree) if value_type(value) == "jax.Array"
    ]  # fmt: skip
    (root / "array_metadatas/process_0").write_text(json.dumps({"array_metadatas": notes}))
    return root


def mark(root: Path, *, committed=True, **said) -> Path:
    """`_CHECKPOINT_METADATA` of a step."""
    metadata = {
        "item_handlers": {},
        "metrics": {},
        "init_timestamp_nsecs": 1,
        "commit_timestamp_nsecs": 2 if committed else None,
        **said,
    }
    root.mkdir(parents=True, exist_ok=True)
    (root / "_CHECKPOINT_METADATA").write_text(json.dumps(metadata))
    return root


def assert_same(found, wanted):
    """Trees of the same containers, with arrays of the same types and values."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict)
        assert set(found) == set(wanted)
        for key in wanted:
            assert_same(found[key], wanted[key])
    elif isinstance(wanted, list | tuple):
        assert isinstance(found, list | tuple)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    else:
        assert type(found) is type(wanted)
        assert found == wanted
