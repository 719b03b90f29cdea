"""What is created satisfies what was asked for, whatever was asked.

Where all of a new document was chosen to satisfy the constraints it is not compared with them.
Opening it again with the same constraints is, so here it is.
"""

from typing import Any

import pytest
from hypothesis import assume, event, given
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
    # Of many, most contradict each other; an order is what codecs speak of as well.
    some = st.lists(st.sampled_from(list(each)), max_size=2, unique=True)
    names = draw(st.just(["inner_order"]) | some)
    return {name: draw(each[name]) for name in names}


@st.composite
def keywords(draw: st.DrawFn) -> dict[str, Any]:
    domain = ts.IndexDomain(shape=draw(EXTENTS), labels=draw(LABELS))
    layout = draw(layouts())
    try:
        asked = ts.ChunkLayout(**layout)
    except (ValueError, ts.MismatchError):
        assume(False)
    optional = {
        "dimension_units": UNITS,
        "fill_value": st.sampled_from([0, 1]),
        "rank": st.just(RANK),
    }
    more = draw(st.fixed_dictionaries({}, optional=optional))
    data_type = draw(st.sampled_from(TYPES))
    return {"dtype": data_type, "domain": domain, "chunk_layout": asked, **more}


def named(name: str, **configuration: object) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


CODECS = st.sampled_from([
    ["bytes", "gzip"],
    [],
    ["zstd"],
    [named("bytes", endian="little"), named("blosc", cname="zstd", clevel=3), "crc32c"],
    [named("transpose", order=[2, 0, 1]), named("bytes", endian="big")],
    [named("sharding_indexed", chunk_shape=[4, 4, 4])],
    [named("sharding_indexed", codecs=["bytes", "zstd"], chunk_shape=[8, 1, 4]), "crc32c"],
    [named("transpose", order=[1, 0, 2]), named("sharding_indexed", chunk_shape=[4, 8, 8])],
])  # fmt: skip
METADATA = st.fixed_dictionaries({"codecs": CODECS}, optional={
    "shape": EXTENTS,
    "data_type": st.sampled_from(TYPES),
    "chunk_grid": st.sampled_from([
        named("regular", chunk_shape=[8, 8, 8]),
        named("regular", chunk_shape=[64, 4, 16]),
        named("rectilinear", kind="inline", chunk_shapes=[[[8, 20]], 4, 16]),
    ]),
    "dimension_names": st.sampled_from([["x", None, "z"], [None] * 3]),
    "chunk_key_encoding": st.just(named("v2", separator="/")),
    "attributes": st.sampled_from([{}, {"a": 1}, {"dimension_units": ["4nm", None, "s"]}]),
})  # fmt: skip


def created_and_opened(spec: dict[str, Any], asked: dict[str, Any]) -> ts.TensorStore | None:
    """The array, opened by what it was created by; None if that is refused."""
    context = ts.Context()
    try:
        created = ts.open(spec, create=True, context=context, **asked).result()
    except (ts.SpecError, ts.MismatchError):
        event("refused")
        return None
    opened = ts.open(spec, open=True, context=context, **asked).result()
    assert opened.schema == created.schema
    return opened


@given(stated=METADATA, asked=keywords(), also=st.booleans(), codec=st.none() | CODECS)
def test_what_metadata_says_opens_with_the_same_metadata(
    stated: dict[str, Any], asked: dict[str, Any], also: bool, codec: list[Any] | None
) -> None:
    data_type = stated.get("data_type", asked["dtype"])
    if also:
        stated = {name: value for name, value in stated.items() if name != "shape"}
        codecs = {} if codec is None else {"codec": {"driver": "zarr3", "codecs": codec}}
        asked = {**asked, "dtype": data_type, **codecs}
    else:  # and so nothing but the metadata is compared
        stated = {"shape": asked["domain"].shape, **stated}
        asked = {"dtype": data_type}
    spec = {"driver": "zarr3", "kvstore": "memory://a/", "metadata": stated}
    opened = created_and_opened(spec, asked)
    if opened is None:
        return
    assert opened.dtype == ts.dtype(data_type)


@pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
@given(asked=keywords())
def test_what_was_created_opens_with_the_same_constraints(
    driver: str, asked: dict[str, Any]
) -> None:
    spec = {"driver": driver, "kvstore": "memory://a/"}
    opened = created_and_opened(spec, asked)
    if opened is None:
        return
    assert opened.dtype == ts.dtype(asked["dtype"])
    assert opened.shape == asked["domain"].shape
