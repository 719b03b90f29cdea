"""What is stored of random views after random writes, by the reference and by ours."""

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.parity.libraries import ours, wheel


@st.composite
def slices(draw, shape):
    terms = []
    for size in shape:
        low = draw(st.integers(0, size - 1))
        high = draw(st.integers(low, size))
        terms.append(draw(st.sampled_from([":", f"{low}:{high}", f"{low}:{high}:2", f"{low}"])))
    return f"s[{', '.join(terms)}]" if terms else "s"


@st.composite
def selections(draw, shape):
    if not shape or draw(st.booleans()):
        return draw(slices(shape))
    arrays = [str(draw(st.lists(st.integers(0, size - 1), max_size=3))) for size in shape]
    return f"s.oindex[{', '.join(arrays)}]"


@st.composite
def cases(draw):
    shape = draw(st.lists(st.integers(1, 9), max_size=2))
    chunks = [draw(st.integers(1, 4)) for _ in shape]
    sharded = bool(shape) and draw(st.booleans())
    outer = [size * draw(st.integers(1, 3)) for size in chunks] if sharded else chunks
    codec = {"name": "sharding_indexed", "configuration": {"chunk_shape": chunks}}
    spec = {
        "driver": "zarr3",
        "kvstore": "memory://",
        "store_data_equal_to_fill_value": draw(st.booleans()),
        "metadata": {
            "shape": shape,
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": outer}},
            "codecs": [codec if sharded else "bytes"],
        },
    }
    writes = draw(st.lists(st.tuples(slices(shape), st.integers(0, 1)), max_size=3))
    return spec, writes, draw(selections(shape))


def run(library, spec, writes, query):
    s = library.open(spec, create=True, context=library.Context()).result()
    for where, value in writes:
        view = eval(where, {"s": s})
        # The reference stores chunks for a write of nothing; we store nothing.
        if view.size:
            view.write(np.uint8(value)).result()
    found = eval(query, {"s": s}).storage_statistics(query_not_stored=True, query_fully_stored=True)
    return found.result().not_stored, found.result().fully_stored


@settings(max_examples=2 * settings().max_examples)
@given(cases())
def test_statistics(case):
    mine, theirs = run(ours, *case), run(wheel, *case)
    note(f"ours: {mine}\nreference: {theirs}")
    assert mine == theirs
