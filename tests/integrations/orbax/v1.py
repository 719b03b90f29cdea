"""The second API of Orbax, `orbax.checkpoint.experimental.v1`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint.experimental.v1 as ocp

from tests.integrations.orbax.scenarios import Scenario, noise, sharding

Configure = Callable[[ocp.Context], object]


def tree(step: int = 0) -> dict[str, Any]:
    return {
        "weights": jax.device_put(noise(64, 32, seed=step), sharding("x", "y")),
        "half": jax.device_put(noise(16, dtype="bfloat16", seed=step), sharding("y")),
        "numpy": noise(20, dtype="f8", seed=step + 1),
        "key": jax.random.key(step),
        "step": step,
        "rate": 0.5,
        "name": f"é {step}",
        "nothing": None,
        "empty": {},
        "list": [noise(3), (noise(4),)],
    }


def context(configure: Configure | None) -> ocp.Context:
    found = ocp.Context()
    if configure is not None:
        configure(found)
    return found


def save(path: Path, configure: Configure | None = None) -> object:
    with context(configure):
        ocp.save(path, tree(), custom_metadata={"made by": "a test"})
    return tree()


def shape(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    return np.zeros_like(leaf) if isinstance(leaf, np.ndarray) else leaf


def load(path: Path, change: Callable[[dict[str, Any]], object] | None = None) -> object:
    target = jax.tree.map(shape, tree())
    if change is not None:
        change(target)
    return ocp.load(path, target)


def metadata(path: Path) -> object:
    found = ocp.metadata(path)
    return [found.custom_metadata, jax.tree.map(str, found.metadata)]


def otherwise(target: dict[str, Any]) -> None:
    """Another sharding and another type."""
    target["weights"] = jax.ShapeDtypeStruct(
        (64, 32), jnp.dtype("bfloat16"), sharding=sharding(None, "x", shape=(4, 1))
    )


def only_the_step(target: dict[str, Any]) -> None:
    for name in target.keys() - {"step", "half"}:
        target[name] = jax.tree.map(lambda _: ocp.PLACEHOLDER, target[name])


def padded(path: Path) -> object:
    found = ocp.Context()
    found.array.loading.enable_padding_and_truncation = True

    def change(target: dict[str, Any]) -> None:
        target["weights"] = jax.ShapeDtypeStruct((70, 30), np.float32, sharding=sharding("x", None))

    with found:
        return load(path, change)


def save_async(path: Path) -> object:
    response = ocp.save_async(path, tree())
    response.result()
    return tree()


def save_several(path: Path) -> object:
    """A tree, another tree and a document, each by its name."""
    ocp.save_checkpointables(
        path, {"model": tree(1), "optimizer": tree(2), "data": {"position": [1, "é", None]}}
    )
    return {"model": tree(1), "optimizer": tree(2), "data": {"position": [1, "é", None]}}


def load_several(path: Path) -> object:
    return ocp.load_checkpointables(
        path,
        {
            "model": jax.tree.map(shape, tree(1)),
            "optimizer": jax.tree.map(shape, tree(2)),
            "data": None,
        },
    )


def save_parts(path: Path) -> object:
    """A checkpoint that comes in parts, and is there when the last one is."""
    content = tree()
    ocp.partial.save(path, {"weights": content["weights"], "step": 0})
    ocp.partial.save(path, {"numpy": content["numpy"], "half": content["half"]})
    ocp.partial.finalize(path)
    return {name: content[name] for name in ("weights", "step", "numpy", "half")}


def load_parts(path: Path) -> object:
    names = ("weights", "step", "numpy", "half")
    return ocp.load(path, {name: shape(tree()[name]) for name in names})


def train(path: Path) -> object:
    """Steps in the background, of which the newest two are kept."""
    policy = ocp.training.preservation_policies.LatestN(2)
    with ocp.training.Checkpointer(path, preservation_policy=policy) as checkpointer:
        for step in range(4):
            checkpointer.save_async(step, tree(step), metrics={"loss": step})
        checkpointer.save(4, tree(4), force=True)
        return tree(4)


def resume(path: Path) -> object:
    with ocp.training.Checkpointer(path) as checkpointer:
        return checkpointer.load(None, jax.tree.map(shape, tree()))


def kept(path: Path) -> object:
    with ocp.training.Checkpointer(path) as checkpointer:
        return [each.step for each in checkpointer.checkpoints]


def saving(**members: Any) -> Configure:
    def configure(found: ocp.Context) -> None:
        for name, value in members.items():
            setattr(found.array.saving, name, value)

    return configure


def as_half(found: ocp.Context) -> None:
    """One leaf in another type and in small chunks."""
    options = ocp.options.ArrayOptions.Saving.StorageOptions

    def choose(key: Any, value: Any) -> Any:  # noqa: ARG001 - Orbax gives it
        if "weights" in jax.tree_util.keystr(key):
            return options(dtype=jnp.dtype("bfloat16"), chunk_byte_size=512)
        return None

    found.array.saving.scoped_storage_options_creator = choose


SAVED = {"as saved": load}
SCENARIOS = {
    "plain": Scenario(
        save,
        {
            **SAVED,
            "metadata": metadata,
            "otherwise": partial(load, change=otherwise),
            "placeholders": partial(load, change=only_the_step),
            "padded": padded,
        },
    ),
    "files": Scenario(partial(save, configure=saving(use_ocdbt=False)), SAVED),
    "zarr": Scenario(partial(save, configure=saving(use_zarr3=False)), SAVED),
    "zarr in files": Scenario(
        partial(save, configure=saving(use_zarr3=False, use_ocdbt=False)), SAVED
    ),
    "raw": Scenario(
        partial(save, configure=saving(use_compression=False, ocdbt_target_data_file_size=4096)),
        SAVED,
    ),
    "replicas apart": Scenario(
        partial(
            save,
            configure=saving(
                use_replica_parallel=True,
                enable_replica_parallel_separate_folder=True,
                min_slice_bytes_for_replica_parallel=1,
            ),
        ),
        SAVED,
    ),
    "stored as bfloat16": Scenario(partial(save, configure=as_half), {"again": load}),
    "background": Scenario(save_async, SAVED),
    "several": Scenario(save_several, {"as saved": load_several}),
    "parts": Scenario(save_parts, {"as saved": load_parts}),
    "training": Scenario(train, {"as saved": resume, "kept": kept}),
}
