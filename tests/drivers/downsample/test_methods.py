import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.drivers.downsample.methods import METHODS, check_method, reduced

NAMES = [
    "bool", "char", "byte", "int2", "int4", "int8", "uint8", "int16", "uint64", "int64",
    "float8_e5m2", "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
    "string", "ustring", "json",
]  # fmt: skip
#: Here the reference divides by zero, or knows no greatest number.
SMALL = {"float4_e2m1fn", "float8_e5m2", "float8_e4m3fn"}
SAMPLES = [
    np.array([1, 2, 2, 3, 3, 4, 4, 5], np.int32),
    np.array([-1, -2, -2, -3], np.int32),
    np.array([2**63 - 1, 2**63 - 1, 2**63 - 2], np.int64),
    np.array([-(2**63), -(2**63) + 1, 2**63 - 1]),
    np.array([2**64 - 1, 2**64 - 1, 2**64 - 2, 5], np.uint64),
    np.array([255, 255, 255, 254, 3], np.uint8),
    np.array([True, False, True]),
    np.array([3, 1, 1, 2, 2, 5]),
    np.array([np.nan, np.nan, 1.0, 1.0, 0.5]),
    np.array([1e308, 1e308]),
    np.array([65504, 65504, 1], np.float16),
    np.array([np.inf, -np.inf, 1]),
    np.array([1 + 2j, 3 - 1j, 1 + 2j]),
    np.array(["b", "a", "b", "c"], object),
]


def both(array, factor, method, dtype=None):
    found = []
    for library in (ts, reference):
        try:
            store = library.downsample(library.array(array, dtype=dtype), [factor], method)
        except ValueError:
            found.append("no such")
        else:
            found.append(repr(store.read().result()))
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_types_as_the_reference(name, method):
    array = {
        "bool": np.array([True, False, True, True]),
        "char": np.array([b"\0"] * 4),
        "byte": np.array([b"\0"] * 4).view("V1"),
        "string": np.array([b"a", b"b", b"b", b"a"], object),
        "ustring": np.array(["a", "b", "b", "a"], object),
        "json": np.array([1, 2, 2, 1], object),
    }.get(name)
    if array is None:
        array = np.array([1, 0, 1, 1]).astype(ts.dtype(name).numpy_dtype)
    ours, theirs = both(array, 3, method, name)
    if name in SMALL and method == "mean":
        assert ours == "array([0.625, 1], dtype='float8_e5m2')"
    elif name in ("char", "byte") and ours != "no such":
        assert theirs != "no such"  # the reference loses the value
    else:
        assert ours == theirs


@pytest.mark.parametrize("method", ["mean", "median", "mode", "min", "max"])
@pytest.mark.parametrize("factor", [1, 2, 3, 4])
@pytest.mark.parametrize("array", SAMPLES, ids=repr)
def test_values_as_the_reference(array, factor, method):
    dtype = "ustring" if array.dtype.hasobject else None
    ours, theirs = both(array, factor, method, dtype)
    if array.dtype == np.float64 and np.isnan(array).any() and method == "median":
        return  # NaN has no place in an order; the reference leaves it open
    assert ours == theirs


def test_nan_is_the_greatest_for_the_median():
    nan = np.nan
    rows = np.array([[0.1, nan, 5.0], [1.0, nan, 0.1], [1.0, nan, nan]])
    found = reduced(rows.reshape(3, 1, 1, 3), "median")[:, 0]
    np.testing.assert_array_equal(found, [5.0, 1.0, nan])


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_means_of_large_integers_are_exact(dtype):
    random = np.random.default_rng(0)
    info = np.iinfo(dtype)
    values = random.integers(info.min, info.max, (50, 7), dtype, endpoint=True)
    found = reduced(values.reshape(50, 1, 1, 7), "mean")
    for row, mean in zip(values.tolist(), found[:, 0].tolist(), strict=True):
        quotient, rest = divmod(sum(row), len(row))
        assert mean == quotient + (2 * rest > len(row))


def test_means_of_small_floats_are_computed_in_wider_ones():
    many = np.full((1, 100_000), np.float32(0.1))
    assert reduced(many, "mean") == np.float32(0.1)
    bfloat16 = ts.bfloat16.numpy_dtype
    assert reduced(np.ones((1, 1000), bfloat16), "mean") == bfloat16.type(1)


def objects(elements):
    array = np.empty(len(elements), object)
    for place, element in enumerate(elements):
        array[place] = element
    return array


def test_modes_of_json():
    elements = [{"b": 1, "a": 2}, [1], {"a": 2, "b": 1}, None, None, "x", 5, True]
    array = objects(elements).reshape(2, 4)
    assert reduced(array, "mode").tolist() == [{"b": 1, "a": 2}, None]
    tied = objects(["x", 5, [1], False]).reshape(1, 4)
    assert reduced(tied, "mode").tolist() == [False]


def test_dates_have_an_order_but_no_mean():
    array = np.array(["2020-01-03", "2020-01-01", "2020-01-02"], "datetime64[D]").reshape(1, 3)
    for method, day in (("median", 2), ("mode", 1), ("min", 1), ("max", 3)):
        assert reduced(array, method) == np.datetime64(f"2020-01-0{day}")
        check_method(method, ts.dtype("datetime64[D]"))
    with pytest.raises(ts.SpecError, match="mean is not for"):
        check_method("mean", ts.dtype("datetime64[D]"))


def test_groups_of_several_dimensions():
    array = np.arange(24).reshape(2, 2, 3, 2)
    for method, function in (("mean", np.mean), ("max", np.max), ("min", np.min)):
        expected = np.rint(function(array, axis=(1, 3))).astype(int)
        np.testing.assert_array_equal(reduced(array, method), expected)
    np.testing.assert_array_equal(reduced(array, "median"), array[:, 0, :, 1])
