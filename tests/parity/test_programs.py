"""Random programs on the reference implementation and on ours: the same results, the same refusals.

A step is a piece of text in `ts` (the library), `np`, `count` and `s` (its state: `s.x` is the
array as a whole, `s.v` a view of it), so that both run the very same thing and a failure can be
pasted.
"""

import itertools
from types import SimpleNamespace

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.parity.libraries import ours, wheel

RANK = st.integers(1, 3)


def run(library, steps):
    """What every step shows: its value, or the class of what it raised."""
    state = SimpleNamespace(x=None, v=None)
    names = {"count": count, "ts": library, "np": np, "s": state, "context": library.Context()}
    shown: list[object] = []
    for step in steps:
        try:
            if " = " in step:
                exec(step, names)
                shown.append(None)
            else:
                shown.append(eval(step, names))
        except Exception as error:
            shown.append(error)
    return shown


def count(view, first):
    """Values for a view, one larger than the other."""
    values = np.arange(first, first + view.size).reshape(view.shape)
    return values.astype(view.dtype.numpy_dtype)


def check(steps):
    for step, mine, theirs in zip(steps, run(ours, steps), run(wheel, steps), strict=True):
        note(f"{step}\n    ours:      {mine!r}\n    reference: {theirs!r}")
        if isinstance(theirs, Exception):
            assert isinstance(mine, type(theirs)), f"{step}: {mine!r} instead of {theirs!r}"
        elif isinstance(theirs, np.ndarray):
            assert isinstance(mine, np.ndarray), f"{step}: {mine!r} instead of {theirs!r}"
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert mine == theirs, f"{step}: {mine!r} instead of {theirs!r}"


@st.composite
def creations(draw, rank):
    shape = [draw(st.integers(0, 9)) for _ in range(rank)]
    chunks = [draw(st.integers(1, 4)) for _ in range(rank)]
    dtype = draw(st.sampled_from(["uint8", "int16", "float32", "bool"]))
    driver = draw(st.sampled_from(["zarr", "zarr3"]))
    members: dict[str, object] = {"driver": driver, "kvstore": "memory://a/"}
    if driver == "zarr":
        members["metadata"] = {
            "chunks": chunks,
            "order": draw(st.sampled_from("CF" if rank > 1 else "C")),
        }
    elif draw(st.booleans()):
        shards = [size * draw(st.integers(1, 3)) for size in chunks]
        members["metadata"] = {
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shards}},
            "codecs": [
                {"name": "sharding_indexed", "configuration": {"chunk_shape": chunks}},
            ],
        }
    else:
        members["metadata"] = {
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}}
        }
    fill = draw(st.sampled_from(["", ", fill_value=1"]))
    units = draw(st.sampled_from(["", f", dimension_units={['nm'] * rank}"]))
    options = f"create=True, shape={shape}, dtype={dtype!r}{fill}{units}"
    return f"s.x = s.v = ts.open({members}, context=context, {options}).result()", shape


def near(size):
    """Mostly inside, sometimes just outside."""
    return st.integers(-1, size + 1)


@st.composite
def terms(draw, size, arrays):
    kinds = ["slice", "slice", "slice", "int", "all"]
    kind = draw(st.sampled_from([*kinds, "array", "mask"] if arrays else kinds))
    if kind == "int":
        return str(draw(near(size)))
    if kind == "all":
        return ":"
    if kind == "array":
        return str(draw(st.lists(st.integers(0, max(size - 1, 0)), min_size=1, max_size=4)))
    if kind == "mask":
        return str(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    low, high = draw(near(size)), draw(near(size))
    step = draw(st.sampled_from(["", "", ":2", ":3", ":-1"]))
    side = st.booleans()
    return f"{low if draw(side) else ''}:{high if draw(side) else ''}{step}"


@st.composite
def selections(draw, shape):
    mode = draw(st.sampled_from(["", "", ".oindex", ".vindex"]))
    used = draw(st.integers(1, len(shape)))
    found = [draw(terms(size, arrays=bool(mode))) for size in shape[:used]]
    if draw(st.integers(0, 5)) == 0:
        found.insert(draw(st.integers(0, len(found))), "None")
    if draw(st.integers(0, 5)) == 0:
        found.append("...")
    return f"{mode}[{', '.join(found)}]"


@st.composite
def programs(draw):
    rank = draw(RANK)
    creation, shape = draw(creations(rank))
    numbers = itertools.count(1)
    steps = [creation, "s.x.read().result()"]
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(
            st.sampled_from(["write", "write", "scalar", "read", "view", "resize", "part", "order"])
        )
        chosen = draw(selections(shape))
        # The reference stores chunks for a write of nothing; we store nothing.
        chosen_size = f"s.x{chosen}.size"
        if kind == "scalar":
            steps.append(f"{chosen_size} and s.x{chosen}.write({next(numbers)}).result()")
        elif kind == "write":
            steps += [
                f"s.v = s.x{chosen}",
                f"s.v.size and s.v.write(count(s.v, {next(numbers) * 7})).result()",
                "s.x.read().result()",
            ]
        elif kind == "read":
            steps.append(f"s.x{chosen}.read().result()")
        elif kind == "order":
            steps.append(f"s.x{chosen}.read(order='F').result()")
        elif kind == "view":
            steps += [f"s.v = s.x{chosen}", "s.v.read().result()", "s.v.shape", "str(s.v.domain)"]
        elif kind == "part":
            steps.append(f"if {chosen_size}: s.x{chosen} = {next(numbers)}")
        else:
            new = [draw(st.integers(0, 9)) for _ in shape]
            flag = draw(st.sampled_from(["", ", expand_only=True", ", shrink_only=True"]))
            steps += [
                f"s.x = s.v = s.x.resize(exclusive_max={new}{flag}).result()",
                "s.x = s.v = s.x.resolve().result()",
                "s.x.shape",
                "s.x.read().result()",
            ]
            shape = new if not flag else shape
        if draw(st.booleans()):
            steps.append("sorted(s.x.kvstore.list().result())")
    return [*steps, "s.x.read().result()", "str(s.x.domain)", "s.x.schema.to_json()"]


@settings(max_examples=3 * settings().max_examples)
@given(programs())
def test_programs(steps):
    check(steps)
