import sys

import pytest

from benchmarks.memory import MIB, Sample, Sizes, copy, lines, main, make_source


def test_sizes() -> None:
    assert Sizes.of(4 * 2**30, small=False).shape == (512, 2048, 2048)
    assert Sizes.of(4 * 2**30, small=False).nbytes == 4 * 2**30
    assert Sizes.of(16 * MIB, small=True).nbytes == 16 * MIB


def test_a_table_over_time_with_the_peak_below() -> None:
    seen = [Sample(0.0, 0, 0.0), Sample(1.0, 3 * MIB, 0.5), Sample(2.0, MIB, 1.0)]
    table = lines(seen, 100 * MIB)
    assert [line.split() for line in table[1:4]] == [
        ["0.00", "0", "0%"],
        ["1.00", "3", "50%"],
        ["2.00", "1", "100%"],
    ]
    assert table[-1] == "peak 3 MiB beyond the interpreter, of 100 MiB copied at 50 MiB/s"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel says what is resident")
def test_a_small_copy_stays_within_its_limit(tmp_path) -> None:
    sizes = Sizes((64, 128, 256), 16, 32, 16)
    spec = make_source(tmp_path, sizes)
    seen = copy(tmp_path, spec, sizes, limit=MIB, every_s=0.005)
    assert seen[-1].fraction == 1
    assert max(each.resident for each in seen) < 64 * MIB  # other tests' garbage comes and goes


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel says what is resident")
def test_it_prints_and_says_whether_it_held_too_much(tmp_path, capfd) -> None:
    assert main(["--small", "--place", str(tmp_path)]) == 0
    assert "beyond the interpreter, of 16 MiB copied" in capfd.readouterr().out
    assert list(tmp_path.iterdir()) == []
