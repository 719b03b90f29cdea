import gzip
import struct
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from scripts import demo_volume


def write_nifti(path: Path, volume: npt.NDArray[np.int16], order: str = "<") -> None:
    """Writes `[z, y, x]` int16 voxels the way the format has them: x fastest."""
    z, y, x = volume.shape
    header = bytearray(352)
    struct.pack_into(f"{order}i", header, 0, 348)
    struct.pack_into(f"{order}8h", header, 40, 3, x, y, z, 1, 1, 1, 1)
    struct.pack_into(f"{order}2h", header, 70, 4, 16)
    struct.pack_into(f"{order}3f", header, 108, 352.0, 1.0, 0.0)
    header[344:348] = b"n+1\0"
    path.write_bytes(gzip.compress(bytes(header) + volume.astype(f"{order}i2").tobytes(), 1))


@pytest.fixture
def volume() -> npt.NDArray[np.int16]:
    return np.random.default_rng(1).integers(-99, 999, size=(40, 30, 35)).astype(np.int16)


@pytest.mark.parametrize("order", ["<", ">"])
def test_voxels_come_in_zyx_and_native_order(
    tmp_path: Path, volume: npt.NDArray[np.int16], order: str
) -> None:
    write_nifti(tmp_path / "a.nii.gz", volume, order)

    found = demo_volume.read_nifti(tmp_path / "a.nii.gz")

    assert found.dtype.isnative
    np.testing.assert_array_equal(found, volume)


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.nii").write_bytes(b"no image" * 100)

    with pytest.raises(ValueError, match=r"a\.nii is not"):
        demo_volume.read_nifti(tmp_path / "a.nii")


def test_the_job_passes_and_draws(
    tmp_path: Path, volume: npt.NDArray[np.int16], capsys: pytest.CaptureFixture[str]
) -> None:
    write_nifti(tmp_path / "a.nii.gz", volume)

    status = demo_volume.main([str(tmp_path / "a.nii.gz"), str(tmp_path / "out")])

    printed = capsys.readouterr().out
    assert status == 0, printed
    assert printed.count("equal to the source") == 6
    with Image.open(tmp_path / "out" / "planes.png") as picture:
        assert picture.size == (35 + 35 + 30, 40)


def test_a_difference_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    report = demo_volume.Report()

    report.compare("planes", [np.zeros(3)], [np.ones(3)])

    assert report.wrong == 1
    assert "DIFFERENT" in capsys.readouterr().out


def test_the_image_is_taken_out_of_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "nilearn-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nilearn/data/mni_icbm152_gm_x.nii.gz", b"grey")
        wheel.writestr("nilearn/data/mni_icbm152_t1_x.nii.gz", b"image")

    demo_volume.main(["--unpack", str(tmp_path), str(tmp_path / "a.nii.gz")])

    assert (tmp_path / "a.nii.gz").read_bytes() == b"image"
