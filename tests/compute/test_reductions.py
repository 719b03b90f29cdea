import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._compute.reductions import Asked, Reductions


def test_a_measure_is_taken_once():
    asked = Asked(("mean", "sum", "min", "quantiles", "median", "std", "var"))

    found = Reductions(asked, ts.float32, None)

    assert sorted(found.measures) == ["buckets", "counts", "float_total", "max", "min", "spread"]


@pytest.mark.parametrize(
    ("dtype", "name", "defined"),
    [
        ("string", "min", '"count", "fill_count"'),
        ("ustring", "sum", '"count", "fill_count"'),
        ("json", "max", '"count", "fill_count"'),
        ("S4", "max", '"count", "fill_count"'),
        ([["a", "int8"]], "mean", '"count", "fill_count"'),
        ("complex64", "min", '"sum", "mean", "std", "var", "count", "fill_count"'),
        ("datetime64[s]", "sum", '"min", "max", "mean", "count", "fill_count"'),
        ("timedelta64[s]", "std", '"min", "max", "sum", "mean", "count", "fill_count"'),
    ],
)
def test_what_is_not_defined_names_what_is(dtype, name, defined):
    data_type = ts.dtype(dtype)
    with pytest.raises(ts.UnsupportedError) as raised:
        Reductions(Asked((name,)), data_type, None)

    assert data_type.name in str(raised.value)
    assert f'"{name}"' in str(raised.value)
    assert str(raised.value).endswith(f"of these there are {defined}")


def test_what_is_asked_goes_through_json():
    asked = Asked(("min",), bins=(1.0, 2.0), range=(0.0, 1.0), q=(0.5,), ddof=1, skipna=True)

    assert Asked.from_json(json.loads(json.dumps(asked.to_json()))) == asked


def test_a_sum_that_does_not_fit():
    found = Reductions(Asked(("sum",)), ts.int64, None)
    state = {"low": np.array([0]), "high": np.array([0]), "top": np.array([1])}
    counts = {"valid": np.array([2]), "missing": np.array([0])}

    with pytest.raises(ts.MismatchError, match="18446744073709551616, which does not fit int64"):
        found.result("sum", {"exact_total": state, "counts": counts}, 1)
