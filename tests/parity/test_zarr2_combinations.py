"""zarr version 2: data types with filters and compressors, ours against the format's libraries.

What zarr-python can create is written by it. What only its versions before 3 could (most of the
object codecs, nested records) is written by numcodecs, which did the work there, in the order in
which that library called it.
"""

import itertools
import json
import math
from dataclasses import dataclass, field

import numcodecs
import numpy as np
import pytest
import zarr

from tests.parity.libraries import COMMON, document, ours, same, sample, spec_of, stored, wheel

SHAPE = (5, 6)
CHUNKS = (2, 4)

#: So that every chunk is there to be looked at.
KEEP = {"store_data_equal_to_fill_value": True}
RECORD = np.dtype([("x", "<u2", (2,)), ("when", "<M8[s]"), ("name", "<U3"), ("ok", "?")])
NESTED = np.dtype([("p", [("a", "<i2"), ("b", "|S3")]), ("q", [("c", ">f4"), ("d", "|u1")], (2,))])


@dataclass(frozen=True)
class Case:
    """One combination.

    Attributes:
        dtype: as the metadata writes it.
        filters: their configurations.
        compressor: its configuration.
        order: memory order of a chunk.
        fill_value: as the metadata writes it.
        members: of our spec.
    """

    dtype: object
    filters: tuple = ()
    compressor: object = None
    order: str = "C"
    fill_value: object = None
    members: dict = field(default_factory=dict)

    def document(self, shape):
        return {
            "zarr_format": 2,
            "shape": list(shape),
            "chunks": list(CHUNKS),
            "dtype": self.dtype,
            "compressor": self.compressor,
            "fill_value": self.fill_value,
            "order": self.order,
            "filters": [dict(each) for each in self.filters] or None,
            "dimension_separator": ".",
        }

    @property
    def numpy(self):
        return np.dtype(fields(self.dtype))

    def codecs(self):
        """What numcodecs makes of the filters and the compressor."""
        wanted = (*self.filters, *([self.compressor] if self.compressor else ()))
        return [numcodecs.get_codec(dict(each)) for each in wanted]


def fields(dtype):
    """A data type as NumPy takes it."""
    if isinstance(dtype, str):
        return dtype
    return [(each[0], fields(each[1]), *map(tuple, each[2:])) for each in dtype]


def written(dtype):
    """A NumPy type as metadata writes it."""
    if dtype.names is None:
        return dtype.str
    return [
        [name, written(dtype[name].base), *([list(dtype[name].shape)] if dtype[name].shape else [])]
        for name in dtype.names
    ]


SHUFFLE = {"id": "shuffle", "elementsize": 4}
LZ4 = {"id": "lz4", "acceleration": 1}
ZLIB = {"id": "zlib", "level": 1}
ZSTD = {"id": "zstd", "level": 1}
BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
FLETCHER = {"id": "fletcher32"}
UTF8 = {"id": "vlen-utf8"}
BASE64_RECORD = "AQACAAAAAAAAAAAAZQAAAAAAAAAAAAAAAQ=="


def delta(dtype, astype=None):
    return {"id": "delta", "dtype": dtype, "astype": astype or dtype}


def scale(dtype, astype, factor=10, offset=0):
    return {
        "id": "fixedscaleoffset", "dtype": dtype, "astype": astype,
        "scale": factor, "offset": offset,
    }  # fmt: skip


CASES = {
    # every kind of data type without filters
    **{f"plain_{name}": Case(np.dtype(name).str, (), ZSTD, "CF"[i % 2]) for i, name in
       enumerate(COMMON)},
    "time_ns": Case("<M8[ns]", (), BLOSC, fill_value=-(2**63)),
    "time_10us_big": Case(">M8[10us]", (), ZSTD, "F", 5),
    "timedelta_D": Case("<m8[D]", (), None, fill_value=0),
    "text": Case("<U5", (), ZLIB, fill_value="ab"),
    "text_big": Case(">U5", (), None, "F", "é"),
    "chars": Case("|S5", (), ZSTD, fill_value="YWI=", members={"dtype": "S5"}),
    "void": Case("|V3", (), None, "F", "YWJj", members={"dtype": "V3"}),
    "record": Case(written(RECORD), (), None, fill_value=BASE64_RECORD),
    "record_F": Case(written(RECORD), (), None, "F"),
    "record_nested": Case(written(NESTED), (), ZSTD),
    "record_nested_F": Case(written(NESTED), (), BLOSC, "F"),
    # filters of elements
    "delta_i1": Case("|i1", (delta("|i1"),), ZLIB),
    "delta_narrow": Case("<i4", (delta("<i4", "<i2"),), ZSTD),
    "delta_big": Case(">i4", (delta(">i4"),), BLOSC, "F"),
    "delta_float": Case("<f4", (delta("<f4"),)),
    "delta_u8": Case("<u8", (delta("<u8"),), LZ4),
    "delta_other_type": Case("<f4", (delta("<i4"),), ZSTD),
    "delta_timedelta": Case("<m8[us]", (delta("<i8"),), ZSTD),
    "delta_record": Case([["x", "<i4"], ["y", "<i4"]], (delta("<i4"),), ZSTD),
    "scale_f8_u2": Case("<f8", (scale("<f8", "<u2", 10, -500),), ZLIB),
    "scale_f4_i4": Case("<f4", (scale("<f4", "<i4", 100.0),), None, "F"),
    "scale_i2": Case("<i2", (scale("<i2", "<i2", 1, 3),), None),
    "quantize": Case("<f8", ({"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"},)),
    "quantize_tens": Case(
        "<f4", ({"id": "quantize", "digits": -1, "dtype": "<f4", "astype": "<f4"},), ZSTD, "F"
    ),
    "bitround": Case("<f4", ({"id": "bitround", "keepbits": 7},), ZLIB),
    "bitround_double": Case("<f8", ({"id": "bitround", "keepbits": 20},), BLOSC),
    "bitround_all": Case("<f2", ({"id": "bitround", "keepbits": 10},), BLOSC),
    "packbits": Case("|b1", ({"id": "packbits"},), ZLIB),
    "packbits_F": Case("|b1", ({"id": "packbits"},), None, "F"),
    "astype": Case("<f8", ({"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"},), ZSTD),
    "astype_int": Case(">i8", ({"id": "astype", "encode_dtype": "<i4", "decode_dtype": ">i8"},)),
    "categorize_text": Case(
        "<U5",
        ({"id": "categorize", "labels": ["a", "bb"], "dtype": "<U5", "astype": "|u1"},),
        ZLIB,
    ),
    # filters of bytes
    "shuffle": Case("<f4", (SHUFFLE,), ZLIB),
    "shuffle_F": Case("<i4", (SHUFFLE,), LZ4, "F"),
    "shuffle_record": Case([["x", "<i2"], ["y", "<f8"]], ({"id": "shuffle", "elementsize": 10},)),
    "fletcher32": Case("<u2", (FLETCHER,), ZSTD),
    "fletcher32_record": Case(written(RECORD), (FLETCHER,)),
    "crc32": Case("<f8", ({"id": "crc32"},), ZLIB),
    "crc32_end": Case("<f8", ({"id": "crc32", "location": "end"},)),
    "crc32c": Case("<f8", ({"id": "crc32c"},), BLOSC),
    "crc32c_start": Case("<i8", ({"id": "crc32c", "location": "start"},)),
    "adler32": Case("|i1", ({"id": "adler32"},)),
    "jenkins": Case("<i2", ({"id": "jenkins_lookup3", "initval": 7, "prefix": None},)),
    "base64": Case("<u4", ({"id": "base64"},), ZLIB),
    "compressors_as_filters": Case("<u4", ({"id": "bz2", "level": 1}, ZLIB), BLOSC),
    "chain": Case("<i4", (delta("<i4"), SHUFFLE, FLETCHER), ZSTD, "F"),
    "scaled_chain": Case("<f8", (scale("<f8", "<i2"), delta("<i2"), {"id": "crc32"}), BLOSC),
    "filter_as_compressor": Case("<i4", (), delta("<i4")),
    # compressors
    "lz4": Case("<f8", (), {"id": "lz4", "acceleration": 9}),
    "lzma": Case("<f8", (), {"id": "lzma", "format": 1, "check": -1, "preset": None,
                             "filters": None}),
    "lzma_preset": Case("<i2", (), {"id": "lzma", "format": 2, "check": -1, "preset": 1,
                                    "filters": None}, "F"),
    "lzma_raw": Case("<i2", (), {"id": "lzma", "format": 3, "check": -1, "preset": None,
                                     "filters": [{"id": 3, "dist": 2}, {"id": 33, "preset": 1}]}),
    "bz2": Case("<i2", (), {"id": "bz2", "level": 9}),
    "gzip": Case("<i2", (), {"id": "gzip", "level": 9}),
    "zstd_checksum": Case("<f4", (), {"id": "zstd", "level": 3, "checksum": True}),
    "zstd_no_checksum": Case("<f4", (), {"id": "zstd", "level": 3, "checksum": False}),
    "blosc_zlib": Case("<f4", (), {**BLOSC, "cname": "zlib", "shuffle": 2}),
    # Python objects
    "strings": Case("|O", (UTF8,), ZSTD, fill_value=""),
    "strings_F": Case("|O", (UTF8,), None, "F", "none"),
    "strings_checked": Case("|O", (UTF8, {"id": "crc32"}), BLOSC, fill_value=0),
    "byte_strings": Case("|O", ({"id": "vlen-bytes"},), ZLIB, fill_value="AAE="),
    "categories": Case(
        "|O", ({"id": "categorize", "labels": ["a", "bb", ""], "dtype": "|O", "astype": "<u2"},)
    ),
    "categories_F": Case(
        "|O", ({"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": ">i4"},), ZSTD, "F"
    ),
    "ragged": Case("|O", ({"id": "vlen-array", "dtype": "<i4"},), ZSTD),
    "json": Case("|O", ({"id": "json2"},), ZLIB, fill_value={"a": [1]}),
    "json_indented": Case("|O", ({"id": "json2", "indent": 2, "ensure_ascii": False,
                                  "encoding": "utf-16"},)),
    "json_numbers": Case("<f8", ({"id": "json2"},), ZLIB),
    "pickles": Case("|O", ({"id": "pickle", "protocol": 4},), members={"allow_pickle": True}),
    "pickled_numbers": Case("<f4", ({"id": "pickle", "protocol": 5},), None, "F",
                            members={"allow_pickle": True}),
}  # fmt: skip

TEXTS = ["", "a", "bb", "ccé", "ddddd", "\U0001f600", "e f"]
VALUES: list[object] = [None, 1, "two", [3, 4.5], {"five": [6], "a": {}}, True, [[]], [[1], [2]]]


def objects(values):
    array = np.empty(len(values), object)
    for position, value in enumerate(values):
        array[position] = value
    return array


def sample_of(case):
    """Values for a combination, a chunk of nothing but zeros among them."""
    dtype, count = case.numpy, math.prod(SHAPE)
    random = np.random.default_rng(1)
    if dtype.hasobject:
        chosen = (case.filters or [case.compressor])[0]["id"]
        choices: dict[str, list] = {
            "vlen-utf8": TEXTS, "categorize": ["a", "bb", "", "other"],
            "vlen-bytes": [text.encode() for text in TEXTS],
            "vlen-array": [np.arange(size, dtype="<i4") for size in (0, 1, 4)],
        }  # fmt: skip
        some = choices.get(chosen, VALUES)
        return objects(list(itertools.islice(itertools.cycle(some), count))).reshape(SHAPE)
    if dtype.kind == "U":
        texts = [text[:5] for text in TEXTS]
        return np.array(list(itertools.islice(itertools.cycle(texts), count)), dtype).reshape(SHAPE)
    if dtype.name in COMMON:
        values = sample(dtype.name, SHAPE) if "f" in dtype.kind or dtype.kind == "b" else None
        if values is None or case.filters:
            values = np.abs(random.normal(size=SHAPE) * 50)
        if any("scale" in each or "json2" in each["id"] for each in case.filters):
            values = np.clip(values, 4, 300)
        with np.errstate(invalid="ignore"):
            values = values.astype(dtype)
    elif dtype.kind in "mM":
        values = random.integers(-(2**40), 2**40, SHAPE).astype(dtype)
        values[0, 0] = "NaT"
    else:
        values = np.zeros(SHAPE, dtype)
        bits = random.integers(1, 60, (count, dtype.itemsize), np.uint8)
        for name in dtype.names or ():
            if dtype[name].base.kind not in "Ub":
                raw = np.frombuffer(bits.tobytes(), dtype).reshape(SHAPE)
                values[name] = raw[name]
        if dtype.names is None:
            values = np.frombuffer(bits.tobytes(), dtype).reshape(SHAPE).copy()
    if dtype.kind in "biufc" and not case.filters:
        values[2:4, 0:4] = 0
    return values


def cells():
    counts = [-(-extent // chunk) for extent, chunk in zip(SHAPE, CHUNKS, strict=True)]
    for cell in np.ndindex(*counts):
        yield (
            cell,
            tuple(
                slice(index * chunk, (index + 1) * chunk)
                for index, chunk in zip(cell, CHUNKS, strict=True)
            ),
        )


def write_by_numcodecs(path, case, values):
    """The array as zarr-python 2 stored it."""
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(case.document(SHAPE)))
    for cell, where in cells():
        chunk = np.empty(CHUNKS, case.numpy, order=case.order)
        chunk[...] = "" if case.numpy.hasobject else np.zeros((), case.numpy)
        if case.filters and case.filters[0]["id"] == "vlen-array":
            chunk[...] = None
        if case.filters and case.filters[0]["id"] == "vlen-bytes":
            chunk[...] = b""
        part = values[where]
        chunk[tuple(slice(0, extent) for extent in part.shape)] = part
        data = chunk
        for codec in case.codecs():
            data = codec.encode(data)
        name = ".".join(map(str, cell))
        (path / name).write_bytes(numcodecs.compat.ensure_bytes(data))


def read_by_numcodecs(path, case):
    """The array as zarr-python 2 read it; all chunks must be there."""
    values = np.empty(SHAPE, case.numpy)
    for cell, where in cells():
        data = (path / ".".join(map(str, cell))).read_bytes()
        for codec in reversed(case.codecs()):
            data = codec.decode(data)
        data = numcodecs.compat.ensure_ndarray(data)
        if not case.numpy.hasobject:
            data = data.view(case.numpy)
        chunk = data.reshape(-1, order="A").reshape(CHUNKS, order=case.order)
        part = values[where]
        part[...] = chunk[tuple(slice(0, extent) for extent in part.shape)]
    return values


#: What zarr-python from version 3 on creates; the rest is numcodecs' as before.
def zarr_creates(case):
    if any(codec["id"] in {"pickle", "json2"} for codec in case.filters):
        return False
    if case.numpy.hasobject:
        return case.filters[0] == UTF8 and case.fill_value != 0
    return case.numpy not in (NESTED, RECORD)


def write_by_zarr(path, case, values):
    codecs = case.codecs()
    dtype = "string" if case.numpy.hasobject else case.numpy
    fill = {"YWI=": b"ab", "YWJj": b"abc"}.get(case.fill_value, case.fill_value)
    array = zarr.create_array(
        str(path), shape=SHAPE, chunks=CHUNKS, dtype=dtype, zarr_format=2, order=case.order,
        filters=codecs[: len(case.filters)] or None,
        compressors=codecs[-1] if case.compressor else None,
        fill_value=np.void(fill) if case.numpy.kind == "V" and fill else fill,
    )  # fmt: skip
    array[...] = values


def expected_values(case, values):
    """What an array of those values holds once it is stored: some filters are lossy."""
    if case.numpy.hasobject and case.filters[0]["id"] == "categorize":
        known = set(case.filters[0]["labels"])
        return objects([text if text in known else "" for text in values.flat]).reshape(SHAPE)
    return values


def native(array):
    return np.asarray(array).astype(array.dtype.newbyteorder("="))


def check_same(found, expected):
    if not expected.dtype.hasobject:
        same(native(found), native(expected))
        return
    assert found.shape == expected.shape
    assert found.dtype.hasobject
    for one, other in zip(found.flat, expected.flat, strict=True):
        assert type(one) is type(other)
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.fixture(autouse=True)
def _trust_pickles(monkeypatch):
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_combination(tmp_path, name):
    case = CASES[name]
    values = sample_of(case)
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    if zarr_creates(case):
        write_by_zarr(theirs, case, values)
        found = zarr.open_array(str(theirs), mode="r", zarr_format=2)[...]
        expected = np.asarray(found).astype(case.numpy)
    else:
        write_by_numcodecs(theirs, case, values)
        expected = expected_values(case, values)

    opened = ours.open(spec_of("zarr", theirs, **case.members)).result()
    check_same(opened.read().result(), expected)
    assert opened.shape == SHAPE

    spec = spec_of("zarr", mine, metadata=case.document(SHAPE), **case.members, **KEEP)
    created = ours.open(spec, create=True).result()
    created[...] = values
    check_same(created.read().result(), expected)
    check_same(read_by_numcodecs(mine, case), expected)
    if zarr_creates(case):
        again = zarr.open_array(str(mine), mode="r", zarr_format=2)
        check_same(np.asarray(again[...]).astype(case.numpy), expected)

    assert stored(mine) >= {".zarray", "0.0", "2.1"}
    assert reopened(theirs) == reopened(mine)
    if reference_reads(case):
        same(wheel.open(spec_of("zarr", mine)).result().read().result(), native(expected))


def reopened(path):
    """What our driver makes of the document, which others write in more than one form."""
    found = document(path, ".zarray")
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": found}
    return ours.Spec(spec).to_json()["metadata"]


def reference_reads(case):
    compressors = {"zlib", "gzip", "bz2", "zstd", "blosc"}
    known = case.compressor is None or (
        case.compressor["id"] in compressors and "checksum" not in case.compressor
    )
    return known and not case.filters and case.numpy.name in COMMON


@pytest.mark.parametrize("name", ["chain", "delta_big", "strings_F", "record_F", "shuffle_record"])
def test_a_part_is_written_where_others_find_it(tmp_path, name):
    case = CASES[name]
    values = sample_of(case)
    write_by_numcodecs(tmp_path / "a", case, values)
    opened = ours.open(spec_of("zarr", tmp_path / "a", **KEEP)).result()
    region = (slice(1, 4), slice(3, 6))
    values[region] = values[0, 1]

    opened[region] = values[0, 1]

    check_same(opened.read().result(), values)
    check_same(read_by_numcodecs(tmp_path / "a", case), values)


@pytest.mark.parametrize(
    ("field", "path"),
    [("p", ["p"]), ("p.a", ["p", "a"]), ("p.b", ["p", "b"]), ("q", ["q"]), ("q.c", ["q", "c"])],
)
@pytest.mark.parametrize("order", ["", "_F"])
def test_a_nested_field_is_what_numpy_finds_there(tmp_path, order, field, path):
    case = CASES[f"record_nested{order}"]
    values = sample_of(case)
    write_by_numcodecs(tmp_path / "a", case, values)
    opened = ours.open(spec_of("zarr", tmp_path / "a", field=field)).result()
    expected = values
    for name in path:
        expected = expected[name]
    if expected.dtype.kind == "S":
        expected = np.ascontiguousarray(expected).view("S1").reshape(*expected.shape, -1)

    assert opened.shape == expected.shape
    same(opened.read().result(), native(expected))

    opened[1:3] = opened[4].read().result()
    target = values
    for name in path:
        target = target[name]
    target[1:3] = target[4]
    check_same(read_by_numcodecs(tmp_path / "a", case), values)
