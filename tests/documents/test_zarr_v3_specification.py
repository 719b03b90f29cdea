"""The core specification, version 3: what it demands of arrays, next to zarr-python."""

import gzip
import json
import struct
from typing import Any

import google_crc32c
import numpy as np
import pytest
import zarr

import tensorstore_py as ts

CHECKSUM = {"name": "crc32c"}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
DOCUMENT: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7,
    "codecs": [LITTLE],
}
MEMBERS = sorted(DOCUMENT)


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def grid(*shape):
    return named("regular", chunk_shape=list(shape))


@pytest.fixture
def where(tmp_path):
    return tmp_path, {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False},
    }


def stored(where, document):
    """An array whose document was put there as text."""
    directory, spec = where
    (directory / "zarr.json").write_text(json.dumps(document))
    return ts.open(spec).result()


def written(where, **options):
    directory, spec = where
    members = {"metadata": options.pop("metadata")} if "metadata" in options else {}
    store = ts.open({**spec, **members}, create=True, **options).result()
    return store, json.loads((directory / "zarr.json").read_text())


def of_zarr(where):
    return zarr.open_array(where[0], zarr_format=3)


class TestDocument:
    def test_has_every_member_that_must_be_there(self, where):
        _, document = written(where, dtype="float32", shape=[3, 4])
        assert sorted(document) == MEMBERS
        assert (document["zarr_format"], document["node_type"]) == (3, "array")

    # Without a fill value, documents of early releases of zarr-python are read: see below.
    @pytest.mark.parametrize("member", sorted({*MEMBERS} - {"fill_value"}))
    def test_without_one_of_them_is_refused(self, where, member):
        document = {name: value for name, value in DOCUMENT.items() if name != member}
        with pytest.raises(ts.DataLossError, match=rf"zarr\.json.*{member}"):
            stored(where, document)

    @pytest.mark.parametrize(
        "change",
        [
            {"zarr_format": 2},
            {"zarr_format": "3"},
            {"zarr_format": 3.5},
            {"node_type": "Array"},
            {"node_type": None},
            {"shape": [4]},
            {"shape": [4, -6]},
            {"shape": [4, 6.5]},
            {"shape": "4,6"},
            {"data_type": "uint17"},
            {"data_type": 16},
            {"data_type": "<u2"},
            {"chunk_grid": {"name": "hexagonal"}},
            {"chunk_grid": {"name": "regular"}},
            {"chunk_grid": named("regular", chunk_shape=[2])},
            {"chunk_grid": named("regular", chunk_shape=[2, 0])},
            {"chunk_grid": named("regular", chunk_shape=[2, 3], origin=[0, 0])},
            {"chunk_key_encoding": {"name": "v1"}},
            {"chunk_key_encoding": named("default", separator="_")},
            {"fill_value": 65536},
            {"fill_value": -1},
            {"fill_value": 1.5},
            {"fill_value": "7"},
            {"fill_value": True},
            {"codecs": ["gzip"]},
            {"codecs": [CHECKSUM, LITTLE]},
            {"codecs": [LITTLE, LITTLE]},
            {"codecs": [LITTLE, named("transpose", order=[1, 0])]},
            {"codecs": [LITTLE, {"name": "never-heard-of"}]},
            {"codecs": [named("bytes", endian="little", more=1)]},
            {"codecs": [{"configuration": {}}]},
            {"attributes": []},
            {"dimension_names": ["x"]},
            {"dimension_names": ["x", 1]},
            {"dimension_names": "xy"},
            {"storage_transformers": [{"name": "never-heard-of"}]},
        ],
        ids=str,
    )
    def test_a_member_that_is_wrong_is_named_with_the_key(self, where, change):
        (member,) = change
        with pytest.raises(ts.TensorStoreError, match=rf"(?s)zarr\.json.*{member}"):
            stored(where, {**DOCUMENT, **change})

    @pytest.mark.parametrize(
        ("change", "meant"),
        [
            ({"fill_value": None}, {"fill_value": 0}),
            ({"codecs": []}, {"codecs": [LITTLE]}),
            ({"attributes": None}, {}),
        ],
        ids=str,
    )
    def test_a_member_that_says_nothing_is_read_and_then_written_by_the_format(
        self, where, change, meant
    ):
        array = stored(where, {**DOCUMENT, **change})
        array.resize(exclusive_max=[8, 6]).result()
        written = json.loads((where[0] / "zarr.json").read_text())
        default = {"chunk_key_encoding": {"name": "default"}}
        assert written == {**DOCUMENT, **default, "shape": [8, 6], **meant}

    def test_with_everything_in_it_is_read_and_kept(self, where):
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [10000, 1000],
            "data_type": "float64",
            "dimension_names": ["x", "y"],
            "chunk_grid": grid(1000, 100),
            "chunk_key_encoding": named("default", separator="/"),
            "codecs": [LITTLE],
            "fill_value": "NaN",
            "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
        }
        array = stored(where, document)
        assert str(array.domain) == '{ "x": [0, 10000*), "y": [0, 1000*) }'
        assert np.isnan(array[5, 5].read().result())
        array.resize(exclusive_max=[10, 10]).result()
        written = json.loads((where[0] / "zarr.json").read_text())
        # Defaults are left out, as by the reference.
        assert written == {
            **document, "shape": [10, 10], "chunk_key_encoding": {"name": "default"},
        }  # fmt: skip

    def test_the_document_of_a_group_is_named_as_one(self, where):
        with pytest.raises(ts.MismatchError, match=r"zarr\.json.*group"):
            stored(where, {"zarr_format": 3, "node_type": "group", "attributes": {}})

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", "\xff", '{"zarr_format": 3'], ids=repr)
    def test_what_is_no_object_is_refused(self, where, text):
        directory, spec = where
        (directory / "zarr.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(ts.DataLossError, match=r"zarr\.json"):
            ts.open(spec).result()

    @pytest.mark.parametrize(
        "value", [{"name": "x"}, {"must_understand": True}, {}, 1, None, "text", [], False], ids=str
    )
    def test_an_unknown_member_must_be_understood(self, where, value):
        with pytest.raises(ts.TensorStoreError, match=r"zarr\.json.*novelty"):
            stored(where, {**DOCUMENT, "novelty": value})

    def test_unless_it_says_that_it_need_not_and_then_it_is_kept(self, where):
        value = {"must_understand": False, "name": "x", "depth": [1]}
        array = stored(where, {**DOCUMENT, "novelty": value})
        array.resize(exclusive_max=[8, 6]).result()
        document = json.loads((where[0] / "zarr.json").read_text())
        assert document["novelty"] == value

    def test_optional_members_may_say_that_there_is_nothing(self, where):
        array = stored(where, {**DOCUMENT, "attributes": {}, "storage_transformers": []})
        assert array.shape == (4, 6)

    def test_extensions_without_configuration_may_be_just_a_name(self, where):
        document = {
            **DOCUMENT, "data_type": "uint8", "codecs": ["bytes", "crc32c"],
            "chunk_key_encoding": {"name": "v2"},
        }  # fmt: skip
        array = stored(where, document)
        array[...] = 1
        assert sorted(path.name for path in where[0].iterdir()) == [
            "0.0", "0.1", "1.0", "1.1", "zarr.json",
        ]  # fmt: skip
        assert (array.read().result() == 1).all()

    def test_attributes_are_anything_and_kept(self, where):
        attributes = {"a": [1, {"b": None}], "\u00e9": "\u00fc", "n": 1e300}
        array = stored(where, {**DOCUMENT, "attributes": attributes})
        array.resize(exclusive_max=[8, 6]).result()
        assert dict(of_zarr(where).attrs) == attributes

    @pytest.mark.parametrize(
        ("names", "labels"),
        [(["x", "y"], ("x", "y")), ([None, "y"], ("", "y")), (["", ""], ("", ""))],
    )
    def test_dimensions_may_have_names(self, where, names, labels):
        assert stored(where, {**DOCUMENT, "dimension_names": names}).domain.labels == labels


# data type, encoded, bytes of an element in little-endian order
FILLS: list[tuple[str, Any, str]] = [
    ("bool", False, "00"),
    ("bool", True, "01"),
    ("int8", -128, "80"),
    ("uint8", 255, "ff"),
    ("int16", -2, "feff"),
    ("uint32", 4294967295, "ffffffff"),
    ("int64", -9223372036854775808, "0000000000000080"),
    ("uint64", 18446744073709551615, "ffffffffffffffff"),
    ("float16", "NaN", "007e"),
    ("float16", "0x7e01", "017e"),
    ("float32", "NaN", "0000c07f"),
    ("float32", "Infinity", "0000807f"),
    ("float32", "-Infinity", "000080ff"),
    ("float32", "0x7fc00001", "0100c07f"),
    ("float32", "0xffc00000", "0000c0ff"),
    ("float32", 1.5, "0000c03f"),
    ("float32", 1, "0000803f"),
    ("float32", -0.0, "00000080"),
    ("float64", "NaN", "000000000000f87f"),
    ("float64", "0x7ff8000000000001", "010000000000f87f"),
    ("complex64", [1, "NaN"], "0000803f0000c07f"),
    ("complex64", ["-Infinity", "0x7fc00001"], "000080ff0100c07f"),
    ("complex128", [0.5, -2], "000000000000e03f00000000000000c0"),
]


class TestFillValues:
    @pytest.mark.parametrize(("name", "encoded", "bits"), FILLS, ids=str)
    def test_stand_for_these_bits(self, where, name, encoded, bits):
        document = {
            **DOCUMENT, "data_type": name, "fill_value": encoded, "shape": [3],
            "chunk_grid": grid(2),
        }  # fmt: skip
        if name in ("bool", "int8", "uint8"):
            document["codecs"] = ["bytes"]
        array = stored(where, document)
        assert array.read().result().tobytes().hex() == bits * 3
        # Part of a chunk is written, and the rest of it is stored.
        array[1] = array.read().result()[0]
        again = ts.open(where[1], context=ts.Context()).result()
        assert again.read().result().tobytes().hex() == bits * 3

    @pytest.mark.parametrize(("name", "encoded", "bits"), FILLS, ids=str)
    def test_are_written_so_that_zarr_reads_the_same_bits(self, where, name, encoded, bits):
        kind = np.dtype(ts.dtype(name).numpy_dtype).newbyteorder("<")
        fill = np.frombuffer(bytes.fromhex(bits), kind)[0]
        _, document = written(where, dtype=name, shape=[3], fill_value=fill)
        again = stored(where, document)
        assert again.read().result().tobytes().hex() == bits * 3
        if name != "float16" and "0x" not in str(document["fill_value"]):
            # Of those bits zarr-python makes the usual ones.
            assert of_zarr(where)[:].tobytes().hex() == bits * 3

    @pytest.mark.parametrize(
        ("name", "encoded"),
        [
            ("bool", 0),
            ("bool", "true"),
            ("int8", 128),
            ("int8", "NaN"),
            ("int8", 0.5),
            ("float32", "nan"),
            ("float32", "0x07fc00001"),
            ("float32", "7fc00001"),
            ("float32", [1]),
            ("complex64", 1),
            ("complex64", [1]),
            ("complex64", [1, 2, 3]),
            ("complex64", [1, None]),
        ],
    )
    def test_of_other_forms_are_refused(self, where, name, encoded):
        document = {**DOCUMENT, "data_type": name, "fill_value": encoded}
        with pytest.raises(ts.DataLossError, match=r"zarr\.json.*fill_value"):
            stored(where, document)

    @pytest.mark.parametrize(
        ("name", "default"),
        [("bool", False), ("int8", 0), ("float32", 0), ("complex64", 0)],
    )
    @pytest.mark.parametrize("members", [{"fill_value": None}, {}], ids=["null", "left out"])
    def test_that_are_not_said_are_the_default_of_the_type(self, where, name, default, members):
        document = {key: value for key, value in DOCUMENT.items() if key != "fill_value"}
        array = stored(where, {**document, "data_type": name, **members})
        assert array.fill_value == default
        assert (array.read().result() == default).all()


class TestKeys:
    @pytest.mark.parametrize(
        ("encoding", "keys"),
        [
            ({"name": "default"}, ["c", "c/23", "c/1/23/45"]),
            (named("default", separator="/"), ["c", "c/23", "c/1/23/45"]),
            (named("default", separator="."), ["c", "c.23", "c.1.23.45"]),
            ({"name": "v2"}, ["0", "23", "1.23.45"]),
            (named("v2", separator="."), ["0", "23", "1.23.45"]),
            (named("v2", separator="/"), ["0", "23", "1/23/45"]),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("cell", [(), (23,), (1, 23, 45)], ids=len)
    def test_of_chunks_are_made_of_their_indices(self, where, encoding, keys, cell):
        document = {
            **DOCUMENT, "chunk_key_encoding": encoding, "shape": [50] * len(cell),
            "chunk_grid": grid(*(1 for _ in cell)),
        }  # fmt: skip
        array = stored(where, document)
        array[cell] = 9
        key = keys[(0, 1, None, 2).index(len(cell)) if len(cell) != 3 else 2]
        found = [each.decode() for each in array.kvstore.list().result()]
        assert sorted(found) == sorted(["zarr.json", key])
        assert of_zarr(where)[cell] == 9


class TestChunks:
    def test_missing_ones_are_of_the_fill_value(self, where):
        array = stored(where, DOCUMENT)
        assert (array.read().result() == 7).all()

    def test_are_all_of_one_size_and_what_is_outside_does_not_matter(self, where):
        array = stored(where, {**DOCUMENT, "shape": [3], "chunk_grid": grid(2)})
        array[...] = 1
        assert len((where[0] / "c" / "1").read_bytes()) == 4
        (where[0] / "c" / "1").write_bytes(struct.pack("<2H", 5, 99))
        assert array.read().result().tolist() == [1, 1, 5]

    @pytest.mark.parametrize("shape", [[0, 6], [4, 0]])
    def test_there_are_none_where_a_dimension_is_empty(self, where, shape):
        array = stored(where, {**DOCUMENT, "shape": shape})
        assert array.read().result().shape == tuple(shape)
        array[...] = 1
        assert array.kvstore.list().result() == [b"zarr.json"]


DATA = np.arange(1, 7, dtype="<u2").reshape(2, 3)
CRC = struct.pack("<I", google_crc32c.value(DATA.tobytes()))
# codecs, the bytes of a chunk
ENCODED: list[tuple[list[Any], bytes]] = [
    ([LITTLE], DATA.tobytes()),
    ([named("bytes", endian="big")], DATA.astype(">u2").tobytes()),
    ([named("transpose", order=[1, 0]), LITTLE], DATA.T.tobytes()),
    ([named("transpose", order=[0, 1]), LITTLE], DATA.tobytes()),
    ([LITTLE, CHECKSUM], DATA.tobytes() + CRC),
    ([LITTLE, named("gzip", level=1)], gzip.compress(DATA.tobytes(), mtime=0)),
    (
        [LITTLE, CHECKSUM, named("gzip", level=1)],
        gzip.compress(DATA.tobytes() + CRC, mtime=0),
    ),
]


class TestCodecs:
    @pytest.mark.parametrize(("codecs", "encoded"), ENCODED, ids=lambda value: str(value)[:60])
    def test_give_these_bytes(self, where, codecs, encoded):
        document = {**DOCUMENT, "shape": [2, 3], "codecs": codecs}
        array = stored(where, document)
        array[...] = DATA
        key = where[0] / "c" / "0" / "0"
        if not any("gzip" in str(codec) for codec in codecs):
            assert key.read_bytes() == encoded
        np.testing.assert_array_equal(of_zarr(where)[:], DATA)
        key.write_bytes(encoded)
        np.testing.assert_array_equal(array.read().result(), DATA)

    def test_transposition_of_three_dimensions_is_output_by_input(self, where):
        data = np.arange(24, dtype="<u2").reshape(2, 3, 4)
        document = {
            **DOCUMENT, "shape": [2, 3, 4], "chunk_grid": grid(2, 3, 4),
            "codecs": [named("transpose", order=[2, 0, 1]), LITTLE],
        }  # fmt: skip
        array = stored(where, document)
        array[...] = data
        found = (where[0] / "c" / "0" / "0" / "0").read_bytes()
        assert found == data.transpose(2, 0, 1).tobytes()
        np.testing.assert_array_equal(of_zarr(where)[:], data)

    @pytest.mark.parametrize("order", [[0, 0], [0], [0, 2], [-1, 0], [0, 1, 2], "A"], ids=str)
    def test_transposition_is_by_a_permutation(self, where, order):
        codecs = [named("transpose", order=order), LITTLE]
        with pytest.raises(ts.TensorStoreError, match=r"zarr\.json.*order"):
            stored(where, {**DOCUMENT, "codecs": codecs})

    @pytest.mark.parametrize(
        "damage",
        [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b"\xff" + data[1:]],
        ids=["cut off", "too long", "changed"],
    )
    def test_a_checksum_that_fails_is_an_error_that_names_the_key(self, where, damage):
        array = stored(where, {**DOCUMENT, "shape": [2, 3], "codecs": [LITTLE, CHECKSUM]})
        (where[0] / "c" / "0").mkdir(parents=True)
        (where[0] / "c" / "0" / "0").write_bytes(damage(DATA.tobytes() + CRC))
        with pytest.raises(ts.DataLossError, match="c/0/0"):
            array.read().result()

    def test_the_byte_order_may_be_left_out_where_there_is_none(self, where):
        document = {**DOCUMENT, "data_type": "uint8", "codecs": [{"name": "bytes"}]}
        array = stored(where, document)
        array[...] = 5
        assert (of_zarr(where)[:] == 5).all()

    @pytest.mark.parametrize(
        "codec",
        [
            named("gzip", level=-1),
            named("gzip", level=10),
            named("blosc", cname="lz4", clevel=5, shuffle="bytes", typesize=2, blocksize=0),
            named("blosc", cname="lz5", clevel=5, shuffle="shuffle", typesize=2, blocksize=0),
            named("blosc", cname="lz4", clevel=10, shuffle="shuffle", typesize=2, blocksize=0),
            named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=0, blocksize=0),
            named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=2, blocksize=-1),
            named("crc32c", seed=1),
        ],
        ids=str,
    )
    def test_parameters_have_their_ranges(self, where, codec):
        with pytest.raises(ts.TensorStoreError, match=r"zarr\.json.*codecs"):
            stored(where, {**DOCUMENT, "codecs": [LITTLE, codec]})

    @pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
    @pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"])
    def test_blosc_goes_both_ways(self, where, cname, shuffle):
        codec = named("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=2, blocksize=0)
        array = stored(where, {**DOCUMENT, "shape": [2, 3], "codecs": [LITTLE, codec]})
        array[...] = DATA
        theirs = of_zarr(where)
        np.testing.assert_array_equal(theirs[:], DATA)
        theirs[:] = DATA + 1
        np.testing.assert_array_equal(array.read().result(), DATA + 1)


def shards(location="end", inner=(1, 3), codecs=(LITTLE,), index=(LITTLE, CHECKSUM)):
    codec = named(
        "sharding_indexed", chunk_shape=list(inner), codecs=list(codecs), index_codecs=list(index),
        index_location=location,
    )  # fmt: skip
    return {**DOCUMENT, "shape": [2, 3], "codecs": [codec]}


MISSING = 2**64 - 1


def index_of(entries, order="<"):
    flat = [number for entry in entries for number in entry]
    return struct.pack(f"{order}{len(flat)}Q", *flat)


def with_crc(data):
    return data + struct.pack("<I", google_crc32c.value(data))


class TestShards:
    @pytest.mark.parametrize("location", ["start", "end"])
    def test_are_chunks_and_an_index_of_offset_and_size(self, where, location):
        array = stored(where, shards(location))
        shift = 36 if location == "start" else 0
        index = with_crc(index_of([(MISSING, MISSING), (shift, 6)]))
        chunk = DATA[1].tobytes()
        shard = index + chunk if location == "start" else chunk + index
        array[1] = DATA[1]
        key = where[0] / "c" / "0" / "0"
        assert key.read_bytes() == shard
        assert of_zarr(where)[:].tolist() == [[7, 7, 7], DATA[1].tolist()]
        # Chunks may lie in any order, with space between them.
        index = with_crc(index_of([(shift + 8, 6), (shift, 6)]))
        body = DATA[1].tobytes() + b"??" + DATA[0].tobytes()
        key.write_bytes(index + body if location == "start" else body + index)
        np.testing.assert_array_equal(array.read().result(), DATA)
        array[0, 0] = 9
        assert array.read().result().tolist() == [[9, 2, 3], [4, 5, 6]]

    def test_indices_are_encoded_by_their_codecs(self, where):
        array = stored(where, shards(index=[named("bytes", endian="big")]))
        array[...] = DATA
        found = (where[0] / "c" / "0" / "0").read_bytes()
        assert found == DATA.tobytes() + index_of([(0, 6), (6, 6)], ">")
        np.testing.assert_array_equal(of_zarr(where)[:], DATA)

    def test_in_which_nothing_is_are_not_stored(self, where):
        array = stored(where, shards())
        array[...] = DATA
        array[...] = 7
        assert array.kvstore.list().result() == [b"zarr.json"]

    def test_end_where_the_key_ends_if_nothing_else_is_said(self, where):
        document = shards()
        del document["codecs"][0]["configuration"]["index_location"]
        array = stored(where, document)
        array[...] = DATA
        assert (where[0] / "c" / "0" / "0").read_bytes().startswith(DATA.tobytes())

    def test_in_shards_and_with_any_codecs_go_both_ways(self, where):
        inner = named(
            "sharding_indexed", chunk_shape=[1, 1], codecs=[LITTLE, CHECKSUM],
            index_codecs=[LITTLE], index_location="start",
        )  # fmt: skip
        for codecs in ([inner], [named("transpose", order=[1, 0]), LITTLE, named("gzip", level=1)]):
            array = stored(where, shards(inner=(2, 1), codecs=codecs))
            array[...] = DATA
            theirs = of_zarr(where)
            np.testing.assert_array_equal(theirs[:], DATA)
            theirs[1, 1:] = 9
            assert array.read().result().tolist() == [[1, 2, 3], [4, 9, 9]]

    @pytest.mark.parametrize(
        "members",
        [
            {"inner": (2, 2)},
            {"inner": (4, 3)},
            {"inner": (1,)},
            {"inner": (1, 0)},
            {"codecs": []},
            {"codecs": [CHECKSUM]},
            {"index": [LITTLE, named("gzip", level=1)]},
            {"location": "middle"},
        ],
        ids=str,
    )
    def test_that_cannot_be_are_refused(self, where, members):
        with pytest.raises(ts.TensorStoreError, match=r"zarr\.json.*codecs"):
            stored(where, shards(**members))

    @pytest.mark.parametrize("member", ["chunk_shape", "codecs"])
    def test_have_members_that_must_be_there(self, where, member):
        document = shards()
        del document["codecs"][0]["configuration"][member]
        with pytest.raises(ts.TensorStoreError, match=member):
            stored(where, document)

    @pytest.mark.parametrize(
        "entries",
        [[(0, 99), (6, 6)], [(2**63, 6), (6, 6)], [(MISSING, 6), (6, 6)], [(0, MISSING), (6, 6)]],
        ids=str,
    )
    def test_with_an_index_that_points_elsewhere_are_corrupt_there_only(self, where, entries):
        array = stored(where, shards())
        (where[0] / "c" / "0").mkdir(parents=True)
        (where[0] / "c" / "0" / "0").write_bytes(DATA.tobytes() + with_crc(index_of(entries)))
        with pytest.raises(ts.DataLossError, match="c/0/0"):
            array[0].read().result()
        assert array[1].read().result().tolist() == DATA[1].tolist()

    def test_with_an_index_that_is_damaged_are_corrupt(self, where):
        array = stored(where, shards())
        (where[0] / "c" / "0").mkdir(parents=True)
        index = bytearray(with_crc(index_of([(0, 6), (6, 6)])))
        index[0] ^= 1
        for data in (DATA.tobytes() + bytes(index), b"short", b""):
            (where[0] / "c" / "0" / "0").write_bytes(data)
            with pytest.raises(ts.DataLossError, match="c/0/0"):
                array.read().result()
