"""What JAX itself stores arrays with: trees, and arrays by path or by spec."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
from jax.experimental.array_serialization import pytree_serialization as trees
from jax.experimental.array_serialization import serialization

from tests.integrations.orbax.scenarios import Scenario, noise, sharding


def tree() -> dict[str, Any]:
    four = sharding("x", "y")
    return {
        "matrix": jax.device_put(noise(64, 48), four),
        "layers": [
            jax.device_put(noise(8, 8, dtype=dtype, seed=seed), four)
            for seed, dtype in enumerate(("bfloat16", "float8_e4m3fn", "int8", "bool", "int4"))
        ],
        "scalar": jax.device_put(noise(), sharding()),
        "nothing": None,
    }


def shardings() -> Any:
    return jax.tree.map(lambda leaf: leaf.sharding, tree())


def save_tree(path: Path, *, background: bool) -> object:
    if background:
        trees.nonblocking_save(tree(), path).result()
    else:
        trees.save(tree(), path)
    return tree()


def load_tree(path: Path, **members: Any) -> object:
    return trees.load(path, shardings(), **members)


def load_in_background(path: Path) -> object:
    return trees.nonblocking_load(path, shardings()).result()


def by_rows(path: Path) -> object:
    return trees.load(path, jax.tree.map(lambda leaf: sharding(*leaf.shape and ("x",)), tree()))


def arrays() -> list[jax.Array]:
    return jax.tree.leaves(tree())


def save_by_path(path: Path) -> object:
    """Arrays that are written while the program goes on, until it asks for their end."""
    manager = serialization.GlobalAsyncCheckpointManager()
    names = [str(path / f"array {number}") for number in range(len(arrays()))]
    done = []
    manager.serialize_with_paths(
        arrays(), names, on_commit_callback=lambda: done.append("committed")
    )
    manager.wait_until_finished()
    return [*done, arrays()]


def load_by_path(path: Path) -> object:
    manager = serialization.GlobalAsyncCheckpointManager()
    names = [str(path / f"array {number}") for number in range(len(arrays()))]
    where = [array.sharding for array in arrays()]
    return ["committed", manager.deserialize_with_paths(where, names)]


def specs(path: Path, driver: str, ocdbt: bool) -> list[dict[str, Any]]:
    return [
        serialization.get_tensorstore_spec(str(path / f"array{number}"), ocdbt=ocdbt, driver=driver)
        for number in range(3)
    ]


def save_by_spec(path: Path, driver: str, ocdbt: bool) -> object:
    serialization.run_serialization(arrays()[:3], specs(path, driver, ocdbt))
    return arrays()[:3]


def load_by_spec(path: Path, driver: str, ocdbt: bool) -> object:
    where = [array.sharding for array in arrays()[:3]]
    return serialization.run_deserialization(where, specs(path, driver, ocdbt))


LAYOUTS = {
    f"spec, {driver}{', ocdbt' if ocdbt else ''}": Scenario(
        partial(save_by_spec, driver=driver, ocdbt=ocdbt),
        {"as saved": partial(load_by_spec, driver=driver, ocdbt=ocdbt)},
    )
    for driver in ("zarr", "zarr3")
    for ocdbt in (True, False)
}
SCENARIOS = {
    "tree": Scenario(
        partial(save_tree, background=False),
        {
            "as saved": load_tree,
            "by rows": by_rows,
            "a part": partial(
                load_tree, mask={"matrix": True, "layers": False, "scalar": True, "nothing": True}
            ),
        },
    ),
    "tree in background": Scenario(
        partial(save_tree, background=True), {"as saved": load_in_background}
    ),
    "paths": Scenario(save_by_path, {"as saved": load_by_path}),
    **LAYOUTS,
}
