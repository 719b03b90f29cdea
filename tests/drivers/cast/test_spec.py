import pickle

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts

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
