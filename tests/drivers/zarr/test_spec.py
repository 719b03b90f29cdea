import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.drivers.zarr.spec import ZarrSpec
from tensorstore_py.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    SpecError,
)

PAIR = [["x", "<u2", [2, 3]], ["y", ">f4"], ["s", "|S2"]]
RECORD = np.dtype([("x", "<u2", (2, 3)), ("y", ">f4"), ("s", "|S2")])
BLANK = "AQACAAMABAAFAAYAP4AAAGhp"
METADATA = {"shape": [7, 9], "chunks": [3, 4], "dtype": "<u2", "compressor": None}


def spec(metadata: object = None, **members: object) -> dict:
    base = {"driver": "zarr", "kvstore": {"driver": "memory"}, **members}
    return base if metadata is None else {**base, "metadata": metadata}


def stored(context: ts.Context) -> ts.KvStore:
    return ts.KvStore.open({"driver": "memory"}, context=context).result()


def document(context: ts.Context, key: str = ".zarray") -> dict:
    return json.loads(stored(context)[key])


@pytest.mark.parametrize("name", ["zarr", "zarr2"])
def test_both_names_open_it_and_one_is_printed(name: str) -> None:
    found = ts.Spec({**spec(), "driver": name})

    assert found.to_json() == spec()


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"key_encoding": "/"}, {"metadata": {"dimension_separator": "/"}}),
        ({"metadata_key": "zarray"}, {"metadata_key": "zarray"}),
        ({"metadata_key": ".zarray"}, {}),
        ({"field": ""}, {}),
        ({"metadata": {}}, {}),
        ({"metadata": {"dtype": ">i4"}}, {"metadata": {"dtype": ">i4"}, "dtype": "int32"}),
    ],
)
def test_members_print_in_their_normal_form(given: dict, written: dict) -> None:
    assert ts.Spec(spec(**given)).to_json() == {**spec(), **written}


def test_the_path_is_joined_to_the_store_s() -> None:
    given = spec(kvstore={"driver": "memory", "path": "a"}, path="b")

    assert ts.Spec(given).to_json() == spec(kvstore={"driver": "memory", "path": "a/b/"})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"key_encoding": "-"}, '^key_encoding: expected "." or "/"'),
        (
            {"key_encoding": "/", "metadata": {"dimension_separator": "."}},
            '^key_encoding: "/" contradicts',
        ),
        ({"metadata": {"shap": [1]}}, r"^metadata\.shap: no such member .*\"shape\""),
        ({"metadata": []}, "^metadata: expected an object"),
        ({"key_encoding": "/", "metadata": []}, "^metadata: |^key_encoding: "),
        ({"metadatas": {}}, '^metadatas: no such member .*"metadata"'),
        ({"field": 3}, "^field: expected a string"),
        ({"field": None}, "^field: null is not possible"),
        ({"metadata": {"dtype": PAIR}, "field": "z"}, 'no field "z"'),
    ],
)
def test_a_wrong_member_is_named(given: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        ts.Spec(spec(**given))


def test_a_contradiction_is_found_before_anything_is_opened() -> None:
    with pytest.raises(SpecError, match=r"uint16.*uint8"):
        ts.Spec(spec(dtype="uint8", metadata={"dtype": "<u2"}))
    with pytest.raises(SpecError, match="rank"):
        ts.Spec(spec(rank=3, metadata={"shape": [1], "dtype": "<u2"}))


def test_what_is_known_of_the_array_is_known_of_its_spec() -> None:
    found = ts.Spec(spec({**METADATA, "fill_value": 3}))

    assert found.dtype == ts.dtype("uint16")
    assert found.domain == ts.IndexDomain(shape=[7, 9], implicit_upper_bounds=[True, True])
    assert found.chunk_layout.write_chunk.shape == (3, 4)
    assert found.fill_value is not None
    assert found.fill_value.item() == 3
    assert found.rank == 2


def test_a_field_s_bounds_are_not_resizable() -> None:
    found = ts.Spec(spec({"shape": [4], "dtype": PAIR}, field="x"))

    assert found.domain == ts.IndexDomain(
        shape=[4, 2, 3], implicit_upper_bounds=[True, False, False]
    )


def test_it_has_a_url() -> None:
    assert ts.Spec(spec(kvstore="memory://a/")).url == "memory://a/|zarr2:"


def test_the_metadata_key_can_be_another() -> None:
    context = ts.Context()

    ts.open(spec(METADATA, metadata_key="zarray"), create=True, context=context).result()

    assert sorted(stored(context).list().result()) == [b"zarray"]
    with pytest.raises(NotFoundError, match="zarray"):
        ts.open(spec(), context=context).result()


def test_creating_and_opening_follow_the_mode() -> None:
    context = ts.Context()
    with pytest.raises(NotFoundError, match="create=True"):
        ts.open(spec(METADATA), context=context).result()

    ts.open(spec(METADATA), create=True, context=context).result()

    with pytest.raises(AlreadyExistsError, match="open=True"):
        ts.open(spec(METADATA), create=True, context=context).result()
    ts.open(spec(METADATA), create=True, open=True, context=context).result()


def test_the_spec_of_an_open_array_opens_it_again() -> None:
    context = ts.Context()
    first = ts.open(spec(METADATA), create=True, context=context).result()
    first[1, 2] = 5

    written = first.spec().to_json()
    again = ts.open(written, context=context).result()

    assert written["metadata"] == document(context)
    assert again[1, 2].read().result() == 5
    assert again.spec().to_json() == written


@pytest.mark.parametrize("separator", [".", "/"])
def test_a_document_without_a_separator_takes_the_one_asked_for(separator: str) -> None:
    context = ts.Context()
    text = {**METADATA, "zarr_format": 2, "fill_value": 0, "order": "C", "filters": None}
    stored(context)[".zarray"] = json.dumps(text)

    store = ts.open(spec(key_encoding=separator), context=context).result()
    store[6, 8] = np.uint16(1)

    assert f"2{separator}2".encode() in stored(context).list().result()
    metadata = store.spec().to_json()["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["dimension_separator"] == separator


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"metadata": {"shape": [7, 8]}}, r'"shape" is \[7,9\].*asks for \[7,8\]'),
        ({"metadata": {"dtype": ">u2"}}, '"dtype" is "<u2"'),
        ({"metadata": {"order": "F"}}, '"order" is "C"'),
        ({"dtype": "int8"}, "uint16.*int8"),
        ({"rank": 3}, "rank"),
        ({"schema": {"domain": {"shape": [7, 8]}}}, "domain"),
        ({"schema": {"chunk_layout": {"chunk": {"shape": [3, 5]}}}}, "chunk"),
        ({"schema": {"chunk_layout": {"inner_order": [1, 0]}}}, "inner_order"),
        ({"schema": {"codec": {"driver": "zarr", "compressor": {"id": "bz2"}}}}, "codec"),
        ({"schema": {"fill_value": 1}}, "fill_value: the schema asks for 1.*none"),
        ({"field": "x"}, 'no field "x"'),
    ],
)
def test_a_constraint_that_does_not_hold_is_named(asked: dict, problem: str) -> None:
    context = ts.Context()
    ts.open(spec(METADATA), create=True, context=context).result()

    with pytest.raises(MismatchError, match=problem):
        ts.open(spec(**asked), context=context).result()


@pytest.mark.parametrize(
    "asked",
    [
        {"metadata": {"shape": [7, 9], "zarr_format": 2, "filters": []}},
        {"dtype": "uint16", "rank": 2},
        {"schema": {"chunk_layout": {"chunk": {"shape_soft_constraint": [1, 1]}}}},
        {"schema": {"chunk_layout": {"chunk": {"elements": 3}}}},
        {"schema": {"codec": {"driver": "zarr", "compressor": None}}},
        {"schema": {"dimension_units": [None, None]}},
    ],
)
def test_constraints_that_hold_do_not_disturb(asked: dict) -> None:
    context = ts.Context()
    ts.open(spec(METADATA), create=True, context=context).result()

    assert ts.open(spec(**asked), context=context).result().shape == (7, 9)


def test_units_have_no_place_in_the_format() -> None:
    context = ts.Context()
    ts.open(spec(METADATA), create=True, context=context).result()

    with pytest.raises(SpecError, match=r"^dimension_units"):
        ts.open(spec(schema={"dimension_units": ["nm", None]}), context=context).result()


def test_labels_of_the_schema_name_the_dimensions() -> None:
    context = ts.Context()
    ts.open(spec(METADATA), create=True, context=context).result()
    labelled = spec(schema={"domain": {"shape": [7, 9], "labels": ["a", "b"]}})

    store = ts.open(labelled, context=context).result()

    assert store.domain.labels == ("a", "b")
    assert ts.open(spec(), context=context).result().domain.labels == ("", "")


def test_a_corrupt_document_is_named_by_key_and_member() -> None:
    context = ts.Context()
    stored(context)[".zarray"] = json.dumps({**METADATA, "zarr_format": 3})
    with pytest.raises(DataLossError, match=r"\.zarray.*: zarr_format: expected 2"):
        ts.open(spec(), context=context).result()

    stored(context)[".zarray"] = "{"
    with pytest.raises(DataLossError, match=r"\.zarray.*: this is no JSON"):
        ts.open(spec(), context=context).result()


def test_an_unknown_filter_is_refused_by_key_and_name() -> None:
    context = ts.Context()
    text = {**METADATA, "zarr_format": 2, "fill_value": 0, "order": "C"}
    stored(context)[".zarray"] = json.dumps({**text, "filters": [{"id": "detla"}]})

    with pytest.raises(DataLossError, match=r'\.zarray.*: filters\[0\]\.id: .*"detla"'):
        ts.open(spec(), context=context).result()


def test_resizing_keeps_unknown_members() -> None:
    context = ts.Context()
    text = {**METADATA, "zarr_format": 2, "fill_value": 0, "order": "C", "filters": None}
    stored(context)[".zarray"] = json.dumps({**text, "_OTHER": {"a": 1}})
    store = ts.open(spec(), context=context).result()
    store[...] = np.uint16(1)

    resized = store.resize(exclusive_max=[3, 12]).result()

    assert document(context) == {**text, "_OTHER": {"a": 1}, "shape": [3, 12]}
    assert sorted(stored(context).list().result()) == [b".zarray", b"0.0", b"0.1", b"0.2"]
    assert resized.read().result().sum() == 27


def test_with_no_fill_value_zeros_are_stored_and_with_one_they_are_not() -> None:
    for fill_value, keys in ((None, [b".zarray", b"0.0"]), (0, [b".zarray"])):
        context = ts.Context()
        metadata = {**METADATA, "fill_value": fill_value}
        store = ts.open(spec(metadata), create=True, context=context).result()

        store[:3, :4] = np.uint16(0)

        assert sorted(stored(context).list().result()) == keys
        assert store.read().result().sum() == 0


def test_assumed_metadata_is_never_written() -> None:
    context = ts.Context()
    store = ts.open(spec(METADATA), open=True, assume_metadata=True, context=context).result()

    store[0, 0] = np.uint16(4)

    assert sorted(stored(context).list().result()) == [b"0.0"]
    assert store[0, 0].read().result() == 4


def records(shape: tuple[int, ...]) -> np.ndarray:
    found = np.zeros(shape, RECORD)
    count = found.size
    found["x"] = np.arange(6 * count).reshape(*shape, 2, 3)
    found["y"] = np.arange(count).reshape(shape) / 4
    found["s"] = b"ab"
    return found


def seen(array: np.ndarray, field: str) -> np.ndarray:
    """A field as this driver shows it."""
    if field == "s":
        return np.ascontiguousarray(array["s"]).view("S1").reshape(*array.shape, 2)
    return array[field]


def opened(context: ts.Context, field: str, order: str = "C") -> ts.TensorStore:
    metadata = {
        **METADATA,
        "dtype": PAIR,
        "fill_value": BLANK,
        "order": order,
        "compressor": {"id": "zlib"},
    }
    members = spec(metadata, field=field)
    return ts.open(members, create=True, open=True, context=context).result()


@pytest.mark.parametrize("order", ["C", "F"])
def test_fields_are_written_one_by_one_and_keep_each_other(order: str) -> None:
    context = ts.Context()
    array = records((7, 9))

    for field in ("y", "x", "s"):
        opened(context, field, order).write(seen(array, field)).result()

    for field in ("x", "y", "s"):
        found = opened(context, field, order).read().result()
        assert np.array_equal(found, seen(array, field)), field


def test_a_part_of_a_field_is_written_into_what_is_there() -> None:
    context = ts.Context()
    store = opened(context, "x")

    store[2:5, 3, 1, ::2] = np.uint16(9)

    found = store.read().result()
    expected = np.broadcast_to(np.array([[1, 2, 3], [4, 5, 6]], "u2"), (7, 9, 2, 3)).copy()
    expected[2:5, 3, 1, ::2] = 9
    assert np.array_equal(found, expected)
    assert opened(context, "y").read().result().tolist() == [[1.0] * 9] * 7


def test_missing_chunks_read_as_the_field_s_fill_value_in_any_view() -> None:
    store = opened(ts.Context(), "x")

    assert store[5:7, 8, 0, 1:].read().result().tolist() == [[2, 3], [2, 3]]
    assert store[0, 0, :, 2].read().result().tolist() == [3, 6]
    assert store[[0, 6], [2, 8], 1, ::-1].read().result().tolist() == [[6, 5, 4]] * 2


def test_a_chunk_is_dropped_when_all_its_fields_are_fill_values() -> None:
    context = ts.Context()
    x, y = opened(context, "x"), opened(context, "y")
    fill = np.array([[1, 2, 3], [4, 5, 6]], "u2")

    y[0, 0] = np.float32(7)
    x[:3, :4] = np.broadcast_to(fill, (3, 4, 2, 3))
    assert b"0.0" in stored(context).list().result()

    y[0, 0] = np.float32(1)
    assert sorted(stored(context).list().result()) == [b".zarray"]


def test_a_corrupt_chunk_of_fields_is_named() -> None:
    context = ts.Context()
    store = opened(context, "y")
    stored(context)["0.0"] = b"nonsense"

    with pytest.raises(DataLossError, match=r"0\.0"):
        store[0, 0].read().result()
    with pytest.raises(DataLossError, match=r"0\.0"):
        store[:3, :4] = np.float32(3)


def test_text_of_fixed_length_reads_as_characters() -> None:
    context = ts.Context()
    metadata = {**METADATA, "dtype": "|S2", "fill_value": "aGk="}
    store = ts.open(spec(metadata), create=True, context=context).result()

    store[0, 0] = np.array([b"o", b"k"])

    assert store.shape == (7, 9, 2)
    assert store[0, :2].read().result().tolist() == [[b"o", b"k"], [b"h", b"i"]]
    assert bytes(stored(context)["0.0"][:4]) == b"okhi"


def test_the_spec_class_is_a_value() -> None:
    first = ZarrSpec.parse(spec(METADATA))

    assert first == ZarrSpec.parse(spec(METADATA))
    assert ZarrSpec.parse(first.to_json()).to_json() == first.to_json()


def test_fields_written_at_the_same_time_both_arrive() -> None:
    context = ts.Context()
    array = records((7, 9))

    pending = [opened(context, field).write(seen(array, field)) for field in ("x", "y", "s")]
    for write in pending:
        write.result()

    for field in ("x", "y", "s"):
        found = opened(context, field).read().result()
        assert np.array_equal(found, seen(array, field)), field


def test_resizing_deletes_the_chunks_of_all_fields() -> None:
    context = ts.Context()
    store = opened(context, "x")
    store[...] = np.uint16(1)

    resized = store.resize(exclusive_max=[2, None, None, None]).result()

    assert sorted(stored(context).list().result()) == [b".zarray", b"0.0", b"0.1", b"0.2"]
    assert resized.shape == (2, 9, 2, 3)
    with pytest.raises(FailedPreconditionError):
        store.resize(exclusive_max=[None, None, 3, None]).result()
