"""How one array is stored and restored: types, chunks, files, other shardings, parts of a tree."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from tests.integrations.orbax.scenarios import Scenario, noise, sharding


def tree() -> dict[str, Any]:
    return {
        "big": jax.device_put(noise(1024, 1024), sharding("x", "y")),
        "small": {"a": jax.device_put(noise(10, 6, seed=2), sharding()), "b": noise(40, seed=3)},
        "number": 3,
    }


def save(path: Path, *, zarr3: bool = True, file_size: int | None = None, **members: Any) -> object:
    """Save a tree with these `SaveArgs` for each matrix."""
    content = tree()
    arguments = jax.tree.map(
        lambda leaf: ocp.SaveArgs(**members if np.ndim(leaf) == 2 else {}), content
    )
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_zarr3=zarr3)) as checkpointer:
        checkpointer.save(
            path,
            ocp.args.PyTreeSave(
                content, save_args=arguments, ocdbt_target_data_file_size=file_size
            ),
        )
    return content


def load(path: Path, item: Any, arguments: Any, **members: Any) -> object:
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        return checkpointer.restore(
            path, ocp.args.PyTreeRestore(item, restore_args=arguments, **members)
        )


def as_arrays(path: Path, axes: tuple[str | None, ...] = ("x", "y"), **members: Any) -> object:
    """Restore the arrays with another sharding, type or shape."""

    def argument(leaf: object) -> ocp.RestoreArgs:
        if isinstance(leaf, jax.Array):
            where = sharding(*axes) if leaf.shape[0] == 1024 else leaf.sharding
            return ocp.ArrayRestoreArgs(sharding=where, **members)
        kind = members.get("dtype") if isinstance(leaf, np.ndarray) else None
        return ocp.RestoreArgs(dtype=kind)

    return load(path, tree(), jax.tree.map(argument, tree()))


def with_shape(path: Path, shape: tuple[int, int]) -> object:
    """Restore an array smaller or larger than it is: cut off, or filled up with zeros."""
    arguments = {
        "big": ocp.ArrayRestoreArgs(sharding=sharding("x"), global_shape=shape, strict=False),
        "small": {"a": ocp.RestoreArgs(), "b": ocp.RestoreArgs()},
        "number": ocp.RestoreArgs(),
    }
    return load(path, tree(), arguments)


def placeholders(path: Path) -> object:
    """Restore one leaf, and leave out the others by name."""
    item = jax.tree.map(lambda _: ocp.PLACEHOLDER, tree())
    item["small"]["b"] = tree()["small"]["b"]
    return load(path, item, jax.tree.map(lambda _: ocp.RestoreArgs(), tree()))


def a_part(path: Path) -> object:
    """Restore a part of the tree."""
    item = {"small": {"a": tree()["small"]["a"]}}
    argument = ocp.ArrayRestoreArgs(sharding=sharding("y"))
    return load(path, item, {"small": {"a": argument}}, partial_restore=True)


def save_keys(path: Path) -> object:
    """Save keys for random numbers, which have a type of their own."""
    content = {
        "key": jax.random.key(7),
        "keys": jax.random.split(jax.random.key(8, impl="rbg"), 4),
        "old": jax.random.PRNGKey(9),
    }
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, content)
    return content


def restore_keys(path: Path) -> object:
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(path)


def absent(path: Path) -> object:
    """Restore an array that was not saved, and one without a file of its own."""
    outcomes = []
    for name in ("none", "big"):
        try:
            load(path, {name: noise(3)}, {name: ocp.RestoreArgs(dtype=np.dtype("f4"))})
        except Exception as problem:
            outcomes.append(type(problem).__name__)
    return outcomes


SAVED = {"as saved": as_arrays}
SCENARIOS = {
    "plain": Scenario(
        save,
        {
            **SAVED,
            "by columns": partial(as_arrays, axes=(None, "x")),
            "everywhere": partial(as_arrays, axes=()),
            "as bfloat16": partial(as_arrays, dtype=jnp.dtype("bfloat16")),
            "as int32": partial(as_arrays, dtype=np.dtype("int32")),
            "cut": partial(with_shape, shape=(100, 1024)),
            "padded": partial(with_shape, shape=(1030, 1100)),
            "placeholders": placeholders,
            "a part": a_part,
            "absent": absent,
        },
    ),
    "files of 256 KiB": Scenario(partial(save, file_size=1 << 18), SAVED),
    "files without limit": Scenario(partial(save, file_size=0), SAVED),
    "chunks of 64 KiB": Scenario(partial(save, chunk_byte_size=1 << 16), SAVED),
    "chunks of 64 KiB, zarr": Scenario(partial(save, chunk_byte_size=1 << 16, zarr3=False), SAVED),
    "both": Scenario(partial(save, chunk_byte_size=1 << 17, file_size=1 << 18), SAVED),
    "along an axis": Scenario(partial(save, chunk_byte_size=1 << 18, shard_axes=(1,)), SAVED),
    "stored as bfloat16": Scenario(
        partial(save, dtype=jnp.dtype("bfloat16")), {"again": as_arrays}
    ),
    "stored as float16, zarr": Scenario(
        partial(save, dtype=np.dtype("float16"), zarr3=False),
        {"again": as_arrays, "as float32": partial(as_arrays, dtype=np.dtype("float32"))},
    ),
    "keys": Scenario(save_keys, {"as saved": restore_keys}),
}
