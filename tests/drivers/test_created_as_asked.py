"""What is created satisfies what was asked for, whatever was asked.

Where all of a new document was chosen to satisfy the constraints it is not compared with them.
Opening it again with the same constraints is, so here it is.
"""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tensorstore_py as ts

RANK = 3
TYPES = ("bool", "int8", "uint16", "int32", "float32", "float64")
EXTENTS = st.lists(st.sampled_from([0, 1, 5, 64, 100]), min_size=RANK, max_size=RANK)
SIZES = st.lists(st.sampled_from([None, -1, 1, 4, 8, 64]), min_size=RANK, max_size=RANK)
HARD_SIZES = st.lists(st.sampled_from([None, 1, 4, 8, 64]), min_size=RANK, max_size=RANK)
ORDERS = st.permutations(range(RANK))
UNITS = st.lists(st.sampled_from([None, "4nm", "s", ""]), min_size=RANK, max_size=RANK)
LABELS = st.sampled_from([None, ["x", "y", "z"], ["", "y", ""]])


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    each = {
        "chunk_shape": HARD_SIZES,
        "write_chunk_shape": HARD_SIZES,
        "read_chunk_shape": HARD_SIZES,
        "chunk_shape_soft_constraint": SIZES,
        "read_chunk_shape_soft_constraint": SIZES,
        "read_chunk_elements": st.sampled_from([10, 1000]),
        "write_chunk_elements_soft_constraint": st.sampled_from([100, 10_000]),
        "chunk_aspect_ratio": st.sampled_from([[1, 2, 1], [0, 0, 4]]),
        "inner_order": ORDERS,
        "inner_order_soft_constraint": ORDERS,
        "grid_origin": st.just([0] * RANK),
    }
    return draw(st.fixed_dictionaries({}, optional=each))


@st.composite
def keywords(draw: st.DrawFn) -> dict[str, Any]:
    domain = ts.IndexDomain(shape=draw(EXTENTS), labels=draw(LABELS))
    layout = draw(layouts())
    try:
        asked = ts.ChunkLayout(**layout)
    except (ValueError, ts.MismatchError):
        assume(False)
    optional = {
        "chunk_layout": st.just(asked),
        "dimension_units": UNITS,
        "fill_value": st.sampled_from([0, 1]),
        "rank": st.just(RANK),
    }
    more = draw(st.fixed_dictionaries({}, optional=optional))
    return {"dtype": draw(st.sampled_from(TYPES)), "domain": domain, **more}


@pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
@given(asked=keywords())
def test_what_was_created_opens_with_the_same_constraints(
    driver: str, asked: dict[str, Any]
) -> None:
    spec = {"driver": driver, "kvstore": "memory://a/"}
    context = ts.Context()
    try:
        created = ts.open(spec, create=True, context=context, **asked).result()
    except (ts.SpecError, ts.MismatchError):
        assume(False)

    opened = ts.open(spec, open=True, context=context, **asked).result()

    assert opened.schema == created.schema
    assert opened.dtype == ts.dtype(asked["dtype"])
    assert opened.shape == asked["domain"].shape
