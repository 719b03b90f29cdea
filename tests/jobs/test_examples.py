"""The jobs of examples/jobs, run as their readers run them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.cli.main import main

JOBS = Path(__file__).resolve().parents[2] / "examples" / "jobs"


@pytest.fixture
def example(tmp_path):
    def copied(name):
        return Path(shutil.copy(JOBS / name, tmp_path))

    return copied


@pytest.mark.parametrize("file", sorted(JOBS.glob("*.json")), ids=lambda file: file.name)
def test_is_valid(file, capsys):
    assert main(["validate", "--env", str(file)]) == 0, capsys.readouterr().out


def test_s3_to_sharded_s3(moto_s3, example, monkeypatch, capsys):
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_s3.endpoint)
    bucket = moto_s3.make_bucket()
    monkeypatch.setenv("BUCKET", bucket)
    image = ts.open(
        f"s3://{bucket}/image.zarr/|zarr2:",
        create=True,
        dtype="uint8",
        shape=[600, 100],
        chunk_layout=ts.ChunkLayout(chunk_shape=[100, 100]),
    ).result()
    values = np.random.default_rng(3).integers(0, 9, [600, 100], np.uint8)
    image[...] = values

    code = main(["run", "--env", str(example("s3_to_sharded_s3.json"))])

    assert code == 0, capsys.readouterr().err
    sharded = ts.open(f"s3://{bucket}/image_sharded.zarr/").result()
    np.testing.assert_array_equal(sharded.read().result(), values)
    assert sharded.chunk_layout.write_chunk.shape == (512, 512)
    assert sharded.chunk_layout.read_chunk.shape == (64, 64)
    stored = moto_s3.get(bucket, "image_sharded.report.json")
    assert stored is not None
    assert json.loads(stored)["state"] == "done"
    assert len([key for key in moto_s3.keys(bucket) if "sharded.zarr/c/" in key]) == 2


def test_rechunk_tree(example, tmp_path, capsys):
    axes = {"time": np.arange(30), "lat": np.arange(15.0), "lon": np.arange(20.0)}
    shape = [30, 15, 20]
    values = np.random.default_rng(4).normal(size=shape)
    for number, group in enumerate(("model_a", "model_b")):
        data = xr.Dataset(
            {
                name: (list(axes), values + number, {"units": "K"})
                for name in ("temperature", "rain")
            },
            axes,
            {"title": group},
        )
        data.to_zarr(tmp_path / "climate.zarr", group=group, mode="a", zarr_format=3,
                     encoding={name: {"chunks": (1, 15, 20)} for name in ("temperature", "rain")},
                     consolidated=False)  # fmt: skip

    code = main(["run", str(example("rechunk_tree.json"))])

    assert code == 0, capsys.readouterr().err
    found = ts.open(tmp_path / "climate_series.zarr" / "model_a" / "rain").result()
    assert found.chunk_layout.read_chunk.shape == (30, 10, 10)
    for number, group in enumerate(("model_a", "model_b")):
        series = xr.open_zarr(tmp_path / "climate_series.zarr", group=group, consolidated=False)
        assert series.attrs == {"title": group}
        assert series["rain"].attrs["units"] == "K"
        np.testing.assert_array_equal(series["temperature"], values + number)
        np.testing.assert_array_equal(series["lat"], axes["lat"])
    assert json.loads((tmp_path / "climate_series.report.json").read_text())["state"] == "done"


def test_pyramid(example, tmp_path, capsys):
    volume = ts.open(
        {"driver": "zarr3", "kvstore": tmp_path / "volume.zarr"},
        create=True,
        dtype="uint16",
        shape=[8, 64, 96],
    ).result()
    values = np.random.default_rng(5).integers(0, 999, volume.shape, np.uint16)
    volume[...] = values

    code = main(["run", str(example("pyramid.json"))])

    assert code == 0, capsys.readouterr().err
    image = ts.multiscale.open(tmp_path / "volume.ome.zarr").result()
    assert [level.shape for level in image.levels] == [(8, 64, 96), (8, 32, 48), (8, 16, 24)]
    np.testing.assert_array_equal(image.levels[0].read().result(), values)
    halves = values.reshape(8, 32, 2, 48, 2).mean((2, 4))
    np.testing.assert_allclose(image.levels[1].read().result(), halves, atol=0.5)
