"""The driver document of zarr: every example of it, and every row of its tables."""

import json
from typing import Any

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import SpecError

WHERE = {"driver": "zarr", "kvstore": "memory://"}


SCALAR = {
    "zarr_format": 2,
    "shape": [1000, 2000, 3000],
    "chunks": [100, 200, 300],
    "dtype": "<u2",
    "compressor": None,
    "fill_value": 42,
    "order": "C",
    "filters": None,
}
BLOSC = {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": 1}
STRUCTURED = {
    **SCALAR,
    "dtype": [["x", "<u2", [2, 3]], ["y", "<f4", [5]]],
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    "fill_value": "AQACAAMABAAFAAYAAAAgQQAAMEEAAEBBAABQQQAAYEE=",
    "order": "F",
}


def metadata_of(store: ts.TensorStore) -> dict[str, Any]:
    metadata = store.spec().to_json()["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def schema(chunk: list[int], order: list[int], inner: list[int], **members: object) -> dict:
    rank = len(chunk)
    return {
        "chunk_layout": {
            "grid_origin": [0] * rank,
            "inner_order": order,
            "read_chunk": {"shape": chunk},
            "write_chunk": {"shape": chunk},
        },
        "domain": {
            "exclusive_max": [[1000], [2000], [3000], *inner],
            "inclusive_min": [0] * rank,
        },
        "rank": rank,
        **members,
    }


# metadata, field, schema
SCHEMAS = [
    (
        SCALAR,
        None,
        schema(
            [100, 200, 300], [0, 1, 2], [], dtype="uint16", fill_value=42,
            codec={"compressor": None, "driver": "zarr", "filters": None},
        ),
    ),
    (
        STRUCTURED,
        "x",
        schema(
            [100, 200, 300, 2, 3], [2, 1, 0, 3, 4], [2, 3], dtype="uint16",
            fill_value=[[1, 2, 3], [4, 5, 6]],
            codec={"compressor": BLOSC, "driver": "zarr", "filters": None},
        ),
    ),
    (
        STRUCTURED,
        "y",
        schema(
            [100, 200, 300, 5], [2, 1, 0, 3], [5], dtype="float32",
            fill_value=[10.0, 11.0, 12.0, 13.0, 14.0],
            codec={"compressor": BLOSC, "driver": "zarr", "filters": None},
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "field", "expected"), SCHEMAS)
def test_metadata_maps_to_a_schema(metadata: dict, field: str | None, expected: dict) -> None:
    members = {} if field is None else {"field": field}
    store = ts.KvStore.open("memory://").result()
    store[".zarray"] = json.dumps(metadata)

    spec = {"driver": "zarr", "kvstore": store.spec().to_json(), **members}
    opened = ts.open({**spec, "metadata": metadata}, create=True).result()

    assert opened.schema.to_json() == expected
    if field is not None:
        assert opened.spec().to_json()["field"] == field


def test_the_example_of_a_spec_is_one() -> None:
    example: dict[str, Any] = {
        "driver": "zarr",
        "kvstore": {"driver": "gcs", "bucket": "my-bucket", "path": "path/to/array/"},
        "key_encoding": ".",
        "metadata": {
            "shape": [1000, 1000],
            "chunks": [100, 100],
            "dtype": "<i2",
            "order": "C",
            "compressor": {"id": "blosc", "shuffle": -1, "clevel": 5, "cname": "lz4"},
        },
    }
    example["kvstore"] = "memory://path/to/array/"

    opened = ts.open(example, create=True).result()

    assert (opened.dtype, opened.shape) == (ts.int16, (1000, 1000))
    assert metadata_of(opened)["dimension_separator"] == "."


# as written, as printed
COMPRESSORS = [
    ({"id": "gzip", "level": 9}, {"id": "gzip", "level": 9}),
    ({"id": "gzip"}, {"id": "gzip", "level": 1}),
    ({"id": "zlib"}, {"id": "zlib", "level": 1}),
    (
        {"id": "blosc", "cname": "blosclz", "clevel": 9, "shuffle": 2},
        {"blocksize": 0, "clevel": 9, "cname": "blosclz", "id": "blosc", "shuffle": 2},
    ),
    (
        {"id": "blosc"},
        {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": -1},
    ),
    ({"id": "bz2"}, {"id": "bz2", "level": 1}),
    ({"id": "zstd", "level": 6}, {"id": "zstd", "level": 6}),
    ({"id": "zstd"}, {"id": "zstd", "level": 1}),
    (None, None),
]


@pytest.mark.parametrize(("written", "printed"), COMPRESSORS)
def test_compressors_have_their_members_and_defaults(written: object, printed: object) -> None:
    codec = ts.CodecSpec({"driver": "zarr", "compressor": written})
    assert codec.to_json() == {"compressor": printed, "driver": "zarr", "filters": None}
    opened = ts.open(WHERE, create=True, dtype="uint8", shape=[20], codec=codec).result()

    opened[...] = np.arange(20, dtype=np.uint8)

    assert opened.read().result().tolist() == list(range(20))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("zlib", 0, 9), ("gzip", 0, 9), ("bz2", 1, 9), ("zstd", -131072, 22)],
)
def test_levels_have_their_range(name: str, low: int, high: int) -> None:
    for level in (low, high):
        ts.CodecSpec({"driver": "zarr", "compressor": {"id": name, "level": level}})
    for level in (low - 1, high + 1):
        with pytest.raises(SpecError, match=r"compressor\.level"):
            ts.CodecSpec({"driver": "zarr", "compressor": {"id": name, "level": level}})


# TensorStore data type, little endian, big endian
DATA_TYPES = [
    ("bool", "|b1", None),
    ("int4", "int4", None),
    ("uint8", "|u1", None),
    ("int8", "|i1", None),
    ("uint16", "<u2", ">u2"),
    ("int16", "<i2", ">i2"),
    ("uint32", "<u4", ">u4"),
    ("int32", "<i4", ">i4"),
    ("uint64", "<u8", ">u8"),
    ("int64", "<i8", ">i8"),
    ("float8_e4m3fn", "float8_e4m3fn", None),
    ("float8_e4m3fnuz", "float8_e4m3fnuz", None),
    ("float8_e4m3b11fnuz", "float8_e4m3b11fnuz", None),
    ("float8_e5m2", "float8_e5m2", None),
    ("float8_e5m2fnuz", "float8_e5m2fnuz", None),
    ("float16", "<f2", ">f2"),
    ("bfloat16", "bfloat16", None),
    ("float32", "<f4", ">f4"),
    ("float64", "<f8", ">f8"),
    ("complex64", "<c8", ">c8"),
    ("complex128", "<c16", ">c16"),
]


@pytest.mark.parametrize(("name", "little", "big"), DATA_TYPES)
def test_data_types_map_to_each_other(name: str, little: str, big: str | None) -> None:
    created = ts.open(WHERE, create=True, dtype=name, shape=[3]).result()
    assert metadata_of(created)["dtype"] == little
    for encoded in (little, big):
        if encoded is None:
            continue
        spec = {**WHERE, "metadata": {"dtype": encoded, "shape": [3], "compressor": None}}
        opened = ts.open(spec, create=True).result()
        opened[...] = np.array([0, 1, 1]).astype(ts.dtype(name).numpy_dtype)

        assert opened.dtype == ts.dtype(name)
        assert opened.read().result().astype(complex).tolist() == [0, 1, 1]
        assert opened.kvstore is not None
        stored = bytes(opened.kvstore["0"])
        size = len(stored) // 3
        one = stored[size : 2 * size]
        swapped = ts.dtype(name).array(np.ones(1, ts.dtype(name).numpy_dtype)).tobytes()
        assert one == swapped or (encoded == big and one != swapped)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("<u2", [[100], [200]]), ([["x", "<u2", [2, 3]]], [[100], [200], 2, 3])]
)
def test_the_domain_has_the_dimensions_of_the_elements_too(dtype: object, shape: list) -> None:
    spec = {**WHERE, "metadata": {"dtype": dtype, "shape": [100, 200], "chunks": [100, 200]}}

    opened = ts.open(spec, create=True).result()

    assert opened.domain == ts.IndexDomain(json={"shape": shape})
    assert opened.chunk_layout.write_chunk.shape == tuple(
        extent[0] if isinstance(extent, list) else extent for extent in shape
    )


# data type, order, inner order
ORDERS = [
    ("<u2", "C", [0, 1, 2]),
    ("<u2", "F", [2, 1, 0]),
    ([["x", "<u2", [2, 3]]], "C", [0, 1, 2, 3, 4]),
    ([["x", "<u2", [2, 3]]], "F", [2, 1, 0, 3, 4]),
]


@pytest.mark.parametrize(("dtype", "order", "inner_order"), ORDERS)
def test_the_inner_order_ends_with_the_dimensions_of_the_elements(
    dtype: object, order: str, inner_order: list[int]
) -> None:
    spec = {**WHERE, "metadata": {"dtype": dtype, "shape": [4, 5, 6], "order": order}}

    opened = ts.open(spec, create=True).result()

    assert list(opened.chunk_layout.inner_order or ()) == inner_order


def test_without_a_fill_value_zeros_are_stored_as_anything_else() -> None:
    spec = {**WHERE, "metadata": {"dtype": "<u2", "shape": [3]}}
    opened = ts.open(spec, create=True).result()

    opened[...] = 0

    assert opened.fill_value is None
    assert opened.kvstore is not None
    assert "0" in {bytes(key).decode() for key in opened.kvstore.list().result()}
    filled = ts.open(spec, create=True, fill_value=0).result()
    filled[...] = 0
    assert filled.kvstore is not None
    assert [bytes(key) for key in filled.kvstore.list().result()] == [b".zarray"]


@pytest.fixture(params=[ts, reference], ids=lambda library: library.__name__)
def library(request):
    return request.param


def created(library, where=WHERE, **options):
    asked = {"dtype": library.uint16, "shape": [4, 6], "context": library.Context(), **options}
    return library.open(where, create=True, **asked).result()


class TestMembers:
    """The members of a spec: what each does, in the reference and here."""

    def test_have_their_defaults(self, library):
        members = library.Spec({**WHERE, "kvstore": "memory://a"}).to_json(include_defaults=True)
        assert members["metadata"] == {}
        assert members["kvstore"]["path"] == "a/"
        assert {name: members[name] for name in sorted(members) if name != "kvstore"} == {
            "assume_cached_metadata": False,
            "assume_metadata": False,
            "cache_pool": "cache_pool",
            "context": {},
            "data_copy_concurrency": "data_copy_concurrency",
            "delete_existing": False,
            "driver": "zarr",
            "fill_missing_data_reads": True,
            "metadata": {},
            "recheck_cached_data": True,
            "recheck_cached_metadata": "open",
            "schema": {},
            "store_data_equal_to_fill_value": False,
        }

    @pytest.mark.parametrize(
        ("kvstore", "path"), [("memory://", "a/b"), ("memory://a/", "b"), ("memory://a/b", "")]
    )
    def test_path_is_joined_to_the_stores(self, library, kvstore, path):
        store = created(library, {"driver": "zarr", "kvstore": kvstore, "path": path})
        assert store.kvstore.path == "a/b/"

    @pytest.mark.parametrize(
        ("given", "rank"),
        [({"rank": 2}, 2), ({"transform": {"input_rank": 2}}, 2), ({"schema": {"rank": 2}}, 2)],
    )
    def test_rank_must_be_the_arrays(self, library, given, rank):
        assert library.Spec({**WHERE, **given}).rank == rank
        context = library.Context()
        created(library, context=context, shape=[4, 6, 8])
        with pytest.raises(ValueError, match=r"[Rr]ank"):
            library.open({**WHERE, **given}, context=context).result()

    @pytest.mark.parametrize("rank", [-1, 33, "2"])
    def test_rank_has_its_range(self, library, rank):
        with pytest.raises(ValueError, match="rank"):
            library.Spec({**WHERE, "rank": rank})

    def test_open_and_create_say_what_may_be_there(self, library):
        context = library.Context()
        metadata = {"shape": [3], "dtype": "<i2"}
        new = {**WHERE, "metadata": metadata, "create": True}
        with pytest.raises(ValueError, match=r"\.zarray|NOT_FOUND"):
            library.open(WHERE, context=context).result()
        library.open(new, context=context).result()[...] = 5
        with pytest.raises(ValueError, match=r"(?i)exist"):
            library.open(new, context=context).result()
        found = library.open({**new, "open": True}, context=context).result()
        assert found.read().result().tolist() == [5, 5, 5]
        fresh = library.open({**new, "delete_existing": True}, context=context).result()
        assert fresh.read().result().tolist() == [0, 0, 0]

    @pytest.mark.parametrize(
        "flags",
        [
            {"delete_existing": True},
            {"delete_existing": True, "create": True, "open": True},
        ],
        ids=str,
    )
    def test_open_modes_that_contradict_themselves_are_refused(self, library, flags):
        with pytest.raises(ValueError, match="delete_existing"):
            library.open({**WHERE, "metadata": {"shape": [3], "dtype": "<i2"}, **flags}).result()

    @pytest.mark.parametrize("member", ["assume_metadata", "assume_cached_metadata"])
    def test_metadata_is_assumed_of_what_is_opened_only(self, library, member):
        flags = {"create": True, "delete_existing": True, member: True}
        with pytest.raises(ValueError, match=r"assume|delete_existing"):
            library.open({**WHERE, "metadata": {"shape": [3], "dtype": "<i2"}, **flags}).result()

    @pytest.mark.parametrize("member", ["assume_metadata", "assume_cached_metadata"])
    def test_metadata_may_be_assumed(self, library, member):
        metadata = {"shape": [4], "dtype": "<i2", "compressor": None, "chunks": [4]}
        spec = {**WHERE, "open": True, "metadata": metadata, member: True}
        store = library.open(spec, context=library.Context()).result()
        store[...] = 7
        assert store.kvstore.list().result() == [b"0"]
        if member == "assume_metadata":
            with pytest.raises(ValueError, match=r"resize|assume"):
                store.resize(exclusive_max=[9]).result()

    def test_missing_chunks_are_errors_where_they_are_not_filled(self, library):
        store = created(library, {**WHERE, "fill_missing_data_reads": False})
        with pytest.raises(ValueError, match=r"0\.0"):
            store.read().result()
        store[0, 0] = 1
        assert store[0].read().result().tolist() == [1, 0, 0, 0, 0, 0]

    @pytest.mark.parametrize("demanded", [False, True])
    def test_chunks_of_the_fill_value_are_stored_on_demand(self, library, demanded):
        where = {**WHERE, "store_data_equal_to_fill_value": demanded}
        store = created(library, where, fill_value=9)
        store[...] = 9
        assert (b"0.0" in store.kvstore.list().result()) is demanded

    @pytest.mark.parametrize(
        ("members", "key"),
        [
            ({}, b"1.2"),
            ({"key_encoding": "."}, b"1.2"),
            ({"key_encoding": "/"}, b"1/2"),
            ({"metadata": {"dimension_separator": "."}}, b"1.2"),
            ({"metadata": {"dimension_separator": "/"}}, b"1/2"),
        ],
        ids=str,
    )
    def test_keys_are_encoded_as_the_spec_says(self, library, members, key):
        metadata = {"chunks": [2, 2], **members.get("metadata", {})}
        store = created(library, {**WHERE, **members, "metadata": metadata})
        store[2, 4] = 1
        assert sorted(store.kvstore.list().result()) == sorted([b".zarray", key])

    def test_two_encodings_of_keys_contradict_each_other(self, library):
        spec = {**WHERE, "key_encoding": ".", "metadata": {"dimension_separator": "/"}}
        with pytest.raises(ValueError, match=r"key_encoding|dimension_separator"):
            created(library, spec)

    def test_metadata_may_have_another_key(self, library):
        context = library.Context()
        spec = {**WHERE, "metadata_key": "zarray"}
        store = created(library, spec, context=context)
        assert store.kvstore.list().result() == [b"zarray"]
        assert library.open(spec, context=context).result().shape == (4, 6)
        with pytest.raises(ValueError, match=r"\.zarray"):
            library.open(WHERE, context=context).result()

    def test_a_field_must_be_said_where_there_are_several(self, library):
        dtype = [["x", "<u2"], ["y", "<f4"]]
        metadata = {"dtype": dtype, "shape": [3]}
        members = {"metadata": metadata, "field": "y"}
        context = library.Context()
        store = created(library, {**WHERE, **members}, context=context, dtype=None, shape=None)
        assert store.dtype == library.float32
        with pytest.raises(ValueError, match=r"[\"]z"):
            library.open({**WHERE, "field": "z"}, context=context).result()
        found = library.open({**WHERE, "field": "x"}, context=context).result()
        assert found.dtype == library.uint16

    def test_dimensions_have_labels_by_a_transform_only(self, library):
        context = library.Context()
        created(library, context=context)
        transform = {"input_labels": ["x", "y"], "input_inclusive_min": [10, 20],
                     "input_shape": [4, 6],
                     "output": [{"input_dimension": 0, "offset": -10},
                                {"input_dimension": 1, "offset": -20}]}  # fmt: skip
        view = library.open({**WHERE, "transform": transform}, context=context).result()
        assert str(view.domain) == '{ "x": [10, 14), "y": [20, 26) }'
        assert library.open(WHERE, context=context).result().domain.labels == ("", "")


class TestSchema:
    """What a schema may ask of a new array, in the reference and here."""

    def test_data_type_is_chosen_in_native_order(self, library):
        store = created(library)
        assert json.loads(store.kvstore[".zarray"])["dtype"] == np.dtype("uint16").str

    def test_there_are_no_codec_chunks(self):
        # The reference takes them and forgets them.
        layout = ts.ChunkLayout(codec_chunk_shape=[2, 2])
        with pytest.raises(ValueError, match="codec_chunk"):
            created(ts, chunk_layout=layout)
        wish = ts.ChunkLayout(codec_chunk_shape_soft_constraint=[2, 2])
        assert created(ts, chunk_layout=wish).chunk_layout.write_chunk.shape == (4, 6)

    def test_read_and_write_chunks_are_the_same(self, library):
        layouts = [
            library.ChunkLayout(read_chunk_shape=[2, 3]),
            library.ChunkLayout(write_chunk_shape=[2, 3]),
            library.ChunkLayout(read_chunk_shape=[2, 0], write_chunk_shape=[0, 3]),
        ]
        for each in layouts:
            layout = created(library, chunk_layout=each).chunk_layout
            assert layout.read_chunk.shape == layout.write_chunk.shape == (2, 3)
        apart = library.ChunkLayout(read_chunk_shape=[2, 3], write_chunk_shape=[4, 6])
        with pytest.raises(ValueError, match="chunk"):
            created(library, chunk_layout=apart)

    def test_the_grid_begins_at_zero(self, library):
        with pytest.raises(ValueError, match="origin"):
            created(library, chunk_layout=library.ChunkLayout(grid_origin=[1, 0]))

    @pytest.mark.parametrize(("order", "written"), [([0, 1], "C"), ([1, 0], "F")])
    def test_inner_orders_are_c_or_fortran(self, library, order, written):
        store = created(library, chunk_layout=library.ChunkLayout(inner_order=order))
        assert json.loads(store.kvstore[".zarray"])["order"] == written
        layout = library.ChunkLayout(inner_order=[1, 0, 2])
        with pytest.raises(ValueError, match="order"):
            created(library, shape=[4, 4, 4], chunk_layout=layout)

    def test_the_codec_is_of_this_driver(self, library):
        codec = library.CodecSpec({"driver": "zarr", "compressor": None})
        assert json.loads(created(library, codec=codec).kvstore[".zarray"])["compressor"] is None
        with pytest.raises(ValueError, match="zarr3"):
            created(library, codec=library.CodecSpec({"driver": "zarr3"}))

    def test_the_fill_value_is_a_scalar_for_scalars(self, library):
        assert created(library, fill_value=5).fill_value == 5
        with pytest.raises(ValueError, match="fill"):
            created(library, fill_value=[5] * 6)

    def test_and_broadcasts_to_an_element_of_several(self, library):
        where = {**WHERE, "metadata": {"dtype": [["x", "<u2", [2, 3]]], "shape": [4]}}
        store = created(library, where, shape=None, fill_value=[1, 2, 3])
        assert store[0].read().result().tolist() == [[1, 2, 3], [1, 2, 3]]
        with pytest.raises(ValueError, match=r"fill|broadcast"):
            created(library, where, shape=None, fill_value=[1, 2])

    def test_chunked_dimensions_can_be_resized_those_of_an_element_cannot(self, library):
        where = {**WHERE, "metadata": {"dtype": [["x", "<u2", [2, 3]]], "shape": [4]}}
        store = created(library, where, shape=None)
        assert store.domain.implicit_upper_bounds == (True, False, False)
        assert store.resize(exclusive_max=[9, None, None]).result().shape == (9, 2, 3)
        with pytest.raises(ValueError, match=r"dimension 1|bound"):
            store.resize(exclusive_max=[None, 5, None]).result()
