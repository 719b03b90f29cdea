import pytest
import tensorstore

import tensorstore_py
from benchmarks.indexing import EXPRESSIONS, measure, scene


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_both_libraries_compute_the_same(name: str) -> None:
    expression = EXPRESSIONS[name]

    ours, wheel = (eval(expression, scene(ts)) for ts in (tensorstore_py, tensorstore))

    assert repr(ours) == repr(wheel)


def test_a_ratio_is_ours_over_the_wheel() -> None:
    ours, wheel, ratio = measure("x[1:5]", rounds=1, loops=2)

    assert ratio == pytest.approx(ours / wheel)
