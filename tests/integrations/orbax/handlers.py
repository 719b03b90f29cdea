"""Trees of arrays by the handlers of the first API, in every layout."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from tests.integrations.orbax.scenarios import Scenario, noise, sharding


def tree() -> dict[str, Any]:
    """Each kind of leaf that Orbax knows."""
    four = sharding("x", "y")
    return {
        "matrix": jax.device_put(noise(64, 48), four),
        "rows": jax.device_put(noise(12, 5, seed=2), sharding("x", shape=(4,))),
        "same everywhere": jax.device_put(noise(9, seed=3), sharding()),
        "layers": [
            {"kernel": jax.device_put(noise(8, 8, dtype=dtype, seed=seed), four)}
            for seed, dtype in enumerate(
                ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8", "uint16", "bool")
            )
        ],
        "numpy": {
            "f8": noise(7, 3, dtype="f8"),
            "i8": noise(300, dtype="i8"),
            "0-d": np.asarray(noise()),
        },
        "int4": jax.device_put(noise(8, 8, dtype="int4"), four),
        "step": 17,
        "rate": 0.125,
        "name": "a string, not only ASCII: é",
        "nothing": None,
        "empty": {"dict": {}, "list": [], "tuple": ()},
    }


def targets(plain: bool = False) -> Any:
    """What to restore as: arrays with their sharding, and all else as it was."""

    def argument(leaf: object) -> ocp.RestoreArgs:
        if isinstance(leaf, jax.Array) and not plain:
            return ocp.ArrayRestoreArgs(sharding=leaf.sharding, global_shape=leaf.shape)
        return ocp.RestoreArgs(restore_type=np.ndarray if isinstance(leaf, jax.Array) else None)

    return jax.tree.map(argument, tree())


def save_by(handler: Callable[[], ocp.PyTreeCheckpointHandler], args: Any = None) -> Any:
    def save(path: Path) -> object:
        content = tree()
        with ocp.Checkpointer(handler()) as checkpointer:
            save_args = args and jax.tree.map(args, content)
            checkpointer.save(path, ocp.args.PyTreeSave(content, save_args=save_args))
        return content

    return save


def restore(path: Path) -> object:
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        return checkpointer.restore(path, ocp.args.PyTreeRestore(tree(), restore_args=targets()))


def restore_plain(path: Path) -> object:
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        return checkpointer.restore(
            path, ocp.args.PyTreeRestore(tree(), restore_args=targets(plain=True))
        )


def traits(thing: object, *names: str) -> list[str]:
    return [str(getattr(thing, name, None)) for name in names]


def metadata(path: Path) -> object:
    """Shapes, types and chunks as Orbax reads them from the arrays."""
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        found = checkpointer.metadata(path).item_metadata
    return [
        [
            str(key),
            *traits(leaf, "shape", "dtype"),
            *traits(storage, "chunk_shape", "zarr_metadata"),
        ]
        for key, leaf in jax.tree_util.tree_flatten_with_path(found.tree)[0]
        for storage in [getattr(leaf, "storage", None)]
    ]


RESTORE = {"as saved": restore, "plain": restore_plain, "metadata": metadata}


def layouts() -> dict[str, Scenario]:
    found = {}
    for ocdbt, zarr3, compression in itertools.product([True, False], repeat=3):
        words = ["ocdbt" if ocdbt else "files", "zarr3" if zarr3 else "zarr"]
        name = "-".join([*words, "zstd" if compression else "raw"])

        def handler(
            ocdbt: bool = ocdbt, zarr3: bool = zarr3, compression: bool = compression
        ) -> ocp.PyTreeCheckpointHandler:
            return ocp.PyTreeCheckpointHandler(
                use_ocdbt=ocdbt, use_zarr3=zarr3, use_compression=compression
            )

        found[name] = Scenario(save_by(handler), RESTORE)
    return found


SCENARIOS = layouts()
