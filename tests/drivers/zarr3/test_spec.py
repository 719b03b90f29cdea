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


FIELDS = [["x", "uint8"], ["n", [["y", "float32"], ["z", "r16"]]]]
RECORDS = {"data_type": FIELDS, "fill_value": {"x": 1, "n": {"y": 2.5, "z": [3, 4]}}}


def test_fields_are_opened_one_by_one(context: ts.Context) -> None:
    whole = create(context, **RECORDS)
    one = ts.open({**SPEC, "field": "n.y"}, context=context).result()
    raw = ts.open({**SPEC, "field": "n.z"}, context=context).result()

    one[1, 2:4] = [7, 8]
    raw[0, 0, 1] = np.void(b"a")
    whole[3] = np.array((9, (-1, b"zz")), whole.dtype.numpy_dtype)

    assert one.dtype == ts.float32
    assert one.read().result().tolist() == [
        [2.5] * 6, [2.5, 2.5, 7, 8, 2.5, 2.5], [2.5] * 6, [-1] * 6,
    ]  # fmt: skip
    assert raw.domain.shape == (4, 6, 2)
    assert raw[0, 0].read().result().tobytes() == b"\3a"
    assert whole[1, 2].read().result().item() == (1, (7.0, b"\3\4"))
    assert whole[3, 5].read().result().item() == (9, (-1.0, b"zz"))


def test_the_spec_of_a_field_opens_it_again(context: ts.Context) -> None:
    create(context, **RECORDS)
    spec = ts.open({**SPEC, "field": "n.z"}, context=context).result().spec()

    assert spec.to_json()["field"] == "n.z"
    assert spec.dtype == ts.dtype("byte")
    assert ts.open(spec, context=context).result().domain.shape == (4, 6, 2)
    json_text = ts.Spec(spec.to_json()).to_json()
    assert json_text == spec.to_json()


def test_the_bytes_of_elements(context: ts.Context) -> None:
    store = create(context)
    store[0, 0] = 258
    found = ts.open({**SPEC, "open_as_void": True}, context=context).result()

    assert found.dtype == ts.dtype("byte")
    assert found[0, 0].read().result().tobytes() == b"\2\1"
    assert found[0, 1].read().result().tobytes() == b"\xff\xff"
    found[0, 1] = np.array([b"\1", b"\0"], "V1")
    assert store[0, 1].read().result() == 1
    again = ts.open(found.spec(), context=context).result()
    assert again.domain == found.domain


def test_a_resize_changes_the_dimensions_of_the_array_only(context: ts.Context) -> None:
    store = create(context, data_type="r24", fill_value=[1, 2, 3])

    grown = store.resize(exclusive_max=[5, 7, None]).result()

    assert grown.domain.shape == (5, 7, 3)
    assert grown[4, 6].read().result().tobytes() == b"\1\2\3"
    with pytest.raises(ValueError, match="dimension 2"):
        store.resize(exclusive_max=[5, 7, 4]).result()


def test_raw_bytes_as_one_value(context: ts.Context) -> None:
    create(context, data_type="r24", fill_value=[1, 2, 3])
    for name, shape in (("byte", (4, 6, 3)), ("V3", (4, 6))):
        store = ts.open(SPEC, dtype=name, context=context).result()
        assert store.domain.shape == shape
        assert store.dtype == ts.dtype(name)
    with pytest.raises(MismatchError, match="byte, asked for was V4"):
        ts.open(SPEC, dtype="V4", context=context).result()


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        ({"field": "q"}, MismatchError, 'no field "q", only "x", "n"'),
        ({"field": "n.q"}, MismatchError, 'no field "n.q"'),
        ({"field": "x", "open_as_void": True}, SpecError, "exclude each other"),
        ({"field": "x", "dtype": "int8"}, MismatchError, "is uint8, asked for was int8"),
        ({"field": 3}, SpecError, "field"),
        ({"field": "y", "metadata": {"data_type": FIELDS}}, SpecError, 'no field "y"'),
        ({"field": "x", "metadata": {"data_type": "r16"}}, SpecError, "has no named fields"),
    ],
)
def test_fields_that_cannot_be_opened(
    context: ts.Context, members: dict, error: type[Exception], message: str
) -> None:
    create(context, **RECORDS)

    with pytest.raises(error, match=message):
        ts.open({**SPEC, **members}, context=context).result()


@pytest.mark.parametrize("members", [{"field": "x"}, {"open_as_void": True}])
def test_a_part_of_an_unknown_type_cannot_be_made(context: ts.Context, members: dict) -> None:
    with pytest.raises(SpecError, match=r"metadata\.data_type: .*required"):
        ts.open({**SPEC, **members}, shape=[3], create=True, context=context).result()


def test_text_of_any_length(context: ts.Context, kvstore: ts.KvStore) -> None:
    codecs = [{"name": "vlen-utf8"}, "zstd"]
    store = create(context, data_type="string", fill_value="né", codecs=codecs)
    values = np.array([["", "a" * 1000, "né"]] * 2, object)

    store[:2, :3] = values
    store[2:, :3] = "né"

    assert store[:2, :3].read().result().tolist() == values.tolist()
    assert store[3, 5].read().result() == "né"
    assert b"c/1/0" not in kvstore.list().result()


@pytest.mark.parametrize("endian", ["little", "big"])
def test_a_field_in_a_shard_of_shards(context: ts.Context, endian: str) -> None:
    def shards(shape: list[int], codecs: list[object]) -> dict[str, object]:
        configuration = {"chunk_shape": shape, "codecs": codecs}
        return {"name": "sharding_indexed", "configuration": configuration}

    serializer = {"name": "bytes", "configuration": {"endian": endian}}
    grid = {"name": "regular", "configuration": {"chunk_shape": [4, 6]}}
    nested = shards([2, 6], [shards([1, 3], [serializer, "crc32c"])])
    whole = create(context, **RECORDS, chunk_grid=grid, codecs=[nested])
    model = whole.read().result().copy()
    one = ts.open({**SPEC, "field": "n.y"}, context=context).result()

    for part in (np.s_[1:3, 2:5], np.s_[:, :], np.s_[3, 5]):
        one[part] = 7.5
        model["n"]["y"][part] = 7.5
        whole[0, 0:2] = model[1, 2]
        model[0, 0:2] = model[1, 2]
        assert whole.read().result().tobytes() == model.tobytes()
