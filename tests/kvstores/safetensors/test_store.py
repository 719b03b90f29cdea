"""The safetensors store: files made by hand and by the library itself, as zarr3 groups."""

import json
from functools import partial

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.kvstores.safetensors.header import DATA_TYPES, Header
from tensorstore_py.kvstores.safetensors.store import Headers, SafetensorsStore
from tensorstore_py.plugin.kvstore import ByteRange
from tensorstore_py.testing import CountingStore, LoopStore, drive

TENSORS = {
    "embed.weight": np.arange(15, dtype="float32").reshape(3, 5),
    "embed.bias": np.array([1.5, -2], ml_dtypes.bfloat16),
    "scale": np.array(3.5),
    "none": np.zeros((0, 3), "int16"),
    "mask": np.array([True, False, True]),
    "wave": np.array([1 + 2j], "complex64"),
    "eight": np.array([[1, -2]], ml_dtypes.float8_e4m3fn),
}
NAMES = {name: there for there, (name, _) in DATA_TYPES.items()}


def file_of(tensors, metadata=None):
    """The bytes of a file, as the format's page tells them."""
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, array in tensors.items():
        start, data = len(data), data + array.tobytes()
        header[name] = {
            "dtype": NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, len(data)],
        }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(file_of(TENSORS, {"made": "by hand"}))
    return path


def group(path):
    return ts.Group.open(f"{path.as_uri()}|safetensors:").result()


def test_every_tensor_is_an_array(file):
    found = group(file)

    assert sorted(found) == sorted(TENSORS)
    for name, array in TENSORS.items():
        read = found[name].read().result()
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)
    assert found.attrs["made"] == "by hand"
    assert found.consolidated


def test_a_file_is_known_by_its_first_bytes(file):
    assert sorted(ts.Group.open(file).result()) == sorted(TENSORS)


def test_a_url_is_a_spec_and_back(file):
    spec = ts.Spec(f"{file.as_uri()}|safetensors:scale/|zarr3:")

    assert spec.url == f"{file.as_uri()}|safetensors:scale/|zarr3:"
    assert ts.open(ts.Spec(spec.url)).result().read().result() == 3.5


@pytest.mark.parametrize("shape", [(5_000_000,), (3, 3_000_001), (2, 3, 1_700_000), (9_000_000, 1)])
def test_a_part_of_a_large_tensor_is_the_part_of_the_file(tmp_path, shape):
    values = np.arange(np.prod(shape), dtype="uint32").reshape(shape)
    path = tmp_path / "large.safetensors"
    path.write_bytes(file_of({"w": values}))
    array = group(path)["w"]

    assert len(ts.KvStore.open(f"{path.as_uri()}|safetensors:w/c/").result().list().result()) > 1
    np.testing.assert_array_equal(array.read().result(), values)
    corner = tuple(slice(n - 1, n) for n in shape)
    assert array[corner].read().result().ravel().tolist() == [values.size - 1]


def over_memory(loop=False):
    memory = MemoryStore(SharedMap())
    drive(memory, lambda: memory.write("m", file_of(TENSORS)))
    return CountingStore(LoopStore(memory) if loop else memory)


@pytest.mark.parametrize("loop", [False, True])
def test_what_is_read_is_what_is_listed(loop):
    store = SafetensorsStore(Headers(over_memory(loop), "m"))

    async def sizes():
        return {entry.key: entry.size async for entry in store.list()}

    for key, size in drive(store, sizes).items():
        result = drive(store, partial(store.read, key))
        assert result.state == "value"
        assert size in (-1, len(result.value))
    for key in ("nothing", "scale/c/0", "embed.bias/c/1", "embed.bias/c/x", "embed.bias/c", ""):
        assert drive(store, partial(store.read, key)).state == "missing"
    part = drive(store, lambda: store.read("mask/c/0", ByteRange(1, 2)))
    assert bytes(part.value) == b"\0"


def test_a_header_is_read_once_and_a_chunk_by_one_request():
    counted = over_memory()
    store = SafetensorsStore(Headers(counted, "m"))
    drive(store, lambda: store.read("mask/c/0"))
    counted.reset()

    for _ in range(3):
        drive(store, lambda: store.read("mask/c/0"))

    assert (counted.reads["m"], counted.bytes_read["m"]) == (3, 9)


def test_a_file_that_was_replaced_is_looked_at_again():
    base = over_memory()
    store = SafetensorsStore(Headers(base, "m"))
    assert bytes(drive(store, lambda: store.read("mask/c/0")).value) == b"\1\0\1"
    other = {"longer name": np.zeros(3), "mask": np.array([True])}
    drive(base, lambda: base.write("m", file_of(other)))

    assert bytes(drive(store, lambda: store.read("mask/c/0")).value) == b"\1"
    assert drive(store, lambda: store.read("scale/zarr.json")).state == "missing"
    drive(base, lambda: base.write("m", None))
    assert drive(store, lambda: store.read("mask/c/0")).state == "missing"


def test_it_is_read_only(file):
    with pytest.raises(ts.UnsupportedError, match="read-only"):
        group(file)["scale"][...] = 1


def test_a_type_without_counterpart_hides_no_other_tensor(tmp_path):
    header = {
        "six": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]},
        "ok": {"dtype": "U8", "shape": [1], "data_offsets": [3, 4]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"abc\7")

    assert list(group(path)) == ["ok"]
    assert group(path)["ok"].read().result().tolist() == [7]
    with pytest.raises(ts.UnsupportedError, match=r'"six" has the type F6_E2M3'):
        ts.open(f"{path.as_uri()}|safetensors:six/|zarr3:").result()


DAMAGED = {
    "empty": (b"", "does not begin with the size"),
    "short": (b"\1\2", "does not begin with the size"),
    "huge": ((2**40).to_bytes(8, "little") + b"{}", "does not begin with the size"),
    "cut": ((100).to_bytes(8, "little") + b'{"a"', "truncated"),
    "text": ((4).to_bytes(8, "little") + b"{no}", "no JSON"),
    "list": ((2).to_bytes(8, "little") + b"[]", "no JSON object"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named(tmp_path, name):
    data, problem = DAMAGED[name]
    path = tmp_path / "m.safetensors"
    path.write_bytes(data)

    with pytest.raises(ts.DataLossError, match=rf"m\.safetensors.*{problem}"):
        ts.KvStore.open(f"{path.as_uri()}|safetensors:").result().list().result()


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"dtype": "U8", "shape": [2]}, "data_offsets"),
        ({"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}, "data_offsets"),
        ({"dtype": "U8", "shape": [3], "data_offsets": [0, 2]}, "should have 3 bytes"),
        ({"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}, "overlaps"),
        (7, "data_offsets"),
    ],
)
def test_a_damaged_header_says_what_is_wrong(entry, problem):
    header = {"a": entry, "b": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}

    with pytest.raises(ts.DataLossError, match=problem):
        Header.parse(json.dumps(header).encode())


def test_a_truncated_file_is_no_shorter_tensor(file):
    data = file.read_bytes()
    file.write_bytes(data[:-1])

    with pytest.raises(ts.DataLossError, match="truncated"):
        group(file)["eight"].read().result()


class TestIndex:
    @pytest.fixture
    def index(self, tmp_path):
        (tmp_path / "one.safetensors").write_bytes(file_of({"a": np.arange(3)}))
        (tmp_path / "two.safetensors").write_bytes(file_of({"b.c": np.ones(2)}))
        path = tmp_path / "model.safetensors.index.json"
        weights = {"a": "one.safetensors", "b.c": "two.safetensors"}
        path.write_text(json.dumps({"metadata": {"total_size": 40}, "weight_map": weights}))
        return path

    def test_files_are_one_group(self, index):
        found = group(index)

        assert sorted(found) == ["a", "b.c"]
        assert found["a"].read().result().tolist() == [0, 1, 2]
        assert found["b.c"].read().result().tolist() == [1, 1]
        assert found.attrs["total_size"] == 40

    def test_a_file_that_is_gone_is_named(self, index):
        index.with_name("two.safetensors").unlink()

        with pytest.raises(ts.DataLossError, match=r'"two\.safetensors", which is not there'):
            list(group(index))

    @pytest.mark.parametrize("files", ["../x", "", 3])
    def test_an_index_names_files_beside_it(self, index, files):
        index.write_text(json.dumps({"weight_map": {"a": files}}))

        with pytest.raises(ts.DataLossError, match="weight_map"):
            list(group(index))


def test_the_library_itself_writes_what_is_read_here(tmp_path):
    tensors = {name: array for name, array in TENSORS.items() if array.dtype.isbuiltin == 1}
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file(tensors, path, metadata={"a": "b"})

    found = group(path)

    assert sorted(found) == sorted(tensors)
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name].read().result(), array)
