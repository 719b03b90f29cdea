"""A program: saves checkpoints with the real Orbax and JAX, or tells what they restore.

    python -m tests.integrations.orbax.scenarios save GROUP NAME
    python -m tests.integrations.orbax.scenarios restore GROUP NAME...

Whatever `tensorstore` is in its process does the work, in the directories NAME of the one that it
runs in. The file that OUTCOME names becomes a JSON document: which module that was, and for each
directory, each scenario of the group and each of its ways what was saved, or restored, as plain
facts (`facts`), so that those of two libraries can be compared. A scenario that raises ends it.
"""

import hashlib
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import tensorstore

DIRECTORIES = Path.cwd()
GROUPS = ("handlers", "checkpointers", "arrays", "merging", "v1", "jax_arrays")


class Scenario(NamedTuple):
    """A way of saving, and the ways of restoring what it saved, by name."""

    save: Callable[[Path], object]
    restore: Mapping[str, Callable[[Path], object]]


def facts(value: object) -> object:
    """What can be seen of a restored value, as JSON: arrays by type, sharding and digest."""
    if isinstance(value, dict):
        return {str(key): facts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(facts, value)]
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return ["key", str(jax.random.key_impl(value)), facts(jax.random.key_data(value))]
    if isinstance(value, jax.Array):
        return [
            "jax",
            str(getattr(value.sharding, "spec", value.device)),
            *digest(np.asarray(value)),
        ]
    if isinstance(value, np.ndarray | np.generic):
        return [type(value).__name__, *digest(np.asarray(value))]
    if isinstance(value, jax.ShapeDtypeStruct):
        return ["shape", list(value.shape), value.dtype.name]
    if isinstance(value, str):
        return re.sub(f"{re.escape(str(DIRECTORIES))}/[^/]*", "…", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return type(value).__name__


def digest(array: np.ndarray) -> list[Any]:
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return [array.dtype.name, list(array.shape), content]


def mesh(*shape: int) -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(shape), ("x", "y")[: len(shape)])


def sharding(*axes: str | None, shape: tuple[int, ...] = (2, 2)) -> jax.sharding.NamedSharding:
    return jax.sharding.NamedSharding(mesh(*shape), jax.sharding.PartitionSpec(*axes))


def noise(*shape: int, dtype: Any = np.float32, seed: int = 1) -> np.ndarray:
    """Numbers that do not repeat, in a type of NumPy's or of ml_dtypes'."""
    values = np.random.default_rng(seed).integers(-7, 8, shape)
    return (values / (4 if np.dtype(dtype).kind in "fV" else 1)).astype(dtype)


def main(arguments: list[str]) -> None:
    action, group, *names = arguments
    scenarios = importlib.import_module(f"tests.integrations.orbax.{group}").SCENARIOS
    outcomes: dict[str, dict[str, object]] = {}
    for directory in (DIRECTORIES / name for name in names):
        directory.mkdir(exist_ok=True)
        found = outcomes[directory.name] = {}
        for name, scenario in scenarios.items():
            done = {"saved": scenario.save} if action == "save" else scenario.restore
            found[name] = {way: facts(call(directory / name)) for way, call in done.items()}
    module = tensorstore.__name__
    Path(os.environ["OUTCOME"]).write_text(json.dumps({"module": module, "outcomes": outcomes}))


if __name__ == "__main__":
    main(sys.argv[1:])
