"""How arrays of the zarr API are made: functions, words, forms, requests."""

import inspect
from typing import Any, cast

import numcodecs
import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.zarr.form import form_of
from tensorstore_py.zarr.request import ArrayArguments, as_shape, from_h5py, named, request_for

FORMATS = [2, 3]


TYPES = {
    "bool": [True, False, True],
    "<i4": [1, 2, 3],
    ">i4": [1, 2, 3],
    "<f8": [1.5, np.nan, -np.inf],
    "c16": [1 + 2j, 3, 4],
    "S3": [b"a", b"bcd", b""],
    "S1": [b"a", b"b", b""],
    "V4": [b"abcd", b"efgh", b"\0\0\0\1"],
    "U5": ["a", "höher", ""],
    "M8[D]": ["2020-01-01", "1969-12-31", "2021-01-01"],
    "m8[s]": [1, 2, -3],
}


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
class TestCreateArray:
    def test_has_a_shape_or_data(self):
        assert ts.zarr.create_array(shape=3, dtype="i4").shape == (3,)
        z = ts.zarr.create_array(data=np.arange(3), name="a/b")
        assert (z[:].tolist(), z.path) == ([0, 1, 2], "a/b")
        assert ts.zarr.create_array(data=np.arange(1, 3), write_data=False)[:].tolist() == [0, 0]
        wrongs: list[dict[str, Any]] = [{}, {"shape": 3, "data": [1]}]
        for wrong in wrongs:
            with pytest.raises(ValueError, match="either shape"):
                ts.zarr.create_array(**wrong)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
class TestArray:
    def test_takes_type_and_chunks_from_the_data(self):
        z = ts.zarr.array(ts.zarr.ones((4, 6), chunks=(2, 3), dtype="i2"))
        assert (z.dtype.name, z.chunks, z.shape) == ("int16", (2, 3), (4, 6))
        assert z[3, 5] == 1

    def test_takes_whatever_numpy_does(self):
        assert ts.zarr.array([[1, 2], [3, 4]], dtype="f4")[:].dtype == np.float32
        assert ts.zarr.array(5)[()] == 5
        assert ts.zarr.array(range(3))[1:].tolist() == [1, 2]

    def test_takes_a_tensorstore(self):
        z = ts.zarr.array(ts.array([1, 2, 3])[1:])
        assert z[:].tolist() == [2, 3]

    def test_can_be_read_only(self):
        z = ts.zarr.array([1, 2], read_only=True)
        with pytest.raises(ValueError, match="read only"):
            z[0] = 1


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
class TestLike:
    like = ts.zarr.create(
        (4, 6),
        chunks=(2, 3),
        dtype="i2",
        fill_value=7,
        compressor=ts.zarr.Zlib(2),
        filters=[ts.zarr.Delta("i2")],
        order="F",
        zarr_format=2,
    )

    def same(self, z):
        return [getattr(z, name) for name in ("shape", "chunks", "dtype", "order", "zarr_format")]

    @pytest.mark.parametrize(
        ("function", "fill_value"),
        [
            (ts.zarr.empty_like, None),
            (ts.zarr.zeros_like, 0),
            (ts.zarr.ones_like, 1),
            (ts.zarr.full_like, 7),
            (lambda a: ts.zarr.full_like(a, 9), 9),
            (lambda a: ts.zarr.open_like(a, None), 7),
        ],
    )
    def test_everything_is_taken_over(self, function, fill_value):
        z = function(self.like)
        assert self.same(z) == self.same(self.like)
        assert (z.compressor, z.filters) == (self.like.compressor, self.like.filters)
        assert z.fill_value == fill_value

    def test_but_what_is_said(self):
        z = ts.zarr.zeros_like(
            self.like, shape=5, chunks=2, compressor=None, dtype="f4", filters=[]
        )
        assert (z.shape, z.chunks, z.compressor, z.dtype.name) == ((5,), (2,), None, "float32")

    @pytest.mark.parametrize("sharded", [False, True])
    def test_across_versions(self, sharded):
        z = ts.zarr.ones_like(self.like, zarr_format=3)
        assert (z.zarr_format, z.order, z.compressor) == (3, "F", ts.zarr.Zlib(2))
        assert (z[0, 0], z.chunks) == (1, (2, 3))
        source = ts.zarr.zeros((4, 4), chunks=(2, 2), shards=(4, 4) if sharded else None)
        back = ts.zarr.zeros_like(source, zarr_format=2)
        assert (back.zarr_format, back.chunks, back.shards) == (2, (2, 2), None)
        assert ts.zarr.zeros_like(source).shards == source.shards

    def test_of_a_numpy_array(self):
        z = ts.zarr.zeros_like(np.ones((2, 3), "i2"))
        assert (z.shape, z.dtype.name, z[0, 0]) == ((2, 3), "int16", 0)
        assert ts.zarr.ones_like([1, 2])[:].tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
class TestCreation:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("dtype", TYPES)
    def test_zarr_python_reads_the_same(self, tmp_path, zarr_format, dtype):
        data = np.array(TYPES[dtype], dtype)

        z = ts.zarr.array(data, store=tmp_path, chunks=2, zarr_format=zarr_format)
        theirs: Any = zarr.open_array(tmp_path, mode="r")

        assert theirs.shape == (3,)
        assert theirs.chunks == (2,)
        again = ts.zarr.open_array(tmp_path, mode="r")
        expected = data.dtype if zarr_format == 2 else data.dtype.newbyteorder("=")
        assert again.dtype == z.dtype == expected
        for found in (theirs[:], z[:], again[:]):
            np.testing.assert_array_equal(found, data)

    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("dtype", TYPES)
    def test_what_zarr_python_wrote_is_read_the_same(self, tmp_path, zarr_format, dtype):
        data = np.array(TYPES[dtype], dtype)
        theirs: Any = zarr.create_array(
            tmp_path, shape=3, chunks=(2,), dtype=data.dtype, zarr_format=zarr_format
        )
        theirs[:] = data

        z = ts.zarr.open(tmp_path, mode="r")

        np.testing.assert_array_equal(z[:], data)
        assert z.shape == (3,)
        assert z.fill_value == theirs.fill_value or np.isnat(z.fill_value)

    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("data", [["a", "bcd", ""], [b"a", b"bcd", b""]])
    def test_objects_are_what_they_are(self, tmp_path, zarr_format, data):
        objects = np.array(data, object)
        z = ts.zarr.array(objects, store=tmp_path, zarr_format=zarr_format)
        assert list(z[:]) == data
        assert np.asarray(zarr.open_array(tmp_path, mode="r")[:]).tolist() == data

    def test_records_of_version_2(self, tmp_path):
        dtype = [("a", "<i4"), ("b", "S3"), ("c", "<f8")]
        data = np.array([(1, b"x", 2.5), (3, b"yz", 4.5)], dtype)
        z = ts.zarr.array(data, store=tmp_path, zarr_format=2)
        np.testing.assert_array_equal(z[:], data)
        np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[:], data)

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_records_with_one_field_are_records(self, zarr_format):
        z = ts.zarr.zeros(3, dtype=[("a", "i4")], zarr_format=zarr_format)
        z[:] = [(1,), (2,), (3,)]
        assert z[1].tolist() == (2,)
        assert z["a"].tolist() == [1, 2, 3]

    @pytest.mark.parametrize(
        ("make", "expected"),
        [
            (lambda: ts.zarr.zeros(2), 0),
            (lambda: ts.zarr.ones(2), 1),
            (lambda: ts.zarr.full(2, 42), 42),
            (lambda: ts.zarr.empty(2), 0),
            (lambda: ts.zarr.empty(2, zarr_format=2), None),
        ],
    )
    def test_nothing_is_stored_but_what_it_is_full_of(self, make, expected):
        z = make()
        assert z.fill_value == expected
        assert z[:].tolist() == [expected or 0] * 2
        assert z.nchunks_initialized == 0

    def test_data_is_copied_between_formats_and_chunks(self):
        source = ts.zarr.array(np.arange(35).reshape(5, 7), chunks=(2, 3), zarr_format=2)
        copy = ts.zarr.empty((5, 7), chunks=(3, 2), dtype="f4")
        copy[:] = source
        np.testing.assert_array_equal(copy[:], source[:])
        copy[1:3, 0] = source[0, :2]
        assert copy[:3, 0].tolist() == [0, 0, 1]
        with pytest.raises(ValueError, match="shape"):
            copy[:2] = source


@pytest.fixture(params=[2, 3])
def group(request):
    return ts.zarr.group(zarr_format=request.param).create_group("g")


LIKE = np.arange(6, dtype="i2").reshape(2, 3)


class TestRequire:
    def test_makes_what_is_not_there(self, group):
        assert group.require_array("a", 3, "i4")[:].tolist() == [0, 0, 0]
        assert group.require_dataset("b", (2,), compression="gzip").compressor["id"] == "gzip"

    def test_takes_what_is_there(self, group):
        group.array("a", np.arange(3, dtype="i4"))
        assert group.require_array("a", 3, "i8")[2] == 2
        assert group.require_dataset("a", (3,), "i4", exact=True)[2] == 2

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((4, "i4"), ValueError, "has shape \\(3,\\), not 4"),
            ((3, "i2"), TypeError, "has dtype int32, not int16"),
            ((3, "i8", True), TypeError, "has dtype int32, not int64"),
        ],
    )
    def test_which_must_agree(self, group, arguments, error, message):
        group.array("a", np.arange(3, dtype="i4"))
        with pytest.raises(error, match=message):
            group.require_array("a", *arguments)

    def test_and_be_no_group(self, group):
        group.create_group("a")
        with pytest.raises(ValueError, match="there is a group, not an array, at /g/a"):
            group.require_array("a", 3)


class TestNewArrays:
    @pytest.mark.parametrize(
        ("make", "expected"),
        [
            (lambda group: group.create("a/b", (2, 3), dtype="i2"), np.zeros((2, 3))),
            (lambda group: group.create_array("a/b", shape=(2, 3), dtype="i2"), np.zeros((2, 3))),
            (lambda group: group.create_array("a/b", data=LIKE), LIKE),
            (lambda group: group.create_dataset("a/b", data=LIKE), LIKE),
            (lambda group: group.array("a/b", LIKE), LIKE),
            (lambda group: group.empty("a/b", (2, 3), dtype="i2"), np.zeros((2, 3))),
            (lambda group: group.zeros("a/b", (2, 3), dtype="i2"), np.zeros((2, 3))),
            (lambda group: group.ones("a/b", (2, 3), dtype="i2"), np.ones((2, 3))),
            (lambda group: group.full("a/b", (2, 3), 7, dtype="i2"), np.full((2, 3), 7)),
            (lambda group: group.empty_like("a/b", LIKE), np.zeros((2, 3))),
            (lambda group: group.zeros_like("a/b", LIKE), np.zeros((2, 3))),
            (lambda group: group.ones_like("a/b", LIKE), np.ones((2, 3))),
            (lambda group: group.full_like("a/b", LIKE, 7), np.full((2, 3), 7)),
        ],
    )
    def test_each_makes_one(self, group, make, expected):
        z = make(group)
        assert (z.path, z.zarr_format, z.dtype) == ("g/a/b", group.zarr_format, np.int16)
        np.testing.assert_array_equal(z[:], expected)
        assert group["a/b"] == z
        with pytest.raises(ValueError, match="exists already"):
            make(group)

    def test_what_is_there_may_be_replaced(self, group):
        group.zeros("a/b", 3)
        assert group.ones("a", 4, overwrite=True)[:].tolist() == [1] * 4
        assert "a/b" not in group

    def test_attributes_and_names_of_dimensions_are_stored(self, tmp_path):
        for zarr_format in (2, 3):
            path = tmp_path / str(zarr_format)
            root = ts.zarr.open_group(path, mode="w", zarr_format=zarr_format)
            root.zeros("a", (2, 3), dimension_names=["y", "x"], attributes={"unit": "m"})
            theirs: Any = zarr.open_group(path, mode="r")["a"]
            assert theirs.attrs["unit"] == "m"
            if zarr_format == 2:
                assert theirs.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]
            else:
                assert theirs.metadata.dimension_names == ("y", "x")

    def test_wrong_arguments_say_what_is_right(self, group):
        with pytest.raises(TypeError, match='did you mean "chunks"'):
            group.zeros("a", 3, chunk=2)
        with pytest.raises(ValueError, match="either shape"):
            group.create_array("a")
        with pytest.raises(ValueError, match="but the data has"):
            group.create_array("a", data=LIKE, shape=7)

    def test_what_is_read_only_makes_none(self, group):
        seen = ts.zarr.Group(group.ts, read_only=True)
        with pytest.raises(ValueError, match="mode='r\\+'"):
            seen.zeros("a", 3)


class TestArguments:
    def test_only_what_is_given_is_said(self):
        assert named(dtype="f4", compressors=None) == {"dtype": "f4", "compressors": None}

    def test_every_argument_is_named(self):
        parameters = inspect.signature(named).parameters

        assert [*parameters][:-1] == [*ArrayArguments.__annotations__]

    @pytest.mark.parametrize("function", ["create", "open_array", "zeros", "ones", "empty"])
    def test_signatures_name_them_all(self, function):
        parameters = inspect.signature(getattr(ts.zarr, function)).parameters

        assert {*ArrayArguments.__annotations__, "shape"} <= {*parameters}

    def test_an_unknown_one_is_still_refused(self):
        with pytest.raises(TypeError, match="compressors"):
            ts.zarr.create(5, compression="gzip")  # type: ignore[call-arg]


class TestH5pyWords:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, {}),
            ({"chunks": 3, "compression": "default"}, {"chunks": 3}),
            ({"compression": None}, {"compressors": None}),
            ({"compression": "none"}, {"compressors": None}),
            ({"compression": "gzip"}, {"compressors": ts.zarr.GZip(1)}),
            (
                {"compression": "lzma", "compression_opts": 3},
                {"compressors": {"id": "lzma", "preset": 3}},
            ),
            (
                {"compression": "blosc", "compression_opts": {"cname": "zstd"}},
                {"compressors": {"id": "blosc", "cname": "zstd"}},
            ),
            ({"compression": ts.zarr.Zlib(4)}, {"compressors": ts.zarr.Zlib(4)}),
            ({"fillvalue": 3}, {"fill_value": 3}),
        ],
    )
    def test_are_those_of_create(self, given, expected):
        assert from_h5py(given) == expected

    def test_a_wrong_name_gets_the_right_one_as_a_hint(self):
        with pytest.raises(ValueError, match="gzip"):
            from_h5py({"compression": "gzipp"})

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_datasets_are_compressed_so(self, zarr_format):
        root = ts.zarr.group(zarr_format=zarr_format)
        z = root.create_dataset("a", shape=3, compression="gzip", compression_opts=1)
        assert z.compressor == ts.zarr.GZip(level=1)


def opened(metadata, driver="zarr3", dtype="int32", shape=(10, 20)):
    return ts.open(
        {"driver": driver, "kvstore": "memory://", "metadata": metadata},
        create=True,
        dtype=dtype,
        shape=shape,
    ).result()


def sharding(*codecs, chunk_shape=(5, 4)):
    members = {"chunk_shape": list(chunk_shape), "codecs": list(codecs)}
    return {"name": "sharding_indexed", "configuration": members}


TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


GRID = {"name": "regular", "configuration": {"chunk_shape": [10, 20]}}


class TestForm:
    @pytest.mark.parametrize(
        ("codecs", "chunks", "shards", "order", "compressors"),
        [
            (["bytes"], (10, 20), None, "C", 0),
            ([TRANSPOSE, "bytes", "zstd"], (10, 20), None, "F", 1),
            ([sharding("bytes", "gzip")], (5, 4), (10, 20), "C", 1),
            ([sharding(TRANSPOSE, "bytes")], (5, 4), (10, 20), "F", 0),
            ([TRANSPOSE, sharding("bytes", chunk_shape=(4, 5))], (5, 4), (10, 20), "F", 0),
        ],
    )
    def test_version_3(self, codecs, chunks, shards, order, compressors):
        form = form_of(opened({"codecs": codecs, "chunk_grid": GRID}))
        assert (form.chunks, form.shards, form.order) == (chunks, shards, order)
        assert len(form.compressors) == compressors
        assert dict(form.serializer or {}) == {"id": "bytes", "endian": "little"}
        assert form.chunks_per_cell == (10 if shards else 1)

    def test_version_2(self):
        metadata = {"dtype": ">i4", "chunks": [3, 7], "order": "F", "compressor": None}
        form = form_of(opened(metadata, "zarr"))
        assert (form.chunks, form.shards, form.order) == ((3, 7), None, "F")
        assert (form.compressors, form.filters, form.serializer) == ((), (), None)
        assert form.dtype.str == ">i4"
        assert form.cells((10, 20)) == (4, 3)

    def test_what_is_cast_has_the_form_of_what_is_stored(self):
        form = form_of(opened({"chunk_grid": GRID}).astype("float64"))
        assert (form.dtype.name, form.chunks) == ("float64", (10, 20))

    def test_uneven_chunks_are_refused(self):
        grid = {"kind": "inline", "chunk_shapes": [[3, 7], [20]]}
        metadata = {"chunk_grid": {"name": "rectilinear", "configuration": grid}}
        with pytest.raises(NotImplementedError, match=r"different sizes.*ts\.open"):
            form_of(opened(metadata))

    def test_other_formats_are_refused(self):
        with pytest.raises(NotImplementedError, match='driver "array"'):
            ts.zarr.Array(ts.array([1, 2]))


def metadata(shape: Any = (20, 30), **arguments: Any) -> Any:
    return request_for(shape, cast("Any", arguments)).members["metadata"]


class TestRequest:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({}, 3),
            ({"zarr_format": 2}, 2),
            ({"zarr_version": 2}, 2),
            ({"zarr_format": 3, "compressor": ts.zarr.Zlib()}, 3),
            ({"compressor": None}, 2),
            ({"compressor": "default"}, 3),
            ({"compressors": None}, 3),
            ({"filters": [numcodecs.Delta("f8")]}, 2),
            ({"filters": [{"id": "delta", "dtype": "f8"}]}, 2),
            ({"filters": [{"name": "numcodecs.delta"}]}, 3),
            ({"dimension_separator": "/"}, 2),
            ({"shards": (10, 10), "chunks": (5, 5)}, 3),
            ({"dtype": object, "object_codec": numcodecs.VLenUTF8()}, 2),
        ],
    )
    def test_the_format_is_the_one_whose_words_are_used(self, arguments, expected):
        assert request_for((20, 30), arguments).zarr_format == expected

    @pytest.mark.parametrize(
        ("chunks", "expected"),
        [
            (None, None),
            (True, None),
            ("auto", None),
            (False, [20, 30]),
            (5, [5, 5]),
            ((5, 6), [5, 6]),
            ((5, None), [5, 30]),
            ((-1, 6), [20, 6]),
            ((5,), [5, 30]),
            ((100, 100), [100, 100]),
        ],
    )
    def test_chunks(self, chunks, expected):
        assert metadata(chunks=chunks, zarr_format=2).get("chunks") == expected
        grid = metadata(chunks=chunks).get("chunk_grid")
        assert (grid and grid["configuration"]["chunk_shape"]) == expected

    def test_shards_are_what_is_stored(self):
        found = metadata(shards=(10, 15), chunks=5, compressors=None)
        assert found["chunk_grid"]["configuration"] == {"chunk_shape": [10, 15]}
        (codec,) = found["codecs"]
        assert codec["name"] == "sharding_indexed"
        assert codec["configuration"] == {"chunk_shape": [5, 5], "codecs": []}

    def test_order_is_a_codec_in_version_3(self):
        assert metadata(order="F", compressors=None)["codecs"] == [
            {"name": "transpose", "configuration": {"order": [1, 0]}}
        ]
        assert metadata(order="F", zarr_format=2)["order"] == "F"
        assert metadata(shape=5, order="F", compressors=None)["codecs"] == []

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("v2", {"name": "v2", "configuration": {"separator": "."}}),
            (("default", "."), {"name": "default", "configuration": {"separator": "."}}),
            ({"name": "v2", "separator": "/"}, {"name": "v2", "configuration": {"separator": "/"}}),
            (
                {"name": "default", "configuration": {"separator": "."}},
                {"name": "default", "configuration": {"separator": "."}},
            ),
        ],
    )
    def test_keys_of_chunks(self, given, expected):
        assert metadata(chunk_key_encoding=given)["chunk_key_encoding"] == expected

    def test_names_of_dimensions_are_where_others_look_for_them(self):
        assert metadata(dimension_names=["a", None])["dimension_names"] == ["a", None]
        found = request_for(3, {"dimension_names": ["a"], "zarr_format": 2})
        assert found.attributes == {"_ARRAY_DIMENSIONS": ["a"]}

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"kompressor": 1}, TypeError, 'did you mean "compressor"'),
            ({"compression": "gzip"}, TypeError, "pass compressors="),
            ({"storage_options": {}}, TypeError, "members of the store's spec"),
            ({"chunk_store": {}}, TypeError, "pass store="),
            ({"name": "a"}, TypeError, "pass path="),
            ({"order": "Q"}, ValueError, "'C' or 'F'"),
            ({"zarr_format": 4}, ValueError, "2 or 3"),
            ({"chunks": "x"}, TypeError, "chunks must be a number"),
            ({"chunks": (1, 2, 3)}, ValueError, "chunks has 3 dimensions"),
            ({"chunks": 0}, ValueError, "must be positive"),
            ({"chunks": 1.5}, TypeError, "integer"),
            ({"shards": 10, "chunks": 3}, ValueError, "divisible by chunks"),
            ({"shards": 10, "zarr_format": 2}, ValueError, "have no shards"),
            ({"codecs": ["bytes"], "zarr_format": 2}, ValueError, "have no codecs"),
            ({"filters": [3]}, TypeError, "filters: 3 is no codec"),
            ({"compressor": 3}, TypeError, "compressor: 3 is no codec"),
            ({"compressor": None, "compressors": None}, ValueError, "two names of one thing"),
            (
                {"compressors": [ts.zarr.Zlib(), ts.zarr.Zlib()], "zarr_format": 2},
                ValueError,
                "one compressor, but 2",
            ),
            ({"chunk_key_encoding": 3}, TypeError, "'separator'"),
            ({"dtype": object}, ValueError, "dtype=str"),
            ({"attributes": {"a": {1}}}, ValueError, "a: a set is no JSON"),
            (
                {"dtype": object, "object_codec": {"id": "x"}, "zarr_format": 3},
                ValueError,
                "of version 2",
            ),
        ],
    )
    def test_what_is_wrong_says_what_is_right(self, arguments, error, message):
        with pytest.raises(error, match=message):
            request_for((20, 30), arguments)

    @pytest.mark.parametrize(
        ("shape", "expected"), [(3, (3,)), ((3, 4), (3, 4)), ((), ()), (iter([1, 2]), (1, 2))]
    )
    def test_shapes(self, shape, expected):
        assert as_shape(shape) == expected

    @pytest.mark.parametrize(
        ("shape", "error"), [("3", TypeError), (None, TypeError), (-1, ValueError)]
    )
    def test_what_is_no_shape(self, shape, error):
        with pytest.raises(error, match="shape must"):
            as_shape(shape)
