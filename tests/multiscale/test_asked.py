"""What callers say of a pyramid goes through JSON, and what the source says fills in the rest."""

import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.asked import Asked
from tensorstore_py.multiscale.sources import PyramidSource


def test_it_goes_through_json():
    asked = Asked(
        axes=[ts.multiscale.Axis("y", "space", "um"), "x"], dtype=np.uint32, scale=(2, 3),
        pixel_size=np.float32(0.5), codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["gzip"]}),
    )  # fmt: skip

    said = json.loads(json.dumps(asked.to_json()))

    assert said["dtype"] == "uint32"
    assert said["axes"][0] == {"name": "y", "type": "space", "unit": "um"}
    assert Asked(**said).to_json() == asked.to_json()


def test_axes_are_the_last_ones_if_nobody_says():
    store = ts.array(np.zeros((4, 5, 6)))

    image = Asked().image(PyramidSource(store))

    assert [axis.name for axis in image.metadata.axes] == ["z", "y", "x"]


def test_a_method_that_the_type_does_not_have():
    store = ts.array(np.zeros((4, 5), dtype="complex64"))

    with pytest.raises(ts.SpecError, match="median is not for complex64"):
        Asked(method="median").image(PyramidSource(store))
    with pytest.raises(ts.MismatchError, match="without loss"):
        Asked(dtype="uint8").image(PyramidSource(store))
