import asyncio
import json
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.abc.codec import ArrayArrayCodec

from tensorstore_py.codecs.zarr_python import Library, from_zarr, library
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import ArrayToArraySpec, ArrayToBytesSpec, BytesToBytesSpec
from tensorstore_py.plugin.driver import codecs_to_json, parse_codec_list
from tests.codecs.foreign import CODECS, VALUES, created, read_by_zarr, register

STATES = {
    "not imported": "",
    "imported": "import zarr",
    "not installed": "import sys; sys.modules['zarr'] = None",
    "version 2": "import sys; sys.path.insert(0, sys.argv[1]); import zarr",
}


ASKS = """
import json, sys
import tensorstore_py as ts
for name in json.loads(sys.argv[2]):
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": {"codecs": ["bytes", name]}}
    try:
        ts.Spec(spec)
    except ts.TensorStoreError as error:
        print(type(error).__name__, error)
"""


class Curious(ArrayArrayCodec):
    """Keeps what zarr-python tells it."""

    is_fixed_size = True
    told: dict = {}  # noqa: RUF012 - the library copies codecs

    def to_dict(self):
        return {"name": "test.curious"}

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        return input_byte_length

    def evolve_from_array_spec(self, array_spec):
        self.told["array_spec"] = array_spec
        return self

    def validate(self, *, shape, dtype, chunk_grid):
        self.told["chunk_grid"] = chunk_grid


def said(state: str, folder: Path, names: str) -> list[str]:
    old = folder / "zarr"
    old.mkdir()
    (old / "__init__.py").write_text("__version__ = '2.18.0'")
    program = STATES[state] + ASKS
    command = [sys.executable, "-c", program, str(folder), names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("state", STATES)
def test_an_unknown_name_is_refused_alike_whatever_is_installed(tmp_path: Path, state: str) -> None:
    path = "SpecError metadata.codecs[1].name: no zarr3 codec is named"
    assert said(state, tmp_path, '["gzpi", "numcodecs.zlibb"]') == [
        f'{path} "gzpi" (did you mean "gzip"?)',
        f'{path} "numcodecs.zlibb" (did you mean "numcodecs.zlib"?)',
    ]


def test_a_codec_gets_the_arguments_that_zarr_gives_it() -> None:
    zarr.create_array({}, shape=(6, 8), chunks=(3, 4), dtype="<i4", fill_value=5, filters=Curious())
    expected = Curious.told["array_spec"]

    found = library().array_spec((3, 4), library().parse_dtype("<i4", zarr_format=3), np.int32(5))

    assert type(found) is type(expected)
    assert type(found.config) is type(expected.config)
    for name in ("dtype", "fill_value", "prototype", "order", "ndim"):
        assert getattr(found, name) == getattr(expected, name)
    assert library().chunk_grid((3, 4)) == Curious.told["chunk_grid"]


def test_what_the_user_set_for_arrays_of_zarr_is_no_business_of_ours() -> None:
    settings = {
        "array.order": "F",
        "array.write_empty_chunks": False,
        "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
    }
    with zarr.config.set(settings):
        found = Library().array_spec((2,), library().parse_dtype("u1", zarr_format=3), 0)

    assert found.order == "C"
    assert found.config.write_empty_chunks


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


def test_a_package_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "torn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[zarr.codecs]\ntorn.codec = torn_codec:Torn\n")
    (tmp_path / "torn_codec.py").write_text("import a_module_that_is_missing")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(
        SpecError,
        match=r'"torn.codec" is published as torn_codec:Torn, which cannot be imported: Module',
    ):
        parse_codec_list("zarr3", ["bytes", "torn.codec"])


def test_what_zarr_is_set_to_and_lacks_is_named() -> None:
    zarr.registry.register_codec("test.curious", Curious)

    with (
        zarr.config.set({"codecs": {"test.curious": "nonesuch.Curious"}}),
        pytest.raises(SpecError, match=r'"test\.curious"'),
    ):
        parse_codec_list("zarr3", [{"name": "test.curious"}, "bytes"])


@pytest.fixture(autouse=True)
def _registered() -> None:
    register()


def test_each_kind_is_distinguished() -> None:
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


def test_what_the_codec_refuses_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r'codecs\[0\].*"test.shift" refuses its members'):
        created(tmp_path, [{"name": "test.shift", "configuration": {"to": 3}}])
    with pytest.raises(SpecError, match=r'codecs\[0\]: codec "test.shift" refuses these chunks: i'):
        created(tmp_path, [{"name": "test.shift"}, "bytes"], "float32")


def test_json_survives_parsing() -> None:
    specs = parse_codec_list("zarr3", CODECS)

    assert parse_codec_list("zarr3", codecs_to_json("zarr3", specs)) == specs
    assert codecs_to_json("zarr3", specs) == CODECS


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
