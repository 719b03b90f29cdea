import json
import zlib
from pathlib import Path
from typing import Literal

import numcodecs
import numpy as np
import pytest
from numcodecs.abc import Codec

import tensorstore_py as ts
from tensorstore_py.codecs.numcodecs import NumcodecsSpec, from_registry
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.driver import codec_to_json, parse_codec_json


class Rotate(Codec):  # type: ignore[misc]  # the library has no types
    """Adds a number to every element; gives and takes arrays."""

    codec_id = "test-rotate"

    def __init__(self, by: int = 1) -> None:
        if by == 0:
            raise ValueError("by must not be 0")
        self.by = by

    def encode(self, buf):
        return np.asarray(buf) + np.asarray(buf).dtype.type(self.by)

    def decode(self, buf, out=None):
        assert out is None
        return np.frombuffer(buf, "<i4") - np.int32(self.by)


class Squeeze(Codec):  # type: ignore[misc]  # the library has no types
    """Compresses; gives and takes bytes."""

    codec_id = "test-squeeze"

    def encode(self, buf):
        return zlib.compress(np.asarray(buf).tobytes())

    def decode(self, buf, out=None):
        return zlib.decompress(buf)


class Words(Codec):  # type: ignore[misc]  # the library has no types
    """Stores strings."""

    codec_id = "test-words"

    def encode(self, buf):
        return "\n".join(buf.ravel()).encode()

    def decode(self, buf, out=None):
        return np.array(bytes(buf).decode().split("\n"), object)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in (Rotate, Squeeze, Words):
        monkeypatch.setitem(numcodecs.registry.codec_registry, cls.codec_id, cls)


def create(data_type: str = "int32", **metadata: object) -> ts.TensorStore:
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": {"chunks": [4], **metadata}}
    return ts.open(spec, create=True, dtype=data_type, shape=[6]).result()


def store(opened: ts.TensorStore) -> ts.KvStore:
    assert opened.kvstore is not None
    return opened.kvstore


def test_a_codec_of_the_registry_is_a_codec_here() -> None:
    spec = parse_codec_json("zarr", {"id": "test-rotate", "by": 3})

    assert isinstance(spec, NumcodecsSpec)
    assert codec_to_json("zarr", spec) == {"by": 3, "id": "test-rotate"}
    assert parse_codec_json("zarr", codec_to_json("zarr", spec)) == spec
    assert hash(spec) == hash(parse_codec_json("zarr", {"by": 3, "id": "test-rotate"}))


def test_what_numcodecs_does_not_know_is_no_codec() -> None:
    assert from_registry("test-nothing") is None
    with pytest.raises(SpecError, match=r'^id: no zarr codec is named "test-nothing"'):
        parse_codec_json("zarr", {"id": "test-nothing"})


def test_members_are_checked_by_the_codec_itself() -> None:
    with pytest.raises(SpecError, match='"test-rotate" refuses its members: by must not be 0'):
        parse_codec_json("zarr", {"id": "test-rotate", "by": 0})
    with pytest.raises(SpecError, match='"test-squeeze" refuses its members'):
        parse_codec_json("zarr", {"id": "test-squeeze", "level": 0})


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i4", ">i4"])
def test_it_filters_and_compresses(order: Literal["C", "F"], dtype: str) -> None:
    filters = [{"id": "test-squeeze" if dtype == ">i4" else "test-rotate"}]
    metadata = {
        "chunks": [2, 3], "shape": [3, 4], "dtype": dtype, "order": order,
        "filters": filters, "compressor": {"id": "test-squeeze"},
    }  # fmt: skip
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
    opened = ts.open(spec, create=True).result()
    values = np.arange(1, 13, dtype="i4").reshape(3, 4)

    opened[...] = values

    assert opened.read().result().tolist() == values.tolist()
    stored = zlib.decompress(bytes(store(opened)["0.0"]))
    if dtype == "<i4":
        chunk = (values[:2, :3] + 1).astype(dtype)
        assert stored == chunk.tobytes(order)


def test_it_may_store_objects() -> None:
    opened = create("object", dtype="|O", filters=[{"id": "test-words"}], fill_value="")

    opened[...] = np.array(["a", "b", "", "d", "e", "f"], object)

    assert opened.read().result().tolist() == ["a", "b", "", "d", "e", "f"]


def test_whatever_it_raises_is_data_loss_with_the_key() -> None:
    opened = create(filters=[{"id": "test-squeeze"}], compressor=None)
    store(opened)["0"] = b"damaged"
    store(opened)["1"] = zlib.compress(b"too short")

    with pytest.raises(DataLossError, match=r'"0": codec "test-squeeze": Error -3'):
        opened[0].read().result()
    with pytest.raises(DataLossError, match=r'"1": decoded to 9 bytes, expected 16'):
        opened[5].read().result()


def test_a_package_publishes_codecs_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "guest_codec.py").write_text(
        "from numcodecs.abc import Codec\n"
        "class Guest(Codec):\n"
        "    codec_id = 'test-guest'\n"
        "    def encode(self, buf):\n"
        "        return bytes(buf)[::-1]\n"
        "    def decode(self, buf, out=None):\n"
        "        return bytes(buf)[::-1]\n"
    )
    info = tmp_path / "guest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[numcodecs.codecs]\ntest-guest = guest_codec:Guest\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numcodecs.registry, "entries", dict(numcodecs.registry.entries))
    monkeypatch.setattr(
        numcodecs.registry, "codec_registry", dict(numcodecs.registry.codec_registry)
    )
    numcodecs.registry.run_entrypoints()

    opened = create(filters=[{"id": "test-guest"}], compressor=None)
    opened[...] = np.arange(6, dtype="i4")

    assert opened.read().result().tolist() == [0, 1, 2, 3, 4, 5]
    assert bytes(store(opened)["0"])[-4:] == bytes(4)
    assert json.loads(bytes(store(opened)[".zarray"]))["filters"] == [{"id": "test-guest"}]
