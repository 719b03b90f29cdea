import json
from typing import Literal

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.drivers.n5.spec import N5Spec
from tensorstore_py.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    SpecError,
    UnsupportedError,
)

METADATA = {
    "dimensions": [5, 4],
    "blockSize": [3, 2],
    "dataType": "uint16",
    "compression": {"type": "raw"},
}
VALUES = np.arange(20, dtype="u2").reshape(5, 4) + 1


def spec(metadata: object = None, **members: object) -> dict:
    base = {"driver": "n5", "kvstore": "memory://a/", **members}
    return base if metadata is None else {**base, "metadata": metadata}


def stored(context: ts.Context, path: str = "a/") -> ts.KvStore:
    return ts.KvStore.open(f"memory://{path}", context=context).result()


def document(context: ts.Context) -> dict:
    return json.loads(stored(context)["attributes.json"])


def test_ten_lines() -> None:
    context = ts.Context()
    array = ts.open(
        spec(),
        create=True,
        context=context,
        dtype="uint16",
        domain=ts.IndexDomain(labels=["x", "y"], shape=[5, 4]),
        dimension_units=["4 nm", "4 nm"],
        chunk_layout=ts.ChunkLayout(chunk_shape=[3, 2]),
        codec=ts.CodecSpec({"driver": "n5", "compression": {"type": "gzip"}}),
    ).result()
    array[...] = VALUES

    again = ts.open("memory://a/|n5:", context=context).result()

    assert again.read().result().tolist() == VALUES.tolist()
    assert again[ts.d["y"][1]].read().result().tolist() == VALUES[:, 1].tolist()
    assert again.dimension_units == (ts.Unit("4 nm"), ts.Unit("4 nm"))
    assert again.url == "memory://a/|n5:"
    assert again.fill_value is None
    assert document(context) == {
        "axes": ["x", "y"],
        "blockSize": [3, 2],
        "compression": {"level": -1, "type": "gzip", "useZlib": False},
        "dataType": "uint16",
        "dimensions": [5, 4],
        "resolution": [4.0, 4.0],
        "units": ["nm", "nm"],
    }
    keys = [key.decode() for key in stored(context).list().result()]
    assert keys == ["0/0", "0/1", "1/0", "1/1", "attributes.json"]


def test_blocks_are_whole_at_the_upper_bounds() -> None:
    context = ts.Context()
    array = ts.open(spec(METADATA), create=True, context=context).result()
    array[...] = VALUES

    data = bytes(stored(context)["1/1"])

    assert data[:12].hex() == "000000020000000300000002"
    assert np.frombuffer(data[12:], ">u2").tolist() == [15, 19, 0, 16, 20, 0]


def test_a_smaller_block_is_read_and_updated() -> None:
    context = ts.Context()
    array = ts.open(spec(METADATA), create=True, context=context).result()
    part = np.array([[15, 16], [19, 20]], ">u2")
    stored(context)["1/1"] = bytes.fromhex("000000020000000200000002") + part.tobytes("F")

    assert array[3:, 2:].read().result().tolist() == part.tolist()
    array[3, 2] = 7

    assert array[3:, 2:].read().result().tolist() == [[7, 16], [19, 20]]
    assert bytes(stored(context)["1/1"])[:12].hex() == "000000020000000300000002"


def test_zeros_are_not_stored_unless_asked_for() -> None:
    context = ts.Context()
    array = ts.open(spec(METADATA), create=True, context=context).result()
    array[...] = 0
    assert stored(context).list().result() == [b"attributes.json"]

    array[...] = 1
    array[:3, :2] = 0
    assert b"0/0" not in stored(context).list().result()

    keeping = ts.open(spec(store_data_equal_to_fill_value=True), context=context).result()
    keeping[:3, :2] = 0
    assert b"0/0" in stored(context).list().result()


def test_a_missing_block_can_be_an_error() -> None:
    array = ts.open(spec(METADATA, fill_missing_data_reads=False), create=True).result()

    with pytest.raises(NotFoundError, match='"a/0/0"'):
        array.read().result()


def test_resizing_keeps_what_is_known_and_what_is_not() -> None:
    context = ts.Context()
    asked = {**METADATA, "note": {"kept": [1, None]}, "axes": ["x", ""]}
    array = ts.open(spec(asked), create=True, context=context).result()
    array[...] = VALUES

    array = array.resize(exclusive_max=[2, 7]).result()

    assert document(context) == {**asked, "dimensions": [2, 7]}
    assert sorted(stored(context).list().result()) == [b"0/0", b"0/1", b"attributes.json"]
    assert array.read().result()[:, :4].tolist() == VALUES[:2].tolist()
    assert array.read().result()[:, 4:].tolist() == [[0] * 3] * 2


def test_arrays_without_dimensions() -> None:
    context = ts.Context()
    array = ts.open(spec(), create=True, dtype="uint8", shape=[], context=context).result()
    array[...] = 4

    assert array.read().result() == 4
    assert stored(context).list().result() == [b"0", b"attributes.json"]


def test_a_spec_opens_the_array_again() -> None:
    context = ts.Context()
    array = ts.open(spec(METADATA), create=True, context=context).result()
    array[...] = VALUES

    for minimal in (False, True):
        again = ts.open(array[1:3].spec(minimal_spec=minimal), context=context).result()
        assert again.read().result().tolist() == VALUES[1:3].tolist()
    assert "metadata" not in array.spec(minimal_spec=True).to_json()


def test_what_is_there_is_found_without_a_format() -> None:
    context = ts.Context()
    ts.open(spec(METADATA), create=True, context=context).result()[...] = VALUES

    found = ts.open("memory://a/", context=context).result()

    assert found.spec().to_json()["driver"] == "n5"
    assert found.read().result().tolist() == VALUES.tolist()


def test_a_data_type_may_be_said_twice() -> None:
    once, twice = spec({"dataType": "int8"}), spec({"dataType": "int8"}, dtype="int8")

    assert ts.Spec(once) == ts.Spec(twice)


def test_the_url_can_go_on_inside() -> None:
    assert ts.Spec("memory://a/|n5:x/y").to_json() == {
        "driver": "n5",
        "kvstore": {"driver": "memory", "path": "a/x/y/"},
    }
    assert ts.Spec("memory://a|n5:").url == "memory://a/|n5:"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, {}),
        ({"metadata": {}}, {}),
        ({"metadata": {"dataType": "int8"}}, {"dtype": "int8", "metadata": {"dataType": "int8"}}),
        ({"metadata": {"blockSize": [3, 2]}}, {"metadata": {"blockSize": [3, 2]}, "rank": 2}),
        ({"metadata": {"note": 1}}, {"metadata": {"note": 1}}),
        ({"path": "b"}, {"kvstore": {"driver": "memory", "path": "a/b/"}}),
    ],
)
def test_members_print_in_their_normal_form(given: dict, written: dict) -> None:
    base = {"driver": "n5", "kvstore": {"driver": "memory", "path": "a/"}}

    assert ts.Spec(spec(**given)).to_json() == {**base, **written}
    assert ts.Spec(ts.Spec(spec(**given)).to_json()).to_json() == {**base, **written}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"metadata": []}, "^metadata: expected an object"),
        ({"metadata": {"blockSize": [0]}}, r"^metadata\.blockSize\[0\]: "),
        ({"metadata": {"compression": {"type": "gz"}}}, r'^metadata\.compression\.type: .*"gzip"'),
        ({"metadata": {"dataType": "bool"}}, r"^metadata\.dataType: "),
        ({"dtype": "bool"}, "^n5 has no data type bool"),
        ({"metadatas": {}}, '^metadatas: no such member .*"metadata"'),
        ({"field": "x"}, "^field: no such member"),
    ],
)
def test_mistakes_are_named(given: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        ts.Spec(spec(**given))


def test_open_modes() -> None:
    context = ts.Context()
    with pytest.raises(NotFoundError, match=r'"a/attributes\.json"'):
        ts.open(spec(), context=context).result()
    ts.open(spec(METADATA), create=True, context=context).result()[...] = VALUES
    with pytest.raises(AlreadyExistsError):
        ts.open(spec(METADATA), create=True, open=False, context=context).result()
    with pytest.raises(MismatchError, match='"blockSize" is'):
        ts.open(spec({"blockSize": [3, 3]}), context=context).result()

    again = ts.open(spec(METADATA), create=True, open=True, context=context).result()
    assert again.read().result().tolist() == VALUES.tolist()
    fresh = ts.open(spec(METADATA), create=True, delete_existing=True, context=context).result()
    assert not fresh.read().result().any()


def test_metadata_can_be_assumed() -> None:
    context = ts.Context()
    array = ts.open(spec(METADATA, assume_metadata=True), context=context).result()
    array[...] = VALUES

    assert array.read().result().tolist() == VALUES.tolist()
    assert b"attributes.json" not in stored(context).list().result()
    with pytest.raises(FailedPreconditionError):
        array.resize(exclusive_max=[9, 9]).result()


def test_transactions() -> None:
    context = ts.Context()
    array = ts.open(spec(METADATA), create=True, context=context).result()
    with ts.Transaction() as transaction:
        inside = array.with_transaction(transaction)
        inside[...] = VALUES
        assert inside.read().result().tolist() == VALUES.tolist()
        assert not array.read().result().any()

    assert array.read().result().tolist() == VALUES.tolist()


def test_what_the_library_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    compression = {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1}
    asked = N5Spec.parse(spec({**METADATA, "compression": compression}))
    from tensorstore_py.codecs import blosc

    library = blosc._library()
    monkeypatch.setattr(blosc, "_library", lambda: library._replace(compressors=("lz4",)))

    with pytest.raises(UnsupportedError, match=r"^compression: blosc compressor"):
        asked.layout(asked.new_metadata())


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_part_of_an_array(order: Literal["C", "F"]) -> None:
    values = np.arange(7 * 5 * 6, dtype="f4").reshape(7, 5, 6) - 50
    asked = {
        "dimensions": [7, 5, 6], "blockSize": [3, 2, 4], "dataType": "float32",
        "compression": {"type": "zstd"},
    }  # fmt: skip
    array = ts.open(spec(asked), create=True).result()
    array[...] = np.asarray(values, order=order)
    for part in (
        (slice(None),), (2,), (slice(1, 6, 2), slice(4)),
        (..., 5), ([0, 6, 3], slice(1, 3), [0, 5, 2]), (slice(3, 6), slice(2, 4), slice(4, 6)),
    ):  # fmt: skip
        found = array[part].read(order=order).result()
        assert found.tolist() == values[part].tolist()
    array[2:5, 1:3] = -1
    values[2:5, 1:3] = -1
    assert array.read(order=order).result().tolist() == values.tolist()
