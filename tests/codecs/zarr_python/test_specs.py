import json
import zlib
from pathlib import Path

import pytest
import zarr

from tensorstore_py.codecs.zarr_python import from_zarr
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    ArrayToArraySpec,
    ArrayToBytesSpec,
    BytesToBytesSpec,
    codecs_to_json,
    parse_codec_list,
)
from tests.codecs.zarr_python.foreign import CODECS, VALUES, created, read_by_zarr, register


@pytest.fixture(autouse=True)
def _registered() -> None:
    register()


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


def test_what_the_codec_refuses_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r'codecs\[0\].*"test.shift" refuses its members'):
        created(tmp_path, [{"name": "test.shift", "configuration": {"to": 3}}])
    with pytest.raises(SpecError, match=r'codecs\[0\]: codec "test.shift" refuses these chunks: i'):
        created(tmp_path, [{"name": "test.shift"}, "bytes"], "float32")


def test_json_survives_parsing() -> None:
    specs = parse_codec_list("zarr3", CODECS)

    assert parse_codec_list("zarr3", codecs_to_json("zarr3", specs)) == specs
    assert codecs_to_json("zarr3", specs) == CODECS
