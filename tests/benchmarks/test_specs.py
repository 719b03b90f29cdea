import pytest
import tensorstore

import tensorstore_py
from benchmarks.specs import SPECS, STEPS, main, measure, scene


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("step", STEPS)
def test_both_libraries_do_the_same(name, step):
    for ts in (tensorstore_py, tensorstore):
        names = scene(ts, name)
        eval(STEPS[step], names)
        assert ts.open(names["json"], context=names["context"]).result().shape == (1000, 2000)


def test_a_ratio_is_ours_over_the_wheel():
    ours, wheel, ratio = measure("zarr3", "parse", rounds=1, loops=2)
    assert ratio == pytest.approx(ours / wheel)


def test_prints_a_row_for_each(capsys):
    assert main(["--quick"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(SPECS) * len(STEPS)
