"""What variables and groups are stored as: encodings, codecs, attributes."""

import copy
import json
import pickle
from collections.abc import Hashable

import numpy as np
import pytest
import xarray as xr
from zarr.codecs import GzipCodec

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.encoding import (
    array_arguments,
    as_attributes,
    as_existing,
    encoded,
    joined,
)
from tensorstore_py.integrations.xarray.stored_group import (
    CodecJson,
    StoredVariable,
    codecs_of_version_2,
    codecs_of_version_3,
)
from tensorstore_py.integrations.xarray.writing_documents import Document, Node


def arguments(encoding, dtype="f4", version=3, strict=True, write_empty=None):
    variable = xr.Variable(("y", "x"), np.zeros((4, 6), dtype), encoding=encoding)
    return array_arguments(variable, "v", version, strict=strict, write_empty=write_empty)


class TestEncoding:
    @pytest.mark.parametrize(
        ("dtype", "version", "expected"),
        [("f4", 3, np.nan), ("i2", 3, 0), ("?", 3, False), ("U3", 3, ""), ("f4", 2, None)],
    )
    def test_fill_values_that_are_not_given(self, dtype, version, expected) -> None:
        found = arguments({}, dtype, version).form["fill_value"]

        np.testing.assert_equal(found, expected)

    def test_what_stands_for_missing_values_is_the_fill_value_of_version_2_alone(self) -> None:
        variable = xr.Variable("x", np.zeros(3), {"_FillValue": -1.0})

        old = array_arguments(variable, "v", 2, strict=False, write_empty=None)
        new = array_arguments(variable, "v", 3, strict=False, write_empty=None)

        assert (old.form["fill_value"], old.attributes) == (-1.0, {})
        assert np.isnan(new.form["fill_value"])
        assert new.attributes == {"_FillValue": "AAAAAAAA8L8="}

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ({"chunks": 2}, (2, 2)),
            ({"chunks": [1, 3]}, (1, 3)),
            ({"chunks": (5,)}, None),
            ({}, None),
        ],
    )
    def test_chunks_in_all_forms(self, said, expected) -> None:
        assert arguments(said).form["chunks"] == expected

    def test_what_tells_where_a_variable_was_is_left_out(self) -> None:
        assert "source" not in arguments({"source": "a.nc", "preferred_chunks": {}}).form
        assert "zlib" not in arguments({"zlib": True}, strict=False).form

    @pytest.mark.parametrize(
        ("said", "more", "error", "message"),
        [
            ({"zlib": True}, {}, ValueError, "unexpected encoding.*'v'.*zlib"),
            ({"fill_value": 1}, {"version": 2}, ValueError, "_FillValue"),
            ({"chunks": ((2, 2), (6,))}, {}, TypeError, "'v'.*rectilinear"),
            ({"shards": ((2, 2), (6,))}, {}, TypeError, "'v'.*rectilinear"),
            ({"chunks": (2, 2.5)}, {}, TypeError, "int.*'v'"),
            ({"write_empty_chunks": True}, {"write_empty": False}, ValueError, "'v'.*write_empty"),
        ],
    )
    def test_mistakes_name_the_variable(self, said, more, error, message) -> None:
        with pytest.raises(error, match=message):
            arguments(said, **more)

    def test_attributes_are_plain_json(self) -> None:
        given: dict[Hashable, object] = {
            "a": np.arange(2),
            "b": np.float32(0.5),
            "c": (1, 2),
            "d": np.array("x"),
            "e": None,
        }

        assert as_attributes(given, "Dataset.attrs") == {
            "a": [0, 1], "b": 0.5, "c": [1, 2], "d": "x", "e": None
        }  # fmt: skip

    @pytest.mark.parametrize("given", [{"a": object()}, {1: 2}, {"a": b"x"}])
    def test_attributes_that_are_none_name_themselves(self, given) -> None:
        with pytest.raises(TypeError, match=r"variable 'v'.*(1|'a')"):
            as_attributes(given, "variable 'v'")

    def test_objects_of_many_kinds_name_the_variable(self) -> None:
        with pytest.raises(ValueError, match="'v'"):
            encoded(xr.Variable("x", np.array([1, "a"], object)), "v", 3)


def existing(dtype="i2", dims=("y", "x"), attributes=None):
    attributes = attributes or {}
    array = ts.zarr.create(
        (2, 3), chunks=(2, 3), dtype=dtype, dimension_names=dims, attributes=attributes
    )
    document = {"shape": [2, 3], "dimension_names": dims, "attributes": attributes}
    return as_existing("v", Node("v", "array", 3, {"zarr.json": Document(document, b"g")}), array)


def join(variable, stored, region=None, append_dim=None):
    return joined(variable, stored, region=region or {}, append_dim=append_dim)


class TestEncodingExisting:
    def test_values_are_encoded_as_those_that_are_stored(self) -> None:
        stored = existing(attributes={"scale_factor": 0.5, "_FillValue": -1})
        variable = xr.Variable(("y", "x"), [[1.0, np.nan, 2.5], [0, 1, 2]])

        found = join(variable, stored)

        assert found.values.tolist() == [[2, -1, 5], [0, 2, 4]]
        assert found.dtype == np.int16

    def test_dimensions_in_another_order_are_put_in_that_of_the_array(self) -> None:
        found = join(xr.Variable(("x", "y"), np.arange(6).reshape(3, 2)), existing())

        assert found.dims == ("y", "x")
        assert found.values.tolist() == [[0, 2, 4], [1, 3, 5]]

    def test_a_region_and_what_grows_have_sizes_of_their_own(self) -> None:
        assert join(xr.Variable(("y", "x"), [[1]]), existing(), {"x": slice(1, 2), "y": slice(1)})
        assert join(xr.Variable(("y", "x"), [[1, 2, 3]]), existing(), append_dim="y").shape == (
            1,
            3,
        )

    @pytest.mark.parametrize(
        ("variable", "message"),
        [
            (xr.Variable(("y", "z"), np.ones((2, 3), "i2")), r"'v'.*'y', 'x'.*'y', 'z'"),
            (
                xr.Variable(("y", "x"), np.ones((2, 4), "i2")),
                r"'v'.*'x': 3.*'x': 4.*append_dim.*region",
            ),
        ],
    )
    def test_what_differs_is_named_on_both_sides(self, variable, message) -> None:
        with pytest.raises(ValueError, match=message):
            join(variable, existing())

    def test_text_of_another_length_is_not_cut(self) -> None:
        with pytest.raises(ValueError, match=r"'v'.*U2.*U5"):
            join(xr.Variable(("y", "x"), np.full((2, 3), "abcde")), existing("U2"))

    def test_dimensions_must_have_names(self) -> None:
        with pytest.raises(ValueError, match=r"'v'.*dimension_names"):
            existing(dims=None)


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


GZIP = {"name": "gzip", "configuration": {"level": 5}}


TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


class TestCodecJson:
    def test_a_codec_compares_with_zarrs_and_has_its_attributes(self):
        codec = CodecJson(GZIP)

        assert codec == GzipCodec(level=5)
        assert GzipCodec(level=5) == codec
        assert codec != GzipCodec(level=6)
        assert codec == GZIP
        assert codec != {}
        assert codec.level == 5
        with pytest.raises(AttributeError, match=r"gzip.*\['level'\]"):
            _ = codec.cname
        assert pickle.loads(pickle.dumps(codec)) == copy.deepcopy(codec) == codec

    def test_the_chain_of_version_3_is_distinguished(self):
        assert codecs_of_version_3([TRANSPOSE, BYTES, GZIP]) == {
            "filters": (TRANSPOSE,),
            "serializer": BYTES,
            "compressors": (GZIP,),
        }
        assert codecs_of_version_3(["bytes"])["serializer"] == {"name": "bytes"}
        assert codecs_of_version_3([{"name": "unheard-of"}]) == {}

    def test_codecs_of_a_shard_are_those_of_its_chunks(self):
        inner = {"chunk_shape": [2], "codecs": [BYTES, GZIP], "index_codecs": [BYTES]}

        found = codecs_of_version_3([{"name": "sharding_indexed", "configuration": inner}])

        assert (found["serializer"], found["compressors"]) == (BYTES, (GZIP,))

    def test_codecs_of_version_2_are_objects(self):
        from numcodecs import Delta, Zlib

        document = {
            "compressor": {"id": "zlib", "level": 3},
            "filters": [{"id": "delta", "dtype": "<i2"}],
        }

        assert codecs_of_version_2(document) == {
            "compressors": (Zlib(level=3),),
            "filters": (Delta("<i2"),),
        }
        assert codecs_of_version_2({"compressor": None}) == {"compressors": (), "filters": ()}


def array(group, name, shape, labels, **options):
    domain = ts.IndexDomain(shape=shape, labels=labels)
    return group.create_array(name, dtype="int32", domain=domain, **options).result()


@pytest.fixture(params=[2, 3])
def path(request, tmp_path):
    group = ts.Group.open(tmp_path, create=True, zarr_format=request.param).result()
    array(group, "a", [3], ["x"])
    return tmp_path


def opened(path, **options):
    return xr.open_dataset(path, engine="tensorstore", **options)


class TestStoredGroup:
    def test_a_variable_without_names_of_dimensions_is_named(self, path):
        group = ts.Group.open(path).result()
        group.create_array("nameless", dtype="int32", shape=[3]).result()

        with pytest.raises(
            ts.UnsupportedError, match='variable "nameless" has no names for its 1 dim'
        ):
            opened(path)
        assert set(opened(path, drop_variables=["nameless"])) == {"a"}
        group.create_array("scalar", dtype="int32", shape=[]).result()
        with pytest.raises(ts.UnsupportedError, match="nameless"):
            opened(path)
        assert set(opened(path, drop_variables="nameless")) == {"a", "scalar"}

    def test_dimensions_of_two_sizes_are_named_with_both_variables(self, path):
        array(ts.Group.open(path).result(), "b", [4, 2], ["x", "y"])

        with pytest.raises(
            ts.MismatchError,
            match=r'"x" has size 3 in variable "a", but 4 in variable "b", in file:.*drop',
        ):
            opened(path)
        assert set(opened(path, drop_variables={"a"})) == {"b"}

    def test_a_codec_that_is_not_there_is_said_of_its_variable(self, tmp_path):
        group = ts.Group.open(tmp_path, create=True).result()
        array(group, "a", [3], ["x"])
        document = tmp_path / "a" / "zarr.json"
        metadata = json.loads(document.read_text())
        codecs = [*metadata["codecs"], {"name": "unheard_of"}]
        document.write_text(json.dumps({**metadata, "codecs": codecs}))

        with pytest.raises(
            ts.DataLossError, match=r'variable "a" cannot be opened.*unheard_of.*drop'
        ):
            opened(tmp_path)
        document.write_text(json.dumps({**metadata, "shape": "none"}))
        with pytest.raises(ts.DataLossError, match=r'variable "a".*shape'):
            opened(tmp_path)

    def test_what_netcdf_hides_is_hidden(self, tmp_path):
        group = ts.Group.open(
            tmp_path, create=True, zarr_format=2, attributes={"_NCProperties": "v", "title": "t"}
        ).result()
        array(group, "a", [3], ["x"], attributes={"_nczarr_attr": {}, "unit": "m"})
        array(group, "__values__", [3], ["x"])

        found = opened(tmp_path)

        assert found.attrs == {"title": "t"}
        assert found["a"].attrs == {"unit": "m"}
        assert set(found) == {"a", None}

    def test_what_closes_a_dataset_goes_to_another_process(self, path):
        found = pickle.loads(pickle.dumps(opened(path)))

        found.close()

        np.testing.assert_array_equal(found["a"].values, [0, 0, 0])


def variable(metadata=None, attributes=None, *, zarr_format=3, fills=None, **options):
    """A variable `v` over one dimension, made with some metadata."""
    given = {"driver": f"zarr{zarr_format if zarr_format == 3 else ''}", "kvstore": "memory://"}
    store = ts.open({**given, "metadata": metadata or {}}, create=True, **options).result()
    assert store.kvstore is not None
    document = json.loads(store.kvstore["zarr.json" if zarr_format == 3 else ".zarray"])
    stored = StoredVariable("v", "there", document, attributes or {}, store)
    return stored, stored.variable(fills)


GRID = {"name": "regular", "configuration": {"chunk_shape": [4]}}


V2 = {"_ARRAY_DIMENSIONS": ["x"]}


class TestStoredVariable:
    @pytest.mark.parametrize(
        ("dtype", "fill"),
        [
            ("float32", np.float32("nan")),
            ("float64", np.inf),
            ("int16", np.int16(-5)),
            ("uint64", np.uint64(2**64 - 1)),
            ("bool", np.True_),
            ("complex64", np.complex64(1 + 2j)),
        ],
    )
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_fill_values_of_any_kind(self, zarr_format, dtype, fill):
        names = {"dimension_names": ["x"]} if zarr_format == 3 else {}
        _, found = variable(
            names, V2, zarr_format=zarr_format, dtype=dtype, shape=[3], fill_value=fill
        )

        said = found.encoding["fill_value"] if zarr_format == 3 else found.attrs["_FillValue"]
        np.testing.assert_equal(said, fill)
        assert said.dtype == np.dtype(dtype)

    def test_which_elements_are_missing_is_said_or_not(self):
        _, masked = variable({"dimension_names": ["x"]}, fills=True, dtype="int8", shape=[3])
        assert masked.attrs == {"_FillValue": 0}
        _, plain = variable({}, V2, zarr_format=2, fills=False, dtype="int8", shape=[3])
        assert plain.attrs == {}
        _, none = variable({"fill_value": None, "dtype": "|i1"}, V2, zarr_format=2, shape=[3])
        assert none.attrs == {}

    def test_the_attribute_of_missing_values_is_decoded_as_xarray_encodes_it(self):
        names = {"dimension_names": ["x"]}
        _, found = variable(names, {"_FillValue": "AAAAAAAA+H8="}, dtype="float32", shape=[3])
        assert np.isnan(found.attrs["_FillValue"])
        _, text = variable(names, {"_FillValue": "none"}, dtype="ustring", shape=[3])
        assert text.attrs["_FillValue"] == "none"
        with pytest.raises(
            ts.DataLossError, match=r'"v": the attribute _FillValue is 5, .* there:'
        ):
            variable(names, {"_FillValue": 5}, dtype="float32", shape=[3])

    def test_dimensions_of_netcdfs_library(self):
        metadata = {"_NCZARR_ARRAY": {"dimrefs": ["/group/x"]}, "zarr_format": 2, "chunks": [3]}
        stored = StoredVariable("v", "there", metadata, {"_NCproperties": 1}, ts.array([1, 2, 3]))

        assert stored.dims == ("x",)

    @pytest.mark.parametrize("names", [None, ["x", "y"], [None], [""], "x"])
    def test_names_that_do_not_fit_are_shown(self, names):
        metadata = {"zarr_format": 3, "dimension_names": names}

        with pytest.raises(
            ts.UnsupportedError, match=r'"v" has no names for its 1 dim.* at there;'
        ):
            StoredVariable("v", "there", metadata, {}, ts.array([1, 2, 3]))

    @pytest.mark.parametrize(
        ("grid", "shape", "chunks"),
        [
            ({"kind": "inline", "chunk_shapes": [[10, 20, 30]]}, [60], ((10, 20, 30),)),
            ({"kind": "inline", "chunk_shapes": [2, [5, 10, 5]]}, [6, 20], (2, (5, 10, 5))),
            ({"kind": "inline", "chunk_shapes": [[[4, 3], 2]]}, [14], (4,)),
            ({"kind": "inline", "chunk_shapes": [[[4, 3]]]}, [6], (4,)),
            ({"kind": "inline", "chunk_shapes": [[[4, 3]]]}, [0], ((0,),)),
        ],
    )
    def test_chunks_of_several_sizes(self, grid, shape, chunks):
        metadata = {
            "chunk_grid": {"name": "rectilinear", "configuration": grid},
            "dimension_names": ["y", "x"][: len(shape)],
        }

        _, found = variable(metadata, dtype="int8", shape=shape)

        assert found.encoding["chunks"] == chunks
        assert tuple(found.encoding["preferred_chunks"].values()) == chunks
        assert xr.Dataset({"v": found}).chunk({}).chunks is not None

    def test_chunks_within_shards(self):
        inner = {"chunk_shape": [2], "codecs": [{"name": "bytes"}]}
        metadata = {
            "chunk_grid": GRID,
            "codecs": [{"name": "sharding_indexed", "configuration": inner}],
            "dimension_names": ["x"],
        }

        _, found = variable(metadata, dtype="int8", shape=[8])

        assert (found.encoding["chunks"], found.encoding["shards"]) == ((2,), (4,))

    def test_what_is_read_ahead(self):
        names = {"dimension_names": ["x"]}
        times = {"units": "days since 2000-01-01"}
        for attributes, shape, asked in ((times, [3], 1), (times, [100_000], 2), ({}, [3], 0)):
            stored, _ = variable(names, attributes, dtype="int64", shape=shape)
            stored.fetch(times=True)
            assert len(stored.data._ahead) == asked
            stored, _ = variable(names, attributes, dtype="int64", shape=shape)
            stored.fetch(times=False)
            assert not stored.data._ahead
