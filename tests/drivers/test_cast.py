import pickle

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.drivers.cast import conversion
from tensorstore_py.errors import SpecError
from tests.drivers.elements import DATA_TYPES, elements

NAMES = [name for name in dir(reference) if isinstance(getattr(reference, name), reference.dtype)]
PLACEHOLDERS = {"string": b"a", "ustring": "a", "json": 1, "char": b"a"}


def one(name):
    element = PLACEHOLDERS.get(name, 0)
    target = ts.dtype(name).array_dtype
    return np.zeros(1, target) if name == "byte" else np.array([element], target)


@pytest.mark.parametrize("source", NAMES)
def test_which_pairs_convert_as_in_the_reference(source):
    base = reference.array(one(source), dtype=reference.dtype(source))
    for target in NAMES:
        try:
            expected = reference.cast(base, target).mode
        except ValueError:
            expected = ""
        found = "r" * (conversion(ts.dtype(source), ts.dtype(target)) is not None)
        found += "w" * (conversion(ts.dtype(target), ts.dtype(source)) is not None)
        assert found == expected, target


VALUES = [
    ("float32", "int8", [1.9, -1.9, 300, -300, np.nan, np.inf]),
    ("float64", "uint8", [1.9, -1.9, 300, -300]),
    ("float64", "int16", [1e10, 70000, np.nan]),
    ("float64", "uint32", [1e10, -1, np.nan]),
    ("float64", "int64", [1e19, -1e19, np.nan]),
    ("float64", "bool", [0, 0.5, np.nan]),
    ("float32", "int2", [1, 2, 3, -5, 0.9]),
    ("float32", "float8_e4m3fn", [1000, 1.3]),
    ("int32", "uint8", [300, -1]),
    ("int64", "int4", [100, -9]),
    ("int8", "int2", [2]),
    ("int64", "float16", [10**6]),
    ("int64", "bfloat16", [257]),
    ("uint64", "int64", [2**64 - 1]),
    ("bfloat16", "int8", [200]),
    ("float8_e5m2", "int8", [57344]),
    ("int4", "bool", [0, 3]),
    ("bool", "int4", [True]),
    ("complex64", "float32", [1 + 2j]),
    ("complex64", "int8", [300 + 1j]),
    ("complex128", "complex64", [1j]),
    ("complex64", "json", [1j]),
    ("float32", "json", [1.5, np.inf]),
    ("int4", "json", [3]),
    ("uint64", "json", [2**64 - 1]),
    ("float8_e4m3fn", "json", [1.5]),
    ("json", "int32", [1, "2", 3.0, " 7"]),
    ("json", "int8", [300]),
    ("json", "int32", [3.5]),
    ("json", "int32", [None]),
    ("json", "bool", [True, "true", "false"]),
    ("json", "bool", [1]),
    ("json", "float32", [1, "2.5", "nan"]),
    ("json", "float32", [True]),
    ("json", "ustring", ["a"]),
    ("json", "ustring", [1]),
    ("json", "string", ["a", "\u1234"]),
    ("json", "uint64", [2**64 - 1]),
    ("ustring", "json", ["a"]),
    ("ustring", "string", ["\u1234"]),
    ("string", "json", [b"a"]),
    ("string", "json", [b"\xff"]),
    ("string", "ustring", [b"a"]),
    ("string", "ustring", [b"\xff"]),
    ("int32", "string", [5]),
    ("float64", "ustring", [1e5, 1e6, 1e-5, -0.0, 100.0, 1e15, 3e-7, np.nan, np.inf]),
    ("bfloat16", "ustring", [1.5]),
    ("complex64", "ustring", [1 + 2j]),
]


@pytest.mark.parametrize(("source", "target", "values"), VALUES)
def test_values_as_in_the_reference(source, target, values):
    array = np.array(values, ts.dtype(source).array_dtype)
    base = reference.array(array, dtype=reference.dtype(source))
    convert = conversion(ts.dtype(source), ts.dtype(target))
    assert convert is not None
    try:
        expected = reference.cast(base, target).read().result()
    except ValueError:
        with pytest.raises(ts.SpecError):
            convert(array)
        return
    found = convert(array)
    assert found.dtype == expected.dtype
    assert [str(element) for element in found] == [str(element) for element in expected]


def test_no_digit_is_lost_in_text():
    for value in (1 / 3, 123456789.123, np.float32(1 / 3), np.float16(0.1)):
        array = np.array([value])
        convert = conversion(ts.dtype(array.dtype), ts.ustring)
        assert convert is not None
        assert np.array([float(convert(array)[0])]).astype(array.dtype) == array


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("datetime64[s]", "datetime64[ms]", ["2020-01-01"], ["2020-01-01T00:00:00.000"]),
        ("datetime64[s]", "int64", ["1970-01-02"], [86400]),
        ("int32", "timedelta64[s]", [5], [np.timedelta64(5, "s")]),
        ("U5", "ustring", ["abc"], ["abc"]),
        ("U5", "string", ["abc"], [b"abc"]),
        ("ustring", "U5", ["abc"], ["abc"]),
        ("string", "U5", [b"abc"], ["abc"]),
        ("S3", "S5", [b"abc"], [b"abc"]),
    ],
)
def test_types_that_the_reference_has_not(source, target, values, expected):
    source, target = ts.dtype(source), ts.dtype(target)
    convert = conversion(source, target)
    assert convert is not None
    found = convert(np.array(values, source.array_dtype))
    np.testing.assert_array_equal(found, np.array(expected, target.array_dtype))


def test_text_is_never_cut():
    convert = conversion(ts.ustring, ts.dtype("U2"))
    assert convert is not None
    with pytest.raises(ts.SpecError):
        convert(np.array(["abc"], object))


@pytest.mark.parametrize(
    ("source", "target"), [("U5", "int32"), ("datetime64[s]", "float64"), ("json", "object")]
)
def test_pairs_without_conversion(source, target):
    assert conversion(ts.dtype(source), ts.dtype(target)) is None


NUMERIC = [name for name in DATA_TYPES if ts.dtype(name).kind in "biufc"]


@pytest.mark.parametrize("source", NUMERIC)
def test_numbers_convert_alike_with_and_without_dimensions(source):
    data_type = ts.dtype(source)
    array = elements(data_type, (3,))
    if source in ("float32", "float64", "bfloat16"):
        array[2] = 3e9  # more than a signed integer of 32 bits takes
    for name in NUMERIC:
        convert = conversion(data_type, ts.dtype(name))
        if convert is None:
            assert (data_type.kind, name) == ("c", "bool")
            continue
        expected = convert(array)
        assert expected.dtype == ts.dtype(name).array_dtype
        for place, element in enumerate(array):
            found = convert(np.array(element))
            assert found.shape == ()
            assert found.tobytes() == expected[place : place + 1].tobytes(), name


@pytest.mark.parametrize("source", ["int2", "uint4", "bfloat16", "float6_e2m3fn", "float8_e5m2"])
def test_powers_of_two_survive_in_a_type_that_has_nothing_else(source):
    array = np.array([1, 1, 1], np.float32).astype(ts.dtype(source).array_dtype)
    there = conversion(ts.dtype(source), ts.dtype("float8_e8m0fnu"))
    back = conversion(ts.dtype("float8_e8m0fnu"), ts.dtype(source))
    assert there is not None
    assert back is not None
    assert there(array).astype(np.float32).tolist() == [1, 1, 1]
    assert back(there(array)).tobytes() == array.tobytes()


def test_floats_beyond_an_unsigned_integer_wrap_around_in_arrays_of_any_size():
    for count in (1, 100):
        for name in ("float32", "float64", "bfloat16"):
            convert = conversion(ts.dtype(name), ts.uint32)
            assert convert is not None
            array = np.full(count, 2.0**33 + 2.0**31).astype(ts.dtype(name).array_dtype)
            assert set(convert(array).tolist()) == {2**31}


@pytest.mark.parametrize(
    ("target", "element", "expected"),
    [
        ("string", "a", b"a"),
        ("string", b"b", b"b"),
        ("ustring", "a", "a"),
        ("ustring", b"b", "b"),
        ("json", {"a": [1]}, {"a": [1]}),
        ("string", 5, None),
        ("ustring", None, None),
        ("json", 1j, None),
    ],
)
def test_objects_convert_to_text_and_json_where_they_are(target, element, expected):
    convert = conversion(ts.dtype("object"), ts.dtype(target))
    assert convert is not None
    array = np.empty((), object)
    array[()] = element
    if expected is None:
        with pytest.raises(SpecError):
            convert(array)
    else:
        assert convert(array)[()] == expected


PLAIN = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/"}}


class Both:
    """The same array in both libraries, each in a context of its own."""

    def __init__(self):
        self.contexts = {library: library.Context() for library in (ts, reference)}
        for library in (ts, reference):
            self.open(
                library, PLAIN, create=True, dtype="uint8", shape=[4], fill_value=np.uint8(7),
                dimension_units=["nm"],
            )  # fmt: skip

    def open(self, library, spec, **options):
        return library.open(spec, context=self.contexts[library], **options).result()

    def same(self, make):
        ours, theirs = make(ts, self), make(reference, self)
        assert str(ours) == str(theirs)
        return ours


def cast_of(base=PLAIN, **members):
    return {"driver": "cast", "base": base, **members}


@pytest.fixture
def both():
    return Both()


@pytest.mark.parametrize(
    "spec",
    [
        cast_of(dtype="float32"),
        cast_of({**PLAIN, "schema": {"fill_value": 7}}, dtype="float32"),
        cast_of({**PLAIN, "recheck_cached_data": False}, dtype="int64"),
        cast_of(cast_of(dtype="int16"), dtype="float64"),
        cast_of(dtype="string"),
        "memory://a/|zarr3:|cast:int32",
        cast_of("memory://a/|zarr3:", dtype="int32"),
        cast_of(
            {
                **PLAIN,
                "transform": {"input_shape": [2], "output": [{"input_dimension": 0, "offset": 1}]},
            },
            dtype="int32",
            transform={
                "input_inclusive_min": [5],
                "input_shape": [2],
                "output": [{"input_dimension": 0, "offset": -5}],
            },
        ),
    ],
    ids=str,
)
def test_specs_and_handles_as_the_reference(both, spec):
    both.same(lambda library, _: library.Spec(spec).to_json())
    both.same(lambda library, _: library.Spec(spec).schema.to_json())
    both.same(lambda library, _: library.Spec(spec).kvstore)
    store = both.same(lambda library, arrays: arrays.open(library, spec))
    both.same(lambda library, arrays: arrays.open(library, spec).schema)
    both.same(lambda library, arrays: arrays.open(library, spec).spec(minimal_spec=True).to_json())
    both.same(lambda library, arrays: arrays.open(library, spec).base.dtype)
    assert ts.open(store.spec(), context=both.contexts[ts]).result().domain == store.domain


def test_views_and_urls(both):
    def view(library, arrays):
        store = library.cast(arrays.open(library, PLAIN), "float32")
        return store[1:3].spec().to_json(), store.url, store.fill_value, store.dimension_units

    both.same(view)
    both.same(lambda library, arrays: library.cast(arrays.open(library, PLAIN)[1:3], "bool"))


def test_options_reach_the_array_underneath(both):
    spec = cast_of({"driver": "zarr3", "kvstore": "memory://b/", "dtype": "uint8"}, dtype="int32")
    both.same(
        lambda library, arrays: arrays.open(
            library, spec, create=True, shape=[9], fill_value=np.int32(8), recheck_cached=False
        ).spec().to_json()
    )  # fmt: skip
    assert ts.Spec(spec, create=True).open_mode == ts.OpenMode(create=True)


def test_reading_writing_resizing(both):
    for library in (ts, reference):
        store = library.cast(both.open(library, PLAIN), "float32")
        store[0], store[1], store[2] = 300.7, -5, 3.9
        assert both.open(library, PLAIN).read().result().tolist() == [44, 251, 3, 7]
        assert store.read(order="F").result().dtype == np.float32
        assert store.resize(exclusive_max=[6]).result().shape == (6,)
    found = (
        ts.open(PLAIN, context=both.contexts[ts])
        .result()
        .storage_statistics(query_not_stored=True, query_fully_stored=True)
    )
    assert found.result() == ts.TensorStore.StorageStatistics(not_stored=False, fully_stored=False)


def test_one_way_casts():
    text = ts.array(np.array(["a"], object), dtype="ustring")
    store = ts.cast(text, "int32")
    assert store.mode == "w"
    store.write(5).result()
    assert text.read().result().tolist() == ["5"]
    with pytest.raises(ts.PermissionDeniedError):
        store.read()
    with pytest.raises(ts.PermissionDeniedError):
        ts.open(
            cast_of({"driver": "array", "array": ["a"], "dtype": "ustring"}, dtype="int8"),
            read=True,
        ).result()


def test_a_cast_of_an_array_in_memory_has_a_spec():
    store = ts.cast(ts.array([1, 2], dtype="uint8"), "float32")
    assert ts.open(store.spec()).result().read().result().tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(store)).read().result().tolist() == [1, 2]


def test_a_spec_can_be_cast():
    assert ts.cast(ts.Spec(PLAIN), "int8").to_json() == cast_of(dtype="int8")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"driver": "cast", "dtype": "int8"}, ("base",)),
        (cast_of(dtype="int9"), ("dtype",)),
        (cast_of({"driver": "zarr3", "kvstor": "memory://"}, dtype="int8"), ("base", "kvstor")),
        (cast_of(5, dtype="int8"), ("base",)),
        (cast_of(dtype="int8", bases=3), ("bases",)),
    ],
)
def test_malformed_specs_name_the_place(spec, path):
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec(spec)
    assert caught.value.path == path
    with pytest.raises(ValueError):
        reference.Spec(spec)


def test_errors_when_opened(both):
    with pytest.raises(ts.SpecError, match="data type to convert to"):
        both.open(ts, cast_of())
    with pytest.raises(ts.SpecError, match="Cannot convert"):
        ts.cast(ts.array([1]), "char")
    for schema in ({"domain": {"shape": [5]}}, {"fill_value": 8}):
        with pytest.raises(ts.MismatchError):
            both.open(ts, cast_of({**PLAIN, "dtype": "uint8"}, dtype="int32", schema=schema))
    moved = {**PLAIN, "transform": {"input_shape": [4]}}
    with pytest.raises(ts.MismatchError):
        both.open(ts, cast_of(moved, dtype="int32", schema={"fill_value": 8}))


async def test_in_an_event_loop(both):
    store = await ts.open(cast_of(dtype="int64"), context=both.contexts[ts])
    await store[1:3].write([1, 2])
    assert (await store.read()).tolist() == [7, 1, 2, 7]
