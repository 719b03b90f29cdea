"""n5: every data type with every compression, what is written by one read by the other."""

import json

import numpy as np
import pytest

from tests.parity.libraries import document, ours, same, sample, spec_of, stored, wheel

DATA_TYPES = [
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
]  # fmt: skip
COMPRESSIONS = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip"},
    "gzip_1": {"type": "gzip", "level": 1},
    "zlib": {"type": "gzip", "level": 9, "useZlib": True},
    "bzip2": {"type": "bzip2"},
    "bzip2_1": {"type": "bzip2", "blockSize": 1},
    "xz": {"type": "xz", "preset": 1},
    "zstd": {"type": "zstd"},
    "blosc_none": {"type": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 0},
    "blosc_byte": {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 64},
    "blosc_bit": {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2},
    "automatic": None,
}
SHAPE = (7, 9)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("dtype", DATA_TYPES)
def test_matrix(tmp_path, dtype, compression):
    asked = {"dimensions": SHAPE, "blockSize": [3, 4], "dataType": dtype}
    if COMPRESSIONS[compression] is not None:
        asked["compression"] = COMPRESSIONS[compression]
    theirs = spec_of("n5", tmp_path / "theirs", metadata=asked)
    mine = spec_of("n5", tmp_path / "mine", metadata=asked)
    values = sample(dtype, SHAPE)
    values[3:6, 4:8] = 0
    wheel.open(theirs, create=True).result()[...] = values
    ours.open(mine, create=True).result()[...] = values

    same(ours.open(theirs).result().read().result(), values)
    same(wheel.open(mine).result().read().result(), values)
    assert stored(tmp_path / "mine") == stored(tmp_path / "theirs")
    assert document(tmp_path / "mine", "attributes.json") == document(
        tmp_path / "theirs", "attributes.json"
    )
    if compression in ("raw", "bzip2"):
        for key in stored(tmp_path / "mine"):
            written = [(tmp_path / side / key).read_bytes() for side in ("mine", "theirs")]
            assert written[0] == written[1], key

    region = (slice(1, 6), slice(3, 9))
    change = sample(dtype, (5, 6), 1)
    values[region] = change
    wheel.open(mine).result()[region] = change
    ours.open(theirs).result()[region] = change
    same(ours.open(mine).result().read().result(), values)
    same(wheel.open(theirs).result().read().result(), values)


@pytest.mark.parametrize("shape", [(), (1,), (11,), (0, 3), (4, 5, 6), (2, 1, 3, 2)])
def test_ranks(tmp_path, shape):
    values = sample("int16", shape) if shape else np.array(5, "int16")
    layout = {"chunk": {"shape": [2] * len(shape)}} if shape else {}
    members = {"dtype": "int16", "schema": {"domain": {"shape": shape}, "chunk_layout": layout}}
    for writer, reader, name in ((ours, wheel, "mine"), (wheel, ours, "theirs")):
        spec = spec_of("n5", tmp_path / name, **members)
        writer.open(spec, create=True).result()[...] = values
        same(reader.open(spec).result().read().result(), values)
    assert stored(tmp_path / "mine") == stored(tmp_path / "theirs")


@pytest.mark.parametrize("after", [[2, 3], [9, 9], [7, 0], [3, 8]])
def test_resizing(tmp_path, after):
    asked = {
        "dimensions": SHAPE, "blockSize": [3, 4], "dataType": "uint16", "note": [1],
        "axes": ["x", ""], "compression": {"type": "raw"},
    }  # fmt: skip
    found = []
    for library in (ours, wheel):
        path = tmp_path / library.__name__
        array = library.open(spec_of("n5", path, metadata=asked), create=True).result()
        array[...] = sample("uint16", SHAPE)
        array = array.resize(exclusive_max=after).result()
        array = array.resize(exclusive_max=[8, 8]).result()
        blocks = {key: (path / key).read_bytes() for key in stored(path)}
        found.append((blocks, array.read().result().tolist()))
    assert found[0] == found[1]


BASE = {
    "dimensions": [5, 4], "blockSize": [3, 2], "dataType": "uint16", "compression": {"type": "raw"},
}  # fmt: skip
PLACES = {"axes": ["x", "y"], "units": ["nm", "um"], "resolution": [4, 3.5]}
SHAPED = {"domain": {"shape": [300, 400]}}
#: What can be asked of an array; some of it cannot be had.
ASKED = [
    {},
    {"rank": 2},
    {"dtype": "uint8"},
    {"dtype": "bool"},
    {"schema": {"rank": 2, "chunk_layout": {"inner_order": [0, 1]}}},
    {"schema": {"codec": {"driver": "zarr"}}},
    {"schema": {"codec": {"driver": "n5"}}},
    {"schema": {"domain": {"labels": ["x", "y"]}}},
    {"schema": {"dimension_units": ["3nm", None]}},
    {"schema": {"fill_value": 1}},
    {"schema": SHAPED},
    {"dtype": "float32", "schema": {"domain": {"shape": []}}},
    {"dtype": "float32", "schema": {"rank": 0}},
    {"dtype": "float32", "rank": 0},
    {"dtype": "uint8", "schema": SHAPED},
    {"dtype": "uint8", "schema": {**SHAPED, "fill_value": 0}},
    {"dtype": "uint8", "schema": {"domain": {"inclusive_min": [1], "exclusive_max": [3]}}},
    *(
        {"dtype": "uint8", "schema": {**SHAPED, "chunk_layout": layout}}
        for layout in (
            {"inner_order": [1, 0]},
            {"inner_order": [0, 1]},
            {"inner_order_soft_constraint": [0, 1]},
            {"chunk": {"shape": [30, 40]}},
            {"write_chunk": {"shape": [30, 40]}, "read_chunk": {"shape": [10, 10]}},
            {"codec_chunk": {"shape": [30, 40]}},
            {"write_chunk": {"elements": 100}},
            {"read_chunk": {"elements_soft_constraint": 100, "aspect_ratio": [2, 1]}},
            {"write_chunk": {"shape": [0, -1]}},
            {"grid_origin": [1, 0]},
        )
    ),
    {
        "dtype": "float32",
        "schema": {
            "domain": {"shape": [3, 4], "labels": ["a", ""]},
            "dimension_units": ["4nm", None],
        },
    },
    {
        "dtype": "float32",
        "schema": {
            "domain": {"shape": [3]},
            "codec": {"driver": "n5", "compression": {"type": "gzip", "level": 3}},
        },
    },
    {"metadata": {}},
    {"metadata": {"axes": ["", ""]}},
    {"metadata": {"axes": ["x", "y"]}},
    {"metadata": {"axes": ["x", "x"]}},
    {"metadata": {"units": ["a", "b"]}},
    {"metadata": {"resolution": [1, 2]}},
    {"metadata": {"blockSize": [3, 2]}},
    {"metadata": {"dataType": "uint8"}},
    {"metadata": {"dataType": "uint8"}, "dtype": "int8"},
    {"metadata": {"dimensions": [3]}, "rank": 2},
    {"metadata": {"dimensions": [3], "blockSize": [3, 4]}},
    {"metadata": {"compression": {"type": "zstd"}}},
    {"metadata": {"compression": {"type": "blosc"}}},
    {
        "metadata": {"compression": {"type": "raw"}},
        "schema": {"codec": {"driver": "n5", "compression": {"type": "gzip"}}},
    },
    {"metadata": {"foo": {"b": 1, "a": 2}, "x": None}},
    {"metadata": {"resolution": [1, 2]}, "schema": {"dimension_units": ["3nm", None]}},
    {"metadata": {"units": ["a", "b"]}, "schema": {"dimension_units": ["3a", None]}},
    {"metadata": {"dimensions": [3, 4]}, "schema": {"domain": {"shape": [3, 5]}}},
    {"metadata": {"dimensions": [3, 4]}, "schema": {"domain": {"labels": ["a", "y"]}}},
    *({"metadata": {**BASE, **change}} for change in (
        {}, {"dimensions": [0, 4]}, {"dimensions": [2**40, 2**50]}, {"blockSize": [30000, 300000]},
        PLACES, {"units": ["nm", ""]}, {"resolution": [4, 3.5]}, {"axes": ["", "y"]},
        {"extra": {"a": [1, 2]}, "pi": 3.0, "block_size": [3], "none": None},
        {"compression": {"type": "gzip", "useZlib": True}}, {"compression": {"type": "lz5"}},
    )),
    {"metadata": {**BASE, **PLACES}, "schema": {"dimension_units": ["4nm", None]}},
    {"metadata": {**BASE, **PLACES}, "schema": {"dimension_units": ["5nm", None]}},
    {"metadata": {**BASE, "resolution": [4, 3.5]}, "schema": {"dimension_units": ["4nm", None]}},
    {"metadata": BASE, "path": "x/y", "recheck_cached_data": "open"},
    {"metadata": BASE, "dtype": "uint16", "rank": 2, "store_data_equal_to_fill_value": True},
    {"metadata": BASE, "fill_value": 1},
    {"metadata": 5},
]  # fmt: skip


def in_memory(members):
    return {"driver": "n5", "kvstore": "memory://a/", **members}


def told_of_spec(library, members):
    try:
        spec = library.Spec(in_memory(members))
        return {
            "json": spec.to_json(),
            "full": spec.to_json(include_defaults=True),
            "schema": spec.schema.to_json(),
            "domain": repr(spec.domain),
            "units": repr(spec.dimension_units),
            "layout": repr(spec.chunk_layout),
            "codec": repr(spec.codec),
            "fill_value": spec.fill_value,
            "rank": spec.rank,
            "url": spec.url,
        }
    except ValueError:
        return "refused"


def told_of_new_array(library, members):
    context = library.Context()
    try:
        array = library.open(in_memory(members), create=True, context=context).result()
    except ValueError:
        return "refused"
    return {
        "document": json.loads(bytes(array.kvstore["attributes.json"])),
        "spec": array.spec().to_json(),
        "full": array.spec().to_json(include_defaults=True),
        "minimal": array.spec(minimal_spec=True).to_json(),
        "schema": array.schema.to_json(),
        "domain": repr(array.domain),
        "units": repr(array.dimension_units),
        "fill_value": array.fill_value,
        "url": array.url,
        "repr": repr(array),
    }


@pytest.mark.parametrize("members", ASKED, ids=lambda members: json.dumps(members)[:60])
@pytest.mark.parametrize("told", [told_of_spec, told_of_new_array])
def test_the_same_is_reported_for_what_is_asked(told, members):
    assert told(ours, members) == told(wheel, members)


def header(*shape, mode=0, rank=None):
    numbers = [np.array([mode, len(shape) if rank is None else rank], ">u2").tobytes()]
    return b"".join([*numbers, np.array(shape, ">u4").tobytes()])


STORED = np.arange(1, 7, dtype=">u2").tobytes()
#: Blocks of an array with blockSize [3, 2].
BLOCKS = {
    "whole": header(3, 2) + STORED,
    "smaller": header(2, 2) + STORED[:8],
    "smaller in the other dimension": header(3, 1) + STORED[:6],
    "smaller, but as much": header(2, 2) + STORED,
    "of no extent": header(0, 2),
    "of no extent, but something": header(0, 2) + STORED,
    "too large": header(4, 2) + STORED,
    "much too large": header(2**32 - 1, 2) + STORED,
    "too short": header(3, 2) + STORED[:-1],
    "too long": header(3, 2) + STORED + b"x",
    "only a header": header(3, 2),
    "not even a header": header(3, 2)[:-1],
    "nothing": b"",
    "of one dimension": header(3) + STORED,
    "of three": header(3, 2, 1) + STORED,
    "of variable length": header(3, 2, mode=1) + b"\0\0\0\6" + STORED,
    "of objects": header(mode=2, rank=0) + b"\0\0\0\6" + STORED,
    "of another mode": header(3, 2, mode=3) + STORED,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_same_is_read_of_a_block(name):
    found = []
    for library in (ours, wheel):
        context = library.Context()
        array = library.open(in_memory({"metadata": BASE}), create=True, context=context).result()
        array.kvstore["0/0"] = BLOCKS[name]
        try:
            found.append(array[:3, :2].read().result().tolist())
        except ValueError as error:
            found.append(("refused", "a/0/0" in str(error)))
    assert found[0] == found[1]


#: What another document has in place of `BASE`'s; None is nothing.
CHANGES = [
    *({name: None} for name in BASE),
    {"dimensions": [5.0, 4]}, {"dimensions": [2**62, 4]}, {"dimensions": [5, 2**63]},
    {"dimensions": [5, -1]}, {"dimensions": [5]}, {"dimensions": [5, True]},
    {"blockSize": [2**30, 1]}, {"blockSize": [2**30, 2]}, {"blockSize": [3, 0]},
    {"dataType": "float16"}, {"dataType": "uint"}, {"compression": "raw"}, {"compression": {}},
    {"compression": {"type": "raw", "level": 1}}, {"compression": {"type": "gzip", "level": -1}},
    {"compression": {"type": "gzip", "level": -2}}, {"compression": {"type": "xz", "preset": 10}},
    {"compression": {"type": "gzip", "level": 1.0}}, {"compression": {"type": "zstd"}},
    {"compression": {"type": "gzip", "useZlib": 1}}, {"compression": {"type": "bzip2", "level": 1}},
    {"axes": ["", ""]}, {"axes": ["x"]}, {"axes": ["x", "x"]}, {"units": ["4nm", ""]},
    {"units": ["nm"]}, {"resolution": [0, -2.5]}, {"resolution": [1, "2"]}, {"n5": "2.5.0"},
    {"compressionType": "gzip"}, {"fill_value": 3}, {"note": {"deep": [{}]}},
]  # fmt: skip


#: Those that TensorStore refuses and that are read here, as other writers leave them.
READ_HERE = (
    {"compression": "raw"},
    {"compression": {"type": "bzip2", "level": 1}},
    {"axes": ["x"]},
    {"units": ["4nm", ""]},
    {"units": ["nm"]},
    {"resolution": [0, -2.5]},
    {"resolution": [1, "2"]},
)


@pytest.mark.parametrize("change", CHANGES, ids=json.dumps)
def test_the_same_is_reported_for_a_document(change):
    text = json.dumps({name: value for name, value in {**BASE, **change}.items() if value})
    found = []
    for library in (ours, wheel):
        context = library.Context()
        store = library.KvStore.open("memory://a/", context=context).result()
        store["attributes.json"] = text
        try:
            array = library.open(in_memory({}), context=context).result()
            found.append((array.spec().to_json(), array.schema.to_json()))
        except ValueError as error:
            found.append(("refused", "attributes.json" in str(error)))
    if change in READ_HERE and found[1] == ("refused", True):
        assert found[0][0]["metadata"]["dimensions"] == BASE["dimensions"]
    else:
        assert found[0] == found[1]
