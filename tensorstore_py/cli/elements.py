"""Elements as text, CSV, JSON, `.npy` or a picture: what `tspy cat` and `tspy head` print.

CSV is written a slab of rows at a time, so that it takes no more memory than a few chunks; the
other forms need all elements at once.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from tensorstore_py.cli.output import printable, to_json
from tensorstore_py.errors import MismatchError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["BINARY", "FORMATS", "write_elements"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Of so many elements a slab of rows is, unless one row has more.
_SLAB: Final = 2**20
_WIDTH: Final = 100


def write_elements(array: TensorStore, form: str, to: IO[bytes]) -> None:
    """Write an array in one of the `FORMATS`.

    Raises:
        MismatchError: its rank does not fit the format.
        UnsupportedError: its data type does not; a package is missing.
    """
    FORMATS[form](array, to)


def _text(array: TensorStore, to: IO[bytes]) -> None:
    data = array.read().result()
    width = shutil.get_terminal_size((_WIDTH, 0)).columns if sys.stdout.isatty() else _WIDTH
    if data.ndim == 0:
        text = _word(data[()])
    elif data.ndim == 1 and data.dtype.kind in "OSU":
        text = "\n".join(_word(each) for each in data)
    else:
        text = np.array2string(data, threshold=sys.maxsize, max_line_width=width)
    to.write(f"{printable(text, lines=True)}\n".encode())


def _csv(array: TensorStore, to: IO[bytes]) -> None:
    if array.rank > 2:
        raise MismatchError(
            f"CSV has rows and columns, and this has {array.rank} dimensions; select two, "
            f"as in [{'0, ' * (array.rank - 2)}:, :]"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for slab in _slabs(array):
        rows = slab if slab.ndim == 2 else slab.reshape(-1, 1)
        writer.writerows([_word(value) for value in row] for row in rows)
        to.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()


def _slabs(array: TensorStore) -> Iterator[Array]:
    """The elements, a few rows at a time, in whole chunks where that is possible."""
    if not array.rank or not array.shape[0]:
        yield array.read().result()
        return
    first = array.domain[0]
    row = max(1, array.size // array.shape[0])
    chunk = (array.chunk_layout.read_chunk.shape or (None,))[0] or 1
    step = max(1, _SLAB // row // chunk * chunk)
    for low in range(first.inclusive_min, first.exclusive_max, step):
        yield array[low : min(low + step, first.exclusive_max)].read().result()


def _word(value: object) -> str:
    """An element as one word; text as it is."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _json(array: TensorStore, to: IO[bytes]) -> None:
    data = array.read().result()
    found = {
        "shape": list(array.shape),
        "origin": list(array.origin),
        "dtype": array.dtype.to_json(),
        "data": _plain(data),
    }
    to.write(f"{to_json(found)}\n".encode())


def _plain(data: Array) -> object:
    if data.dtype.kind in "biuOU":
        return data.tolist()
    if data.dtype.kind == "f" or np.issubdtype(data.dtype, np.floating):
        return data.astype(np.float64).tolist()
    if data.dtype.kind == "S":
        return np.char.decode(data, errors="backslashreplace").tolist()
    return data.astype(str).tolist()


def _npy(array: TensorStore, to: IO[bytes]) -> None:
    data = array.read().result()
    if data.dtype.kind == "O" or (data.dtype.kind == "V" and data.dtype.names is None):
        raise UnsupportedError(
            f".npy has no {array.dtype.name}; write CSV, or JSON, or store it with tspy copy"
        )
    np.save(to, data, allow_pickle=False)


def _png(array: TensorStore, to: IO[bytes]) -> None:
    shape = array.shape
    if not (array.rank == 2 or (array.rank == 3 and shape[2] in (3, 4))) or 0 in shape:
        raise MismatchError(
            f"a picture has two dimensions, or three of which the last are 3 or 4 colours; "
            f"this has the shape {list(shape)}: select a part, as in [0, :, :]"
        )
    try:
        image = import_module("PIL.Image")
    except ImportError:
        raise UnsupportedError("PNG is written by pillow; install tensorstore-py[demo]") from None
    image.fromarray(_grey(array.read().result(), array.dtype.name)).save(to, "png")


def _grey(data: Array, name: str) -> Array:
    """Elements as 8 bits: 8 bits as they are, others from the least to the greatest."""
    if data.dtype == np.uint8:
        return data
    if data.dtype.kind in "OSUcMm":
        raise UnsupportedError(f"{name} is no number to draw")
    values = data.astype(np.float64)
    known = np.isfinite(values)
    low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
    scale = 255 / (high - low) if high > low else 0.0
    shown = np.where(known, (values - low) * scale, 0.0)
    return np.ascontiguousarray(np.rint(shown).clip(0, 255).astype(np.uint8))


FORMATS: Final[dict[str, Callable[[TensorStore, IO[bytes]], None]]] = {
    "text": _text,
    "csv": _csv,
    "json": _json,
    "npy": _npy,
    "png": _png,
}
#: What is no text, and not written to a terminal.
BINARY: Final = frozenset({"npy", "png"})
