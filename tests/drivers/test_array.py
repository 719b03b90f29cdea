import pickle

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts

ELEMENTS = [
    ("int32", [[1, 2], [3, 4]]),
    ("json", ["a", None, {"b": 1}]),
    ("ustring", ["a", "b"]),
    ("bool", [True, False]),
    ("float32", ["NaN", 1]),
    ("uint8", 5),
    ("int4", [-8, 7]),
    ("bfloat16", [1.5]),
]
MEMORY = np.arange(24, dtype="int16").reshape(2, 3, 4)


def spec_of(dtype, array, **members):
    return {"driver": "array", "dtype": dtype, "array": array, **members}


@pytest.mark.parametrize(("dtype", "array"), ELEMENTS)
def test_spec_and_values_as_the_reference(dtype, array):
    ours, theirs = (library.Spec(spec_of(dtype, array)) for library in (ts, reference))
    assert str(ours.to_json()) == str(theirs.to_json())
    assert str(ours.schema.to_json()) == str(theirs.schema.to_json())
    opened, other = ts.open(ours).result(), reference.open(theirs).result()
    assert repr(opened) == repr(other)
    np.testing.assert_array_equal(opened.read().result(), other.read().result())


@pytest.mark.parametrize(
    "index",
    [
        np.s_[...],
        np.s_[1],
        np.s_[:, [0, 2]],
        np.s_[..., ::-1],
        np.s_[..., ::2],
        np.s_[:, 1:2],
        np.s_[:, :, 1:],
        np.s_[0, 0, 0],
        np.s_[None],
    ],
)
def test_spec_of_a_view_holds_the_elements_of_the_view(index):
    ours, theirs = (library.array(MEMORY)[index] for library in (ts, reference))
    assert ours.spec().to_json() == theirs.spec().to_json()
    assert repr(ours) == repr(theirs)
    again = ts.open(ours.spec()).result()
    assert again.domain == ours.domain
    np.testing.assert_array_equal(again.read().result(), ours.read().result())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)), ours.read().result())


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (2, 0, 3)])
def test_empty_views_keep_their_shape(shape):
    store = ts.array(np.zeros(shape))
    assert ts.open(store.spec()).result().shape == shape


def test_a_spec_is_opened_to_memory_of_its_own_each_time():
    spec = ts.Spec(spec_of("int32", [1, 2]))
    first, second = ts.open(spec).result(), ts.open(spec).result()
    first[0] = 9
    assert second.read().result().tolist() == [1, 2]
    assert spec.to_json()["array"] == [1, 2]


def test_no_chunks_no_codec_no_fill_value():
    for schema in (
        {"fill_value": 3},
        {"codec": {"driver": "zarr"}},
        {"chunk_layout": {"chunk": {"shape": [1]}}},
        {"domain": {"shape": [3]}},
    ):
        with pytest.raises(ts.SpecError) as caught:
            ts.open(spec_of("int32", [1, 2], schema=schema)).result()
        assert caught.value.path == ("schema", next(iter(schema)))
    store = ts.open(spec_of("int32", [1], schema={"dimension_units": ["nm"]})).result()
    assert store.dimension_units == (ts.Unit("nm"),)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"driver": "array", "array": [1]}, ("dtype",)),
        (spec_of("int32", [[1, 2], [3]]), ("array", 1)),
        (spec_of("int32", [1.5]), ("array", 0)),
        (spec_of("int8", [[1, 300]]), ("array", 0, 1)),
        (spec_of("int8", [1], rank=2), ("array",)),
        (spec_of("complex64", [1]), ("array", 0)),
        (spec_of("char", ["a"]), ("array", 0)),
        ({"driver": "array", "dtype": "int8"}, ("array",)),
    ],
)
def test_malformed_specs_name_the_place(spec, path):
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec(spec)
    assert caught.value.path == path
    with pytest.raises(ValueError):
        reference.Spec(spec)


def test_open_modes_mean_nothing_but_are_accepted():
    for options in ({"create": True}, {"open": True}, {"delete_existing": True}, {"shape": [1]}):
        assert ts.open(spec_of("int8", [1]), **options).result().mode == "rw"
    assert ts.open(spec_of("int8", [1]), recheck_cached=True, read=True).result().mode == "r"
    with pytest.raises(ts.SpecError):
        ts.open(spec_of("int8", [1]), shape=[2]).result()


def test_elements_without_json_form_still_have_a_repr():
    assert repr(ts.array(np.array([b"a"]))) == "TensorStore(...)"


def test_storage_statistics():
    found = ts.array(MEMORY).storage_statistics(query_not_stored=True, query_fully_stored=True)
    assert found.result() == ts.TensorStore.StorageStatistics(not_stored=False, fully_stored=True)
    with pytest.raises(NotImplementedError):
        ts.array(MEMORY).url  # noqa: B018


@pytest.mark.parametrize(
    ("index", "units"),
    [
        (np.s_[...], ["nm", "2um"]),
        (np.s_[:, ::2], ["nm", "4um"]),
        (np.s_[0], ["2um"]),
        (np.s_[None], [None, "nm", "2um"]),
    ],
    ids=str,
)
def test_the_spec_of_a_view_keeps_its_units(index, units):
    schema = {"dimension_units": ["nm", "2um"]}
    store = ts.open(spec_of("int8", [[1, 2, 3], [4, 5, 6]], schema=schema)).result()[index]
    expected = tuple(None if unit is None else ts.Unit(unit) for unit in units)
    assert store.dimension_units == expected
    assert ts.open(store.spec()).result().dimension_units == expected
