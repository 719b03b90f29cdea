"""Documents of one version said in another."""

import json
import math
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py import DataLossError, SpecError
from tensorstore_py._api.group_spec import group_model, places
from tensorstore_py._conversion.translation import (
    OldNode,
    find_nodes,
    open_as,
    same_array,
    translate,
)
from tensorstore_py._conversion.versions import (
    array_in_version2,
    array_in_version3,
    codec_in_version2,
    codecs_in_version3,
    labels_in,
    plain_attributes,
)
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py._spec.context import bind
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap

META = {
    "zarr_format": 1,
    "shape": [20, 20],
    "chunks": [10, 10],
    "dtype": "<i4",
    "compression": "zlib",
    "compression_opts": 1,
    "fill_value": 42,
    "order": "C",
}


class TestVersion1:
    def test_the_example_of_the_specification(self):
        assert array_in_version2(META) == {
            "zarr_format": 2,
            "shape": [20, 20],
            "chunks": [10, 10],
            "dtype": "<i4",
            "compressor": {"id": "zlib", "level": 1},
            "filters": None,
            "fill_value": 42,
            "order": "C",
        }

    @pytest.mark.parametrize(
        ("name", "options", "wanted"),
        [
            (None, None, None),
            ("none", None, None),
            (
                "blosc",
                {"clevel": 5, "cname": "lz4", "shuffle": True},
                {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
            ),
            ("bz2", 3, {"id": "bz2", "level": 3}),
            (
                "lzma",
                {"preset": 1},
                {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
            ),
        ],
    )
    def test_compression(self, name, options, wanted):
        found = array_in_version2({**META, "compression": name, "compression_opts": options})

        assert found["compressor"] == wanted

    @pytest.mark.parametrize(
        ("fill", "wanted"),
        [
            (math.nan, "NaN"),
            (math.inf, "Infinity"),
            (-math.inf, "-Infinity"),
            (1.5, 1.5),
            (None, None),
        ],
    )
    def test_fill_values(self, fill, wanted):
        assert array_in_version2({**META, "fill_value": fill})["fill_value"] == wanted

    @pytest.mark.parametrize(
        ("members", "message"),
        [
            ({"zarr_format": 2}, "zarr_format: expected 1"),
            ({"compression": "lz5"}, "compression"),
            ({"shape": []}, "without dimensions"),
        ],
    )
    def test_refuses(self, members, message):
        with pytest.raises(SpecError, match=message):
            array_in_version2({**META, **members})

    def test_every_member_is_needed(self):
        for name in ("shape", "chunks", "dtype", "order"):
            with pytest.raises(SpecError, match=name):
                array_in_version2({key: value for key, value in META.items() if key != name})


class TestVersion2:
    @pytest.mark.parametrize(
        ("codecs", "wanted"),
        [
            ([], None),
            (["bytes", "crc32c"], None),
            ([{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
             {"id": "zstd", "level": 3}),
            (["bytes", {"name": "numcodecs.zlib", "configuration": {"level": 2}}],
             {"id": "zlib", "level": 2}),
            ([{"name": "blosc", "configuration": {
                "cname": "zstd", "clevel": 1, "shuffle": "shuffle",
                "typesize": 4, "blocksize": 0}}],
             {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1, "blocksize": 0}),
            ([{"name": "sharding_indexed",
               "configuration": {"chunk_shape": [1], "codecs": ["gzip"]}}],
             {"id": "gzip", "level": 6}),
            ([{"name": "sharding_indexed"}], None),
        ],
    )  # fmt: skip
    def test_the_compressor(self, codecs, wanted):
        assert codec_in_version2(codecs) == {"compressor": wanted}


DOCUMENT = {
    "zarr_format": 2,
    "shape": [4, 3],
    "chunks": [2, 2],
    "dtype": "<i4",
    "compressor": None,
    "filters": None,
    "fill_value": 1,
    "order": "C",
}


def document(**members):
    return {**DOCUMENT, **members}


class TestVersion3:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["<i4", ">i4", "|u1", "<f8", "<c8", "|b1", "<M8[s]"])
    @pytest.mark.parametrize("separator", [".", "/"])
    @pytest.mark.parametrize(
        ("filters", "compressor"),
        [
            (None, None),
            (None, {"id": "zlib", "level": 1}),
            (None, {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": -1, "blocksize": 0}),
            (None, {"id": "gzip", "level": 1}),
            ([{"id": "shuffle", "elementsize": 4}], {"id": "zstd", "level": 1}),
        ],
    )
    def test_chunks_mean_what_they_meant(self, order, dtype, separator, filters, compressor):
        context = ts.Context()
        old = document(
            order=order, dtype=dtype, filters=filters, compressor=compressor,
            dimension_separator=separator, fill_value=None,
        )  # fmt: skip
        kvstore = "memory://a/"
        array = ts.open(
            {"driver": "zarr", "kvstore": kvstore, "metadata": old}, create=True, context=context
        ).result()
        data = np.arange(12).reshape(4, 3).astype(array.dtype.numpy_dtype)
        array[:3] = data[:3]

        new = array_in_version3(old, {"a": 1})

        found = ts.open(
            {"driver": "zarr3", "kvstore": kvstore, "metadata": new},
            open=True, assume_metadata=True, context=context,
        ).result()  # fmt: skip
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found.read().result(), array.read().result())

    def test_filters_of_arrays_come_first(self):
        delta = {"id": "delta", "dtype": "<i4", "astype": "<i4"}

        found = codecs_in_version3(document(order="F", filters=[delta], compressor={"id": "lz4"}))

        assert [codec["name"] for codec in found] == [
            "transpose", "numcodecs.delta", "bytes", "numcodecs.lz4",
        ]  # fmt: skip
        assert found[1]["configuration"] == {"dtype": "<i4", "astype": "<i4"}

    @pytest.mark.parametrize(
        ("dtype", "wanted"),
        [
            ("|S3", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}),
            ("<U2", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}),
            ("|V5", {"name": "raw_bytes", "configuration": {"length_bytes": 5}}),
            (
                "<m8[10us]",
                {"name": "numpy.timedelta64", "configuration": {"unit": "us", "scale_factor": 10}},
            ),
            ("bfloat16", "bfloat16"),
            (
                [["a", "<i2"], ["b", "|S1"]],
                {
                    "name": "structured",
                    "configuration": {
                        "fields": [
                            ["a", "int16"],
                            ["b", {"name": "null_terminated_bytes",
                                   "configuration": {"length_bytes": 1}}],
                        ]
                    },
                },
            ),
        ],
    )  # fmt: skip
    def test_types(self, dtype, wanted):
        assert array_in_version3(document(dtype=dtype, fill_value=None), {})["data_type"] == wanted

    @pytest.mark.parametrize(
        ("dtype", "fill", "wanted"),
        [
            ("<i4", None, 0),
            ("|b1", None, False),
            ("<f4", None, 0.0),
            ("<f4", "NaN", "NaN"),
            ("<c8", None, [0.0, 0.0]),
            ("|S3", None, ""),
            ("|S3", "YQAA", "YQAA"),
            ("<U3", "a", "a"),
            ("<M8[s]", None, 0),
        ],
    )
    def test_fill_values(self, dtype, fill, wanted):
        found = array_in_version3(document(dtype=dtype, fill_value=fill), {})["fill_value"]

        assert found == wanted
        assert type(found) is type(wanted)

    def test_text_of_any_length(self):
        new = array_in_version3(
            document(dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value=0), {}
        )

        assert new["data_type"] == "string"
        assert new["fill_value"] == ""
        assert new["codecs"] == [{"name": "vlen-utf8", "configuration": {}}]

    @pytest.mark.parametrize(
        ("members", "message"),
        [
            ({"compressor": {"id": "base64"}}, '"base64" has no counterpart'),
            ({"compressor": 5}, "is no codec"),
            ({"filters": 5}, "filters: expected an array"),
            ({"dtype": "|O", "filters": [{"id": "pickle"}]}, '"pickle" stores have no data type'),
            ({"dtype": "|O"}, "need a codec"),
            ({"dtype": "<x9"}, 'type "<x9" is not known'),
            ({"dtype": 5}, "expected a type"),
            ({"dtype": "|S0"}, "no counterpart"),
            ({"dtype": [["a", "<i2", [3]]]}, "is an array"),
            ({"dtype": [["a"]]}, "expected \\[name, type\\]"),
            ({"dtype": [["a", "<i2"], ["b", ">i2"]]}, "differ in byte order"),
            ({"shape": [1]}, "shape has 1 dimensions"),
            ({"chunks": "x"}, "expected an array of sizes"),
            (
                {"filters": [{"id": "zlib"}, {"id": "delta", "dtype": "<i4"}]},
                '"delta" comes after one that makes bytes',
            ),
            ({"compressor": {"id": "blosc", "shuffle": 7}}, "expected 0, 1, 2 or -1"),
        ],
    )
    def test_says_what_cannot_be_said(self, members, message):
        with pytest.raises(SpecError, match=message):
            array_in_version3(document(**members), {})

    def test_names_of_dimensions_get_their_own_place(self):
        attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "a": 1}

        new = array_in_version3(DOCUMENT, attributes)

        assert new["dimension_names"] == ["y", "x"]
        assert new["attributes"] == {"a": 1} == plain_attributes(attributes, 2)

    @pytest.mark.parametrize("labels", [None, ["y"], ["y", 1], "yx"])
    def test_what_is_no_list_of_names_stays_an_attribute(self, labels):
        attributes = {"_ARRAY_DIMENSIONS": labels}

        assert labels_in(attributes, 2) is None
        assert plain_attributes(attributes, 2) == attributes

    def test_zarr_python_reads_it_too(self, tmp_path):
        array = zarr.create_array(
            tmp_path, shape=(5, 4), chunks=(2, 3), dtype=">f4", order="F", zarr_format=2,
            compressors=numcodecs.Blosc(), fill_value=np.nan,
        )  # fmt: skip
        array[1:3] = 2.5
        import json

        old = json.loads((tmp_path / ".zarray").read_text())
        (tmp_path / "zarr.json").write_text(json.dumps(array_in_version3(old, {})))

        found = zarr.open_array(tmp_path, zarr_format=3)

        np.testing.assert_array_equal(found[...], array[...])


PLAIN = {
    "zarr_format": 2, "shape": [5, 4], "chunks": [2, 2], "dtype": "<i4", "compressor": None,
    "filters": None, "fill_value": None, "order": "C",
}  # fmt: skip


@pytest.fixture
def ends():
    context = ts.Context()
    new, old = places(bind(group_model("memory://"), context), context, None)
    return old, new


def array(ends, **members) -> Any:
    document: dict[str, object] = {**PLAIN, **members}
    found = run_inline(open_as(ends[0], "", document))
    return OldNode("", "array", 2, document, {}, None), found


class TestTranslation:
    def test_chunks_stay_where_they_can(self, ends):
        node, stored = array(ends)
        stored[...] = np.arange(20, dtype="int32").reshape(5, 4)

        found: Any = run_inline(translate(node, *ends))

        assert not found.copies
        assert found.document["chunk_key_encoding"]["name"] == "v2"
        assert (
            run_inline(same_array(stored, run_inline(open_as(ends[1], "", found.document)))) == ""
        )

    def test_what_has_no_words_is_made_anew(self, ends):
        node, _ = array(ends, dtype="<U1", filters=[{"id": "categorize", "labels": ["a", "b"],
                                                     "dtype": "<U1", "astype": "|u1"}])  # fmt: skip

        found: Any = run_inline(translate(node, *ends))

        assert found.copies
        assert '"categorize" has no counterpart' in found.why
        assert found.document["chunk_key_encoding"]["name"] == "default"

    def test_what_there_is_no_type_for_is_impossible(self, ends):
        node, _ = array(ends, dtype=[["a", "<i2", [3]], ["b", "|u1"]])

        found: Any = run_inline(translate(node, *ends))

        assert found.document is None
        assert "made anew" in found.why

    def test_what_cannot_be_opened_is_impossible(self, ends):
        node = OldNode("", "array", 2, {**PLAIN, "compressor": {"id": "nothing"}}, {}, None)

        found: Any = run_inline(translate(node, *ends))

        assert found.document is None
        assert "cannot be opened" in found.why

    @pytest.mark.parametrize(
        ("members", "message"),
        [
            ({"shape": [5, 5]}, "shape would be"),
            ({"dtype": "<f4"}, "data type would be float32"),
            ({"fill_value": 1}, "not stored"),
            ({"order": "F"}, "chunks would not decode"),
        ],
    )
    def test_differences_are_found(self, ends, members, message):
        _, one = array(ends, fill_value=0)
        one[...] = np.arange(20, dtype="int32").reshape(5, 4)
        _, other = array(ends, fill_value=0, **members) if "fill_value" not in members else array(
            ends, **members
        )  # fmt: skip

        assert message in run_inline(same_array(one, other))


GROUP, ARRAY = {"zarr_format": 2}, {"zarr_format": 2, "shape": []}


NEW_GROUP = {"zarr_format": 3, "node_type": "group"}


def nodes(documents, prefix=""):
    store = MemoryStore(SharedMap())
    for key, document in documents.items():
        run_inline(store.write(prefix + key, json.dumps(document).encode()))
    return run_inline(find_nodes(store, prefix))


class TestOldNodes:
    @pytest.mark.parametrize("prefix", ["", "x/y/"])
    def test_a_hierarchy(self, prefix):
        found = nodes(
            {
                ".zgroup": GROUP, ".zattrs": {"a": 1}, ".zmetadata": {}, "a/.zarray": ARRAY,
                "b/.zgroup": GROUP, "b/c/.zarray": ARRAY, "b/c/.zattrs": {"d": 1}, "b/c/0": 1,
                "other/file": 1,
            },
            prefix,
        )  # fmt: skip

        assert [(node.path, node.kind, node.version) for node in found] == [
            ("", "group", 2),
            ("a", "array", 2),
            ("b", "group", 2),
            ("b/c", "array", 2),
        ]
        assert found[0].keys == (".zmetadata", ".zattrs", ".zgroup")
        assert [node.consolidated for node in found] == [True, False, False, False]
        assert found[3].attributes == {"d": 1}
        assert found[3].keys == (".zattrs", ".zarray")

    def test_nodes_of_both_versions_are_old_ones(self):
        found = nodes({".zgroup": GROUP, "zarr.json": NEW_GROUP, "a/zarr.json": NEW_GROUP})

        assert [(node.version, node.newer) for node in found] == [(2, NEW_GROUP), (3, NEW_GROUP)]

    def test_an_array_of_version_1(self):
        (found,) = nodes({"meta": {"zarr_format": 1}, "attrs": {"a": 1}, "0.0": 1})

        assert (found.version, found.attributes, found.keys) == (1, {"a": 1}, ("attrs", "meta"))

    def test_what_is_left_of_version_1(self):
        (found,) = nodes({"meta": {"zarr_format": 1}, "attrs": {"a": 1}, ".zarray": ARRAY})

        assert (found.version, found.keys, found.leftover) == (2, (".zarray",), ("attrs", "meta"))

    def test_what_is_called_meta_need_not_be_metadata(self):
        assert nodes({"meta": {"a": 1}}) == []
        assert nodes({".zarray": ARRAY, "meta": {"a": 1}})[0].leftover == ()

    def test_says_what_is_corrupt(self):
        with pytest.raises(DataLossError, match="not of version 2"):
            nodes({".zgroup": {}})
        with pytest.raises(DataLossError, match="expected an object"):
            nodes({".zarray": 5})
