"""Arrays of every kind of element, as a user creates, opens and changes them."""

import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError

WHERE = {"driver": "zarr", "kvstore": "memory://a/"}
RECORD = np.dtype([("x", "u2"), ("p", [("when", "M8[s]"), ("size", "f4", (2,))], (3,))])


@pytest.fixture
def context() -> ts.Context:
    return ts.Context()


def create(context: ts.Context, **options: object) -> ts.TensorStore:
    options = {"shape": [4], "create": True, **options}
    return ts.open(WHERE, context=context, **options).result()  # type: ignore[arg-type]


def open_(context: ts.Context, **members: object) -> ts.TensorStore:
    return ts.open({**WHERE, **members}, context=context).result()


def document(context: ts.Context) -> dict:
    store = ts.KvStore.open("memory://a/", context=context).result()
    found: dict = json.loads(bytes(store[".zarray"]))
    return found


def records(count: int) -> np.ndarray:
    values = np.zeros(count, RECORD)
    values["x"] = np.arange(count)
    values["p"]["when"] = np.datetime64("2020-01-01") + np.arange(3)
    values["p"]["size"] = np.arange(count * 6).reshape(count, 3, 2)
    return values


#: dtype, fill value as an option, what the document says of both, what is read where nothing is
NEW = [
    ("datetime64[ns]", "2020-01-02", "<M8[ns]", 1577923200 * 10**9, np.datetime64("2020-01-02")),
    ("datetime64[D]", None, "<M8[D]", None, np.datetime64(0, "D")),
    ("timedelta64[s]", 7, "<m8[s]", 7, np.timedelta64(7, "s")),
    ("U5", "ab", "<U5", "ab", "ab"),
    ("S5", b"ab", "|S5", "YWIAAAA=", b"ab"),
    ("V2", b"ab", "|V2", "YWI=", np.void(b"ab")),
    ("ustring", "é", "|O", "é", "é"),
    ("ustring", None, "|O", None, ""),
    ("string", b"\1a", "|O", "AWE=", b"\1a"),
    ("string", None, "|O", None, b""),
    ("json", {"a": [1]}, "|O", {"a": [1]}, {"a": [1]}),
    ("json", None, "|O", None, None),
]


@pytest.mark.parametrize(("dtype", "fill_value", "encoded", "written", "missing"), NEW)
def test_types_that_the_reference_lacks_are_created_by_name(
    context: ts.Context,
    dtype: str,
    fill_value: object,
    encoded: str,
    written: object,
    missing: object,
) -> None:
    created = create(context, dtype=dtype, fill_value=fill_value)

    found = document(context)
    assert (found["dtype"], found["fill_value"]) == (encoded, written)
    assert created.dtype == ts.dtype(dtype)
    assert created.shape == (4,)
    assert created[0].read().result() == missing
    same = ts.open(created.spec(), context=context).result()
    assert (same.dtype, same.schema) == (created.dtype, created.schema)


@pytest.mark.parametrize("dtype", [RECORD, ts.dtype(RECORD), ts.dtype(RECORD).to_json()])
def test_a_record_is_created_from_any_notation_of_it(context: ts.Context, dtype: object) -> None:
    created = create(context, dtype=dtype)
    created[...] = records(4)

    assert document(context)["dtype"] == [
        ["x", "<u2"],
        ["p", [["when", "<M8[s]"], ["size", "<f4", [2]]], [3]],
    ]
    opened = open_(context)
    assert opened.dtype == ts.dtype(RECORD)
    assert np.array_equal(opened.read().result(), records(4))
    assert opened[1].read().result() == records(4)[1]


def test_records_have_a_fill_value(context: ts.Context) -> None:
    fill = (7, (np.datetime64("2020-01-01"), [1.0, 2.0]))

    created = create(context, dtype=RECORD, fill_value=fill)
    created[1] = records(4)[1]

    expected = np.full(4, np.array(fill, RECORD))
    expected[1] = records(4)[1]
    assert np.array_equal(open_(context).read().result(), expected)
    created[1] = expected[0]
    store = ts.KvStore.open("memory://a/", context=context).result()
    assert [bytes(key) for key in store.list().result()] == [b".zarray"]


@pytest.mark.parametrize(
    ("field", "dtype", "shape", "path"),
    [
        ("x", "uint16", (4,), ["x"]),
        ("p", ts.dtype(RECORD["p"].base), (4, 3), ["p"]),
        ("p.when", "datetime64[s]", (4, 3), ["p", "when"]),
        ("p.size", "float32", (4, 3, 2), ["p", "size"]),
    ],
)
def test_a_field_at_any_depth_is_an_array(
    context: ts.Context, field: str, dtype: str, shape: tuple[int, ...], path: list[str]
) -> None:
    create(context, dtype=RECORD)[...] = records(4)
    expected = records(4)
    part = expected
    for name in path:
        part = part[name]

    opened = open_(context, field=field)

    assert (opened.dtype, opened.shape) == (ts.dtype(dtype), shape)
    assert opened.spec().to_json()["field"] == field
    assert list(opened.domain.implicit_upper_bounds) == [True] + [False] * (len(shape) - 1)
    assert np.array_equal(opened.read().result(), part)
    opened[2] = opened[0].read().result()
    part[2] = part[0]
    assert np.array_equal(open_(context).read().result(), expected)


def test_the_bytes_of_any_array_can_be_opened(context: ts.Context) -> None:
    create(context, dtype="uint32")[...] = [1, 2, 3, 4]

    opened = open_(context, open_as_void=True)

    assert (opened.dtype, opened.shape) == (ts.byte, (4, 4))
    assert opened.read().result().tobytes() == np.arange(1, 5, dtype="<u4").tobytes()
    opened[1] = np.frombuffer(b"abcd", "V1")
    assert open_(context)[1].read().result() == int.from_bytes(b"abcd", "little")
    written = opened.spec().to_json()
    assert (written["open_as_void"], written["dtype"]) == (True, "byte")
    assert ts.open(written, context=context).result().shape == (4, 4)


def test_an_array_may_be_created_as_bytes(context: ts.Context) -> None:
    """The reference fails here."""
    metadata = {"dtype": [["x", "<u2"], ["y", "|u1"]], "shape": [2], "fill_value": "AQID"}
    spec = {**WHERE, "open_as_void": True, "metadata": metadata}

    created = ts.open(spec, create=True, context=context).result()

    assert created.shape == (2, 3)
    assert created.read().result().tobytes() == b"\1\2\3" * 2
    assert open_(context, field="x").read().result().tolist() == [513, 513]


def test_bytes_and_a_field_exclude_each_other() -> None:
    with pytest.raises(SpecError, match=r'^field: "field" and "open_as_void" exclude each other'):
        ts.Spec({**WHERE, "field": "x", "open_as_void": True})


def test_objects_have_no_bytes_to_open(context: ts.Context) -> None:
    create(context, dtype="ustring")

    with pytest.raises(MismatchError, match="open_as_void: Python objects have no fixed number"):
        open_(context, open_as_void=True)


def test_text_of_fixed_length_is_characters_unless_asked_for_by_length(
    context: ts.Context,
) -> None:
    create(context, dtype="S3")[...] = [b"a", b"bc", b"def", b""]

    assert (open_(context).dtype, open_(context).shape) == (ts.char, (4, 3))
    whole = open_(context, dtype="S3")
    assert whole.read().result().tolist() == [b"a", b"bc", b"def", b""]
    with pytest.raises(MismatchError, match="dtype: the stored data type is char"):
        open_(context, dtype="S4")


def test_a_single_field_is_opened_alone_unless_asked_for_as_record(context: ts.Context) -> None:
    record = [["x", "uint16"]]
    create(context, dtype=record)[...] = np.array([(1,), (2,), (3,), (4,)], [("x", "u2")])

    assert open_(context).read().result().tolist() == [1, 2, 3, 4]
    assert open_(context, dtype=record).read().result().tolist() == [(1,), (2,), (3,), (4,)]


def test_schema_and_metadata_merge_their_filters(context: ts.Context) -> None:
    delta = {"id": "delta", "dtype": "<i4", "astype": "<i4"}
    codec = ts.CodecSpec({"driver": "zarr", "filters": [delta], "compressor": None})

    created = create(context, dtype="int32", codec=codec)
    created[...] = [5, 6, 8, 8]

    assert document(context)["filters"] == [delta]
    assert created.codec == codec
    store = ts.KvStore.open("memory://a/", context=context).result()
    assert bytes(store["0"]) == np.array([5, 1, 2, 0], "<i4").tobytes()
    none = {**WHERE, "metadata": {"filters": None, "shape": [4]}}
    with pytest.raises(MismatchError, match="codec: Cannot merge"):
        ts.open(none, create=True, dtype="int32", codec=codec).result()
    with pytest.raises(MismatchError, match="codec"):
        ts.open(
            WHERE, codec=ts.CodecSpec({"driver": "zarr", "filters": []}), context=context
        ).result()


def test_filters_and_unknown_members_survive_a_resize(context: ts.Context) -> None:
    create(context, dtype="ustring", fill_value="x")[...] = ["a", "b", "c", "d"]
    store = ts.KvStore.open("memory://a/", context=context).result()
    before = {**document(context), "made_by": {"name": "someone", "version": 1}}
    store[".zarray"] = json.dumps(before)

    opened = open_(context)
    opened.resize([None], [6]).result()

    assert document(context) == {**before, "shape": [6]}
    assert open_(context).read().result().tolist() == ["a", "b", "c", "d", "x", "x"]


def test_pickles_are_read_by_those_who_say_so(context: ts.Context) -> None:
    metadata = {"filters": [{"id": "pickle"}], "shape": [2]}
    with pytest.raises(UnsupportedError, match='"allow_pickle": true'):
        ts.open({**WHERE, "metadata": metadata}, create=True, dtype="object").result()

    spec = {**WHERE, "allow_pickle": True}
    created = ts.open(
        {**spec, "metadata": metadata}, create=True, dtype="object", context=context
    ).result()
    created[...] = [{1, 2}, (3,)]

    assert ts.open(spec, context=context).result().read().result().tolist() == [{1, 2}, (3,)]
    assert created.spec().to_json()["allow_pickle"] is True
    with pytest.raises(UnsupportedError, match=r'"a/\.zarray": filters\[0\]: '):
        open_(context)


def test_missing_chunks_of_objects_are_not_stored(context: ts.Context) -> None:
    created = create(context, dtype="ustring", fill_value="x", shape=[4])

    created[...] = ["x"] * 4

    store = ts.KvStore.open("memory://a/", context=context).result()
    assert [bytes(key) for key in store.list().result()] == [b".zarray"]
    created[1] = ""
    assert created.read().result().tolist() == ["x", "", "x", "x"]


def test_the_default_of_older_versions_is_an_empty_string(context: ts.Context) -> None:
    create(context, dtype="ustring")
    store = ts.KvStore.open("memory://a/", context=context).result()
    store[".zarray"] = json.dumps({**document(context), "fill_value": 0})

    assert open_(context).read().result().tolist() == [""] * 4


def test_dates_that_are_none_survive(context: ts.Context) -> None:
    created = create(context, dtype="datetime64[ms]", fill_value="NaT")
    created[1] = np.datetime64("2020-01-01")

    found = open_(context).read().result()

    assert np.isnat(found).tolist() == [True, False, True, True]
    assert document(context)["fill_value"] == -(2**63)


def test_a_data_type_of_objects_alone_tells_nothing(context: ts.Context) -> None:
    create(context, dtype="ustring")

    assert open_(context, metadata={"dtype": "|O"}).dtype == ts.ustring
    with pytest.raises(MismatchError, match="dtype: the stored data type is ustring"):
        open_(context, dtype="json")
    metadata = {"dtype": "|O", "shape": [1]}
    with pytest.raises(SpecError, match="dtype must be specified"):
        ts.open({**WHERE, "metadata": metadata}, create=True).result()
