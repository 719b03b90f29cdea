import numpy as np
import pytest
from numcodecs.fletcher32 import Fletcher32

from tensorstore_py.codecs.fletcher32 import fletcher32
from tensorstore_py.testing.codecs import CodecSuite

LENGTHS = (1, 2, 3, 4, 359, 720, 32766, 32767, 32768, 32769, 65539, 200001)


class TestFletcher32(CodecSuite):
    family = "zarr"
    configurations = ({"id": "fletcher32"},)
    detects_corruption = True


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", ["random", "ones", "zeros"])
def test_the_checksum_is_that_of_other_implementations(length: int, kind: str) -> None:
    fill = {"ones": 255, "zeros": 0}.get(kind)
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    if fill is not None:
        data[:] = fill

    stored = bytes(Fletcher32().encode(data))[-4:]

    assert fletcher32(data) == int.from_bytes(stored, "little")


def test_no_data_has_a_checksum_too() -> None:
    assert fletcher32(np.empty(0, np.uint8)) == 0
