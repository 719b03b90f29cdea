import pickle

import numpy as np
import pytest

from tensorstore_py.codecs.pickle import Pickle, PickleSpec
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

CHUNK = ChunkType((2, 2), np.dtype(object), np.array(None))
VALUES = np.array([[1, {2}], [(3,), b"4"]], object)


def test_a_chunk_is_a_pickled_array() -> None:
    encoded = Pickle(CHUNK, 4).encode(VALUES)

    assert pickle.loads(encoded).tolist() == VALUES.tolist()
    assert Pickle(CHUNK, 4).decode(encoded).tolist() == VALUES.tolist()
    assert Pickle(CHUNK, 5).decode(encoded).tolist() == VALUES.tolist()


def test_an_array_in_fortran_order_is_read_as_it_lies() -> None:
    values = np.arange(6, dtype="<i4").reshape(2, 3)
    encoded = pickle.dumps(np.asfortranarray(values))

    found = Pickle(chunk_type((6,), "<i4"), 5).decode(encoded)

    assert found.tolist() == values.ravel("F").tolist()


def test_it_says_that_it_runs_code() -> None:
    assert PickleSpec.runs_code
    assert PickleSpec().object_type == "object"
    with pytest.raises(SpecError, match=r"^protocol: "):
        parse_codec_json("zarr", {"id": "pickle", "protocol": 6})


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", pickle.dumps(5), pickle.dumps(np.arange(4)), pickle.dumps(VALUES[0]),
     b"cos\nno_such_name\n."],
)  # fmt: skip
def test_anything_else_is_data_loss(data: bytes) -> None:
    with pytest.raises(DataLossError):
        Pickle(CHUNK, 5).decode(data)
