import asyncio
import json
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import zarr
import zarr.registry
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec

import tensorstore_py as ts
from tensorstore_py.codecs.zarr_python import from_zarr
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import (
    ArrayToArraySpec,
    ArrayToBytesSpec,
    BytesToBytesSpec,
    codecs_to_json,
    parse_codec_list,
)

VALUES = np.arange(12, dtype="i4").reshape(3, 4)


class Members:
    """What the three have in common: members as they are given."""

    is_fixed_size = True

    @classmethod
    def from_dict(cls, data):
        return cls(**data.get("configuration", {}))

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        return input_byte_length


@dataclass(frozen=True)
class Shift(Members, ArrayArrayCodec):
    """Adds a number; has coroutines that never wait."""

    by: int = 1

    def to_dict(self):
        return {"name": "test.shift", "configuration": {"by": self.by}}

    def validate(self, *, shape, dtype, chunk_grid):
        if dtype.to_native_dtype().kind not in "iu":
            raise ValueError("integers only")

    async def _encode_single(self, chunk_data, chunk_spec):
        array = chunk_data.as_numpy_array() + chunk_data.dtype.type(self.by)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array)

    async def _decode_single(self, chunk_data, chunk_spec):
        array = chunk_data.as_numpy_array() - chunk_data.dtype.type(self.by)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array)


@dataclass(frozen=True)
class Raw(Members, ArrayBytesCodec):
    """Elements side by side; has plain functions."""

    def to_dict(self):
        return {"name": "test.raw"}

    def _encode_sync(self, chunk_data, chunk_spec):
        return chunk_spec.prototype.buffer.from_bytes(chunk_data.as_numpy_array().tobytes())

    def _decode_sync(self, chunk_data, chunk_spec):
        array = np.frombuffer(chunk_data.to_bytes(), chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(array.reshape(chunk_spec.shape))

    async def _encode_single(self, chunk_data, chunk_spec):
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data, chunk_spec):
        return self._decode_sync(chunk_data, chunk_spec)


@dataclass(frozen=True)
class Press(Members, BytesBytesCodec):
    """Compresses in a thread."""

    is_fixed_size = False
    level: int | None = None

    def to_dict(self):
        return {"name": "test.press", "configuration": {"level": self.level}}

    def evolve_from_array_spec(self, array_spec):
        return self if self.level is not None else Press(level=2)

    async def _encode_single(self, chunk_data, chunk_spec):
        data = await asyncio.to_thread(zlib.compress, chunk_data.to_bytes(), self.level or 1)
        return chunk_spec.prototype.buffer.from_bytes(data)

    async def _decode_single(self, chunk_data, chunk_spec):
        data = await asyncio.to_thread(zlib.decompress, chunk_data.to_bytes())
        return chunk_spec.prototype.buffer.from_bytes(data)


@pytest.fixture(autouse=True)
def _registered() -> None:
    for name, cls in (("test.shift", Shift), ("test.raw", Raw), ("test.press", Press)):
        zarr.registry.register_codec(name, cls)


CODECS = [
    {"name": "test.shift", "configuration": {"by": 3}},
    {"name": "test.raw"},
    {"name": "test.press"},
]


def created(path: Path, codecs: list = CODECS, dtype: str = "int32") -> ts.TensorStore:
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/"},
        "metadata": {
            "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        },
    }
    return ts.open(spec, create=True, dtype=dtype, shape=[3, 4]).result()


def read_by_zarr(path: Path) -> object:
    return np.asarray(zarr.open_array(str(path), mode="r")[...]).tolist()


def test_each_kind_is_told_apart() -> None:
    kinds = [from_zarr(name) for name in ("test.shift", "test.raw", "test.press")]

    for found, kind in zip(
        kinds, (ArrayToArraySpec, ArrayToBytesSpec, BytesToBytesSpec), strict=True
    ):
        assert found is not None
        assert issubclass(found, kind)
    assert from_zarr("test.nothing") is None


def test_what_is_written_is_read_by_zarr_and_back(tmp_path: Path) -> None:
    opened = created(tmp_path)
    opened[...] = VALUES

    assert opened.read().result().tolist() == VALUES.tolist()
    assert read_by_zarr(tmp_path) == VALUES.tolist()
    zarr.open_array(str(tmp_path), mode="r+")[1] = 9
    assert opened[1].read().result().tolist() == [9] * 4
    chunk = (VALUES[:2, :3] + 3).astype("<i4")
    assert zlib.decompress((tmp_path / "c/0/0").read_bytes())[:12] == chunk.tobytes()[:12]


def test_new_metadata_states_what_the_codec_takes_from_the_array(tmp_path: Path) -> None:
    created(tmp_path)

    stored = json.loads((tmp_path / "zarr.json").read_text())["codecs"]
    assert stored[2] == {"name": "test.press", "configuration": {"level": 2}}


async def test_a_loop_that_runs_is_left_alone(tmp_path: Path) -> None:
    opened = created(tmp_path)
    await opened.write(VALUES)
    loop = asyncio.get_running_loop()

    # On this thread, which has a loop.
    assert opened.read().result().tolist() == VALUES.tolist()
    assert (await opened.read()).tolist() == VALUES.tolist()
    assert asyncio.get_running_loop() is loop


def test_damage_is_data_loss_with_the_key(tmp_path: Path) -> None:
    opened = created(tmp_path)
    opened[...] = VALUES
    (tmp_path / "c/0/0").write_bytes(b"damaged")
    (tmp_path / "c/0/1").write_bytes(zlib.compress(bytes(23)))

    with pytest.raises(DataLossError, match=r'c/0/0": codec "test.press": Error -3'):
        opened[0, 0].read().result()
    with pytest.raises(DataLossError, match=r'c/0/1": decoded to 23 bytes, expected 24'):
        opened[0, 3].read().result()
    assert opened[2].read().result().tolist() == VALUES[2].tolist()


def test_what_the_codec_refuses_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r'codecs\[0\].*"test.shift" refuses its members'):
        created(tmp_path, [{"name": "test.shift", "configuration": {"to": 3}}])
    with pytest.raises(SpecError, match=r'codecs\[0\]: codec "test.shift" refuses these chunks: i'):
        created(tmp_path, [{"name": "test.shift"}, "bytes"], "float32")


def test_shards_hold_chunks_of_such_codecs(tmp_path: Path) -> None:
    shards = {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [1, 3], "codecs": CODECS},
    }
    opened = created(tmp_path, [shards])

    opened[...] = VALUES
    opened[1, 1] = 0

    expected = VALUES.copy()
    expected[1, 1] = 0
    assert opened.read().result().tolist() == expected.tolist()
    assert read_by_zarr(tmp_path) == expected.tolist()


def test_json_survives_parsing() -> None:
    specs = parse_codec_list("zarr3", CODECS)

    assert parse_codec_list("zarr3", codecs_to_json("zarr3", specs)) == specs
    assert codecs_to_json("zarr3", specs) == CODECS


def test_a_package_publishes_codecs_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "guest_codec_of_zarr.py").write_text(
        "from zarr.abc.codec import BytesBytesCodec\n"
        "class Backwards(BytesBytesCodec):\n"
        "    is_fixed_size = True\n"
        "    @classmethod\n"
        "    def from_dict(cls, data):\n"
        "        return cls()\n"
        "    def to_dict(self):\n"
        "        return {'name': 'guest.backwards'}\n"
        "    def compute_encoded_size(self, size, spec):\n"
        "        return size\n"
        "    async def _encode_single(self, data, spec):\n"
        "        return spec.prototype.buffer.from_bytes(data.to_bytes()[::-1])\n"
        "    _decode_single = _encode_single\n"
    )
    info = tmp_path / "guest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[zarr.codecs]\nguest.backwards = guest_codec_of_zarr:Backwards\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "guest_codec_of_zarr", raising=False)

    opened = created(tmp_path / "a", ["bytes", "guest.backwards"])
    opened[...] = VALUES

    assert opened.read().result().tolist() == VALUES.tolist()
    assert (tmp_path / "a/c/0/0").read_bytes()[-4:] == bytes(4)
