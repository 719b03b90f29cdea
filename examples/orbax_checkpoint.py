"""Weights out of a checkpoint of Orbax, without JAX: look, read, to safetensors and back."""

import asyncio
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

import tensorstore_py as ts


async def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        # What CheckpointManager writes has a directory for each step.
        for step in (100, 200):
            kernel = np.full((4, 8), step, ml_dtypes.bfloat16)
            tree = {"params": {"layers": [{"kernel": kernel}, {"kernel": kernel}]}, "step": step}
            await ts.orbax.save(tree, root / f"run/{step}/default")
        print([step.number for step in await ts.orbax.steps(root / "run")])

        # The last complete step; no array is read yet.
        checkpoint = await ts.orbax.open(root / "run")
        print(await checkpoint.tree())

        # One array, a part of it, and all that matches.
        first = await checkpoint.open("params.layers.0.kernel")
        print(await first[0, :3].read())
        found = await checkpoint.read(["params.*"])
        assert found["params"]["layers"][1]["kernel"].dtype == ml_dtypes.bfloat16

        # Any tool that knows safetensors reads this; here it is a group of arrays as well.
        files = await ts.orbax.to_safetensors(
            checkpoint["params"], root / "model.safetensors", dtype="float32"
        )
        print(await (await ts.Group.open(files[0])).tree())

        # And back: Orbax restores this directory.
        await ts.orbax.from_safetensors(files[0], root / "again")
        again = await ts.orbax.open(root / "again")
        print(again.names(), again.layout)


if __name__ == "__main__":
    asyncio.run(main())
