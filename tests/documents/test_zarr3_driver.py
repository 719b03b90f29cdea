"""The driver document of zarr3: its examples and each rule, in the reference and here alike."""

import json
from typing import Any

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts

WHERE: dict[str, Any] = {"driver": "zarr3", "kvstore": "memory://"}
GRID = {"name": "regular", "configuration": {"chunk_shape": [100, 200, 300]}}
DOCUMENT: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [1000, 2000, 3000],
    "chunk_grid": GRID,
    "chunk_key_encoding": {"name": "default"},
    "data_type": "uint16",
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": 42,
}
BOUNDS = {"exclusive_max": [[1000], [2000], [3000]], "inclusive_min": [0, 0, 0]}


@pytest.fixture(params=[ts, reference], ids=lambda library: library.__name__)
def library(request):
    return request.param


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def layout(write, read=None, order=None):
    return {
        "grid_origin": [0] * len(write),
        "inner_order": list(range(len(write))) if order is None else order,
        "read_chunk": {"shape": write if read is None else read},
        "write_chunk": {"shape": write},
    }


def stored(library, document, **members):
    """An array whose document was put there as text."""
    context = library.Context()
    store = library.KvStore.open("memory://", context=context).result()
    store["zarr.json"] = json.dumps(document)
    return library.open({**WHERE, **members}, context=context).result()


def created(library, *, metadata=None, where=WHERE, **options):
    asked = {"dtype": library.uint16, "shape": [4, 6], "context": library.Context(), **options}
    members = {} if metadata is None else {"metadata": metadata}
    return library.open({**where, **members}, create=True, **asked).result()


def document_of(store):
    return json.loads(store.kvstore["zarr.json"])


class TestSchema:
    def test_of_the_document_without_sharding(self, library):
        assert stored(library, DOCUMENT).schema.to_json() == {
            "chunk_layout": layout([100, 200, 300]),
            "codec": {
                "codecs": [{"configuration": {"endian": "little"}, "name": "bytes"}],
                "driver": "zarr3",
            },
            "domain": BOUNDS,
            "dtype": "uint16",
            "fill_value": 42,
            "rank": 3,
        }

    def test_its_document_may_be_written_by_the_json_driver(self, library):
        context = library.Context()
        kvstore = {"driver": "memory"}
        spec = {"driver": "json", "kvstore": kvstore, "path": "zarr.json"}
        library.open(spec, context=context).result().write(DOCUMENT).result()
        found = library.open({"driver": "zarr3", "kvstore": kvstore}, context=context).result()
        assert found.schema.to_json() == stored(library, DOCUMENT).schema.to_json()

    def test_the_codec_of_another_driver_is_refused(self, library):
        with pytest.raises(ValueError, match="zarr"):
            created(library, codec=library.CodecSpec({"driver": "zarr", "compressor": None}))

    @pytest.mark.parametrize("fill", [7, 0, 65535])
    def test_the_fill_value_is_a_scalar(self, library, fill):
        store = created(library, fill_value=fill)
        assert store.schema.to_json().get("fill_value", 0) == fill
        assert document_of(store)["fill_value"] == fill
        with pytest.raises(ValueError, match="fill"):
            created(library, fill_value=[fill] * 6)

    def test_chunks_of_the_fill_value_are_not_stored_but_on_demand(self, library):
        for demand, keys in ((False, [b"zarr.json"]), (True, [b"c/0/0", b"zarr.json"])):
            where = {**WHERE, "store_data_equal_to_fill_value": demand}
            store = created(library, where=where, fill_value=3)
            store[...] = 3
            assert sorted(store.kvstore.list().result()) == keys

    def test_missing_chunks_are_errors_on_demand(self, library):
        where = {**WHERE, "fill_missing_data_reads": False}
        store = created(library, where=where)
        with pytest.raises(ValueError, match="c/0/0"):
            store.read().result()

    def test_units_are_stored_as_they_are(self, library):
        units = ["4nm", None]
        store = created(library, dimension_units=units)
        assert document_of(store)["attributes"] == {"dimension_units": ["4 nm", None]}
        assert [unit and unit.to_json() for unit in store.dimension_units] == [[4.0, "nm"], None]
        assert store.schema.to_json()["dimension_units"] == [[4.0, "nm"], None]

    @pytest.mark.parametrize(
        ("written", "unit"),
        [(["4 nm", "m"], [[4.0, "nm"], [1.0, "m"]]), (["30", ""], [[30.0, ""], [1.0, ""]])],
    )
    def test_units_are_read_in_every_form(self, library, written, unit):
        document = {
            **DOCUMENT, "shape": [4, 6], "chunk_grid": named("regular", chunk_shape=[4, 6]),
            "attributes": {"dimension_units": written, "mine": 1},
        }  # fmt: skip
        store = stored(library, document)
        assert [each.to_json() for each in store.dimension_units] == unit
        assert store.spec().to_json()["metadata"]["attributes"]["mine"] == 1


# data type, two values, the document's fill value for the second, as listed in its JSON schema
DATA_TYPES: list[tuple[str, Any, Any]] = [
    ("bool", True, True),
    ("int2", -2, -2),
    ("int4", -8, -8),
    ("int8", -128, -128),
    ("uint8", 255, 255),
    ("int16", -32768, -32768),
    ("uint16", 65535, 65535),
    ("int32", -(2**31), -(2**31)),
    ("uint32", 2**32 - 1, 2**32 - 1),
    ("int64", -(2**63), -(2**63)),
    ("uint64", 2**64 - 1, 2**64 - 1),
    ("float8_e3m4", 1.5, 1.5),
    ("float8_e4m3fn", 1.5, 1.5),
    ("float8_e4m3fnuz", 1.5, 1.5),
    ("float8_e4m3b11fnuz", 1.5, 1.5),
    ("float8_e5m2", float("inf"), "Infinity"),
    ("float8_e5m2fnuz", 1.5, 1.5),
    ("float4_e2m1fn", 1.5, 1.5),
    ("bfloat16", float("-inf"), "-Infinity"),
    ("float16", float("nan"), "NaN"),
    ("float32", 0.5, 0.5),
    ("float64", float("nan"), "NaN"),
    ("complex64", complex(1, float("inf")), [1.0, "Infinity"]),
    ("complex128", complex(float("nan"), -2), ["NaN", -2.0]),
]


def same(found, expected):
    return np.array_equal(found.astype(complex), expected.astype(complex), equal_nan=True)


@pytest.mark.parametrize(("name", "value", "fill"), DATA_TYPES, ids=[row[0] for row in DATA_TYPES])
def test_data_types_have_the_names_of_tensorstores(library, name, value, fill):
    kind = library.dtype(name).numpy_dtype
    element = np.array(value).astype(kind)
    store = created(library, dtype=name, shape=[3], fill_value=element)
    document = document_of(store)
    assert (document["data_type"], document["fill_value"]) == (name, fill)
    assert same(store.read().result(), np.full(3, element))
    again = stored(library, document, dtype=name)
    assert again.dtype == library.dtype(name)
    assert same(again.fill_value, element)


@pytest.mark.parametrize("name", [row[0] for row in DATA_TYPES])
def test_what_one_library_writes_the_other_reads(tmp_path, name):
    where = {**WHERE, "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False}}
    bits = np.array([0, 1, 2, 3]) if name != "bool" else np.array([0, 1, 0, 1])
    created(ts, where=where, dtype=name, shape=[8])[:4] = bits.astype(ts.dtype(name).numpy_dtype)
    theirs = reference.open(where).result()
    expected = ts.open(where).result().read().result()
    assert theirs.read().result().tobytes() == expected.tobytes()
    theirs[4:] = bits.astype(reference.dtype(name).numpy_dtype)
    found = ts.open(where).result().read().result()
    assert found.tobytes() == np.concatenate([expected[:4]] * 2).tobytes()


class TestDomain:
    def test_of_the_example_with_names(self, library):
        document = {**DOCUMENT, "dimension_names": ["x", "y", "z"], "fill_value": 0}
        domain = stored(library, document).schema.domain
        assert domain.to_json() == {**BOUNDS, "labels": ["x", "y", "z"]}

    @pytest.mark.parametrize(
        ("names", "labels"),
        [
            (["x", None, ""], ("x", "", "")),
            ([None, None, None], ("", "", "")),
        ],
        ids=["empty and null", "all null"],
    )
    def test_labels_are_the_names_as_far_as_they_can_be(self, library, names, labels):
        store = stored(library, {**DOCUMENT, "dimension_names": names})
        assert store.domain.labels == labels
        written = store.spec().to_json()["metadata"].get("dimension_names", [None] * 3)
        assert written == names

    def test_names_that_are_no_labels_are_kept_but_not_used(self):
        # The reference refuses them, whatever its document says.
        names = ["x", "x", "y"]
        store = stored(ts, {**DOCUMENT, "dimension_names": names})
        assert store.domain.labels == ("", "", "")
        assert (
            document_of(store.resize(exclusive_max=[7, 7, 7]).result())["dimension_names"] == names
        )

    def test_labels_are_stored_as_names(self, library):
        domain = library.IndexDomain(labels=["x", ""], shape=[4, 6])
        store = created(library, domain=domain, shape=None)
        assert document_of(store)["dimension_names"] == ["x", None]

    def test_upper_bounds_can_be_resized_lower_ones_are_zero(self, library):
        store = created(library)
        assert store.domain.implicit_upper_bounds == (True, True)
        assert store.resize(exclusive_max=[9, 1]).result().shape == (9, 1)
        with pytest.raises(ValueError, match="lower"):
            store.resize(inclusive_min=[1, 0]).result()

    def test_a_transform_moves_the_origin_and_is_not_stored(self, library):
        context = library.Context()
        store = created(library, context=context)
        transform = library.IndexTransform(input_rank=2)[library.d[:].translate_by[10, 20]]
        moved = library.open({**WHERE, "transform": transform.to_json()}, context=context).result()
        assert str(moved.domain) == "{ [10, 14*), [20, 26*) }"
        moved[10, 20] = 5
        assert store[0, 0].read().result() == 5
        assert document_of(moved)["shape"] == [4, 6]


# codecs of an array of uint16 with chunks [4, 6], inner order, read chunk
LAYOUTS: list[tuple[list[Any], list[int], list[int]]] = [
    (["bytes"], [0, 1], [4, 6]),
    ([named("transpose", order="C"), "bytes"], [0, 1], [4, 6]),
    ([named("transpose", order="F"), "bytes"], [1, 0], [4, 6]),
    ([named("transpose", order=[1, 0]), "bytes"], [1, 0], [4, 6]),
    ([named("sharding_indexed", chunk_shape=[2, 3])], [0, 1], [2, 3]),
    (
        [
            named(
                "sharding_indexed",
                chunk_shape=[4, 3],
                codecs=[named("sharding_indexed", chunk_shape=[2, 3])],
            )
        ],
        [0, 1],
        [2, 3],
    ),
    (
        [named("sharding_indexed", chunk_shape=[2, 3], codecs=[named("transpose", order=[1, 0])])],
        [1, 0],
        [2, 3],
    ),
]


class TestChunkLayout:
    @pytest.mark.parametrize(("codecs", "order", "read"), LAYOUTS, ids=str)
    def test_follows_from_grid_and_codecs(self, library, codecs, order, read):
        metadata = {"codecs": codecs, "chunk_grid": named("regular", chunk_shape=[4, 6])}
        store = created(library, metadata=metadata)
        assert store.chunk_layout.to_json() == layout([4, 6], read, order)
        assert stored(library, document_of(store)).chunk_layout == store.chunk_layout

    def test_different_read_and_write_chunks_insert_sharding(self, library):
        constraints = library.ChunkLayout(read_chunk_shape=[2, 3], write_chunk_shape=[4, 6])
        (codec,) = document_of(created(library, chunk_layout=constraints))["codecs"]
        assert codec["name"] == "sharding_indexed"
        assert codec["configuration"]["chunk_shape"] == [2, 3]
        plain = library.ChunkLayout(chunk_shape=[4, 6])
        codecs = document_of(created(library, chunk_layout=plain))["codecs"]
        assert [each["name"] for each in codecs] == ["bytes"]

    def test_sharding_given_already_is_not_inserted_again(self, library):
        constraints = library.ChunkLayout(read_chunk_shape=[2, 3], write_chunk_shape=[4, 6])
        codecs = [named("sharding_indexed", index_location="start")]
        store = created(library, metadata={"codecs": codecs}, chunk_layout=constraints)
        (codec,) = document_of(store)["codecs"]
        assert codec["configuration"]["chunk_shape"] == [2, 3]
        assert codec["configuration"]["index_location"] == "start"

    @pytest.mark.parametrize("sharded", [False, True])
    def test_an_inner_order_inserts_a_transposition_before_the_bytes(self, library, sharded):
        constraints = {"inner_order": [1, 0], "write_chunk_shape": [4, 6]}
        constraints["read_chunk_shape"] = [2, 3] if sharded else [4, 6]
        store = created(library, chunk_layout=library.ChunkLayout(**constraints))
        codecs = document_of(store)["codecs"]
        if sharded:
            codecs = codecs[0]["configuration"]["codecs"]
        assert codecs == [
            named("transpose", order=[1, 0]),
            {"name": "bytes", "configuration": {"endian": "little"}},
        ]
        assert store.chunk_layout.inner_order == (1, 0)

    def test_the_origin_of_the_grid_is_zero(self, library):
        with pytest.raises(ValueError, match="origin"):
            created(library, chunk_layout=library.ChunkLayout(grid_origin=[1, 1]))

    @pytest.mark.parametrize("shape", [[3, 6], [8, 6]])
    def test_read_chunks_divide_write_chunks(self, library, shape):
        constraints = library.ChunkLayout(read_chunk_shape=shape, write_chunk_shape=[4, 6])
        with pytest.raises(ValueError, match="chunk"):
            created(library, chunk_layout=constraints)


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
# as given, as stored for uint16
CODECS: list[tuple[list[Any], list[Any]]] = [
    ([], [LITTLE]),
    (["bytes"], [LITTLE]),
    ([{"name": "bytes"}], [LITTLE]),
    ([named("bytes", endian="big")], [named("bytes", endian="big")]),
    ([named("transpose", order="C")], [named("transpose", order=[0, 1]), LITTLE]),
    ([named("transpose", order="F")], [named("transpose", order=[1, 0]), LITTLE]),
    (["gzip"], [LITTLE, named("gzip", level=6)]),
    ([named("gzip", level=9)], [LITTLE, named("gzip", level=9)]),
    (["zstd"], [LITTLE, named("zstd", level=3, checksum=False)]),
    ([named("zstd", level=6)], [LITTLE, named("zstd", level=6, checksum=False)]),
    (
        ["blosc"],
        [
            LITTLE,
            named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=2, blocksize=0),
        ],
    ),
    (
        [named("blosc", cname="blosclz", clevel=9, shuffle="bitshuffle")],
        [
            LITTLE,
            named(
                "blosc", cname="blosclz", clevel=9, shuffle="bitshuffle", typesize=2, blocksize=0
            ),
        ],
    ),
    (["crc32c"], [LITTLE, {"name": "crc32c"}]),
    (["zstd", "crc32c"], [LITTLE, named("zstd", level=3, checksum=False), {"name": "crc32c"}]),
    (
        [named("sharding_indexed", chunk_shape=[2, 3], codecs=["gzip"])],
        [
            named(
                "sharding_indexed",
                chunk_shape=[2, 3],
                codecs=[LITTLE, named("gzip", level=6)],
                index_codecs=[LITTLE, {"name": "crc32c"}],
            )
        ],
    ),
    (
        [
            named(
                "sharding_indexed",
                chunk_shape=[2, 3],
                index_codecs=[named("bytes", endian="big")],
                index_location="start",
            )
        ],
        [
            named(
                "sharding_indexed",
                chunk_shape=[2, 3],
                codecs=[LITTLE],
                index_codecs=[named("bytes", endian="big")],
                index_location="start",
            )
        ],
    ),
]


class TestCodecs:
    @pytest.mark.parametrize(("given", "written"), CODECS, ids=str)
    def test_members_have_their_defaults(self, library, given, written):
        grid = named("regular", chunk_shape=[4, 6])
        store = created(library, metadata={"codecs": given, "chunk_grid": grid})
        assert document_of(store)["codecs"] == written
        data = np.arange(24, dtype="uint16").reshape(4, 6)
        store[...] = data
        np.testing.assert_array_equal(store.read().result(), data)

    @pytest.mark.parametrize(("given", "written"), CODECS, ids=str)
    def test_data_goes_both_ways(self, tmp_path, given, written):
        where = {
            **WHERE,
            "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False},
        }
        metadata = {"codecs": given, "chunk_grid": named("regular", chunk_shape=[4, 6])}
        data = np.arange(24, dtype="uint16").reshape(4, 6)
        created(ts, where=where, metadata=metadata)[...] = data
        theirs = reference.open(where).result()
        np.testing.assert_array_equal(theirs.read().result(), data)
        theirs[1, 2:] = 7
        data[1, 2:] = 7
        np.testing.assert_array_equal(ts.open(where).result().read().result(), data)

    @pytest.mark.parametrize(
        "codec",
        [
            named("gzip", level=10),
            named("gzip", level=-1),
            named("zstd", level=23),
            named("zstd", checksum=1),
            named("blosc", clevel=10),
            named("blosc", cname="lzma"),
            named("blosc", shuffle=1),
            named("bytes", endian="middle"),
            named("transpose", order=[0, 0]),
            named("transpose", order=[0]),
            named("transpose", order="A"),
            named("sharding_indexed", chunk_shape=[3, 6]),
            named("sharding_indexed", chunk_shape=[0, 6]),
            named("sharding_indexed", chunk_shape=[2, 3], index_location="middle"),
            named("crc32c", level=1),
            named("gzip", level=1, strategy="fast"),
            {"configuration": {}},
            "bzip3",
        ],
        ids=str,
    )
    def test_what_is_out_of_range_is_refused(self, library, codec):
        metadata = {"codecs": [codec], "chunk_grid": named("regular", chunk_shape=[4, 6])}
        with pytest.raises((ValueError, NotImplementedError)):
            created(library, metadata=metadata)

    @pytest.mark.parametrize(
        "codecs",
        [
            ["bytes", "bytes"],
            ["gzip", "bytes"],
            ["bytes", named("transpose", order=[1, 0])],
            [named("sharding_indexed", chunk_shape=[2, 3]), "bytes"],
        ],
        ids=["twice", "after bytes", "array after bytes", "after a shard"],
    )
    def test_the_order_of_kinds_is_kept(self, library, codecs):
        metadata = {"codecs": codecs, "chunk_grid": named("regular", chunk_shape=[4, 6])}
        with pytest.raises(ValueError, match=r"[Cc]odec|array|bytes"):
            created(library, metadata=metadata)


class TestKeys:
    @pytest.mark.parametrize(
        ("encoding", "key"),
        [
            ({"name": "default"}, b"c/1/2"),
            (named("default", separator="/"), b"c/1/2"),
            (named("default", separator="."), b"c.1.2"),
            ({"name": "v2"}, b"1.2"),
            (named("v2", separator="."), b"1.2"),
            (named("v2", separator="/"), b"1/2"),
        ],
        ids=str,
    )
    def test_of_chunks(self, library, encoding, key):
        grid = named("regular", chunk_shape=[2, 2])
        store = created(library, metadata={"chunk_grid": grid, "chunk_key_encoding": encoding})
        store[2, 4] = 1
        assert sorted(store.kvstore.list().result()) == sorted([key, b"zarr.json"])

    @pytest.mark.parametrize(
        ("encoding", "key"),
        [("default", b"c"), ("v2", b"0")],
    )
    def test_of_the_only_chunk_without_dimensions(self, library, encoding, key):
        store = created(library, metadata={"chunk_key_encoding": {"name": encoding}}, shape=[])
        store[()] = 1
        assert sorted(store.kvstore.list().result()) == sorted([key, b"zarr.json"])

    @pytest.mark.parametrize("encoding", [{"name": "v3"}, named("default", separator="-")], ids=str)
    def test_others_are_refused(self, library, encoding):
        with pytest.raises((ValueError, NotImplementedError)):
            created(library, metadata={"chunk_key_encoding": encoding})


class TestMembers:
    @pytest.mark.parametrize(
        ("path", "members"),
        [("memory://", {"path": "a/b"}), ("memory://a/", {"path": "b"}), ("memory://a/b", {})],
    )
    def test_the_path_is_joined(self, library, path, members):
        where = {"driver": "zarr3", "kvstore": path, **members}
        store = created(library, where=where)
        assert store.kvstore.path == "a/b/"

    @pytest.mark.parametrize("member", ["attributes", "dimension_names", "codecs"])
    def test_constraints_must_hold_for_what_exists(self, library, member):
        value: Any = {
            "attributes": {"a": 1},
            "dimension_names": ["a", "b"],
            "codecs": ["bytes", "gzip"],
        }[member]
        context = library.Context()
        created(library, context=context)
        spec = {**WHERE, "metadata": {member: value}}
        with pytest.raises(ValueError, match=member.rstrip("s")):
            library.open(spec, context=context).result()

    @pytest.mark.parametrize(
        "change",
        [
            {"zarr_format": 2},
            {"node_type": "group"},
            {"shape": [-1, 2, 3]},
            {"data_type": "uint12"},
            {"chunk_grid": {"name": "triangular"}},
            {"codecs": "bytes"},
            {"dimension_names": ["x"]},
            {"fill_value": "seven"},
            {"fill_value": -1},
            {"attributes": []},
            {"storage_transformers": [{"name": "cache"}]},
            {"unknown": {"name": "thing"}},
        ],
        ids=str,
    )
    def test_a_document_that_is_none_is_refused(self, library, change):
        with pytest.raises((ValueError, NotImplementedError)):
            stored(library, {**DOCUMENT, **change})

    @pytest.mark.parametrize(
        "member", ["zarr_format", "node_type", "shape", "data_type", "chunk_grid", "codecs",
                   "chunk_key_encoding", "fill_value"],
    )  # fmt: skip
    def test_members_that_must_be_there(self, library, member):
        document = {name: value for name, value in DOCUMENT.items() if name != member}
        if (library, member) == (ts, "fill_value"):
            # The reference refuses what early releases of zarr-python wrote; it is read here.
            assert stored(library, document)[0, 0, 0].read().result() == 0
            return
        with pytest.raises(ValueError, match=member):
            stored(library, document)

    def test_what_need_not_be_understood_is_kept(self, library):
        document = {
            **DOCUMENT, "hint": {"must_understand": False, "size": 3}, "attributes": {"a": [1]},
        }  # fmt: skip
        store = stored(library, document)
        resized = store.resize(exclusive_max=[7, None, None]).result()
        found = document_of(resized)
        assert found["attributes"] == {"a": [1]}
        assert found["shape"] == [7, 2000, 3000]
        assert found["hint"] == document["hint"]
