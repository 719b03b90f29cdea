"""What users of `ts.reduce` see."""

import concurrent.futures
import pathlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tests.chunked.stores import counting, created

NUMPY: dict[Any, Any] = {
    "min": np.min, "max": np.max, "sum": np.sum, "mean": np.mean, "std": np.std, "var": np.var,
    "median": np.median,
}  # fmt: skip
WHOLE = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64"]
REAL = ["float16", "float32", "float64"]


def stored(data, chunks, driver="zarr3", **options):
    array = ts.open(
        f"memory://|{driver}:", create=True, dtype=data.dtype, shape=data.shape,
        chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
        context=ts.Context({"memory_limit": {"limit_bytes": 4000}}), **options,
    ).result()  # fmt: skip
    array[...] = data
    return array


def numbers(seed, dtype, shape):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    if dtype in WHOLE:
        info = np.iinfo(dtype)
        wide = info.bits > 32
        low, high = (edge // 2**16 if wide else edge for edge in (info.min, info.max))
        return rng.integers(low, high, size=shape, dtype=dtype)
    return rng.normal(100, 3, size=shape).astype(dtype)


def check(found, data, axis):
    """That results are those of NumPy; equal for whole numbers."""
    wide = data if data.dtype.kind in "biu" else data.astype("f8")
    for name, value in found.items():
        if name not in NUMPY:
            continue
        wanted = NUMPY[name](data if name in ("min", "max") else wide, axis=axis)
        if name in ("min", "max") or (name == "sum" and data.dtype.kind in "biu"):
            assert value.dtype == wanted.dtype
            np.testing.assert_array_equal(value, wanted)
        else:
            rtol = 2.0**-11 if name == "median" else 1e-9
            np.testing.assert_allclose(value, wanted, rtol=rtol)


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.sampled_from(WHOLE + REAL),
    st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 7)),
    st.tuples(*[st.integers(1, 9)] * 3),
    st.sampled_from([None, 0, 1, -1, (0, 2), (1, 2), (0, 1, 2), ()]),
)
def test_as_numpy_whatever_the_chunks(seed, dtype, shape, chunks, dims):
    data = numbers(seed, dtype, shape)

    found = ts.reduce(stored(data, chunks), NUMPY, dims).result()

    check(found, data, dims if not isinstance(dims, list) else tuple(dims))


@settings(max_examples=30)
@given(
    st.integers(0, 2**32),
    st.sampled_from([np.s_[::2], np.s_[::-1, 3], np.s_[..., ::-3], np.s_[1:, [0, 2, 2, 5]]]),
    st.sampled_from([None, 0, -1]),
)
def test_views(seed, index, dims):
    data = numbers(seed, "int16", (7, 8))
    store = stored(data, (3, 2))
    view = store[index][ts.d[:].translate_by[-5]]

    found = ts.reduce(view, NUMPY, dims).result()
    turned = ts.reduce(store.T[...], "sum", 0).result()["sum"]

    check(found, view.read().result(), dims)
    assert turned.tolist() == data.sum(axis=1).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda data: stored(data, (4, 4), "zarr2"),
        lambda data: stored(data, (4, 4), "n5"),
        ts.array,
        lambda data: ts.cast(stored(data.astype("i2"), (4, 4)), "int64"),
        lambda data: ts.stack([ts.array(row) for row in data]),
        lambda data: ts.downsample(stored(np.repeat(data, 2, 0), (3, 3)), [2, 1], "stride"),
        lambda data: ts.open(
            "memory://|zarr3:", create=True, dtype="int64", shape=data.shape,
            chunk_layout=ts.ChunkLayout(read_chunk_shape=[2, 2], write_chunk_shape=[6, 4]),
        ).result(),
        lambda data: ts.open(
            {
                "driver": "zarr3", "kvstore": "memory://",
                "metadata": {"chunk_grid": {"name": "rectilinear", "configuration": {
                    "kind": "inline", "chunk_shapes": [[5, 1, 4], [[2, 3]]]}}},
            }, create=True, dtype="int64", shape=data.shape,
        ).result(),
    ],
    ids=["zarr2", "n5", "array", "cast", "stack", "downsample", "shards", "rectilinear"],
)  # fmt: skip
def test_every_driver(make):
    data = np.arange(60).reshape(10, 6)
    store = make(data)
    if store.read().result().any():
        pass
    else:
        store[...] = data

    found = ts.reduce(store, ["sum", "max", "count"], 1).result()

    assert found["sum"].tolist() == data.sum(axis=1).tolist()
    assert found["max"].tolist() == data.max(axis=1).tolist()
    assert found["count"].tolist() == [6] * 10


def test_each_chunk_is_read_once():
    store = counting()
    members = {"memory_limit": {"limit_bytes": 2000}}
    array = created(store, (40, 40), [10, 10], "uint8", members=members)
    array[...] = 1
    store.reset()

    found = ts.reduce(array, ["min", "std", "histogram", "quantiles", "fill_count"]).result()

    assert (found["min"], found["fill_count"]) == (1, 0)
    assert sum(store.reads.values()) == 16 + 1  # the metadata
    assert max(store.reads.values()) == 1


def test_names_of_dimensions():
    store = ts.array(np.arange(6).reshape(2, 3))[ts.d[:].label["y", "x"]]

    assert ts.reduce(store, "sum", "y").result()["sum"].tolist() == [3, 5, 7]
    assert ts.reduce(store, "sum", ["x"]).result()["sum"].tolist() == [3, 12]


@pytest.mark.parametrize("skipna", [False, True])
def test_nan(skipna):
    data = np.array([[1, np.nan, 3], [4, 5, 9], [np.nan] * 3], "f4")

    found = ts.reduce(
        stored(data, (2, 2)), [*NUMPY, "count", "quantiles"], 1, skipna=skipna
    ).result()

    counts = [2, 3, 0] if skipna else [3, 3, 3]
    assert found["count"].tolist() == counts
    first = [1, 3, 4, 2, 1, 1, 2] if skipna else [np.nan] * 7
    assert [found[name][0] for name in NUMPY] == pytest.approx(first, nan_ok=True)
    assert [found[name][1] for name in NUMPY][:4] == [4, 9, 18, 6]
    np.testing.assert_array_equal(found["min"][2], np.nan)
    assert found["sum"][2] == 0 if skipna else np.isnan(found["sum"][2])
    assert found["quantiles"][1].tolist() == [4, 4.5, 5, 7, 9]


def test_times():
    days = np.array(["2020-01-01", "2020-01-04", "NaT", "2020-01-02"], "M8[D]")
    store = ts.array(days)

    kept = ts.reduce(store, ["min", "max", "mean", "count"]).result()
    assert kept["count"] == 4
    skipped = ts.reduce(store, ["min", "max", "mean", "count"], skipna=True).result()
    spans = ts.reduce(ts.array(days[[0, 1]] - days[0]), ["sum", "mean"]).result()

    assert np.isnat([kept["min"], kept["max"], kept["mean"]]).all()
    assert [str(value) for value in skipped.values()] == [
        "2020-01-01",
        "2020-01-04",
        "2020-01-02",
        "3",
    ]
    assert [str(value) for value in spans.values()] == ["3 days", "2 days"]


def test_complex_numbers():
    data = np.array([1 + 2j, 3 - 1j, 5j], "c8")

    found = ts.reduce(ts.array(data), ["sum", "mean", "var"]).result()

    assert found["sum"] == data.sum()
    np.testing.assert_allclose([found["mean"], found["var"]], [data.mean(), data.var()], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4"])
def test_numbers_that_numpy_has_not(dtype):
    store = ts.array(np.arange(-3, 4).astype(ts.dtype(dtype).numpy_dtype))

    found = ts.reduce(store, ["min", "sum", "mean", "quantiles"]).result()

    assert found["min"].dtype == store.dtype.numpy_dtype
    assert (found["min"], found["sum"], found["mean"]) == (-3, 0, 0)
    assert found["quantiles"].tolist() == [-3, -1.5, 0, 1.5, 3]


def test_nothing_is_reduced():
    empty = ts.array(np.zeros((0, 3), "f4"))

    found = ts.reduce(empty, ["sum", "count", "mean", "histogram"], bins=2, range=(0, 1)).result()

    assert (found["sum"], found["count"]) == (0, 0)
    assert np.isnan(found["mean"])
    assert found["histogram"].counts.tolist() == [0, 0]
    assert ts.reduce(empty, "sum", 0).result()["sum"].tolist() == [0, 0, 0]
    assert ts.reduce(empty, "min", 1).result()["min"].shape == (0,)
    with pytest.raises(ts.MismatchError, match='no "min" of no elements'):
        ts.reduce(empty, "min", 0).result()


def test_what_is_not_stored_is_the_fill_value():
    store = ts.open("memory://|zarr3:", create=True, dtype="int16", shape=[10], fill_value=7,
                    chunk_layout=ts.ChunkLayout(chunk_shape=[5])).result()  # fmt: skip
    store[3] = 1

    found = ts.reduce(store, ["fill_count", "sum", "count"]).result()

    assert found == {"fill_count": 9, "sum": 64, "count": 10}


@pytest.mark.parametrize(
    "values",
    [
        np.array([b"abc", b"", b"x"], "S3"),
        np.array(["ab", "", "c"]),
        np.array([b"abcd", b"\0\0\0\0", b"a"], "V4"),
        np.array([(1, 2.0), (0, 0.0), (1, np.nan)], [("a", "i4"), ("b", "f8")]),
    ],
    ids=["S", "U", "V", "record"],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_whatever_has_no_order_is_counted(values, zarr_format, tmp_path):
    group = ts.Group.open(tmp_path / "a", create=True, zarr_format=zarr_format).result()
    dtype = "V4" if values.dtype.str == "|V4" else values.dtype  # a bare V4 means single bytes
    group.create_array("b", dtype=dtype, shape=[3]).result()[...] = values

    found = ts.reduce(tmp_path / "a/b", ["count", "fill_count"]).result()

    assert found == {"count": 3, "fill_count": 1}


def test_single_characters_are_counted():
    spec = {
        "driver": "zarr", "kvstore": "memory://",
        "metadata": {"dtype": "|S3", "fill_value": "YWJj", "shape": [2], "chunks": [2]},
    }  # fmt: skip
    store = ts.open(spec, create=True).result()
    assert (store.dtype, store.shape) == (ts.char, (2, 3))

    assert ts.reduce(store, "count").result() == {"count": 6}
    with pytest.raises(ts.UnsupportedError, match="not the same for all elements"):
        ts.reduce(store, "fill_count").result()


def test_text_is_counted():
    store = ts.array(np.array(["a", "", "b"], object), dtype="ustring")

    assert ts.reduce(store, ["count", "fill_count"]).result()["count"] == 3
    with pytest.raises(ts.UnsupportedError, match='"max" is not defined for ustring'):
        ts.reduce(store, "max").result()


def test_histogram_along_dimensions():
    data = np.random.default_rng(2).integers(0, 255, size=(6, 50)).astype("u1")

    found = ts.reduce(stored(data, (4, 7)), "histogram", 1, bins=5).result()["histogram"]

    assert found.counts.tolist() == [np.histogram(row, 5, (0, 256))[0].tolist() for row in data]


def test_progress_and_plan():
    store = stored(np.arange(5000, dtype="i4"), (100,))
    seen: list[ts.Progress] = []

    plan = ts.plan(ts.reduce, store, ["sum"]).result()
    found = ts.reduce(store, "sum", progress=seen.append).result()

    assert found["sum"] == 12497500
    assert plan.tasks > 1
    assert plan.bytes == 20000
    assert (seen[-1].bytes_done, seen[-1].chunks_done) == (20000, 50)
    assert plan.run().result() == found


def test_other_processes_compute(tmp_path: pathlib.Path):
    data = np.arange(600, dtype="f4").reshape(20, 30)
    spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}
    context = ts.Context({"memory_limit": {"limit_bytes": 5000}})
    store = ts.open(spec, create=True, dtype="float32", shape=data.shape, context=context,
                    chunk_layout=ts.ChunkLayout(chunk_shape=[5, 30])).result()  # fmt: skip
    store[...] = data
    names: list[Any] = ["min", "max", "std", "quantiles", "histogram"]
    asked: dict[str, Any] = {"dims": 0, "bins": 3, "range": (0, 600)}
    here = ts.reduce(store[:, ::2], names, **asked).result()

    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        there = ts.reduce(store[:, ::2], names, executor=pool, **asked).result()
    again = ts.Plan.from_json(ts.plan(ts.reduce, store[:, ::2], names, **asked).result().to_json())

    for found in (there, again.run().result()):
        for name in names[:-1]:
            np.testing.assert_allclose(found[name], here[name], rtol=1e-12)
        assert found["histogram"].counts.tolist() == here["histogram"].counts.tolist()


@pytest.mark.parametrize(
    ("reductions", "options", "message"),
    [
        ("mni", {}, "did you mean"),
        ([], {}, "nothing is asked for"),
        ("quantiles", {"q": 1.5}, "quantiles are from 0 to 1, not 1.5"),
        ("quantiles", {"q": [np.nan]}, "quantiles are from 0 to 1"),
    ],
)
def test_what_is_wrong_is_said_at_once(reductions, options, message):
    with pytest.raises(ts.SpecError, match=message):
        ts.reduce(ts.array([1]), reductions, **options)


def test_one_array_is_reduced():
    group = ts.Group.open("memory://", create=True).result()
    group.create_array("a/b", dtype="int8", shape=[2]).result()

    with pytest.raises(ts.MismatchError, match='name one of its arrays: "a/b"'):
        ts.reduce(group, "min").result()


async def test_awaited():
    assert (await ts.reduce(ts.array([1, 2]), "sum"))["sum"] == 3
