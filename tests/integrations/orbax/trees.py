"""A program: which containers Orbax restores without a target, and which `ts.orbax` reads.

    python -m tests.integrations.orbax.trees

In the directory that it runs in, Orbax saves trees with its containers told and not told, and
`ts.orbax` saves one; each is restored by both. It prints the containers as JSON. Orbax has the
reference here.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np
import orbax.checkpoint as ocp
import orbax.checkpoint.experimental.v1 as ocp_v1
from orbax.checkpoint._src.metadata.pytree_metadata_options import PyTreeMetadataOptions

import tensorstore_py as ts


class State(NamedTuple):
    """A tuple with names."""

    mu: Any
    nu: Any


def tree() -> dict[str, Any]:
    return {
        "pair": (np.arange(2), [np.ones(1), (np.zeros(1), 3)]),
        "adam": State(np.full(3, 2), {"inner": (1, "text")}),
        "list": [np.ones(2)],
        "empty": ((), [], {}, None),
    }


def containers(node: Any) -> Any:
    """Which containers there are, and the fields of tuples; the values of leaves."""
    if isinstance(node, dict):
        return {key: containers(each) for key, each in sorted(node.items())}
    if isinstance(node, list):
        return ["list", *map(containers, node)]
    if isinstance(node, tuple):
        return ["tuple", getattr(node, "_fields", None), *map(containers, node)]
    return node if node is None or isinstance(node, str) else np.asarray(node).tolist()


def handler(rich: bool) -> ocp.PyTreeCheckpointHandler:
    options = PyTreeMetadataOptions(support_rich_types=rich)
    return ocp.PyTreeCheckpointHandler(pytree_metadata_options=options)


def orbax_restores(path: Path, *, rich: bool) -> Any:
    with ocp.Checkpointer(handler(rich)) as checkpointer:
        return containers(checkpointer.restore(path))


def read(path: Path) -> Any:
    return containers(ts.orbax.open(path).result().read().result())


def main() -> None:
    here = Path.cwd()
    for rich in (False, True):
        with ocp.Checkpointer(handler(rich)) as checkpointer:
            checkpointer.save(here / f"rich {rich}", ocp.args.PyTreeSave(tree()))
    ocp_v1.save(here / "v1", tree())
    documents = {"model": tree(), "data": {"position": [1, "é", None]}}
    ocp_v1.save_checkpointables(here / "several", documents)
    registry = ocp_v1.handlers.local_registry()
    registry.add(ocp_v1.handlers.JsonHandler, checkpointable_name="data")
    context = ocp_v1.Context()
    context.checkpointables.registry = registry
    with context:
        ocp_v1.save_checkpointables(here / "with JSON", documents)
    with ocp.Checkpointer(ocp.JsonCheckpointHandler("mine.json")) as checkpointer:
        checkpointer.save(here / "JSON", args=ocp.args.JsonSave({"a": [1]}))
    ts.orbax.save(tree(), here / "ours").result()
    found = {
        "saved": containers(tree()),
        "plain": [orbax_restores(here / "rich False", rich=False), read(here / "rich False")],
        "rich": [orbax_restores(here / "rich True", rich=True), read(here / "rich True")],
        "v1": [containers(ocp_v1.load(here / "v1")), read(here / "v1")],
        "several": [
            containers(ocp_v1.load_checkpointables(here / "several")),
            read(here / "several"),
        ],
        "with JSON": read(here / "with JSON"),
        "its JSON": ts.orbax.open(here / "with JSON", item="data").result()["data"],
        "JSON files": sorted(each.name for each in (here / "with JSON/data").iterdir()),
        "JSON": read(here / "JSON"),
        "ours": [
            orbax_restores(here / "ours", rich=True),
            orbax_restores(here / "ours", rich=False),
            containers(ocp_v1.load(here / "ours")),
            read(here / "ours"),
        ],
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
