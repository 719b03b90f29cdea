import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py._compute.reductions import Asked, Reductions
from tensorstore_py._compute.row_states import RowStates, states_of

NAMES = ("min", "max", "sum", "std", "quantiles", "histogram", "count", "fill_count")


def reductions(dtype):
    return Reductions(Asked(NAMES, bins=4, range=(0, 9)), ts.dtype(dtype), None)


def known(data, box, asked, reduced):
    return RowStates({box: states_of(data, reduced, asked.measures, skips=False)})


@given(st.integers(0, 2**32), st.sampled_from(["u1", "i8", "f4"]), st.permutations(range(4)))
@settings(max_examples=20)
def test_states_merge_in_any_order(seed, dtype, order):
    data = np.random.default_rng(seed).integers(0, 9, size=(6, 5)).astype(dtype)
    asked = reductions(data.dtype)
    parts = [
        known(data[rows, columns], ((rows.start, rows.stop),), asked, (1,))
        for rows in (slice(0, 2), slice(2, 6))
        for columns in (slice(0, 3), slice(3, 5))
    ]

    found = RowStates({})
    for number in order:
        through = RowStates.from_json(json.loads(json.dumps(parts[number].to_json())))
        found = found.merged(through)

    assert sorted(found.states) == [((0, 2),), ((2, 6),)]
    for ((low, high),), states in found.states.items():
        rows = data[low:high]
        values = asked.result("quantiles", states, high - low)
        np.testing.assert_allclose(values, np.quantile(rows, asked.asked.q, axis=1).T, rtol=1e-6)
        assert asked.result("sum", states, high - low).tolist() == rows.sum(axis=1).tolist()
        assert asked.result("max", states, high - low).tolist() == rows.max(axis=1).tolist()
        np.testing.assert_allclose(
            asked.result("std", states, high - low), rows.std(axis=1), rtol=1e-6, atol=1e-12
        )


@pytest.mark.parametrize("reduced", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_lie_along_any_dimensions(reduced, order, monkeypatch):
    monkeypatch.setattr("tensorstore_py._compute.row_states._PIECE", 7)
    monkeypatch.setattr("tensorstore_py._compute.row_states._SIDE_BY_SIDE", 2)
    data = np.arange(60).reshape(3, 4, 5).astype("u2", order=order)
    asked = reductions(data.dtype)

    states = states_of(data, reduced, asked.measures, skips=False)

    wanted = data.sum(axis=reduced).ravel()
    assert asked.result("sum", states, wanted.size).tolist() == wanted.tolist()
    assert asked.result("min", states, wanted.size).tolist() == data.min(reduced).ravel().tolist()


@pytest.mark.parametrize("damaged", [[1], [[[[0, 1]], 5]], None, [[[[0]], {}]]])
def test_damaged_results_are_refused(damaged):
    with pytest.raises(ts.SpecError, match="damaged"):
        RowStates.from_json(damaged)
