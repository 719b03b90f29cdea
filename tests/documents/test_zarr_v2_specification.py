"""The storage specification, version 2: what it demands of arrays, next to zarr-python."""

import base64
import json
import zlib
from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts

DOCUMENT: dict[str, Any] = {
    "zarr_format": 2,
    "shape": [20, 20],
    "chunks": [10, 10],
    "dtype": "<i4",
    "compressor": {"id": "zlib", "level": 1},
    "fill_value": 42,
    "order": "C",
    "filters": None,
}
MEMBERS = sorted(DOCUMENT)
#: What the specification demands, but other writers leave out, and what is read then.
MEANT: dict[str, Any] = {"compressor": None, "fill_value": None, "filters": None, "order": "C"}


@pytest.fixture
def where(tmp_path):
    """A directory, and the spec of an array in it."""
    return tmp_path, {
        "driver": "zarr",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False},
    }


def stored(where, document, **members):
    """An array whose document was put there as text."""
    directory, spec = where
    (directory / ".zarray").write_text(json.dumps(document))
    return ts.open({**spec, **members}).result()


def created(where, document=None, **options):
    directory, spec = where
    metadata = {} if document is None else {"metadata": document}
    store = ts.open({**spec, **metadata}, create=True, **options).result()
    return store, json.loads((directory / ".zarray").read_text())


def of_zarr(where):
    return zarr.open_array(where[0], zarr_format=2)


def files(where):
    return sorted(path.name for path in where[0].iterdir())


class TestMetadata:
    def test_has_every_member_that_must_be_there(self, where):
        _, document = created(where, dtype="float64", shape=[3])
        assert sorted({*document} - {"dimension_separator"}) == MEMBERS
        assert document["zarr_format"] == 2

    @pytest.mark.parametrize("member", sorted({*MEMBERS} - {*MEANT}))
    def test_without_one_of_them_is_refused(self, where, member):
        document = {name: value for name, value in DOCUMENT.items() if name != member}
        with pytest.raises(ts.DataLossError, match=member):
            stored(where, document)

    @pytest.mark.parametrize("member", MEANT)
    def test_without_one_that_others_leave_out_says_the_only_thing_it_can(self, where, member):
        document = {name: value for name, value in DOCUMENT.items() if name != member}
        array = stored(where, document)
        assert array.shape == (20, 20)
        array.resize(exclusive_max=[30, 20]).result()
        written = json.loads((where[0] / ".zarray").read_text())
        assert written == {**DOCUMENT, "shape": [30, 20], member: MEANT[member]}

    def test_other_members_are_ignored_and_kept(self, where):
        array = stored(where, {**DOCUMENT, "made_by": "somebody", "hints": [1, {}]})
        array.resize(exclusive_max=[30, 20]).result()
        document = json.loads((where[0] / ".zarray").read_text())
        assert (document["made_by"], document["hints"]) == ("somebody", [1, {}])
        assert document["shape"] == [30, 20]

    @pytest.mark.parametrize(
        "change",
        [
            {"zarr_format": 1},
            {"zarr_format": 3},
            {"zarr_format": "2"},
            {"shape": [20]},
            {"shape": [20, -1]},
            {"chunks": [10]},
            {"chunks": [10, 0]},
            {"dtype": "<i3"},
            {"dtype": [["x"]]},
            {"compressor": {"level": 1}},
            {"compressor": {"id": "nothing-known"}},
            {"compressor": "zlib"},
            {"fill_value": "forty-two"},
            {"order": "A"},
            {"order": "c"},
            {"filters": {"id": "delta"}},
            {"filters": [{"dtype": "<i4"}]},
            {"filters": [{"id": "nothing-known"}]},
            {"dimension_separator": "-"},
        ],
        ids=str,
    )
    def test_a_member_that_is_wrong_is_named_with_the_key(self, where, change):
        (member,) = change
        with pytest.raises(ts.TensorStoreError, match=rf"(?s)\.zarray.*{member}"):
            stored(where, {**DOCUMENT, **change})

    def test_the_example_is_read_and_written(self, where):
        document = {
            **DOCUMENT,
            "chunks": [1000, 1000],
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
            "dtype": "<f8",
            "fill_value": "NaN",
            "filters": [{"id": "delta", "dtype": "<f8", "astype": "<f4"}],
            "shape": [10000, 10000],
        }
        array = stored(where, document)
        assert (array.dtype, array.shape) == (ts.float64, (10000, 10000))
        assert np.isnan(array[5, 5].read().result())
        # Differences of what is not a number are none, so a chunk is written whole.
        data = np.arange(1e6).reshape(1000, 1000)
        array[1000:2000, :1000] = data
        theirs = of_zarr(where)
        np.testing.assert_array_equal(theirs[1000:2000, :1000], data)
        np.testing.assert_array_equal(array[1000:2000, :1000].read().result(), data)


class TestOrder:
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_is_that_of_the_bytes_of_a_chunk(self, where, order):
        document = {**DOCUMENT, "order": order, "compressor": None, "shape": [10, 10]}
        array = stored(where, document)
        data = np.arange(100, dtype="<i4").reshape(10, 10)
        array[...] = data
        assert (where[0] / "0.0").read_bytes() == data.tobytes(order=order)


# as encoded, NumPy's, an element
DATA_TYPES: list[tuple[Any, str, Any]] = [
    ("|b1", "bool", True),
    ("|i1", "int8", -3),
    ("|u1", "uint8", 3),
    *((f"{order}{kind}", f"{order}{kind}", 300) for order in "<>" for kind in ("i2", "u4", "i8")),
    *((f"{order}{kind}", f"{order}{kind}", 0.5) for order in "<>" for kind in ("f2", "f4", "f8")),
    *((f"{order}{kind}", f"{order}{kind}", 0.5 - 2j) for order in "<>" for kind in ("c8", "c16")),
    ("<M8[ns]", "<M8[ns]", 12),
    (">M8[D]", ">M8[D]", 12),
    ("<m8[s]", "<m8[s]", -12),
    ("|S12", "S12", b"text"),
    ("<U5", "<U5", "t\u00e9xt"),
    (">U5", ">U5", "t\u00e9xt"),
    ("|V3", "V3", b"abc"),
]


class TestDataTypes:
    @pytest.mark.parametrize(
        ("encoded", "kind", "element"), DATA_TYPES, ids=[row[0] for row in DATA_TYPES]
    )
    def test_are_read_and_written_bit_for_bit(self, where, encoded, kind, element):
        document = {
            **DOCUMENT, "dtype": encoded, "shape": [3], "chunks": [3], "fill_value": None,
            "compressor": None,
        }  # fmt: skip
        expected = np.zeros(3, kind)
        expected[1] = np.array(element).astype(kind) if "M8" in kind or "m8" in kind else element
        stored(where, document)
        (where[0] / "0").write_bytes(expected.tobytes())
        array = ts.open(where[1]).result()
        found = array.read().result()
        assert found.astype(expected.dtype).tobytes() == expected.tobytes() or (
            array.rank == 2 and found.tobytes() == expected.tobytes()
        )
        again = ts.open(where[1], context=ts.Context()).result()
        again.write(found).result()
        assert (where[0] / "0").read_bytes() == expected.tobytes()

    @pytest.mark.parametrize("encoded", ["M8[ns]", "<M8", "<m8", "<q", "", "<f8[2]"])
    def test_without_byte_order_or_unit_are_refused(self, where, encoded):
        with pytest.raises(ts.TensorStoreError, match=r"(?s)\.zarray.*dtype"):
            stored(where, {**DOCUMENT, "dtype": encoded, "fill_value": None})

    @pytest.mark.parametrize("encoded", ["i4", "|i4", "=i4", "int32"])
    def test_without_byte_order_are_little_endian(self, where, encoded):
        (where[0] / "0").write_bytes(np.array([1, -2], "<i4").tobytes())
        plain = {**DOCUMENT, "shape": [2], "chunks": [2], "compressor": None}
        array = stored(where, {**plain, "dtype": encoded})
        assert array.dtype == ts.int32
        assert array.read().result().tolist() == [1, -2]

    @pytest.mark.parametrize(
        ("dtype", "fields"),
        [
            ([["r", "|u1"], ["g", "|u1"], ["b", "|u1"]], ["r", "g", "b"]),
            ([["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]], ["x", "y", "z"]),
            (
                [["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]],
                ["foo", "bar.baz", "bar.qux"],
            ),
        ],
        ids=["flat", "with a subarray", "nested"],
    )
    def test_with_fields_are_opened_by_field(self, where, dtype, fields):
        document = {
            **DOCUMENT, "dtype": dtype, "shape": [3], "chunks": [2], "fill_value": None,
            "compressor": None,
        }  # fmt: skip
        kind = as_numpy(dtype)
        expected = np.frombuffer(bytes(range(1, 1 + 4 * kind.itemsize)), kind)
        (where[0] / "0").write_bytes(expected[:2].tobytes())
        (where[0] / "1").write_bytes(expected[2:].tobytes())
        for field in fields:
            column = expected[:3]
            for name in field.split("."):
                column = column[name]
            array = stored(where, document, field=field)
            assert array.read().result().tobytes() == np.ascontiguousarray(column).tobytes()
            array[0] = 7
            column = np.copy(column)
            column[0] = 7
            assert array.read().result().tobytes() == column.tobytes()
        if all(isinstance(kind, str) and not shape for _, kind, *shape in dtype):
            theirs = of_zarr(where)[:]
            for field in fields:
                assert (theirs[field][0] == 7).all()


def as_numpy(dtype):
    """NumPy's type of the JSON."""
    fields = [
        (name, as_numpy(kind) if isinstance(kind, list) else kind, *map(tuple, shape))
        for name, kind, *shape in dtype
    ]
    return np.dtype(fields)


class TestFillValues:
    @pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f8"])
    @pytest.mark.parametrize(
        ("value", "encoded"),
        [(np.nan, "NaN"), (np.inf, "Infinity"), (-np.inf, "-Infinity"), (1.5, 1.5)],
    )
    def test_of_floats_are_encoded_by_the_table(self, where, dtype, value, encoded):
        document = {"dtype": dtype, "shape": [3], "chunks": [2]}
        array, written = created(where, document, fill_value=value)
        assert written["fill_value"] == encoded
        np.testing.assert_array_equal(array.read().result(), [value] * 3)
        again = stored(where, written)
        np.testing.assert_array_equal(again.fill_value, value)

    @pytest.mark.parametrize(
        ("encoded", "value"),
        [
            ("nan", np.nan),
            ("Inf", np.inf),
            ("+Infinity", np.inf),
            ("infinity", np.inf),
            ("-inf", -np.inf),
            ("1.5", 1.5),
        ],
    )
    def test_other_spellings_of_a_number_are_that_number(self, where, encoded, value):
        array = stored(where, {**DOCUMENT, "dtype": "<f8", "fill_value": encoded})
        np.testing.assert_array_equal(array.fill_value, value)
        np.testing.assert_array_equal(array[3, 3].read().result(), value)

    @pytest.mark.parametrize("encoded", ["", "none", "Not a number", "0x7ff8", [1.5]], ids=str)
    def test_what_is_no_number_is_refused(self, where, encoded):
        with pytest.raises(ts.TensorStoreError, match="fill_value"):
            stored(where, {**DOCUMENT, "dtype": "<f8", "fill_value": encoded})

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [
            ("|S12", b"twelve bytes"),
            ("|V3", b"\0\xff\1"),
            ([["x", "<u2"], ["y", "|u1", [2]]], b"\1\2\3\4"),
        ],
        ids=str,
    )
    def test_of_bytes_and_records_are_base64(self, where, dtype, value):
        encoded = base64.b64encode(value).decode()
        document = {**DOCUMENT, "dtype": dtype, "fill_value": encoded, "shape": [2], "chunks": [2]}
        if isinstance(dtype, str):
            found = stored(where, document).read().result()
            assert found.tobytes() == value * 2
        else:
            assert stored(where, document, field="x").read().result().tolist() == [0x201] * 2
            found = stored(where, document, field="y").read().result()
            assert found.tolist() == [[3, 4]] * 2
        if isinstance(dtype, str):
            theirs = of_zarr(where)
            assert theirs[:].tobytes() == value * 2
        written = json.loads((where[0] / ".zarray").read_text())
        assert written["fill_value"] == encoded

    @pytest.mark.parametrize("encoded", ["twelve bytes", "AAA", "AAAA"])
    def test_of_bytes_that_are_not_base64_of_the_size_are_refused(self, where, encoded):
        document = {**DOCUMENT, "dtype": "|V12", "fill_value": encoded}
        with pytest.raises(ts.TensorStoreError, match="fill_value"):
            stored(where, document)

    def test_null_leaves_missing_chunks_open_and_they_read_as_zero(self, where):
        array = stored(where, {**DOCUMENT, "fill_value": None})
        assert array.fill_value is None
        assert (array.read().result() == 0).all()


class TestChunks:
    def test_missing_ones_are_of_the_fill_value(self, where):
        array = stored(where, DOCUMENT)
        assert (array.read().result() == 42).all()
        array[:10, :10] = 1
        assert files(where) == [".zarray", "0.0"]
        assert (array[10:].read().result() == 42).all()

    def test_are_compressed_bytes_without_anything_added(self, where):
        array = stored(where, DOCUMENT)
        array[0:10, 0:10] = 1
        array[0:10, 10:20] = 2
        array[10:20, :] = 3
        assert files(where) == [".zarray", "0.0", "0.1", "1.0", "1.1"]
        chunk = np.frombuffer(zlib.decompress((where[0] / "0.0").read_bytes()), "<i4")
        assert (chunk.size, set(chunk.tolist())) == (100, {1})

    @pytest.mark.parametrize(
        ("members", "keys"),
        [
            ({}, ["0.0", "2.4"]),
            ({"dimension_separator": "."}, ["0.0", "2.4"]),
            ({"dimension_separator": "/"}, ["0/0", "2/4"]),
        ],
    )
    def test_have_keys_of_their_indices(self, where, members, keys):
        document = {**DOCUMENT, "shape": [10000, 10000], "chunks": [1000, 1000], **members}
        array = stored(where, document)
        array[0, 0] = array[2999, 4000] = 1
        found = {key.decode() for key in array.kvstore.list().result()}
        assert found == {".zarray", *keys}
        theirs = of_zarr(where)
        assert (theirs[0, 0], theirs[2999, 4000], theirs[1, 1]) == (1, 1, 42)

    @pytest.mark.parametrize("separator", [".", "/"])
    def test_of_one_and_no_dimensions_have_keys_too(self, where, separator):
        for shape in ([3], []):
            document = {**DOCUMENT, "shape": shape, "chunks": shape,
                        "dimension_separator": separator}  # fmt: skip
            array = stored(where, document)
            array[...] = 1
            assert files(where) == [".zarray", "0"]
            assert (of_zarr(where)[...] == 1).all()
            (where[0] / "0").unlink()

    def test_at_the_edge_are_as_large_as_any_and_what_is_outside_does_not_matter(self, where):
        document = {**DOCUMENT, "shape": [15], "chunks": [10], "compressor": None}
        array = stored(where, document)
        array[...] = 7
        assert len((where[0] / "1").read_bytes()) == 40
        (where[0] / "1").write_bytes(np.arange(10, dtype="<i4").tobytes())
        assert array[10:].read().result().tolist() == [0, 1, 2, 3, 4]


class TestFilters:
    def test_are_applied_in_order_then_the_compressor(self, where):
        filters = [
            {"id": "delta", "dtype": "<i4"},
            {"id": "fixedscaleoffset", "dtype": "<i4", "astype": "<i4", "offset": 1, "scale": 2},
        ]
        document = {**DOCUMENT, "shape": [4], "chunks": [4], "filters": filters}
        array = stored(where, document)
        array[...] = [10, 11, 13, 16]
        found = np.frombuffer(zlib.decompress((where[0] / "0").read_bytes()), "<i4")
        # differences 10, 1, 2, 3; then (x - 1) * 2
        assert found.tolist() == [18, 0, 2, 4]
        assert array.read().result().tolist() == [10, 11, 13, 16]
        assert of_zarr(where)[:].tolist() == [10, 11, 13, 16]


class TestPaths:
    def test_of_an_array_are_a_prefix_of_its_keys(self, where):
        directory, _ = where
        for path in ("foo/bar", "foo/bar/"):
            spec = {"driver": "zarr", "kvstore": f"file://{directory}/{path}"}
            array = ts.open(spec, create=True, open=True, dtype="int32", shape=[20, 20]).result()
            array[...] = 42
        found = sorted(str(path.relative_to(directory)) for path in directory.rglob("*.*"))
        assert found == ["foo/bar/.zarray", "foo/bar/0.0"]

    def test_attributes_are_left_alone(self, where):
        attributes = '{"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}'
        (where[0] / ".zattrs").write_text(attributes)
        array = stored(where, DOCUMENT)
        array.resize(exclusive_max=[5, 5]).result()
        assert (where[0] / ".zattrs").read_text() == attributes
