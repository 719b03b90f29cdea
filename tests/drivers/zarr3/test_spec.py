import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.drivers.zarr3 import Zarr3Spec
from tensorstore_py.errors import (
    AlreadyExistsError,
    DataLossError,
    MismatchError,
    NotFoundError,
    SpecError,
)

SPEC = {"driver": "zarr3", "kvstore": "memory://a/"}
GRID = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
METADATA = {"shape": [4, 6], "data_type": "int16", "chunk_grid": GRID, "fill_value": -1}


@pytest.fixture
def context() -> ts.Context:
    return ts.Context()


@pytest.fixture
def kvstore(context: ts.Context) -> ts.KvStore:
    return ts.KvStore.open("memory://a/", context=context).result()


def create(context: ts.Context, **members: object) -> ts.TensorStore:
    spec = {**SPEC, "metadata": {**METADATA, **members}}
    return ts.open(spec, create=True, context=context).result()


def document(kvstore: ts.KvStore) -> dict:
    found = json.loads(kvstore["zarr.json"])
    assert isinstance(found, dict)
    return found


def test_an_array_is_created_written_and_opened(context: ts.Context, kvstore: ts.KvStore) -> None:
    store = create(context)
    store[1:3, 2:5].write(np.arange(6, dtype=np.int16).reshape(2, 3)).result()

    again = ts.open(SPEC, context=context).result()

    expected = np.full((4, 6), -1, np.int16)
    expected[1:3, 2:5] = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(again.read().result(), expected)
    assert again.dtype == ts.int16
    assert sorted(kvstore.list().result()) == [
        b"c/0/0", b"c/0/1", b"c/1/0", b"c/1/1", b"zarr.json",
    ]  # fmt: skip


def test_the_spec_of_an_open_array_opens_it_again(context: ts.Context) -> None:
    store = create(context, codecs=["gzip"])

    spec = store.spec()

    assert spec.to_json() == {
        "driver": "zarr3",
        "dtype": "int16",
        "kvstore": {"driver": "memory", "path": "a/"},
        "metadata": {
            **METADATA,
            "chunk_key_encoding": {"name": "default"},
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "gzip", "configuration": {"level": 6}},
            ],
            "node_type": "array",
            "zarr_format": 3,
        },
        "transform": {"input_inclusive_min": [0, 0], "input_exclusive_max": [[4], [6]]},
    }
    assert ts.open(spec, context=context).result().schema == store.schema


def test_a_resize_keeps_the_rest_of_the_document(context: ts.Context, kvstore: ts.KvStore) -> None:
    members = {
        "attributes": {"a": [1, {"b": None}]},
        "dimension_names": ["y", None],
        "later": {"must_understand": False, "x": 1},
    }
    store = create(context, **members)
    before = document(kvstore)

    store.resize(exclusive_max=[5, 3]).result()

    assert document(kvstore) == {**before, "shape": [5, 3]}


def test_opening_checks_the_schema(context: ts.Context) -> None:
    create(context)

    for good in (
        {"dtype": "int16", "rank": 2},
        {"schema": {"domain": {"shape": [4, 6]}, "fill_value": -1}},
        {"schema": {"chunk_layout": {"chunk": {"shape": [2, 3], "elements": 9}}}},
    ):
        ts.open({**SPEC, **good}, context=context).result()
    for bad in (
        {"dtype": "int8"},
        {"rank": 3},
        {"schema": {"domain": {"shape": [4, 7]}}},
        {"schema": {"fill_value": 0}},
        {"schema": {"chunk_layout": {"write_chunk": {"shape": [2, 2]}}}},
        {"schema": {"codec": {"driver": "zarr3", "codecs": ["gzip"]}}},
        {"metadata": {"shape": [4, 7]}},
    ):
        with pytest.raises(MismatchError):
            ts.open({**SPEC, **bad}, context=context).result()


def test_open_modes(context: ts.Context, kvstore: ts.KvStore) -> None:
    with pytest.raises(NotFoundError, match=r"a/zarr\.json.*create=True"):
        ts.open(SPEC, context=context).result()
    create(context)
    with pytest.raises(AlreadyExistsError):
        ts.open({**SPEC, "metadata": METADATA}, create=True, open=False, context=context).result()
    kvstore.write("c/0/0", b"old").result()
    changed = {**SPEC, "metadata": {**METADATA, "shape": [1, 1]}}
    store = ts.open(changed, create=True, delete_existing=True, context=context).result()

    assert store.read().result().tolist() == [[-1]]


def test_assumed_metadata_is_not_read_and_not_written(
    context: ts.Context, kvstore: ts.KvStore
) -> None:
    spec = {**SPEC, "metadata": METADATA, "assume_metadata": True}
    store = ts.open(spec, context=context).result()
    store.write(7).result()

    assert store.spec().to_json()["assume_metadata"] is True
    assert kvstore.read("zarr.json").result().state == "missing"
    assert (create(context).read().result() == 7).all()


@pytest.mark.parametrize("data", [b"", b"[]"])
def test_a_document_that_is_none_names_its_key(
    context: ts.Context, kvstore: ts.KvStore, data: bytes
) -> None:
    kvstore.write("zarr.json", data).result()

    with pytest.raises(DataLossError, match=r"a/zarr\.json"):
        ts.open(SPEC, context=context).result()


def test_a_group_names_its_key(context: ts.Context, kvstore: ts.KvStore) -> None:
    kvstore.write("zarr.json", b'{"zarr_format": 3, "node_type": "group"}').result()

    with pytest.raises(MismatchError, match=r"a/zarr\.json.*group"):
        ts.open(SPEC, context=context).result()


def test_what_cannot_be_bound_is_not_stored(context: ts.Context, kvstore: ts.KvStore) -> None:
    with pytest.raises(SpecError):
        create(context, codecs=[{"name": "transpose", "configuration": {"order": [0, 1, 2]}}])

    assert kvstore.list().result() == []


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"metadata": {"shape": [4, "6"]}}, ("metadata", "shape", 1)),
        (
            {"metadata": {"codecs": ["bytes", {"name": "gzip", "configuration": {"level": 10}}]}},
            ("metadata", "codecs", 1, "configuration", "level"),
        ),
        ({"metadata": {"shap": [4]}}, ("metadata", "shap")),
        ({"metadat": {}}, ("metadat",)),
        (
            {"schema": {"codec": {"driver": "zarr3", "codecs": ["gzip", "bytes"]}}},
            ("schema", "codec", "codecs", 1),
        ),
    ],
)
def test_errors_in_a_spec_have_the_path(members: dict, path: tuple) -> None:
    with pytest.raises(SpecError) as caught:
        ts.Spec({**SPEC, **members})

    assert caught.value.path == path


@pytest.mark.parametrize(
    "members",
    [
        {"dtype": "int8", "metadata": {"data_type": "int16"}},
        {"rank": 1, "metadata": {"shape": [4, 6]}},
        {"dtype": "json"},
    ],
)
def test_members_that_contradict_each_other(members: dict) -> None:
    with pytest.raises(SpecError):
        ts.Spec({**SPEC, **members})


def test_a_url() -> None:
    spec = ts.Spec("memory://a/b/|zarr3:")

    assert isinstance(spec.model, Zarr3Spec)
    assert spec.to_json() == {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/b/"}}
    assert spec.url == "memory://a/b/|zarr3:"


def test_minimal_and_rank_are_printed_as_they_were_given() -> None:
    spec = ts.Spec({**SPEC, "rank": 2, "metadata": {"data_type": "int16"}})

    assert spec.to_json()["rank"] == 2
    assert spec.to_json()["dtype"] == "int16"
    spec.update(minimal_spec=True)
    assert "metadata" not in spec.to_json()
