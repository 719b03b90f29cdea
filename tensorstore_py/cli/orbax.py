"""Look into checkpoints of Orbax, and turn them into safetensors files and back.

ls              the tree of a checkpoint: shapes, types and sizes of its arrays
info            what it is: its layout, steps, how many arrays and bytes
check           reads all of it, and says what is damaged
to-safetensors  its arrays as safetensors files
from-safetensors  a checkpoint of safetensors files, which Orbax restores
"""

from __future__ import annotations

import argparse
import json
import re
from math import prod
from typing import TYPE_CHECKING, Any

from tensorstore_py import orbax
from tensorstore_py._api.begin import begin
from tensorstore_py._spec.context import Context
from tensorstore_py.cli.output import examples
from tensorstore_py.cli.places import lasting_place, place, store_place, tried
from tensorstore_py.orbax import Checkpoint

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["add", "run"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
          "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}  # fmt: skip


_ENDS = """\
CHECKPOINT is a URL, JSON or local path: of a step, or of the directory of all steps, of which the
last complete one is taken. An item is one of several trees or JSON documents in a checkpoint.

exit codes:
  0    done; of check: nothing is damaged
  1    failed; of check: something is damaged
"""
_EXAMPLES = {
    "ls": "  tspy orbax ls run/\n  tspy orbax ls s3://bucket/run/ --step 1000 --json\n",
    "info": "  tspy orbax info run/\n  tspy orbax info s3://bucket/run/1000/ --item params\n",
    "check": "  tspy orbax check run/ --step 1000\n  tspy orbax check s3://bucket/run/ --json\n",
    "to-safetensors": "  tspy orbax to-safetensors run/ model.safetensors\n"
    "  tspy orbax to-safetensors run/ s3://bucket/model.safetensors --names 'params.*'"
    " --dtype bfloat16\n"
    "  tspy orbax to-safetensors run/ big.safetensors --shard-size 5GB --memory-limit 1GiB\n",
    "from-safetensors": "  tspy orbax from-safetensors model.safetensors run/2000/default/\n"
    "  tspy orbax from-safetensors big.safetensors.index.json s3://bucket/copy/\n",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ENDS
    commands = parser.add_subparsers(dest="action", required=True, metavar="SUBCOMMAND")

    def sub(name: str, about: str, more: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=more)
        examples(added, _EXAMPLES[name])
        return added

    listing = sub("ls", "list arrays with shapes, types and sizes", "List the arrays of a "
                  "checkpoint with shapes, types and sizes, and its other values.")  # fmt: skip
    info = sub("info", "say what a checkpoint is, in a few lines", "Say what a checkpoint is: its "
               "layout, its steps, how many arrays and bytes it has, and what cannot be opened. "
               "No array is read.")  # fmt: skip
    check = sub("check", "read all of it, and say what is damaged",
                "Read all arrays, in bounded memory, and say what is damaged.")  # fmt: skip
    export = sub("to-safetensors", "write its arrays as safetensors files", "Write the arrays of a "
                 "checkpoint as one safetensors file, or as several and their index.")  # fmt: skip
    back = sub("from-safetensors", "write safetensors files as a checkpoint", "Write the tensors "
               "of safetensors files as a checkpoint that Orbax restores.")  # fmt: skip
    for each in (listing, info, check, export):
        each.add_argument("checkpoint", type=store_place, metavar="CHECKPOINT",
                          help="URL, JSON or local path of its directory")  # fmt: skip
        each.add_argument("--step", type=int, metavar="N",
                          help="which step; the last complete one by default")  # fmt: skip
        each.add_argument("--item", metavar="NAME", help="which item; all of them by default")
    for each in (listing, info, check):
        each.add_argument("--json", action="store_true", help="print JSON, for other programs")
    export.add_argument("output", type=lasting_place, metavar="FILE",
                        help="local path or URL of a file, such as model.safetensors")  # fmt: skip
    export.add_argument("--shard-size", type=size, metavar="SIZE",
                        help="write several files of at most that size, such as 5GB")  # fmt: skip
    export.add_argument("--replace", action="store_true", help="replace files that are there")
    back.add_argument("input", type=place, metavar="FILE",
                      help="URL or local path of a file, or of the index of several")  # fmt: skip
    back.add_argument("checkpoint", type=lasting_place, metavar="CHECKPOINT",
                      help="URL or local path of a directory that is not there yet")  # fmt: skip
    for each in (export, back):
        each.add_argument("--names", action="append", metavar="PATTERN",
                          help="only these: a name, a branch, or a pattern such as 'params.*'; "
                          "may be repeated")  # fmt: skip
        each.add_argument("--dtype", metavar="TYPE",
                          help="convert floating-point arrays, such as to bfloat16")  # fmt: skip
    for each in (check, export, back):
        each.add_argument("--memory-limit", type=size, metavar="SIZE",
                          help="how much may be in memory, such as 256MiB")  # fmt: skip


def size(text: str) -> int:
    """A number of bytes.

    Raises ArgumentTypeError: it is none.

    Example:
        >>> size("5GB"), size("256MiB"), size("1000")
        (5000000000, 268435456, 1000)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?I?)B?", text.strip().upper())
    if found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 5GB or 256MiB")
    return max(1, int(float(found[1]) * _UNITS[found[2]]))


def run(options: argparse.Namespace) -> int:
    """Do what is asked for."""
    if options.action == "check":
        return _check(options)
    actions = {
        "ls": _ls,
        "info": _info,
        "to-safetensors": _to_safetensors,
        "from-safetensors": _from_safetensors,
    }
    return tried(lambda: actions[options.action](options))


def _open(options: argparse.Namespace, context: Context | None = None) -> Checkpoint:
    return orbax.open(
        options.checkpoint, step=options.step, item=options.item, context=context
    ).result()


def _context(options: argparse.Namespace) -> Context:
    limit = options.memory_limit
    return Context() if limit is None else Context({"memory_limit": {"limit_bytes": limit}})


def _facts(name: str, array: TensorStore) -> dict[str, Any]:
    bits = array.dtype.numpy_dtype.itemsize
    return {
        "name": name,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "bytes": prod(array.shape) * bits,
    }


def _ls(options: argparse.Namespace) -> str:
    checkpoint = _open(options)
    arrays, damaged = _surveyed(checkpoint)
    found = []
    for name in checkpoint.names():
        if name in arrays:
            found.append(_facts(name, arrays[name]))
        elif name in damaged:
            found.append({"name": name, "damaged": damaged[name]})
        else:
            found.append({"name": name, "value": checkpoint.leaf(name).value})
    if options.json:
        return json.dumps(found, indent=2, ensure_ascii=False, default=str)
    rows = [
        (each["name"], f"{each['value']!r:.60}", "", "") if "value" in each else
        (each["name"], "damaged", "", "") if "damaged" in each else
        (each["name"], str(tuple(each["shape"])), each["dtype"], _human(each["bytes"]))
        for each in found
    ]  # fmt: skip
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(3)]
    lines = [
        f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip() for a, b, c, d in rows
    ]
    total = sum(each.get("bytes", 0) for each in found)
    lines.append(f"{len(arrays):,} array{'s' * (len(arrays) != 1)}, {_human(total)}")
    return "\n".join([*lines, *(f"damaged: {name}: {why}" for name, why in damaged.items())])


def _surveyed(checkpoint: Checkpoint) -> tuple[dict[str, TensorStore], dict[str, str]]:
    """Its arrays by name, and why others, or items, cannot be opened."""

    async def body() -> dict[str, Any]:
        return await checkpoint._survey(checkpoint._arrays(None))

    found = begin(False, body, None).result()
    errors = {name: each for name, each in found.items() if isinstance(each, Exception)}
    arrays = {name: each for name, each in found.items() if name not in errors}
    return arrays, {name: str(why) for name, why in {**checkpoint.damaged, **errors}.items()}


def _check(options: argparse.Namespace) -> int:
    """0: all of it can be read; 1: something is damaged."""
    damaged: dict[str, Exception] = {}

    def work() -> str:
        context = _context(options)
        checkpoint = _open(options, context)
        damaged.update(orbax.check(checkpoint, context=context).result())
        found = {name: str(error) for name, error in damaged.items()}
        if options.json:
            return json.dumps(found, indent=2, ensure_ascii=False)
        return "\n".join(f"{name}: {why}" for name, why in found.items()) or "nothing is damaged"

    return tried(work) or int(bool(damaged))


def _info(options: argparse.Namespace) -> str:
    checkpoint = _open(options)
    arrays, damaged = _surveyed(checkpoint)
    facts = [_facts(name, array) for name, array in arrays.items()]
    found: dict[str, Any] = {
        "kind": "orbax checkpoint",
        "place": checkpoint.url,
        "layout": ", ".join(checkpoint.layout),
        "step": checkpoint.step,
        "keys": [str(key) for key in checkpoint],
        "arrays": len(facts),
        "bytes": sum(each["bytes"] for each in facts),
        "dtypes": sorted({each["dtype"] for each in facts}),
        "damaged": [f"{name}: {why}" for name, why in damaged.items()],
    }
    if checkpoint.step is not None:
        steps = orbax.steps(options.checkpoint).result()
        found["steps"] = [each.number for each in steps if each.complete]
        found["incomplete_steps"] = [each.name for each in steps if not each.complete]
    if options.json:
        return json.dumps(found, indent=2, ensure_ascii=False)
    found["bytes"] = _human(found["bytes"])
    found["damaged"] = "\n".join(found["damaged"]) or None
    shown = {name: value for name, value in found.items() if value not in (None, [])}
    width = max(map(len, shown)) + 1
    return "\n".join(
        f"{f'{name}:':<{width}} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in shown.items()
    )


def _to_safetensors(options: argparse.Namespace) -> str:
    context = _context(options)
    files = orbax.to_safetensors(
        _open(options, context),
        options.output,
        names=options.names,
        dtype=options.dtype,
        shard_bytes=options.shard_size,
        replace=options.replace,
        context=context,
    ).result()
    return "\n".join(map(str, files))


def _from_safetensors(options: argparse.Namespace) -> str:
    orbax.from_safetensors(
        options.input,
        options.checkpoint,
        names=options.names,
        dtype=options.dtype,
        context=_context(options),
    ).result()
    return str(options.checkpoint)


def _human(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
