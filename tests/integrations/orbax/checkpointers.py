"""Checkpointers and managers: in the background, several steps, several items, options."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from tests.integrations.orbax.scenarios import Scenario, noise, sharding


def tree(step: int = 0) -> dict[str, Any]:
    return {
        "weights": jax.device_put(noise(64, 32, seed=step), sharding("x", "y")),
        "optimizer": [noise(5, dtype="f8", seed=step + 1), {"count": step}],
    }


def shapes(content: Any) -> Any:
    """What is to be restored, without its values."""
    return jax.tree.map(ocp.utils.to_shape_dtype_struct, content)


def save_standard(path: Path) -> object:
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, tree(), custom_metadata={"made by": "a test"})
    return tree()


def restore_standard(path: Path, target: Callable[[Any], Any] = shapes) -> object:
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(path, target(tree()))


def metadata(path: Path) -> object:
    with ocp.StandardCheckpointer() as checkpointer:
        found = checkpointer.metadata(path)
    return {**found.custom_metadata, "leaves": jax.tree.map(str, found.item_metadata.tree)}


def save_in_background(path: Path, **options: Any) -> object:
    """Two saves by one checkpointer, the second one while the first goes on."""
    handler = ocp.PyTreeCheckpointHandler(**options)
    with ocp.AsyncCheckpointer(handler) as checkpointer:
        for step in range(2):
            checkpointer.save(path / str(step), ocp.args.PyTreeSave(tree(step)))
        checkpointer.wait_until_finished()
    return tree(1)


def restore_second(path: Path, **options: Any) -> object:
    arguments = ocp.checkpoint_utils.construct_restore_args(tree())
    with ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler(**options)) as checkpointer:
        return checkpointer.restore(
            path / "1", ocp.args.PyTreeRestore(tree(), restore_args=arguments)
        )


def overwrite(path: Path) -> object:
    with ocp.StandardCheckpointer() as checkpointer:
        for step in range(2):
            checkpointer.save(path, tree(step), force=True)
            checkpointer.wait_until_finished()
    return tree(1)


def manage(path: Path, *, background: bool) -> object:
    """Five steps, of which two are kept; each has a tree, a document and figures."""
    options = ocp.CheckpointManagerOptions(
        max_to_keep=2, enable_async_checkpointing=background, step_prefix="step"
    )
    with ocp.CheckpointManager(path, options=options, item_names=("state", "extra")) as manager:
        for step in range(5):
            items = ocp.args.Composite(
                state=ocp.args.StandardSave(tree(step)),
                extra=ocp.args.JsonSave({"position": step, "names": ["a", "é"]}),
            )
            manager.save(step, args=items, metrics={"loss": 1 / (step + 1)})
        manager.wait_until_finished()
        return manager.all_steps()


def restore_managed(path: Path) -> object:
    options = ocp.CheckpointManagerOptions(read_only=True, step_prefix="step")
    with ocp.CheckpointManager(path, options=options, item_names=("state", "extra")) as manager:
        found = [
            manager.restore(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(shapes(tree())), extra=ocp.args.JsonRestore()
                ),
            )
            for step in manager.all_steps()
        ]
        return [
            manager.all_steps(),
            [[each.state, each.extra] for each in found],
            manager.metrics(4),
            jax.tree.map(str, manager.item_metadata(4).state.tree),
        ]


def best(path: Path) -> object:
    """The step with the best figure is kept, and the newest ones by interval."""
    options = ocp.CheckpointManagerOptions(
        best_fn=lambda figures: figures["accuracy"], max_to_keep=1, save_interval_steps=2
    )
    with ocp.CheckpointManager(path, options=options) as manager:
        for step in range(6):
            manager.save(
                step,
                args=ocp.args.StandardSave(tree(step)),
                metrics={"accuracy": 1.0 if step == 2 else 0.5},
            )
        manager.wait_until_finished()
        return tree(2)


def restore_best(path: Path) -> object:
    with ocp.CheckpointManager(path) as manager:
        step = manager.all_steps()[0]
        return manager.restore(step, args=ocp.args.StandardRestore(shapes(tree())))


LIMITS: dict[str, Any] = {"save_concurrent_gb": 1, "restore_concurrent_gb": 1}
SCENARIOS = {
    "standard": Scenario(
        save_standard,
        {
            "as saved": restore_standard,
            "into values": partial(restore_standard, target=lambda content: content),
            "metadata": metadata,
        },
    ),
    "overwritten": Scenario(overwrite, {"as saved": restore_standard}),
    "background": Scenario(save_in_background, {"as saved": restore_second}),
    "limited": Scenario(
        partial(save_in_background, **LIMITS),
        {"as saved": partial(restore_second, **LIMITS)},
    ),
    "limited on the device": Scenario(
        partial(save_in_background, save_device_host_concurrent_gb=1), {"as saved": restore_second}
    ),
    "manager": Scenario(partial(manage, background=False), {"steps": restore_managed}),
    "manager in background": Scenario(partial(manage, background=True), {"steps": restore_managed}),
    "best": Scenario(best, {"as saved": restore_best}),
}
