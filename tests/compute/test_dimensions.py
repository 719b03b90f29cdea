"""Which dimension is which, what a block sees beyond its bounds, and the steps of levels."""

import json
import math
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py._compute.alignment import Alignment, Frame, listed, named, numbered
from tensorstore_py._compute.map_blocks_options import Halo, MapOptions, extended
from tensorstore_py._compute.pyramid import LevelForm, pyramid_steps, smaller_shape


class TestDimensionNames:
    @pytest.mark.parametrize(
        ("given", "found"), [(None, ()), ("z", ("z",)), (-1, (-1,)), (["z", 0], ("z", 0))]
    )
    def test_one_or_several(self, given, found):
        assert listed(given, "drop") == found

    @pytest.mark.parametrize("wrong", [True, 1.5, {"z": 1}, [None], b"z"])
    def test_what_names_no_dimension(self, wrong):
        with pytest.raises(TypeError, match="drop is a label or number"):
            listed(wrong, "drop")

    def test_numbers_of_json_are_text(self):
        assert numbered(["1", "-1", 0], ["", "", ""], "drop") == [1, 2, 0]
        assert numbered(["1"], ["1", "0"], "drop") == [0]  # a label goes first

    def test_values_by_number(self):
        assert named({"y": 3, -1: 4}, ["z", "y", "x"], "halo") == {1: 3, 2: 4}

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (["zz"], r'halo: no dimension is named "zz".*"z", "y"'),
            ([2], "halo: there are 2 dimensions, and none of number 2"),
            (["z", 0], "halo: dimension 0 is given twice"),
        ],
    )
    def test_what_is_not_there(self, given, message):
        with pytest.raises(ts.SpecError, match=message):
            numbered(given, ["z", "y"], "halo")

    def test_without_labels_numbers_are_asked_for(self):
        with pytest.raises(ts.SpecError, match="none has a label: give numbers"):
            numbered(["z"], ["", ""], "halo")


def frame(**sizes):
    return Frame(tuple(sizes), tuple(sizes.values()))


def plain(*sizes):
    return Frame(("",) * len(sizes), sizes)


def of(*sources, target=None, drop=(), new=None):
    return Alignment.of(sources, target, drop, new or {})


class TestAlignment:
    def test_by_label_in_any_order(self):
        found = of(frame(y=3, x=4), frame(x=4, t=2, y=1))
        assert found.space == frame(x=4, t=2, y=3)
        assert found.sources == ((2, 0), (0, 1, 2))
        assert found.once == ((), (2,))

    def test_from_the_last_one_back_without_labels(self):
        found = of(plain(4), plain(2, 3, 4), plain(3, 1))
        assert found.space == plain(2, 3, 4)
        assert found.sources == ((2,), (0, 1, 2), (1, 2))
        assert found.once == ((), (), (2,))

    def test_labels_that_only_one_has_are_kept(self):
        assert of(plain(2, 3), frame(y=2, x=3)).made == frame(y=2, x=3)

    def test_what_the_target_lacks_is_dropped(self):
        assert of(frame(z=2, y=3, x=4), target=frame(y=3, x=4)).dropped == (0,)
        assert of(plain(2, 3, 4), target=plain(3, 4)).dropped == (0,)

    def test_what_only_the_target_has_is_new_and_last(self):
        found = of(frame(z=2, y=3, x=4), target=frame(c=5, x=4, y=3))
        assert found.dropped == (0,)
        assert found.made == frame(y=3, x=4, c=5)
        assert found.order == (2, 1, 0)
        assert found.target_dims == (None, 2, 1)

    def test_without_labels_it_is_where_the_target_has_it(self):
        found = of(plain(3, 4), target=plain(5, 3, 4))
        assert (found.made, found.order) == (plain(5, 3, 4), (0, 1, 2))
        assert found.target_dims == (None, 0, 1)

    def test_as_it_was_asked_for(self):
        found = of(frame(z=2, y=3), drop=["z"], new={"c": 5, 0: 7})
        assert found.made == Frame(("", "y", "c"), (7, 3, 5))
        assert found.output == (None, 1, None)
        assert of(plain(2, 3), drop=[0], new={-1: 4}).made == plain(3, 4)
        assert of(plain(2), drop=[0]).made == plain()

    def test_asked_for_and_there(self):
        found = of(frame(z=2, y=3), target=frame(c=5, y=3), drop=["z"], new={"c": 5})
        assert (found.made, found.order) == (frame(y=3, c=5), (1, 0))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ([frame(y=3), frame(y=4)], None),
                r'dimension 0 \("y"\) of source 1 has extent 4.*has 3',
            ),
            (([plain(3)], plain(4)), r"dimension 0 of the target has extent 4.*has 3"),
            (([plain(1)], plain(4)), r"dimension 0 of the target has extent 4"),
            (
                ([frame(z=2, y=3)], frame(t=3), ["z"]),
                r"the target has the dimensions \(t: 3\).*\(y: 3",
            ),
        ],
    )
    def test_what_does_not_fit(self, arguments, message):
        sources, target, *drop = arguments
        with pytest.raises(ts.MismatchError, match=message):
            of(*sources, target=target, drop=drop[0] if drop else ())

    @pytest.mark.parametrize(
        ("new", "message"),
        [({"y": 4}, 'new: a dimension is named "y" already'), ({5: 4}, "none of number 5")],
    )
    def test_new_dimensions_that_cannot_be(self, new, message):
        with pytest.raises(ts.SpecError, match=message):
            of(frame(y=3), new=new)


PADDED: dict[object, Any] = {"reflect": "symmetric", "nearest": "edge", "periodic": "wrap"}


class TestHalo:
    @given(
        st.integers(1, 9), st.integers(0, 25), st.integers(0, 25),
        st.sampled_from([*PADDED, 7]), st.data(),
    )  # fmt: skip
    def test_a_window_is_that_of_the_padded_whole(self, extent, before, after, boundary, data):
        low = data.draw(st.integers(0, extent - 1))
        high = data.draw(st.integers(low + 1, extent))
        values = np.arange(100, 100 + extent)

        halo = Halo(before, after, boundary)
        window = halo.window(low, high, extent)
        found = extended(values[np.asarray(window.read)], 0, window, boundary)

        if boundary == 7:
            whole = np.pad(values, (before, after), constant_values=7)
        else:
            whole = np.pad(values, (before, after), mode=PADDED[boundary])
        np.testing.assert_array_equal(found, whole[low : high + before + after])
        assert window.margins == (before, after)
        assert window.extent == len(found) <= halo.largest(high - low, extent)

    @given(st.integers(1, 9), st.integers(0, 12), st.integers(0, 12), st.data())
    def test_without_a_boundary_there_is_nothing_beyond_the_ends(self, extent, before, after, data):
        low = data.draw(st.integers(0, extent - 1))
        high = data.draw(st.integers(low + 1, extent))

        halo = Halo(before, after)
        window = halo.window(low, high, extent)

        first, last = max(0, low - before), min(extent, high + after)
        assert window.read == range(first, last)
        assert window.margins == (low - first, last - high)
        assert window.extent == len(window.read) <= halo.largest(high - low, extent)

    def test_of_the_other_end_only_what_is_wanted_is_read(self):
        assert [*Halo(2, 0, "periodic").window(0, 3, 100).read] == [0, 1, 2, 98, 99]
        assert Halo(2, 2, "reflect").window(0, 3, 100).read == range(5)

    @pytest.mark.parametrize("dim", [0, 1])
    def test_constants_stand_along_the_dimension(self, dim):
        window = Halo(1, 2, 9).window(0, 2, 2)
        found = extended(np.ones((2, 2), "int8"), dim, window, 9)
        assert found.shape == ((5, 2), (2, 5))[dim]
        assert np.moveaxis(found, dim, 0)[:, 0].tolist() == [9, 1, 1, 9, 9]


SPACE = Frame(("z", "y", "x"), (2, 3, 4))


def halos(halo=0, boundary="none", drop=None, dtype="int16"):
    options = MapOptions.of(drop, None, halo, boundary)
    alignment = Alignment.of([SPACE], None, options.drop, options.new)
    return options.halos(alignment, [ts.dtype(dtype)])


class TestMapBlocksOptions:
    @pytest.mark.parametrize(
        ("given", "widths"),
        [
            (None, [(0, 0)] * 3),
            (2, [(2, 2)] * 3),
            ((1, (0, 3), 0), [(1, 1), (0, 3), (0, 0)]),
            ({"x": 2, 0: (1, 0)}, [(1, 0), (0, 0), (2, 2)]),
            ({"2": 1}, [(0, 0), (0, 0), (1, 1)]),
        ],
    )
    def test_widths(self, given, widths):
        assert [each[:2] for each in halos(given)] == widths

    def test_one_number_is_meant_for_what_is_cut(self):
        assert halos(2, "nearest", drop="z") == (
            Halo(),
            Halo(2, 2, "nearest"),
            Halo(2, 2, "nearest"),
        )

    @pytest.mark.parametrize(
        ("given", "found"),
        [
            ({"y": "reflect", -1: 7}, ["none", "reflect", 7]),
            ("periodic", ["periodic"] * 3),
            (None, ["none"] * 3),
        ],
    )
    def test_boundaries(self, given, found):
        assert [each.boundary for each in halos(1, given)] == found

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"halo": -1}, "halo: expected a number of elements, but found -1"),
            ({"halo": 1.5}, "halo: expected a number"),
            ({"halo": (1, 2)}, "halo: there are 3 dimensions, but 2 numbers"),
            ({"halo": {"z": 1}, "drop": "z"}, "halo: the target has no dimension z"),
            ({"boundary": "reflected"}, r'boundary: .*did you mean "reflect"'),
            ({"boundary": []}, "boundary: expected one of none, reflect"),
            ({"boundary": 1.5}, "boundary: the constant 1.5 is no value of int16"),
            ({"boundary": 2, "dtype": "bool"}, "the constant 2 is no value of bool"),
            ({"boundary": math.nan}, "the constant nan is no value of int16"),
            ({"boundary": 70_000}, "the constant 70000 is no value of int16"),
        ],
    )
    def test_what_is_refused(self, arguments, message):
        with pytest.raises(ts.SpecError, match=message):
            halos(**arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [((None, 3, 0, 0), "new is a dict"), ((None, {1.5: 3}, 0, 0), "new is a dict.*1.5")],
    )
    def test_what_is_of_a_wrong_type(self, arguments, message):
        with pytest.raises(TypeError, match=message):
            MapOptions.of(*arguments)

    @pytest.mark.parametrize(
        "arguments",
        [
            (None, None, 0, "none"),
            (["z", 1], {"c": 3, 0: 2}, {"x": (1, 2)}, {0: "reflect", "x": 7}),
            ("z", None, (0, 1, (2, 3)), math.nan),
        ],
    )
    def test_json_and_back(self, arguments):
        options = MapOptions.of(*arguments)
        said = json.loads(json.dumps(options.to_json(), allow_nan=False))
        again = MapOptions.of(*(said.get(name) for name in MapOptions._fields))
        assert repr(again) == repr(options)


def forms(shape, chunk, factors, count):
    """Levels of one chunk shape."""
    sizes = [tuple(shape)]
    for _ in range(count - 1):
        sizes.append(smaller_shape(sizes[-1], factors))
    return [
        LevelForm(size, tuple(min(a, b) for a, b in zip(chunk, size, strict=True)), tuple(factors))
        for size in sizes
    ]


def chunks_of(box, chunk):
    """The chunks that a box touches."""
    return set(
        product(
            *(range(low // c, -(-high // c)) for (low, high), c in zip(box, chunk, strict=True))
        )
    )


def random_case(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = rng.integers(1, 90, rank).tolist()
    chunk = rng.integers(1, 12, rank).tolist()
    factors = rng.integers(1, 4, rank).tolist()
    leaf = [min(c * int(rng.integers(1, 4)), s) for c, s in zip(chunk, shape, strict=True)]
    return forms(shape, chunk, factors, int(rng.integers(1, 6))), leaf


class TestPyramidSteps:
    @pytest.mark.parametrize("seed", range(60))
    def test_no_two_regions_share_a_chunk_of_any_level(self, seed):
        levels, leaf = random_case(seed)

        steps = pyramid_steps(levels, leaf, int(10 ** (seed % 5)))

        made = [number for step in steps for number in range(step.first, step.last + 1)]
        assert made == list(range(len(levels)))
        for step in steps:
            assert step.base < step.first
            for number in range(step.first, step.last + 1):
                scale = np.prod(
                    [levels[each].factors for each in range(max(1, step.first), number + 1)],
                    axis=0, dtype=int,
                ) if number else np.ones(len(leaf), int)  # fmt: skip
                seen: set[tuple[int, ...]] = set()
                for block in step.blocks:
                    box = [
                        (low // f, -(-high // f))
                        for (low, high), f in zip(block.bounds, scale.tolist(), strict=True)
                    ]
                    touched = chunks_of(box, levels[number].chunk)
                    assert not seen & touched
                    seen |= touched
                assert len(seen) == prod(
                    -(-s // c)
                    for s, c in zip(levels[number].shape, levels[number].chunk, strict=True)
                )

    def test_a_deeper_step_reads_only_a_level_that_was_just_written(self):
        levels = forms((1024, 4096, 4096), (64, 64, 64), (2, 2, 2), 6)

        steps = pyramid_steps(levels, (64, 64, 64), 2)

        assert [step.base for step in steps] == [-1, *(step.last for step in steps[:-1])]
        read_again = sum(prod(levels[step.base].shape) for step in steps[1:])
        assert read_again < prod(levels[0].shape) / 8 * 1.2

    def test_a_plan_of_millions_of_chunks_is_arithmetic(self):
        levels = forms((100_000, 100_000, 100_000), (64, 64, 64), (2, 2, 2), 9)

        blocks = pyramid_steps(levels, (64, 64, 64), 2)[0].blocks

        assert blocks.count > 10**7
        assert blocks[blocks.count - 1].bounds[0][1] == 100_000

    def test_what_is_left_over_makes_one_more(self):
        assert smaller_shape((7, 8, 1), (2, 2, 2)) == (4, 4, 1)
