import numpy as np
import pytest

from tensorstore_py._compute.extremes import Extreme
from tensorstore_py._compute.measure import Piece


def extreme(rows, *, greatest, skips):
    data = np.array(rows)
    measure = Extreme(data.dtype, greatest=greatest, skips=skips)
    first, second = measure.begin(len(data)), measure.begin(len(data))
    half = data.shape[1] // 2
    measure.take(first, slice(None), Piece(data[:, :half], skips=skips))
    measure.take(second, slice(None), Piece(data[:, half:], skips=skips))
    (found,) = Extreme.merge(first, second).values()
    return found


@pytest.mark.parametrize("greatest", [False, True])
def test_nan_is_the_extreme_unless_it_is_passed_over(greatest):
    rows = [[1.0, np.nan, 3, 4], [np.nan, np.nan, np.nan, np.nan], [1, 2, 3, -np.inf]]

    kept = extreme(rows, greatest=greatest, skips=False)
    skipped = extreme(rows, greatest=greatest, skips=True)

    plain = np.max if greatest else np.min
    np.testing.assert_array_equal(kept, plain(rows, axis=1))
    np.testing.assert_array_equal(
        skipped, [4 if greatest else 1, np.nan, 3 if greatest else -np.inf]
    )


def test_whole_numbers_and_times():
    info = np.iinfo(np.int64)
    assert extreme([[info.max, info.min]], greatest=True, skips=False).tolist() == [info.max]
    times = np.array([["NaT", "2020-01-03", "2020-01-02", "NaT"]], "M8[D]")
    least = extreme(times, greatest=False, skips=False)
    assert least.view("M8[D]").tolist() == np.array(["2020-01-02"], "M8[D]").tolist()
