"""Halves of surrogate pairs, which JSON can say and no encoding has, end in typed errors."""

import json

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, SpecError, TensorStoreError

BAD = "a\ud800b"
KEYS = {"zarr3": "zarr.json", "zarr": ".zarray", "n5": "attributes.json"}
DOCUMENTS: dict[str, dict[str, object]] = {
    "zarr3": {
        "zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    },
    "zarr": {
        "zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<u2", "order": "C",
        "compressor": None, "filters": None, "fill_value": 0,
    },
    "n5": {
        "dimensions": [4, 4], "blockSize": [2, 2], "dataType": "uint16",
        "compression": {"type": "raw"},
    },
}  # fmt: skip


def opened(driver: str, document: dict) -> ts.TensorStore:
    context = ts.Context()
    store = ts.KvStore.open("memory://", context=context).result()
    store[KEYS[driver]] = json.dumps(document)
    return ts.open({"driver": driver, "kvstore": "memory://"}, context=context).result()


@pytest.mark.parametrize(
    ("driver", "members"),
    [
        ("zarr3", {"attributes": {BAD: 1}}),
        ("zarr3", {"attributes": {"x": [1, {"y": BAD}]}}),
        ("zarr3", {"dimension_names": ["x", BAD]}),
        ("zarr3", {"data_type": "string", "fill_value": BAD, "codecs": ["vlen-utf8"]}),
        ("zarr3", {"data_type": BAD}),
        ("zarr3", {"codecs": [BAD]}),
        ("zarr3", {"codecs": [{"name": "bytes", "configuration": {BAD: 1}}]}),
        ("zarr3", {"codecs": [{"name": "bytes", "configuration": {"endian": BAD}}]}),
        ("zarr3", {"chunk_grid": {"name": BAD}}),
        ("zarr3", {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": BAD}}}),
        ("zarr3", {"storage_transformers": [{"name": BAD}]}),
        ("zarr3", {BAD: 1}),
        ("zarr3", {"x": {"must_understand": False, "y": "\udcff"}, "data_type": "\udcff"}),
        ("zarr", {"dtype": BAD}),
        ("zarr", {"dtype": [[BAD, "<u2"]], "fill_value": None}),
        ("zarr", {"dtype": "<U4", "fill_value": BAD}),
        ("zarr", {"fill_value": BAD}),
        ("zarr", {"fill_value": "\udcff"}),
        ("zarr", {"compressor": {"id": BAD}}),
        ("zarr", {"compressor": {"id": "zlib", BAD: 1}}),
        ("zarr", {"dimension_separator": BAD}),
        ("zarr", {"dtype": "|O", "filters": [{"id": "json2", "encoding": BAD}]}),
        ("zarr", {"dtype": "|O", "filters": [{"id": "json2", "encoding": "a\0b"}]}),
        ("n5", {"axes": [BAD, "y"]}),
        ("n5", {"units": [BAD, "nm"], "resolution": [1, 1]}),
        ("n5", {"dataType": BAD}),
        ("n5", {"compression": {"type": BAD}}),
        ("n5", {"compression": {"type": "\udcff"}}),
        ("n5", {BAD: BAD}),
    ],
)
def test_in_stored_metadata_it_is_an_error_that_names_the_key_and_the_member(driver, members):
    with pytest.raises(DataLossError) as caught:
        opened(driver, {**DOCUMENTS[driver], **members})

    text = str(caught.value)
    assert KEYS[driver] in text
    assert any(name in text for name in members) or ascii(BAD)[1:-1] in text
    text.encode()  # it can be printed


def test_specs_say_where_it_is():
    spec = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": BAD}}

    for refuse in (ts.Spec, ts.open):
        with pytest.raises(SpecError, match=r"\\ud800") as caught:
            refuse(spec)
        assert caught.value.path == ("kvstore", "path")
    with pytest.raises(SpecError) as caught:
        ts.Spec({"driver": "zarr3", "metadata": {"attributes": {"a": [0, {BAD: 1}]}}})
    assert caught.value.path == ("metadata", "attributes", "a", 1)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: ts.open(f"file:///tmp/{BAD}"),
        lambda: ts.open(f"s3://bucket/{BAD}|zarr3"),
        lambda: ts.KvStore.open(f"http://localhost:1/{BAD}"),
        lambda: ts.Spec({"driver": "zarr3", BAD: 1}),
        lambda: ts.Spec({"driver": BAD}),
        lambda: ts.Schema({"domain": {"labels": [BAD]}}),
        lambda: ts.Schema({"dimension_units": [f"3 {BAD}"]}),
        lambda: ts.CodecSpec({"driver": "zarr3", "codecs": [BAD]}),
        lambda: ts.Context({f"cache_pool#{BAD}": {}}),
        lambda: ts.Context({"cache_pool": "\udcff"}),
        lambda: ts.dtype(BAD),
        lambda: ts.Group.open({"driver": "zarr3", "kvstore": f"memory://{BAD}"}),
    ],
)
def test_whatever_is_asked_with_it_is_refused(refused):
    with pytest.raises(TensorStoreError):
        refused()


@pytest.mark.parametrize("url", ["memory://", "file://{}/"])
def test_no_key_has_it(url, tmp_path):
    store = ts.KvStore.open(url.format(tmp_path)).result()

    for refused in (
        lambda: store.read(BAD).result(),
        lambda: store.write(BAD, b"1").result(),
        lambda: store.delete_range(ts.KvStore.KeyRange(BAD)).result(),
        lambda: store / BAD,
        lambda: store + BAD,
        lambda: store[BAD],
    ):
        with pytest.raises(SpecError, match=r"\\ud800"):
            refused()
    assert store.list().result() == []


def test_bytes_that_are_no_utf_8_are_keys_as_before(tmp_path):
    store = ts.KvStore.open(f"file://{tmp_path}/").result()
    store[b"a\xffb"] = b"1"

    assert store.list().result() == [b"a\xffb"]
    assert store["a\udcffb"] == b"1"
    assert (store / "a\udcffb").url.endswith("/a%FFb")
    assert "\\xff" in repr(store / b"a\xffb")


def test_attributes_with_it_are_not_written():
    array = opened("zarr3", DOCUMENTS["zarr3"])
    assert array.kvstore is not None
    before = bytes(array.kvstore["zarr.json"])

    for attributes, path in (
        ({BAD: 1}, ()),
        ({"a": [0, BAD]}, ("a", 1)),
        ({"a": {BAD: 1}}, ("a",)),
    ):
        with pytest.raises(SpecError) as caught:
            array.attrs.update(attributes).result()
        assert caught.value.path == path
    assert bytes(array.kvstore["zarr.json"]) == before


def test_a_document_of_the_json_driver():
    store = ts.KvStore.open("memory://").result()
    for text in (b'"\\ud800"', b'{"a": [1, "\\ud800"]}', b'{"\\ud800": 1}', b"1" * 5000):
        context = ts.Context()
        store = ts.KvStore.open("memory://", context=context).result()
        store["d"] = text
        array = ts.open({"driver": "json", "kvstore": "memory://d"}, context=context).result()
        assert isinstance(array.read().exception(), DataLossError)
