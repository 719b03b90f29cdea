"""Values that go through JSON, pickle, `copy` and URLs come back equal, next to the reference.

What is equal is decided by what a value says, not by how it came to be, and so is what is not.
"""

import copy
import pickle
from typing import Any

import pytest
import tensorstore as wheel
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tests.parity import generated_specs

KVSTORES = ["memory://a/", {"driver": "memory", "path": "a/"}, "memory://a", "file:///tmp/a b/"]
SHAPE = [[3, 4], [0, 1], [70, 5]]


def _maybe(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


def _named(**constants: Any) -> dict[str, st.SearchStrategy[Any]]:
    return {name: st.sampled_from(values) for name, values in constants.items()}


#: Parts that say the same in several ways, so that pairs are often equal.
SCHEMAS = _maybe(
    **_named(
        rank=[2],
        dtype=["uint8", "float32"],
        domain=[{"shape": [3, 4]}, {"shape": [[3], [4]]}, {"rank": 2}, {"labels": ["x", ""]}],
        dimension_units=[[None, None], ["4nm", None], [[4, "nm"], None]],
        chunk_layout=[
            {"rank": 2}, {}, {"read_chunk": {"shape": [1, 2]}}, {"chunk": {"shape": [1, 2]}},
            {"inner_order": [1, 0]}, {"read_chunk": {"shape_soft_constraint": [1, 2]}},
        ],
        fill_value=[0, 1],
    )
)  # fmt: skip
METADATA = {
    "zarr3": _maybe(
        **_named(
            shape=SHAPE,
            data_type=["uint8", "float32"],
            dimension_names=[["x", None], [None, None]],
            chunk_grid=[{"name": "regular", "configuration": {"chunk_shape": [2, 2]}}],
            codecs=[["bytes"], [{"name": "bytes"}, "gzip"], ["gzip"]],
            attributes=[{}, {"a": 1}, {"a": True}, {"a": 1.0}],
            fill_value=[0],
            zarr_format=[3],
        )
    ),
    "zarr": _maybe(
        **_named(
            shape=SHAPE,
            dtype=["|u1", "<f4"],
            chunks=[[2, 2]],
            compressor=[None, {"id": "zlib"}, {"id": "zlib", "level": 1}],
            order=["C"],
            dimension_separator=[".", "/"],
            fill_value=[None, 0],
        )
    ),
    "n5": _maybe(
        **_named(
            dimensions=SHAPE,
            dataType=["uint8", "float32"],
            blockSize=[[2, 2]],
            axes=[["x", ""]],
            compression=[{"type": "raw"}, {"type": "gzip"}, {"type": "gzip", "level": -1}],
        )
    ),
}
FLAGS = {
    **_named(
        open=[True, False],
        create=[True, False],
        path=["", "b", "b/"],
        recheck_cached_data=[True, False, "open", 1, 0],
        cache_pool=["cache_pool", "cache_pool#a", {"total_bytes_limit": 3}, {}],
        context=[{}, {"cache_pool#a": {"total_bytes_limit": 3}}],
        rank=[2],
        dtype=["uint8", "float32"],
        transform=[{"input_rank": 2}, {"input_shape": [1, 2]}],
    )
}


@st.composite
def _specs(draw: st.DrawFn) -> dict[str, Any]:
    driver = draw(st.sampled_from(["zarr3", "zarr", "n5"]))
    parts = _maybe(schema=SCHEMAS, metadata=METADATA[driver], **FLAGS)
    return {"driver": driver, "kvstore": draw(st.sampled_from(KVSTORES)), **draw(parts)}


@st.composite
def _layered(draw: st.DrawFn) -> dict[str, Any]:
    """A spec, or a driver over one or two."""
    kind = draw(st.sampled_from(["plain", "cast", "downsample", "stack"]))
    base = draw(_specs())
    if kind == "cast":
        return {"driver": "cast", "base": base, "dtype": "int64"}
    if kind == "downsample":
        method = draw(st.sampled_from(["mean", "min"]))
        more = {"downsample_factors": [2, 1], "downsample_method": method}
        return {"driver": "downsample", "base": base, **more}
    if kind == "stack":
        return {"driver": "stack", "layers": [base, draw(_specs())]}
    return base


def _spec(module: Any, json: object) -> Any:
    """None if it is refused."""
    try:
        return module.Spec(json)
    except ValueError:
        return None


def _comes_back(value: Any, parse: Any = None) -> None:
    """Equal, and with an equal hash if there is one, after each round trip."""
    trips = [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
    if parse is not None:
        trips.append(lambda each: parse(each.to_json()))
        trips.append(lambda each: parse(pickle.loads(pickle.dumps(each)).to_json()))
    for trip in trips:
        found = trip(value)
        assert found == value
        assert value == found
        if type(value).__hash__ is not None:
            assert hash(found) == hash(value)


@given(_layered())
@settings(max_examples=70)
def test_specs_come_back(json: dict[str, Any]) -> None:
    spec = _spec(ts, json)
    if spec is None:
        return
    _comes_back(spec, ts.Spec)
    _comes_back(spec.schema, ts.Schema)
    _comes_back(spec.chunk_layout, ts.ChunkLayout)
    for part in (spec.codec, spec.kvstore, spec.transform, spec.domain, spec.dtype, spec.open_mode):
        if part is not None:
            parsed = {"codec": ts.CodecSpec, "dtype": ts.dtype}
            _comes_back(part, parsed.get(type(part).__name__))
    for dimension in spec.domain or ():
        _comes_back(dimension)
    for unit in spec.dimension_units or ():
        if unit is not None:
            _comes_back(unit, ts.Unit)
    whole = spec.to_json(include_defaults=True)
    assert ts.Spec(whole).to_json(include_defaults=True) == whole


@given(_specs(), _specs())
@settings(max_examples=70)
def test_specs_are_equal_where_the_reference_says_so(one: Any, other: Any) -> None:
    for left, right in ((one, other), (one, {**other, **one}), (one, {**one, **other})):
        mine = [_spec(ts, json) for json in (left, right)]
        theirs = [_spec(wheel, json) for json in (left, right)]
        if all(each is not None for each in (*mine, *theirs)):
            assert (mine[0] == mine[1]) == (theirs[0] == theirs[1])


@pytest.mark.parametrize("number", range(0, generated_specs.COUNT, 40))
def test_specs_of_new_arrays_come_back(number: int) -> None:
    spec = _spec(ts, generated_specs.spec(number))
    if spec is not None:
        _comes_back(spec, ts.Spec)
        _comes_back(spec.schema, ts.Schema)


@given(_specs())
@settings(max_examples=40)
def test_bound_specs_come_back(json: dict[str, Any]) -> None:
    spec = _spec(ts, json)
    if spec is None:
        return
    try:
        spec.update(context=ts.Context())
    except ValueError:  # a resource that nothing defines
        return
    assert copy.copy(spec) == spec
    assert copy.deepcopy(spec) == spec
    assert ts.Spec(spec) == spec
    other = pickle.loads(pickle.dumps(spec))
    assert other.to_json() == spec.to_json()
    # Another process has other resources, and its arrays in memory are other arrays.
    assert other != spec


def _equal(one: Any, other: Any) -> bool:
    """Whether the reference says so; it compares no values of different types."""
    return type(one) is type(other) and bool(one == other)


VALUES = {
    "dtype": lambda module: [module.dtype("uint8"), module.dtype("string"), module.json],
    "Unit": lambda module: [module.Unit("4nm"), module.Unit(3), module.Unit("")],
    "Dim": lambda module: [
        module.Dim(), module.Dim(3), module.Dim(3, label="x", implicit_upper=True), module.Dim("x"),
    ],
    "IndexDomain": lambda module: [
        module.IndexDomain(rank=0), module.IndexDomain(rank=3), module.IndexDomain(labels=["x"]),
        module.IndexDomain(inclusive_min=[-3], shape=[7], implicit_lower_bounds=[True]),
    ],
    "IndexTransform": lambda module: [
        module.IndexTransform(3), module.IndexTransform(2)[module.d[0][1:9:3]],
        module.IndexTransform(input_shape=[5])[[3, 1, 2]],
        module.IndexTransform(input_shape=[5, 5]).vindex[[[3, 1]], [[2, 0]]],
        module.IndexTransform(3)[module.d[1].translate_by[7].label["y"]],
    ],
    "OutputIndexMap": lambda module: list(
        module.IndexTransform(input_shape=[5, 5, 5])[2, [3, 1, 2]].output
    ),
    "DimExpression": lambda module: [
        module.d[0], module.d["x", 1:].label["y", ""], module.d[:][1:5].translate_to[0],
        module.d[0, 1].diagonal.mark_bounds_implicit[True], module.d[0].oindex[[1, 2]],
        module.d[0].stride[-2],
    ],
    "OpenMode": lambda module: [module.OpenMode(), module.OpenMode(create=True, open=True)],
    "KeyRange": lambda module: [
        module.KvStore.KeyRange(), module.KvStore.KeyRange("a", "b"),
    ],
    "KvStore.Spec": lambda module: [
        module.KvStore.Spec("memory://a/"), module.KvStore.Spec("file:///tmp/a b/"),
        module.KvStore.Spec("s3://bucket/a/"), module.KvStore.Spec("gs://bucket/a/"),
        module.KvStore.Spec("http://localhost/a?b"),
    ],
    "Schema": lambda module: [
        module.Schema(), module.Schema(rank=2, dimension_units=[None, None]),
        module.Schema(dtype="float32", fill_value=1.5), module.Schema(shape=[3]),
    ],
    "ChunkLayout": lambda module: [
        module.ChunkLayout(), module.ChunkLayout(rank=2, inner_order=[1, 0]),
        module.ChunkLayout(chunk_shape=[1, 2]),
        module.ChunkLayout(read_chunk_elements_soft_constraint=7),
    ],
    "Grid": lambda module: [
        module.ChunkLayout.Grid(), module.ChunkLayout.Grid(shape=[1, None]),
    ],
    "Generation": lambda module: [module.KvStore.TimestampedStorageGeneration(b"a", 3.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name: str) -> None:
    values = VALUES[name](ts)
    for value in values:
        _comes_back(value)
        if hasattr(value, "to_json") and name != "OutputIndexMap":
            parse = type(value)
            by_name = name in ("IndexDomain", "IndexTransform")
            json = value.to_json()
            assert (parse(json=json) if by_name else parse(json)) == value
        if name == "KvStore.Spec":
            assert ts.KvStore.Spec(value.url) == value
    theirs = VALUES[name](wheel)
    for row, mine in enumerate(values):
        for column, other in enumerate(values):
            assert (mine == other) is _equal(theirs[row], theirs[column])


def test_what_only_we_compare_comes_back() -> None:
    nan = ts.Schema(dtype="float32", fill_value=float("nan"), dimension_units=["4nm"])
    _comes_back(nan, ts.Schema)
    assert nan != ts.Schema(dtype="float32", fill_value=1, dimension_units=["4nm"])
    _comes_back(ts.Schema(dtype="datetime64[s]", fill_value="NaT"), ts.Schema)
    _comes_back(ts.CodecSpec({"driver": "zarr3", "codecs": ["gzip"]}), ts.CodecSpec)
    _comes_back(ts.Context.Spec({"cache_pool": {"total_bytes_limit": 3}}), ts.Context.Spec)
    _comes_back(ts.IndexTransform(3).output)
    read = ts.KvStore.ReadResult(
        "value", memoryview(b"abc"), ts.KvStore.TimestampedStorageGeneration(b"1", 2.0)
    )
    _comes_back(read)
    assert read != ts.KvStore.ReadResult("missing", b"", read.stamp)
    for spec in (
        {"driver": "array", "array": [1, 2], "dtype": "int8"},
        {"driver": "array", "array": [[float("nan")]], "dtype": "float32", "schema": {"rank": 2}},
        {"driver": "json", "kvstore": "memory://a", "json_pointer": "/a"},
        {"driver": "auto", "kvstore": "memory://a/", "schema": {"rank": 2}},
    ):
        _comes_back(ts.Spec(spec), ts.Spec)


def test_specs_of_which_there_is_no_json_are_compared_by_their_members() -> None:
    one, other = (ts.Spec({"driver": "array", "array": [1], "dtype": "uint8"}) for _ in range(2))
    assert one == other
    held = [ts.virtual_chunked(_nothing, dtype="uint8", shape=[3]).spec() for _ in range(2)]
    assert held[0] == held[0].copy()
    assert held[0] != one


def _nothing(*_: object) -> None:
    """Reads as zeros."""


def test_a_context_is_copied_as_itself_and_pickled_as_what_it_says() -> None:
    context = ts.Context({"cache_pool": {"total_bytes_limit": 3}})
    pool = context["cache_pool"]
    assert copy.copy(context) is copy.deepcopy(context) is context
    assert copy.copy(pool) is copy.deepcopy(pool) is pool
    assert pickle.loads(pickle.dumps(context)).spec == context.spec
    again, same = pickle.loads(pickle.dumps((pool, pool)))
    assert again is same
    assert again.to_json() == pool.to_json()
