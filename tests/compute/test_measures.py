"""Measures of arrays beside NumPy's: sums, extremes, spreads, bins, comparisons, fingerprints."""

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorstore_py as ts
from tensorstore_py._compute.diff_operation import (
    Tolerance,
    comparable,
    differing,
    largest_distance,
)
from tensorstore_py._compute.distribution import Bins, Buckets, edges_of, quantiles
from tensorstore_py._compute.fingerprint import LANES, PRIME, _keys_along, added, fingerprint
from tensorstore_py._compute.measure import (
    Counts,
    ExactTotal,
    Extreme,
    FillCount,
    FloatTotal,
    Piece,
    Spread,
    computable,
    equal_to,
    exact_sums,
    float_sums,
    narrow_sums,
    state_from_json,
    state_json,
    variances,
)
from tensorstore_py._compute.reduce_operation import RowStates, states_of
from tensorstore_py._compute.reductions import ReductionRequest, Reductions


class TestMeasure:
    @pytest.mark.parametrize(
        "dtype",
        ["int2", "int4", "uint4", "bfloat16", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"],
    )
    def test_every_small_number_is_computed_with_exactly(self, dtype):
        raw = np.arange(4).astype(np.dtype(getattr(ml_dtypes, dtype)))
        piece = Piece(raw[None], skips=False)

        assert piece.values.dtype == computable(raw.dtype)
        np.testing.assert_array_equal(piece.values, [[float(each) for each in raw]])

    def test_what_is_missing(self):
        raw = np.array([[1, np.nan], [2, 3]])

        assert Piece(raw, skips=True).count().tolist() == [1, 2]
        assert Piece(raw, skips=False).count().tolist() == [2, 2]
        times = np.array([["2020-01-01", "NaT"]], "M8[D]")
        assert Piece(times, skips=False).count().tolist() == [1]

    def test_states_go_through_json(self):
        state = Counts().begin(3)
        state["valid"] += 5

        back = state_from_json(json.loads(json.dumps(state_json(state))))

        assert {name: each.tolist() for name, each in back.items()} == {
            "valid": [5, 5, 5], "missing": [0, 0, 0],
        }  # fmt: skip
        back["valid"] += 1  # and can be changed

    @pytest.mark.parametrize(
        "damaged", [{"a": 1}, {"a": ["<i8", [2], "00"]}, {"a": ["?!", [1], ""]}]
    )
    def test_damaged_states_are_refused(self, damaged):
        with pytest.raises(ts.SpecError, match="damaged"):
            state_from_json(damaged)


class TestCounts:
    def test_counts(self):
        counts = Counts()
        state = counts.begin(2)
        counts.take(state, slice(0, 2), Piece(np.array([[1, np.nan], [2, 3]]), skips=True))
        counts.take(state, slice(1, 2), Piece(np.array([[np.nan]]), skips=True))

        assert (state["valid"].tolist(), state["missing"].tolist()) == ([1, 2], [1, 1])
        both = Counts.merge(state, state)
        assert both["valid"].tolist() == [2, 4]

    def test_fill_values(self):
        fill = FillCount(np.array(np.nan))
        state = fill.begin(1)

        fill.take(state, slice(0, 1), Piece(np.array([[np.nan, 0, np.nan]]), skips=False))

        assert FillCount.merge(state, state)["count"].tolist() == [4]

    @pytest.mark.parametrize(
        ("values", "other", "same"),
        [
            (np.array([b"a", b"b", b""], object), np.array(b"b", object), [False, True, False]),
            (np.array(["x", "y"]), np.array("y"), [False, True]),
            (np.array(["2020", "NaT"], "M8[Y]"), np.array("NaT", "M8[Y]"), [False, True]),
            (np.array([0.0, -0.0]), np.array(0.0), [True, True]),
            (
                np.array([(1, np.nan), (1, 2)], [("a", "i4"), ("b", "f4")]),
                np.array((1, np.nan), [("a", "i4"), ("b", "f4")]),
                [True, False],
            ),
            (
                np.array([([1, 2],), ([1, 3],)], [("a", "i4", (2,))]),
                np.array(([1, 2],), [("a", "i4", (2,))]),
                [True, False],
            ),
        ],
    )
    def test_equality(self, values, other, same):
        assert equal_to(values, other).tolist() == same


def extreme(rows, *, greatest, skips):
    data = np.array(rows)
    measure = Extreme(data.dtype, greatest=greatest, skips=skips)
    first, second = measure.begin(len(data)), measure.begin(len(data))
    half = data.shape[1] // 2
    measure.take(first, slice(None), Piece(data[:, :half], skips=skips))
    measure.take(second, slice(None), Piece(data[:, half:], skips=skips))
    (found,) = Extreme.merge(first, second).values()
    return found


class TestExtremes:
    @pytest.mark.parametrize("greatest", [False, True])
    def test_nan_is_the_extreme_unless_it_is_passed_over(self, greatest):
        rows = [[1.0, np.nan, 3, 4], [np.nan, np.nan, np.nan, np.nan], [1, 2, 3, -np.inf]]

        kept = extreme(rows, greatest=greatest, skips=False)
        skipped = extreme(rows, greatest=greatest, skips=True)

        plain = np.max if greatest else np.min
        np.testing.assert_array_equal(kept, plain(rows, axis=1))
        np.testing.assert_array_equal(
            skipped, [4 if greatest else 1, np.nan, 3 if greatest else -np.inf]
        )

    def test_whole_numbers_and_times(self):
        info = np.iinfo(np.int64)
        assert extreme([[info.max, info.min]], greatest=True, skips=False).tolist() == [info.max]
        times = np.array([["NaT", "2020-01-03", "2020-01-02", "NaT"]], "M8[D]")
        least = extreme(times, greatest=False, skips=False)
        assert least.view("M8[D]").tolist() == np.array(["2020-01-02"], "M8[D]").tolist()


def total(measure, data, cut):
    states = []
    for part in (data[:, :cut], data[:, cut:]):
        state = measure.begin(len(data))
        measure.take(state, slice(None), Piece(part, skips=False))
        states.append(state)
    return measure.merge(*states)


class TestTotals:
    @given(st.data(), st.sampled_from(["i1", "u1", "i2", "u4", "i8", "u8"]))
    def test_whole_numbers_are_summed_exactly(self, draw, dtype):
        data = draw.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20)))

        found = exact_sums(total(ExactTotal(), data, data.shape[1] // 2))

        assert found.tolist() == data.astype(object).sum(axis=1).tolist()
        narrow = narrow_sums(total(ExactTotal(), data, 1))
        fits = all(-(2**63) <= each < 2**63 for each in found)
        assert fits == (narrow is not None)
        if narrow is not None:
            assert narrow.tolist() == found.tolist()

    def test_a_sum_beyond_64_bits(self):
        data = np.full((1, 1000), np.iinfo(np.uint64).max)

        assert exact_sums(total(ExactTotal(), data, 10)).tolist() == [1000 * (2**64 - 1)]

    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
    def test_what_rounding_loses_is_kept(self, dtype):
        data = np.array([[1e4, 1e-3, -1e4]], dtype)
        measure = FloatTotal(data.dtype)
        states = []
        for column in range(3):
            state = measure.begin(1)
            measure.take(state, slice(None), Piece(data[:, column : column + 1], skips=False))
            states.append(state)

        found = [
            float_sums(FloatTotal.merge(states[one], FloatTotal.merge(states[two], states[three])))
            for one, two, three in ((0, 1, 2), (2, 1, 0), (1, 0, 2))
        ]

        assert (
            found[0] == found[1] == found[2] == data[0, 1].astype("c16" if dtype == "c8" else "f8")
        )

    @pytest.mark.parametrize(
        ("values", "sum"),
        [([np.inf, 1, np.inf], np.inf), ([np.inf, -np.inf], np.nan), ([np.nan], np.nan)],
    )
    def test_what_is_not_finite(self, values, sum):
        np.testing.assert_equal(
            float_sums(total(FloatTotal(np.dtype("f8")), np.array([values]), 1)), [sum]
        )


def spread(data, cuts, *, skips=False):
    measure = Spread(data.dtype)
    states = []
    for part in np.split(data, cuts, axis=1):
        state = measure.begin(len(data))
        if part.size:
            measure.take(state, slice(None), Piece(part, skips=skips))
        states.append(state)
    found = states[0]
    for state in states[1:]:
        found = Spread.merge(state, found)
    return found


class TestSpread:
    @given(st.integers(0, 2**32), st.lists(st.integers(0, 40), max_size=3), st.sampled_from([0, 1]))
    @settings(max_examples=50)
    def test_a_small_spread_around_a_large_mean(self, seed, cuts, ddof):
        data = 1e8 + np.random.default_rng(seed).normal(size=(3, 40))

        found = variances(spread(data, sorted(cuts)), ddof)

        np.testing.assert_allclose(found, data.var(axis=1, ddof=ddof), rtol=1e-6)

    @pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "c16"])
    def test_as_numpy(self, dtype):
        data = np.random.default_rng(1).integers(0, 9, size=(2, 30)).astype(dtype)
        if dtype == "c16":
            data = data * (1 + 2j)

        np.testing.assert_allclose(
            variances(spread(data, [7, 7, 20]), 0), data.var(axis=1), rtol=1e-6
        )

    def test_nan_that_is_passed_over(self):
        data = np.array([[1, np.nan, 3, 8], [np.nan] * 4])

        found = variances(spread(data, [1, 2], skips=True), 0)

        np.testing.assert_allclose(found, [np.nanvar(data[0]), np.nan])

    def test_no_more_elements_than_are_taken_off(self):
        assert np.isnan(variances(spread(np.array([[3.0]]), []), 1)).all()


DTYPES = ["u1", "i1", "i2", "u4", "i8", "f2", "f4", "f8"]


def counts(data, edges, cut):
    bins = Bins(edges, data.dtype)
    states = []
    for part in (data[:, :cut], data[:, cut:]):
        state = bins.begin(len(data))
        bins.take(state, slice(None), Piece(part, skips=False))
        states.append(state)
    return Bins.merge(*states)["counts"]


class TestBins:
    @given(
        st.data(),
        st.sampled_from(DTYPES),
        st.integers(1, 12),
        st.tuples(st.integers(-50, 50), st.integers(0, 90)),
    )
    def test_as_numpy(self, draw, dtype, bins, limits):
        low, wide = limits
        elements = None if dtype[0] != "f" else st.floats(-99, 99, width=16) | st.just(np.nan)
        data = draw.draw(hnp.arrays(dtype, (2, 17), elements=elements))
        edges = edges_of(data.dtype, bins, (low, low + wide))

        found = counts(data, edges, 5)

        for row, of_row in zip(data, found, strict=True):
            wanted, known = np.histogram(row, bins, (low, low + wide))
            assert of_row.tolist() == wanted.tolist()
            np.testing.assert_array_equal(known, edges)

    @pytest.mark.parametrize("edges", [[0, 1, 10, 10, 50], [-3.5, 2]])
    def test_given_edges(self, edges):
        data = np.array([[-4, 0, 1, 9, 10, 50, 51, 2]], "f4")

        found = counts(data, edges_of(data.dtype, edges, None), 3)

        assert found.tolist() == [np.histogram(data, edges)[0].tolist()]

    def test_the_range_of_small_whole_numbers_is_known(self):
        assert edges_of(np.dtype("i1"), 256, None).tolist() == list(range(-128, 129))
        assert edges_of(np.dtype(bool), 256, None).tolist() == [0, 1, 2]
        assert edges_of(np.dtype("u2"), 2, None).tolist() == [0, 32768, 65536]

    @pytest.mark.parametrize(
        ("bins", "range", "member"),
        [
            (5, None, "range"), (0, (0, 1), "bins"), (5, (1, 0), "range"), ([1], None, "bins"),
            ([2, 1], None, "bins"), (5, (0, np.inf), "range"),
        ],
    )  # fmt: skip
    def test_bins_that_are_none(self, bins, range, member):
        with pytest.raises(ts.SpecError) as raised:
            edges_of(np.dtype("f4"), bins, range)

        assert raised.value.path == (member,)

    def test_many_bins_of_few_elements(self):
        data = np.array([[3], [200]], "u1")

        found = counts(data, edges_of(data.dtype, 256, None), 1)

        assert [np.nonzero(row)[0].tolist() for row in found] == [[3], [200]]


ASKED = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)


EXACT = ["b1", "u1", "i1", "u2", "i2", "f2"]


LARGE = ["i4", "u4", "i8", "u8", "f4", "f8"]


def found_quantiles(data, cut):
    sketch = Buckets(data.dtype)
    states = []
    for part in (data[:, cut:], data[:, :cut]):
        state = sketch.begin(len(data))
        for row in range(len(data)):  # in pieces
            piece = Piece(part[row : row + 1], skips=False)
            sketch.take(state, slice(row, row + 1), piece)
        states.append(sketch.close(state))
    return quantiles(sketch, Buckets.merge(*states), len(data), ASKED)


def drawn(draw, dtype):
    elements = None
    if dtype[0] == "f":
        width: Any = 8 * int(dtype[1])
        most = None if width < 64 else 1e300
        elements = st.floats(
            -most if most else None, most, width=width, allow_nan=False, allow_infinity=False
        )
    return draw.draw(hnp.arrays(dtype, (2, 23), elements=elements))


class TestBuckets:
    @given(st.data(), st.sampled_from(EXACT))
    def test_small_numbers_have_exact_quantiles(self, draw, dtype):
        data = drawn(draw, dtype)

        found = found_quantiles(data, 7)

        wide = data.astype("f8")
        np.testing.assert_allclose(found, np.quantile(wide, ASKED, axis=1).T, rtol=1e-12)

    @given(st.data(), st.sampled_from(LARGE))
    def test_the_error_of_others_is_bounded(self, draw, dtype):
        data = drawn(draw, dtype)

        found = found_quantiles(data, 7)

        sides = np.sort(data.astype("f8"), axis=1)
        for column, share in enumerate(ASKED):
            at = share * (data.shape[1] - 1)
            low, high = sides[:, int(np.floor(at))], sides[:, int(np.ceil(at))]
            bound = np.maximum(np.abs(low), np.abs(high)) * 2.0**-11
            bound += np.finfo("f4").tiny * (dtype == "f4") + np.finfo("f8").tiny
            assert (found[:, column] >= low - bound).all()
            assert (found[:, column] <= high + bound).all()

    @pytest.mark.parametrize("dtype", LARGE)
    def test_numbers_of_few_bits_are_exact(self, dtype):
        data = np.arange(4096).astype(dtype)[None]

        np.testing.assert_array_equal(found_quantiles(data, 100)[0, [0, -1]], [0, 4095])
        assert found_quantiles(data[:, :3].copy(), 1)[0, 3] == 1

    def test_infinities_nan_and_nothing(self):
        data = np.array([[-np.inf, np.inf, np.inf], [np.nan, 1, 3], [np.nan] * 3])

        found = found_quantiles(data, 2)

        assert found[0, [0, -1]].tolist() == [-np.inf, np.inf]
        assert found[1, 3] == 2
        assert np.isnan(found[2]).all()

    def test_many_different_numbers(self):
        data = np.random.default_rng(3).normal(size=(1, 400_000))
        sketch = Buckets(data.dtype)
        state = sketch.begin(1)
        for part in np.split(data, 4, axis=1):
            sketch.take(state, slice(0, 1), Piece(part * 1e-300, skips=False))
            sketch.take(state, slice(0, 1), Piece(part * 1e300, skips=False))

        found = quantiles(sketch, sketch.close(state), 1, (0.25,))

        both = np.concatenate([data * 1e-300, data * 1e300], axis=1)
        np.testing.assert_allclose(found[0], np.quantile(both, [0.25]), rtol=1e-3)


class TestReductions:
    def test_a_measure_is_taken_once(self):
        asked = ReductionRequest(("mean", "sum", "min", "quantiles", "median", "std", "var"))

        found = Reductions(asked, ts.float32, None)

        assert sorted(found.measures) == [
            "buckets",
            "counts",
            "float_total",
            "max",
            "min",
            "spread",
        ]

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
    def test_what_is_not_defined_names_what_is(self, dtype, name, defined):
        data_type = ts.dtype(dtype)
        with pytest.raises(ts.UnsupportedError) as raised:
            Reductions(ReductionRequest((name,)), data_type, None)

        assert data_type.name in str(raised.value)
        assert f'"{name}"' in str(raised.value)
        assert str(raised.value).endswith(f"of these there are {defined}")

    def test_what_is_asked_goes_through_json(self):
        asked = ReductionRequest(
            ("min",), bins=(1.0, 2.0), range=(0.0, 1.0), q=(0.5,), ddof=1, skipna=True
        )

        assert ReductionRequest.from_json(json.loads(json.dumps(asked.to_json()))) == asked

    def test_a_sum_that_does_not_fit(self):
        found = Reductions(ReductionRequest(("sum",)), ts.int64, None)
        state = {"low": np.array([0]), "high": np.array([0]), "top": np.array([1])}
        counts = {"valid": np.array([2]), "missing": np.array([0])}

        with pytest.raises(
            ts.MismatchError, match="18446744073709551616, which does not fit int64"
        ):
            found.result("sum", {"exact_total": state, "counts": counts}, 1)


NAMES = ("min", "max", "sum", "std", "quantiles", "histogram", "count", "fill_count")


def reductions(dtype):
    return Reductions(ReductionRequest(NAMES, bins=4, range=(0, 9)), ts.dtype(dtype), None)


def known(data, box, asked, reduced):
    return RowStates({box: states_of(data, reduced, asked.measures, skips=False)})


class TestRowStates:
    @given(st.integers(0, 2**32), st.sampled_from(["u1", "i8", "f4"]), st.permutations(range(4)))
    @settings(max_examples=20)
    def test_states_merge_in_any_order(self, seed, dtype, order):
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
            np.testing.assert_allclose(
                values, np.quantile(rows, asked.asked.q, axis=1).T, rtol=1e-6
            )
            assert asked.result("sum", states, high - low).tolist() == rows.sum(axis=1).tolist()
            assert asked.result("max", states, high - low).tolist() == rows.max(axis=1).tolist()
            np.testing.assert_allclose(
                asked.result("std", states, high - low), rows.std(axis=1), rtol=1e-6, atol=1e-12
            )

    @pytest.mark.parametrize("reduced", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_rows_lie_along_any_dimensions(self, reduced, order, monkeypatch):
        monkeypatch.setattr("tensorstore_py._compute.reduce_operation._PIECE", 7)
        monkeypatch.setattr("tensorstore_py._compute.reduce_operation._SIDE_BY_SIDE", 2)
        data = np.arange(60).reshape(3, 4, 5).astype("u2", order=order)
        asked = reductions(data.dtype)

        states = states_of(data, reduced, asked.measures, skips=False)

        wanted = data.sum(axis=reduced).ravel()
        assert asked.result("sum", states, wanted.size).tolist() == wanted.tolist()
        assert (
            asked.result("min", states, wanted.size).tolist() == data.min(reduced).ravel().tolist()
        )

    @pytest.mark.parametrize("damaged", [[1], [[[[0, 1]], 5]], None, [[[[0]], {}]]])
    def test_damaged_results_are_refused(self, damaged):
        with pytest.raises(ts.SpecError, match="damaged"):
            RowStates.from_json(damaged)


NAN = np.nan


class TestComparison:
    @pytest.mark.parametrize(
        ("one", "other", "equal_nan", "differ"),
        [
            ([1.0, NAN, -0.0], [1.0, NAN, 0.0], True, [False, False, False]),
            ([1.0, NAN, NAN], [1.0, NAN, 0.0], False, [False, True, True]),
            (["a", "b"], ["a", "c"], True, [False, True]),
        ],
    )
    def test_values_are_compared(self, one, other, equal_nan, differ):
        found = differing(np.array(one), np.array(other), Tolerance(equal_nan))

        assert found.tolist() == differ

    @pytest.mark.parametrize("equal_nan", [True, False])
    def test_tolerances_are_those_of_numpy(self, equal_nan):
        values = np.array([0, 1, 1.05, 100, 104.9, 106, np.inf, -np.inf, NAN])
        one, other = (each.ravel() for each in np.meshgrid(values, values))

        found = differing(one, other, Tolerance(equal_nan, rtol=0.05, atol=0.06))

        wanted = ~np.isclose(one, other, rtol=0.05, atol=0.06, equal_nan=equal_nan)
        assert found.tolist() == wanted.tolist()

    def test_whole_numbers_near_each_other(self):
        one, other = np.array([0, 255, 10], "u1"), np.array([255, 0, 12], "u1")

        assert differing(one, other, Tolerance(atol=2)).tolist() == [True, True, False]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("i2", "f4"),
            ("bool", "u1"),
            ("c8", "f8"),
            (ml_dtypes.bfloat16, "f4"),
            (ml_dtypes.int4, "i8"),
        ],
    )
    def test_numbers_of_two_types(self, one, other):
        here, there = np.array([0, 1, 1]).astype(one), np.array([0, 1, 0]).astype(other)

        assert comparable(here.dtype, there.dtype)
        assert differing(here, there, Tolerance()).tolist() == [False, False, True]
        assert largest_distance(here, there) == 1

    def test_times_and_bytes(self):
        one, other = (
            np.array(each, "M8[D]") for each in (["2020-01-01", "NaT"], ["2020-01-03", "NaT"])
        )
        assert differing(one, other, Tolerance()).tolist() == [True, False]
        assert differing(one, other, Tolerance(equal_nan=False)).tolist() == [True, True]
        assert largest_distance(one, other) == np.timedelta64(2, "D")
        assert not comparable(one.dtype, np.dtype("i8"))
        assert largest_distance(np.array([b"a"], object), np.array([b"b"], object)) is None

    @pytest.mark.parametrize(
        ("one", "other", "far"),
        [
            (np.array([-(2**63)]), np.array([2**63 - 1]), 2**64 - 1),
            (np.array([0], "u8"), np.array([2**64 - 1], "u8"), 2**64 - 1),
            (np.array([1.0, NAN]), np.array([4.0, 1.0]), 3.0),
            (np.array([3j]), np.array([4.0 + 0j]), 5.0),
            (np.array([], "i2"), np.array([], "i2"), None),
        ],
    )
    def test_the_largest_distance(self, one, other, far):
        assert largest_distance(one, other) == far


OF_EACH_KIND = ["bool", "u1", "i2", "f4", "M8[s]", "c16", "S3", "U2", "V5"]


def one_by_one(data):
    """What the fingerprint is, by its definition."""
    words = np.ascontiguousarray(data).reshape(-1, 1)
    size = data.dtype.itemsize
    words = words.view(np.uint8 if size % 2 else "<u2").reshape(*data.shape, -1)
    rank = max(1, data.ndim)
    total = [0] * LANES
    for position in np.ndindex(data.shape):
        for number, word in enumerate(words[position].tolist()):
            where = [*position] or [0]
            where[-1] = where[-1] * words.shape[-1] + number
            for lane in range(LANES):
                key = word
                for dim, at in enumerate(where):
                    key = key * int(_keys_along(rank - 1 - dim, at, 1)[lane, 0]) % PRIME
                total[lane] += key
    return tuple(each % PRIME for each in total)


class TestFingerprint:
    @pytest.mark.parametrize("dtype", OF_EACH_KIND)
    @pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (1, 1, 1, 2)])
    def test_the_definition(self, dtype, shape):
        rng = np.random.default_rng(0)
        data = rng.integers(0, 2**8, size=(*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
        if dtype in ("bool", "U2"):
            data = np.zeros_like(data)
            data[..., :1] = 1
        data = data.view(dtype).reshape(shape)

        assert fingerprint(data, (0,) * len(shape), ts.dtype(data.dtype)) == one_by_one(data)

    @given(st.data(), st.sampled_from(["u1", "f4", "f8"]))
    @settings(max_examples=30)
    def test_parts_are_added_in_any_order(self, draw, dtype):
        data = draw.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=4, max_side=6)))
        data_type = ts.dtype(data.dtype)
        dim = draw.draw(st.integers(0, data.ndim - 1))
        cut = draw.draw(st.integers(0, data.shape[dim]))
        origin = [0] * data.ndim
        origin[dim] = cut
        one, other = np.split(data, [cut], axis=dim)

        whole = fingerprint(data, [0] * data.ndim, data_type)
        parts = fingerprint(one, [0] * data.ndim, data_type), fingerprint(other, origin, data_type)

        assert added(*parts) == added(*parts[::-1]) == whole
        assert fingerprint(np.asfortranarray(data), [0] * data.ndim, data_type) == whole

    @given(st.data())
    @settings(max_examples=50)
    def test_any_change_changes_it(self, draw):
        data = draw.draw(hnp.arrays("u1", hnp.array_shapes(min_dims=1, max_dims=3, max_side=8)))
        at = tuple(draw.draw(st.integers(0, extent - 1)) for extent in data.shape)
        changed = data.copy()
        changed[at] ^= draw.draw(st.integers(1, 255))

        origin = (0,) * data.ndim
        assert fingerprint(data, origin, ts.uint8) != fingerprint(changed, origin, ts.uint8)
        swapped = data[::-1]
        if not np.array_equal(swapped, data):
            assert fingerprint(data, origin, ts.uint8) != fingerprint(swapped, origin, ts.uint8)

    def test_no_two_of_many_arrays_share_it_not_even_by_one_lane(self):
        lanes = [fingerprint(np.array([one, other], "u1"), (0,), ts.uint8)
                 for one in range(64) for other in range(64)]  # fmt: skip

        for lane in range(LANES):
            assert len({each[lane] for each in lanes}) == len(lanes)

    def test_long_rows_are_taken_in_pieces(self):
        data = np.arange(70_000, dtype="u2")
        wide = np.broadcast_to(data, (3, 70_000))

        found = fingerprint(data, (5,), ts.uint16)

        parts = [
            fingerprint(data[at : at + 999], (5 + at,), ts.uint16) for at in range(0, 70_000, 999)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = added(total, part)
        assert found == total
        assert fingerprint(wide, (0, 0), ts.uint16) != fingerprint(wide[:2], (0, 0), ts.uint16)

    @pytest.mark.parametrize(
        ("values", "dtype"),
        [
            ([b"", b"a", b"bcd"], "string"), (["", "ä", "xyz"], "ustring"),
            ([{"b": 1, "a": [None]}, 3, "x"], "json"),
        ],
    )  # fmt: skip
    def test_elements_of_any_length(self, values, dtype):
        data = np.empty(3, object)
        data[:] = values
        data_type = ts.dtype(dtype)

        whole = fingerprint(data, (0,), data_type)

        assert (
            added(fingerprint(data[:1], (0,), data_type), fingerprint(data[1:], (1,), data_type))
            == whole
        )
        assert fingerprint(data[::-1], (0,), data_type) != whole

    def test_the_order_of_members_is_no_part_of_json(self):
        one, other = np.empty(1, object), np.empty(1, object)
        one[0], other[0] = {"a": 1, "b": 2}, {"b": 2, "a": 1}

        assert fingerprint(one, (0,), ts.json) == fingerprint(other, (0,), ts.json)

    def test_objects_of_any_kind_have_none(self):
        with pytest.raises(ts.UnsupportedError, match="have no digest"):
            fingerprint(np.array([object()]), (0,), ts.dtype("object"))
