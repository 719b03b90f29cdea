import json

import ml_dtypes
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._compute.counts import Counts
from tensorstore_py._compute.measure import Piece, computable, state_from_json, state_json


@pytest.mark.parametrize(
    "dtype", ["int2", "int4", "uint4", "bfloat16", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"]
)
def test_every_small_number_is_computed_with_exactly(dtype):
    raw = np.arange(4).astype(np.dtype(getattr(ml_dtypes, dtype)))
    piece = Piece(raw[None], skips=False)

    assert piece.values.dtype == computable(raw.dtype)
    np.testing.assert_array_equal(piece.values, [[float(each) for each in raw]])


def test_what_is_missing():
    raw = np.array([[1, np.nan], [2, 3]])

    assert Piece(raw, skips=True).count().tolist() == [1, 2]
    assert Piece(raw, skips=False).count().tolist() == [2, 2]
    times = np.array([["2020-01-01", "NaT"]], "M8[D]")
    assert Piece(times, skips=False).count().tolist() == [1]


def test_states_go_through_json():
    state = Counts().begin(3)
    state["valid"] += 5

    back = state_from_json(json.loads(json.dumps(state_json(state))))

    assert {name: each.tolist() for name, each in back.items()} == {
        "valid": [5, 5, 5], "missing": [0, 0, 0],
    }  # fmt: skip
    back["valid"] += 1  # and can be changed


@pytest.mark.parametrize("damaged", [{"a": 1}, {"a": ["<i8", [2], "00"]}, {"a": ["?!", [1], ""]}])
def test_damaged_states_are_refused(damaged):
    with pytest.raises(ts.SpecError, match="damaged"):
        state_from_json(damaged)
