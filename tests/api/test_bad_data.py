"""Data and names that are damaged, that lie, or that have no end."""

import bz2
import json
import lzma
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import numcodecs
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import (
    DataLossError,
    MismatchError,
    OutOfRangeError,
    ResourceExhaustedError,
    SpecError,
    TensorStoreError,
)
from tensorstore_py.kvstores.memory import MemoryStore
from tensorstore_py.plugin.kvstore import UNKNOWN, RetryPolicy, TimestampedStorageGeneration
from tensorstore_py.testing import CountedWaits


def spec_at(path, driver="zarr3", **members):
    return {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}, **members}


COMPRESSED = {
    "zarr3-gzip": ("zarr3", {"codecs": ["bytes", "gzip"]}),
    "zarr3-zstd": ("zarr3", {"codecs": ["bytes", "zstd"]}),
    "zarr3-blosc": ("zarr3", {"codecs": ["bytes", "blosc"]}),
    "zarr3-crc32c": ("zarr3", {"codecs": ["bytes", "crc32c"]}),
    "zarr3-raw": ("zarr3", {"codecs": ["bytes"]}),
    "zarr3-sharded": (
        "zarr3",
        {"codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 4]}}]},
    ),
    "zarr-zlib": ("zarr", {"compressor": {"id": "zlib"}}),
    "zarr-bz2": ("zarr", {"compressor": {"id": "bz2"}}),
    "zarr-blosc": ("zarr", {"compressor": {"id": "blosc"}}),
    "zarr-raw": ("zarr", {"compressor": None}),
}


def named(metadata):
    return {
        key: [{"name": item} if isinstance(item, str) else item for item in value]
        if key == "codecs" else value
        for key, value in metadata.items()
    }  # fmt: skip


@pytest.fixture(params=COMPRESSED)
def array(request, tmp_path):
    driver, metadata = COMPRESSED[request.param]
    layout = ts.ChunkLayout(write_chunk_shape=[8, 8])
    store = ts.open(
        spec_at(tmp_path, driver, metadata=named(metadata)), create=True, dtype="uint16",
        shape=[16, 16], chunk_layout=layout,
    ).result()  # fmt: skip
    store[...] = np.arange(256, dtype="uint16").reshape(16, 16) + 1
    chunk = tmp_path / ("c/1/0" if driver == "zarr3" else "1.0")
    assert chunk.exists()
    return store, chunk


class TestIndices:
    @pytest.fixture
    def store(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        return ts.open(spec, create=True, dtype="uint8", shape=[10, 20]).result()

    @pytest.mark.parametrize(
        ("index", "dimension", "bounds"),
        [
            ((10,), 0, r"\[0, 10"), ((-1,), 0, r"\[0, 10"), ((0, 20), 1, r"\[0, 20"),
            ((slice(5, 11),), 0, r"\[0, 10"), ((slice(None), slice(-3, 4)), 1, r"\[0, 20"),
        ],
    )  # fmt: skip
    def test_outside_names_dimension_and_bounds(self, store, index, dimension, bounds):
        fixed = store.resolve(fix_resizable_bounds=True).result()
        with pytest.raises(IndexError, match=bounds) as caught:
            fixed[index].read().result()
        assert isinstance(caught.value, OutOfRangeError)
        assert f"dimension {dimension}" in str(caught.value)

    def test_resizable_bounds_are_checked_when_it_is_read(self, store):
        view = store[5, 25:30]
        with pytest.raises(
            IndexError, match=r"dimension 0 ends at 20, but \[25, 30\) is asked for"
        ):
            view.read().result()
        store.resize(exclusive_max=[10, 40]).result()
        assert view.read().result().shape == (5,)

    @pytest.mark.parametrize("mode", ["oindex", "vindex"])
    def test_index_arrays(self, store, mode):
        with pytest.raises(IndexError, match=r"10"):
            getattr(store, mode)[[0, 10]].read().result()

    def test_too_many_indices(self, store):
        with pytest.raises(IndexError, match="3"):
            store[1, 2, 3]

    def test_writing_outside(self, store):
        with pytest.raises(IndexError, match=r"dimension 0"):
            store[10] = 1


class TestSources:
    @pytest.fixture
    def store(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        return ts.open(spec, create=True, dtype="int16", shape=[3, 4]).result()

    def test_a_shape_that_does_not_broadcast(self, store):
        with pytest.raises(MismatchError, match=r"dimension 1.*4"):
            store.write(np.zeros((3, 5), "int16"))

    def test_too_many_dimensions(self, store):
        with pytest.raises(ValueError, match="2"):
            store.write(np.zeros((1, 3, 4), "int16"))

    def test_broadcasting(self, store):
        store[...] = np.array([1, 2, 3, 4], "int16")
        store[:, 1:3] = np.array([[7], [8], [9]], "int16")
        assert store.read().result().tolist() == [[1, 7, 7, 4], [1, 8, 8, 4], [1, 9, 9, 4]]


class TestBadData:
    @pytest.mark.parametrize("keep", [0, 1, 0.5, -1])
    def test_a_truncated_chunk_is_named(self, array, keep):
        store, chunk = array
        data = chunk.read_bytes()
        chunk.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
        assert store[:8].read().result()[0, 0] == 1
        with pytest.raises(DataLossError) as caught:
            store.read().result()
        assert str(chunk) in str(caught.value)
        with pytest.raises(DataLossError) as caught:
            store[9, 2:4].read().result()
        assert str(chunk) in str(caught.value)

    def test_a_checksum_that_fails_is_named(self, tmp_path):
        store = ts.open(
            spec_at(tmp_path, metadata={"codecs": [{"name": "bytes"}, {"name": "crc32c"}]}),
            create=True, dtype="uint8", shape=[8],
        ).result()  # fmt: skip
        store[...] = np.arange(1, 9, dtype="uint8")
        chunk = tmp_path / "c" / "0"
        good = chunk.read_bytes()
        for place in range(len(good)):
            bad = bytearray(good)
            bad[place] ^= 0x10
            chunk.write_bytes(bytes(bad))
            with pytest.raises(DataLossError, match="c/0"):
                store.read().result()
            with pytest.raises(DataLossError, match="c/0"):
                store[3] = 1


LE = {"name": "bytes", "configuration": {"endian": "little"}}


SCALED = {
    "name": "numcodecs.fixedscaleoffset",
    "configuration": {"scale": 1, "offset": 0, "astype": "<f8"},
}


SCALED_V2 = {"id": "fixedscaleoffset", "dtype": "<u2", "scale": 1, "offset": 0}


KEYS = {"zarr3": "zarr.json", "zarr": ".zarray", "n5": "attributes.json"}


def opened(driver: str, document: dict, **values: bytes) -> ts.TensorStore:
    context = ts.Context()
    store = ts.KvStore.open("memory://", context=context).result()
    store[KEYS[driver]] = json.dumps(document)
    for key, value in values.items():
        store[key] = value
    return ts.open({"driver": driver, "kvstore": "memory://"}, context=context).result()


def zarr3(shape: list, chunks: list, data_type: object = "uint16", codecs: object = (LE,)) -> dict:
    return {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "v2"}, "codecs": codecs, "fill_value": 0,
    }  # fmt: skip


def zarr2(shape: list, chunks: list, dtype: object = "<u2", **more: object) -> dict:
    return {
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "order": "C",
        "compressor": None, "filters": None, "fill_value": None, **more,
    }  # fmt: skip


@pytest.fixture
def peak():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


CHAINS = {
    "raw": [LE],
    "zstd": [LE, {"name": "zstd", "configuration": {"level": 1}}],
    "gzip": [LE, {"name": "gzip", "configuration": {"level": 1}}],
    "big": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "numcodecs.zlib"}],
    "pcodec": [{"name": "numcodecs.pcodec"}],
    "transpose": [{"name": "transpose", "configuration": {"order": [1, 0]}}, LE],
    "shards": [
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2**30, 2**30], "codecs": [LE]},
        }
    ],
    "packed_shards": [
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2**29, 2**29], "codecs": [LE]},
        },
        {"name": "gzip", "configuration": {"level": 1}},
    ],
}


class TestLyingSizes:
    @pytest.mark.parametrize(
        ("driver", "document"),
        [
            ("zarr3", zarr3([4, 4], [2**40, 2**40])),
            ("zarr3", zarr3([4], [2**62])),
            ("zarr", zarr2([4, 4], [2**40, 2**40])),
            ("zarr", zarr2([4, 4], [2**32, 2**32], order="F")),
            ("zarr", zarr2([4], [2**60], [["x", "<u8"], ["y", "|S8"]])),
        ],
    )
    def test_chunks_that_no_memory_holds_are_refused_when_the_array_is_opened(
        self, driver, document, peak
    ):
        with pytest.raises(DataLossError, match="more than any memory") as caught:
            opened(driver, document)

        assert "take " in str(caught.value)
        assert KEYS[driver] in str(caught.value)
        assert peak() < 2**24

    def test_such_chunks_are_refused_where_they_are_asked_for(self):
        grid = {"name": "regular", "configuration": {"chunk_shape": [2**62]}}
        metadata = {"shape": [4], "chunk_grid": grid, "data_type": "uint64"}
        spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}

        with pytest.raises(SpecError, match="more than any memory"):
            ts.open(spec, create=True).result()

    def test_elements_that_are_too_large_are_refused(self, peak):
        for dtype in (
            "<U500000000",
            "|S2147483647",
            "|V99999999",
            [["x", "|S60000000"], ["y", "|S60000000"]],
        ):
            with pytest.raises(DataLossError, match="more than 67108864 bytes"):
                opened("zarr", zarr2([4], [2], dtype))
        for name in ("U500000000", "S999999999", '[["x", "uint8", [65536, 65536]]]'):
            with pytest.raises(SpecError, match="more than 67108864 bytes"):
                ts.dtype(name)
        assert peak() < 2**24
        assert ts.dtype("S67108864").numpy_dtype.itemsize == 2**26

    @pytest.mark.parametrize(
        ("driver", "document"),
        [
            ("zarr3", zarr3([2**40], [2**40])),
            ("zarr3", zarr3([2**40], [2**40], codecs=[SCALED, LE])),
            ("zarr", zarr2([2**40], [2**40], [["x", "<i4"], ["y", "|S4"]])),
            ("zarr", zarr2([2**40], [2**40], filters=[SCALED_V2])),
        ],
    )  # fmt: skip
    def test_a_huge_chunk_takes_nothing_before_it_is_read(self, driver, document, peak):
        array = opened(driver, document)
        repr(array)

        assert not array[5].read().result() or driver == "zarr"  # it is missing, and so fill value
        assert peak() < 2**24

    @pytest.mark.parametrize("name", CHAINS)
    def test_a_small_value_for_a_huge_chunk_is_an_error_that_names_the_key(self, name):
        array = opened("zarr3", zarr3([2**30, 2**30], [2**30, 2**30], codecs=CHAINS[name]))
        assert array.kvstore is not None
        for data in (b"", b"x" * 40, bytes.fromhex("28b52ffd0058") + b"\x03\x00\x10\x00"):
            array.kvstore["0.0"] = data
            for action in (array[0, 0].read, lambda: array[0, 0].write(1)):
                error = action().exception()

                assert isinstance(error, DataLossError | ResourceExhaustedError)
                assert "0.0" in str(error)

    def test_an_answer_that_cannot_be_had_says_what_it_would_take(self):
        array = opened("zarr3", zarr3([2**50, 2**50], [64, 64]))

        for read in (array.read, ts.downsample(array, [2, 1], "mean").read, ts.stack([array]).read):
            error = read().exception()

            assert isinstance(error, ResourceExhaustedError)
            assert isinstance(error, MemoryError)
            assert "type uint16 takes " in str(error)
            assert str(2**50) in str(error)
        with pytest.raises(ResourceExhaustedError):
            np.asarray(array)

    def test_a_codec_that_asks_for_more_memory_than_there_is_is_refused(self):
        filters = [{"id": "lzma", "format": 3, "filters": [{"id": 33, "dict_size": 2**32 - 1}]}]

        with pytest.raises(DataLossError, match="lzma"):
            opened("zarr", zarr2([4], [2], filters=filters))

    @pytest.mark.parametrize("number", ["1" * 5000, "1e400", str(2**64), "-" + "9" * 40])
    def test_numbers_that_nothing_counts(self, number):
        context = ts.Context()
        store = ts.KvStore.open("memory://", context=context).result()
        n5 = {
            "dimensions": [77],
            "blockSize": [2],
            "dataType": "uint8",
            "compression": {"type": "raw"},
        }
        documents = {"zarr3": zarr3([77], [2]), "zarr": zarr2([77], [2]), "n5": n5}
        for driver, key in KEYS.items():
            store[key] = json.dumps(documents[driver]).replace("77", number)
            with pytest.raises(DataLossError):
                ts.open({"driver": driver, "kvstore": "memory://"}, context=context).result()
        store["document"] = number
        found = ts.open(
            {"driver": "json", "kvstore": "memory://document"}, context=context
        ).result()
        assert found.read().exception() is None or isinstance(
            found.read().exception(), DataLossError
        )


LIMIT = 2**18


BOMB = 2**25


ZSTD = {"name": "zstd", "configuration": {"level": 1}}


GZIP = {"name": "gzip", "configuration": {"level": 1}}


INDEX = {"name": "bytes", "configuration": {"endian": "little"}}


def streamed_zstd(size: int) -> bytes:
    """Zeros as a streaming encoder writes them: the frame does not say how many."""
    count = size >> 17
    blocks = [
        (2**17 << 3 | 2 | (n == count - 1)).to_bytes(3, "little") + b"\0" for n in range(count)
    ]
    return bytes.fromhex("28b52ffd0058") + b"".join(blocks)


def in_pieces(made, size: int) -> bytes:
    """What a compressor makes of zeros, without holding them all."""
    piece = bytes(2**20)
    return b"".join(made.compress(piece) for _ in range(size >> 20)) + made.flush()


PACKERS: dict[str, tuple[dict, Callable[[int], bytes]]] = {
    "zstd_streamed": (ZSTD, streamed_zstd),
    "zstd": (ZSTD, lambda size: bytes(numcodecs.Zstd(1).encode(bytes(size)))),
    "gzip": (GZIP, lambda size: in_pieces(zlib.compressobj(9, wbits=31), size)),
    "zlib": ({"name": "numcodecs.zlib"}, lambda size: in_pieces(zlib.compressobj(9), size)),
    "bz2": ({"name": "numcodecs.bz2"}, lambda size: in_pieces(bz2.BZ2Compressor(9), size)),
    "lzma": (
        {"name": "numcodecs.lzma", "configuration": {"preset": 0}},
        lambda size: in_pieces(lzma.LZMACompressor(preset=0), size),
    ),
    "lz4": (
        {"name": "numcodecs.lz4"},
        lambda size: bytes(numcodecs.LZ4().encode(bytes(size))),
    ),
    "blosc": (
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 9, "shuffle": "noshuffle"}},
        lambda size: bytes(numcodecs.Blosc("zstd", 9).encode(bytes(size))),
    ),
}


_made: dict[str, bytes] = {}


def bomb(name: str) -> bytes:
    if name not in _made:
        _made[name] = PACKERS[name][1](BOMB)
    return _made[name]


def stored(codecs: list, data: bytes, data_type: str = "string", shape: tuple = (4,), **context):
    """An array of one chunk, which holds `data`."""
    document = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        "fill_value": 0 if data_type == "uint8" else "", "attributes": {},
    }  # fmt: skip
    held = ts.Context(context)
    store = ts.KvStore.open("memory://", context=held).result()
    store["zarr.json"] = json.dumps(document)
    store["c/0"] = data
    return ts.open("memory://|zarr3", context=held).result()


def error_and_peak(array: ts.TensorStore, part: object = ...) -> tuple[BaseException, int]:
    array[part].read().exception()  # libraries are loaded at first use
    tracemalloc.start()
    try:
        error = array[part].read().exception()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error is not None
    return error, most


def in_a_shard(data: bytes) -> bytes:
    return data + struct.pack("<QQ", 0, len(data))


FORMS: dict[str, tuple[Callable[[dict], list], Callable[[bytes], bytes]]] = {
    "text": (lambda codec: ["vlen-utf8", codec], bytes),
    "bytes": (lambda codec: ["vlen-bytes", codec], bytes),
    "in_a_shard": (
        lambda codec: [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [4],
                    "codecs": ["vlen-utf8", codec],
                    "index_codecs": [INDEX],
                },
            }
        ],
        in_a_shard,
    ),
    "around_a_shard": (
        lambda codec: [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2], "codecs": ["vlen-utf8"], "index_codecs": [INDEX]
                },
            },
            codec,
        ],
        bytes,
    ),
    "behind_another": (lambda codec: ["vlen-utf8", {"name": "numcodecs.zlib"}, codec], bytes),
}  # fmt: skip


def written(values: list, codec: dict, **context):
    spec = {
        "driver": "zarr3", "kvstore": "memory://",
        "metadata": {"codecs": ["vlen-utf8", codec], "data_type": "string", "shape": [len(values)]},
    }  # fmt: skip
    array = ts.open(spec, create=True, context=ts.Context(context)).result()
    array.write(values).result()
    return array


RESIDENT = """
import json, resource, sys
import numpy as np
import tensorstore_py as ts

count = 2**30 >> 17
blocks = [(2**17 << 3 | 2 | (n == count - 1)).to_bytes(3, "little") + b"\\0" for n in range(count)]
frame = bytes.fromhex("28b52ffd0058") + b"".join(blocks)
store = ts.KvStore.open(sys.argv[1]).result()
for name, data_type, codec in (("a/", "uint8", "bytes"), ("b/", "string", "vlen-utf8")):
    spec = {"driver": "zarr3", "kvstore": sys.argv[1] + name, "metadata": {
        "shape": [1024], "data_type": data_type,
        "codecs": [codec, {"name": "zstd", "configuration": {"level": 1}}]}}
    array = ts.open(spec, create=True).result()
    array.write(np.zeros(1024, "uint8") if name == "a/" else "x").result()
    array.read().result()
    store[name + "c/0"] = frame
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = array.read().exception()
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(len(frame), type(error).__name__, taken)
"""


class TestUnpackingLimit:
    @pytest.mark.parametrize("name", PACKERS)
    def test_a_chunk_of_a_known_size_unpacks_to_that(self, name):
        codec, data = PACKERS[name][0], bomb(name)

        for chain in (["bytes", codec], ["bytes", {"name": "numcodecs.zlib"}, codec]):
            for part in (..., 0):
                error, most = error_and_peak(stored(chain, data, "uint8"), part)

                assert type(error) is DataLossError
                assert 'Error reading "c/0"' in str(error)
                assert most < 2**20 + 2 * len(data)

    @pytest.mark.parametrize(
        ("name", "form"),
        [
            *((name, "text") for name in PACKERS),
            *(
                (name, form)
                for name in ("zstd_streamed", "gzip")
                for form in FORMS
                if form != "text"
            ),
        ],
    )
    def test_data_of_variable_length_unpacks_to_a_limit(self, name, form):
        codec, data = PACKERS[name][0], bomb(name)
        chain, wrapped = FORMS[form]
        data_type = "bytes" if form == "bytes" else "string"
        array = stored(
            chain(codec), wrapped(data), data_type, unpacking_limit={"limit_bytes": LIMIT}
        )

        for part in (..., 0):
            error, most = error_and_peak(array, part)

            assert type(error) is ResourceExhaustedError
            assert 'Error reading "c/0"' in str(error) or "of shard" in str(error)
            assert '"unpacking_limit"' in str(error)
            # A hundred times what is stored goes through; streams hold it in parts at first.
            assert most < 3 * max(LIMIT, 100 * len(data))

    @pytest.mark.parametrize("codec", ["json2", "msgpack2"])
    def test_so_do_objects(self, codec):
        held = ts.Context({"unpacking_limit": {"limit_bytes": LIMIT}})
        store = ts.KvStore.open("memory://", context=held).result()
        store[".zarray"] = json.dumps({
            "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "order": "C",
            "filters": [{"id": codec}], "compressor": {"id": "zstd", "level": 1},
            "fill_value": None,
        })  # fmt: skip
        store["0"] = streamed_zstd(BOMB)

        error, most = error_and_peak(ts.open("memory://|zarr2", context=held).result())

        assert type(error) is ResourceExhaustedError
        assert most < 3 * LIMIT

    def test_the_limit_can_be_raised(self):
        values = ["a" * 2**22, "b", "", "c"]
        small, large = ({"unpacking_limit": {"limit_bytes": each}} for each in (LIMIT, 32 * LIMIT))

        assert type(written(values, ZSTD, **small).read().exception()) is ResourceExhaustedError
        assert written(values, ZSTD, **large).read().result().tolist() == values
        assert written(values, GZIP).read().result().tolist() == values

    def test_what_hardly_compresses_may_be_larger_than_the_limit(self):
        values = np.random.default_rng(0).bytes(2 * LIMIT).hex()
        array = written([values], GZIP, unpacking_limit={"limit_bytes": LIMIT})

        assert array.read().result().tolist() == [values]

    def test_many_equal_elements_may_take_what_elements_take(self):
        array = written(["nothing"] * 2**17, ZSTD, unpacking_limit={"limit_bytes": 1})

        assert set(array.read().result()) == {"nothing"}

    def test_the_limit_is_that_of_the_handle_and_not_of_the_array(self):
        context = ts.Context()
        spec = {"driver": "zarr3", "kvstore": "memory://", "context": {}}
        array = written(["a" * 2**22], ZSTD)
        assert array.kvstore is not None
        store = ts.KvStore.open("memory://", context=context).result()
        for key in array.kvstore.list().result():
            store[key] = array.kvstore[key]
        strict = {**spec, "unpacking_limit": {"limit_bytes": LIMIT}}

        assert type(ts.open(strict, context=context).result().read().exception()) is (
            ResourceExhaustedError
        )
        assert ts.open(spec, context=context).result().read().result()[0] == "a" * 2**22

    def test_a_frame_of_32_kb_for_a_gigabyte_takes_no_more_of_the_machine(self, tmp_path):
        found = subprocess.run(
            [sys.executable, "-c", RESIDENT, f"file://{tmp_path}/"],
            check=True, capture_output=True, text=True,
        ).stdout.split("\n")  # fmt: skip

        size, error, taken = found[0].split()
        assert (size, error) == ("32774", "DataLossError")
        assert int(taken) < 8
        _, error, taken = found[1].split()
        assert error == "ResourceExhaustedError"
        assert int(taken) < 160


def made(spec):
    ts.open(spec, create=True, dtype="uint16", shape=[4]).result()


def refused(mistake):
    with pytest.raises(ValueError) as caught:
        mistake()
    return str(caught.value)


class TestMissing:
    @pytest.mark.parametrize(
        ("there", "opened", "words"),
        [
            ("zarr3", "zarr", 'zarr.json is there: name the driver "zarr3", or "auto"'),
            ("zarr", "zarr3", '.zarray is there: name the driver "zarr", or "auto"'),
            ("n5", "zarr3", 'attributes.json is there: name the driver "n5", or "auto"'),
            ("zarr", "n5", '.zarray is there: name the driver "zarr", or "auto"'),
        ],
    )
    def test_another_format_is_named(self, there, opened, words, tmp_path):
        made({"driver": there, "kvstore": tmp_path})
        spec = {"driver": opened, "kvstore": tmp_path}

        told = refused(lambda: ts.open(spec).result())

        assert words in told
        assert "create=True" not in told
        over = {"driver": "cast", "dtype": "int64", "base": spec}
        assert words in refused(lambda: ts.open(over).result())

    @pytest.mark.parametrize("version", [2, 3])
    @pytest.mark.parametrize("driver", ["zarr", "zarr3", "auto"])
    def test_a_group_instead_of_an_array_is_named(self, version, driver, tmp_path):
        ts.Group.open(tmp_path, create=True, zarr_format=version).result()

        told = refused(lambda: ts.open({"driver": driver, "kvstore": tmp_path}).result())

        assert "ts.Group.open" in told or (version, driver) == (3, "zarr")

    def test_an_array_instead_of_a_group_is_named(self, tmp_path):
        made({"driver": "zarr3", "kvstore": tmp_path})
        assert "open it with ts.open" in refused(lambda: ts.Group.open(tmp_path).result())

    def test_looking_for_what_is_there_costs_an_open_that_succeeds_nothing(self, tmp_path):
        made({"driver": "zarr3", "kvstore": tmp_path})
        (tmp_path / ".zarray").write_text("not looked at")
        assert ts.open({"driver": "zarr3", "kvstore": tmp_path}).result().shape == (4,)


BAD = "a\ud800b"


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


def opened_by_name(driver: str, document: dict) -> ts.TensorStore:
    context = ts.Context()
    store = ts.KvStore.open("memory://", context=context).result()
    store[KEYS[driver]] = json.dumps(document)
    return ts.open({"driver": driver, "kvstore": "memory://"}, context=context).result()


class TestNotText:
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
    def test_in_stored_metadata_it_is_an_error_that_names_the_key_and_the_member(
        self, driver, members
    ):
        with pytest.raises(DataLossError) as caught:
            opened_by_name(driver, {**DOCUMENTS[driver], **members})

        text = str(caught.value)
        assert KEYS[driver] in text
        assert any(name in text for name in members) or ascii(BAD)[1:-1] in text
        text.encode()  # it can be printed

    def test_specs_say_where_it_is(self):
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
    def test_whatever_is_asked_with_it_is_refused(self, refused):
        with pytest.raises(TensorStoreError):
            refused()

    @pytest.mark.parametrize("url", ["memory://", "file://{}/"])
    def test_no_key_has_it(self, url, tmp_path):
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

    def test_bytes_that_are_no_utf_8_are_keys_as_before(self, tmp_path):
        store = ts.KvStore.open(f"file://{tmp_path}/").result()
        store[b"a\xffb"] = b"1"

        assert store.list().result() == [b"a\xffb"]
        assert store["a\udcffb"] == b"1"
        assert (store / "a\udcffb").url.endswith("/a%FFb")
        assert "\\xff" in repr(store / b"a\xffb")

    def test_attributes_with_it_are_not_written(self):
        array = opened_by_name("zarr3", DOCUMENTS["zarr3"])
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

    def test_a_document_of_the_json_driver(self):
        store = ts.KvStore.open("memory://").result()
        for text in (b'"\\ud800"', b'{"a": [1, "\\ud800"]}', b'{"\\ud800": 1}', b"1" * 5000):
            context = ts.Context()
            store = ts.KvStore.open("memory://", context=context).result()
            store["d"] = text
            array = ts.open({"driver": "json", "kvstore": "memory://d"}, context=context).result()
            assert isinstance(array.read().exception(), DataLossError)


class Rivals:
    """Others who always store a value between a look and the conditional write that follows."""

    def __init__(self, monkeypatch):
        self.writes = 0
        self._write = MemoryStore.write
        monkeypatch.setattr(MemoryStore, "write", self.refusing())
        monkeypatch.setattr(MemoryStore, "write_segments", self.refusing_segments())
        monkeypatch.setattr(MemoryStore, "write_batch", self.refusing_together())

    async def touch(self, store, key):
        """Store what is there again: the generation is another one."""
        found = await store.read(key)
        await self._write(store, key, bytes(found.value) if found.state == "value" else b"{}")
        self.writes += 1

    def refusing(self):
        async def write(store, key, value, *, if_equal=None):
            if if_equal is None:
                return await self._write(store, key, value)
            await self.touch(store, key)
            return TimestampedStorageGeneration.now(UNKNOWN)

        return write

    def refusing_segments(self):
        write = self.refusing()

        async def write_segments(store, key, segments, *, if_equal=None, owned=False):
            del owned
            return await write(store, key, b"".join(segments), if_equal=if_equal)

        return write_segments

    def refusing_together(self):
        async def write_together(store, values, conditions):
            assert conditions
            key = next(iter(values))
            await self.touch(store, key)
            return key

        return write_together


def endless_array(context, **members):
    spec = {"driver": "zarr3", "kvstore": "memory://a/", **members}
    opened = ts.open(spec, create=True, dtype="uint8", shape=[8], context=context).result()
    opened[:] = 1
    return opened


def resize(context):
    return endless_array(context).resize(exclusive_max=[16]).result


def part_of_a_chunk(context):
    opened = endless_array(context)
    return lambda: opened[1:3].write(5).result()


def member_of_a_document(context):
    spec = {"driver": "json", "kvstore": "memory://j", "json_pointer": "/a"}
    opened = ts.open(spec, context=context).result()
    return lambda: opened.write(5).result()


def attribute(context):
    group = ts.Group.open("memory://g/", create=True, context=context).result()
    return lambda: group.attrs.update(a=1).result()


def entry_of_an_archive(context):
    kv = ts.KvStore.open("memory://z.zip|zip:", context=context).result()
    kv["a"] = b"1"
    return lambda: kv.write("b", b"2").result()


def atomic_transaction(context):
    opened = endless_array(context)
    transaction = ts.Transaction(atomic=True)
    opened.with_transaction(transaction)[1:3] = 5
    return transaction.commit_sync


class TestEndless:
    @pytest.mark.parametrize(
        "begin",
        [
            resize,
            part_of_a_chunk,
            member_of_a_document,
            attribute,
            entry_of_an_archive,
            atomic_transaction,
        ],
    )
    def test_it_ends_with_the_number_of_attempts(self, monkeypatch, begin):
        run = begin(ts.Context())
        rivals = Rivals(monkeypatch)

        with (
            CountedWaits() as waits,
            pytest.raises(ts.AbortedError, match="others changed it") as lost,
        ):
            run()

        assert lost.value.attempts == rivals.writes == RetryPolicy().attempts
        assert len(waits.seconds) == RetryPolicy().attempts - 1
