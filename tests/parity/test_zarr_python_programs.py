"""Random programs on `ts.zarr.Array`, zarr-python's Array and a NumPy array: the same results.

Where zarr-python refuses what NumPy takes (slices that run backwards, values that broadcast, masks
along a dimension), it is NumPy that is followed; everything else is what all three say.
"""

from typing import Any

import numpy as np
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts

BUILTIN = (IndexError, ValueError, TypeError, OverflowError)
FORMS: list[dict[str, Any]] = [
    {"zarr_format": 2, "order": "F"},
    {"zarr_format": 2, "dtype": ">i4"},
    {"zarr_format": 3},
    {"zarr_format": 3, "shards": True},
]


def made(library: Any, data: np.ndarray, chunks: Any, form: dict[str, Any]) -> Any:
    """The same array in a library."""
    arguments = {**form, "chunks": chunks}
    if arguments.pop("shards", False):
        arguments["shards"] = tuple(2 * size for size in chunks)
    dtype = arguments.pop("dtype", data.dtype)
    z = library.create_array(
        store={} if library is zarr else None, shape=data.shape, dtype=dtype, **arguments
    )
    z[...] = data
    return z


@st.composite
def positions(draw: st.DrawFn, extent: int) -> Any:
    """A position, now and then outside."""
    return draw(st.integers(-extent - 1, extent))


@st.composite
def slices(draw: st.DrawFn, extent: int) -> slice:
    ends = st.none() | st.integers(-extent - 3, extent + 3)
    return slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 4)))


@st.composite
def selections(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[str, Any]:
    """A way to select, and a selection."""
    kind = draw(st.sampled_from(["basic", "orthogonal", "coordinate", "mask", "block"]))
    if kind == "mask":
        size = int(np.prod(shape))
        flat = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        return kind, np.array(flat, bool).reshape(shape)
    if kind == "coordinate":
        count = draw(st.integers(1, 4))
        columns = [draw(st.lists(positions(n), min_size=count, max_size=count)) for n in shape]
        return kind, tuple(np.array(column) for column in columns)
    terms = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        term = positions(extent) | slices(extent)
        if kind == "block":
            # Of ends in front of all chunks, and of beginnings behind them, zarr-python makes
            # something else than NumPy.
            ends = st.none() | st.integers(0, extent + 2)
            term = positions(extent) | st.builds(slice, st.none(), ends)
        if kind == "orthogonal":
            term |= st.lists(positions(extent), min_size=1, max_size=4).map(np.array)
            term |= st.lists(st.booleans(), min_size=extent, max_size=extent).map(np.array)
        terms.append(draw(term))
    if kind != "orthogonal" and draw(st.booleans()):
        terms.append(...)
    return kind, tuple(terms)


def outcome(function: Any) -> tuple[str, Any]:
    try:
        return "value", np.asarray(function())
    except Exception as error:
        return "error", type(error)


def same(ours: tuple[str, Any], theirs: tuple[str, Any]) -> None:
    assert ours[0] == theirs[0]
    if ours[0] == "error":
        # Errors of zarr-python's own are of the builtin class that tells what is wrong.
        assert issubclass(ours[1], next(kind for kind in BUILTIN if issubclass(theirs[1], kind)))
        return
    assert ours[1].shape == theirs[1].shape
    np.testing.assert_array_equal(ours[1], theirs[1])


@settings(max_examples=settings().max_examples // 4)
@given(st.data(), st.sampled_from(FORMS))
def test_programs(data: st.DataObject, form: dict[str, Any]) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, 4)) for _ in shape)
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    ours, theirs = made(ts.zarr, values, chunks, form), made(zarr, values, chunks, form)
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(st.sampled_from(["read", "read", "write", "write", "resize", "append"]))
        if step == "resize":
            size = tuple(data.draw(st.integers(1, 7)) for _ in shape)
            # What stays in a chunk that is cut shows up again, if not all of it is overwritten.
            cut = zip(size, ours.form.grid, ours.shape, strict=True)
            size = tuple(
                new if new > old else min(old, -(-new // grid) * grid) for new, grid, old in cut
            )
            ours.resize(size)
            theirs.resize(size)
        elif step == "append" and max(ours.shape) < 12:
            axis = data.draw(st.integers(0, len(shape) - 1))
            grown = [2 if dim == axis else extent for dim, extent in enumerate(ours.shape)]
            more = np.full(grown, 77, "i4")
            assert ours.append(more, axis) == theirs.append(more, axis)
        else:
            access(data, step, ours, theirs)
        same(outcome(lambda: ours[...]), outcome(lambda: theirs[...]))
        assert (ours.shape, ours.chunks, ours.shards) == (theirs.shape, chunks, theirs.shards)
        assert ours.cdata_shape == theirs.cdata_shape


def access(data: st.DataObject, step: str, ours: Any, theirs: Any) -> None:
    """One read or write, by one of the methods."""
    kind, item = data.draw(selections(ours.shape))
    get = f"get_{kind}_selection"
    same(outcome(lambda: getattr(ours, get)(item)), outcome(lambda: getattr(theirs, get)(item)))
    lone_mask = len(item) == 1 and isinstance(item[0], np.ndarray) and item[0].dtype == bool
    if kind == "basic" or (kind == "orthogonal" and not lone_mask):
        same(outcome(lambda: ours[item]), outcome(lambda: theirs[item]))
    if step == "read":
        return
    found = outcome(lambda: getattr(ours, get)(item))
    value: Any = 5
    if found[0] == "value" and data.draw(st.booleans()):
        value = -1 - np.arange(found[1].size, dtype="f8").reshape(found[1].shape)
        if repeats(item):
            value = np.full_like(value, 3)
    put = f"set_{kind}_selection"
    same(
        outcome(lambda: getattr(ours, put)(item, value)),
        outcome(lambda: getattr(theirs, put)(item, value)),
    )


def repeats(item: Any) -> bool:
    """Whether an element may be selected twice, when it is open which value it gets."""
    terms = item if isinstance(item, tuple) else (item,)
    return any(isinstance(term, np.ndarray) and term.dtype != bool for term in terms)


@given(st.data(), st.sampled_from(FORMS))
def test_what_numpy_takes_too_is_what_numpy_says(data: st.DataObject, form: dict[str, Any]) -> None:
    shape = (5, 7)
    model = np.arange(35, dtype="i4").reshape(shape)
    z = made(ts.zarr, model, (2, 3), form)
    ends = st.none() | st.integers(-9, 9)
    steps = st.integers(-4, 4).filter(bool) | st.none()
    terms = [data.draw(positions(extent) | st.builds(slice, ends, ends, steps)) for extent in shape]
    item = tuple(terms)

    same(outcome(lambda: z[item]), outcome(lambda: model[item]))
    if outcome(lambda: model[item])[0] == "value":
        row = np.arange(model[item].shape[-1]) if model[item].ndim else np.int32(3)
        z[item] = row
        model[item] = row
        np.testing.assert_array_equal(z[:], model)
