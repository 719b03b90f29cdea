"""Say what arrays come to: minimum, maximum, mean, standard deviation, quantiles.

NaN and NaT are passed over, and counted. Each chunk is read once, and a few are in memory.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._compute.reduce import reduce
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.facts import problem_lines
from tensorstore_py.cli.found import add_trusted_target, find, some_arrays, together, trusted
from tensorstore_py.cli.output import add_json, examples, printed, table
from tensorstore_py.cli.progress import add_progress, metered
from tensorstore_py.errors import TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._compute.reductions import Reduction
    from tensorstore_py._runtime.future import Future
    from tensorstore_py.cli.found import Entry
    from tensorstore_py.cli.progress import Meter

__all__ = ["add", "run"]

Facts = dict[str, Any]  # Any: JSON, to be walked through

#: So many arrays are read at a time.
_AT_A_TIME: Final = 8
_QUANTILES: Final = (0.01, 0.25, 0.5, 0.75, 0.99)
_COLUMNS = ("array", "elements", "nan", "fill", "min", "max", "mean", "std",
            *(f"{q:.0%}" for q in _QUANTILES))  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    parser.add_argument("--quantiles", action="store_true",
                        help="also where 1, 25, 50, 75 and 99 percent are below")  # fmt: skip
    add_progress(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy stats run.zarr\n  tspy stats 'image.zarr[t=0]' --quantiles\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print the figures; 1 if an array is damaged."""

    def work() -> list[Facts]:
        asked = some_arrays(options.target, find(trusted(options.target, options)))
        with metered(options, "stats", [each.nbytes for each in asked]) as meter:
            return _all_facts(asked, meter, quantiles=options.quantiles)

    def code(rows: list[Facts]) -> int:
        return FAILED if any("problem" in row for row in rows) else DONE

    return printed(options, work, _text, code)


def _all_facts(asked: Sequence[Entry], meter: Meter, *, quantiles: bool) -> list[Facts]:
    """What arrays come to; several are read at a time, so that small ones do not wait."""
    known = {
        number: each.found
        for number, each in enumerate(asked)
        if isinstance(each.found, TensorStore)
    }

    def start(number: int, array: TensorStore) -> Future[Facts]:
        future = reduce(
            array, _reductions(array, quantiles), skipna=True, q=_QUANTILES,
            progress=meter.part(number),
        )  # fmt: skip
        future.add_done_callback(lambda _: meter.finish(number))
        return future

    outcomes = together((partial(start, *each) for each in known.items()), _AT_A_TIME)
    found = dict(zip(known, outcomes, strict=True))
    return [_facts(each, found.get(number)) for number, each in enumerate(asked)]


def _facts(entry: Entry, found: Facts | TensorStoreError | None) -> Facts:
    array = entry.found
    if not isinstance(array, TensorStore) or found is None:
        return {"array": entry.name, "problem": entry.problem}
    told: Facts = {"array": entry.name, "elements": array.size}
    if isinstance(found, TensorStoreError):
        return told | {"problem": str(found)}
    told["nan"] = array.size - int(found.pop("count"))
    if "fill_count" in found:
        told["fill"] = int(found.pop("fill_count"))
    values = found.pop("quantiles", None)
    told |= {name: _plain(value) for name, value in found.items()}
    if values is not None:
        told["quantiles"] = {
            f"{q:g}": float(value) for q, value in zip(_QUANTILES, values, strict=True)
        }
    return told


def _reductions(array: TensorStore, quantiles: bool) -> list[Reduction]:
    """What there is for a data type."""
    asked: list[Reduction] = ["count"]
    if array.fill_value is not None:
        asked.append("fill_count")
    kind = _kind(array)
    if kind == "other" or not array.size:
        return asked
    asked += ["min", "max", "mean"] if kind != "complex" else ["mean"]
    if kind in ("real", "complex"):
        asked.append("std")
    if quantiles and kind == "real":
        asked.append("quantiles")
    return asked


def _kind(array: TensorStore) -> str:
    dtype = array.dtype.numpy_dtype
    if dtype.kind in "mM":
        return "time"
    if dtype.kind == "c":
        return "complex"
    is_small_float = dtype.kind == "V" and dtype.type is not np.void  # of ml_dtypes
    if dtype.kind in "biuf" or is_small_float:
        return "real"
    return "other"


def _plain(value: object) -> object:
    """A NumPy scalar as JSON."""
    item = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.datetime64 | np.timedelta64) or isinstance(item, complex):
        return str(value)
    return item if isinstance(item, bool | int | float | str) else float(str(item))


def _text(rows: list[Facts]) -> str:
    whole = [row for row in rows if "problem" not in row]
    text = table(_COLUMNS, [_cells(row) for row in whole], _COLUMNS[1:], {"array": "array"})
    return "\n".join(filter(None, [text, *problem_lines(rows, "array")]))


def _cells(row: Facts) -> list[str]:
    counts = [row["elements"], row["nan"] or None, row.get("fill")]
    values = [row["array"] or ".", *(None if each is None else f"{each:,}" for each in counts)]
    values += [row.get(name) for name in ("min", "max", "mean", "std")]
    values += [row.get("quantiles", {}).get(f"{q:g}") for q in _QUANTILES]
    return ["" if value is None else _number(value) for value in values]


def _number(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
