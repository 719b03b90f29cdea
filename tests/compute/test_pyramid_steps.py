"""In which steps and cells levels are made: no two regions share a chunk of any level."""

from itertools import product
from math import prod

import numpy as np
import pytest

from tensorstore_py._compute.pyramid_steps import LevelForm, pyramid_steps, smaller_shape


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


@pytest.mark.parametrize("seed", range(60))
def test_no_two_regions_share_a_chunk_of_any_level(seed):
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
                -(-s // c) for s, c in zip(levels[number].shape, levels[number].chunk, strict=True)
            )


def test_a_deeper_step_reads_only_a_level_that_was_just_written():
    levels = forms((1024, 4096, 4096), (64, 64, 64), (2, 2, 2), 6)

    steps = pyramid_steps(levels, (64, 64, 64), 2)

    assert [step.base for step in steps] == [-1, *(step.last for step in steps[:-1])]
    read_again = sum(prod(levels[step.base].shape) for step in steps[1:])
    assert read_again < prod(levels[0].shape) / 8 * 1.2


def test_a_plan_of_millions_of_chunks_is_arithmetic():
    levels = forms((100_000, 100_000, 100_000), (64, 64, 64), (2, 2, 2), 9)

    blocks = pyramid_steps(levels, (64, 64, 64), 2)[0].blocks

    assert blocks.count > 10**7
    assert blocks[blocks.count - 1].bounds[0][1] == 100_000


def test_what_is_left_over_makes_one_more():
    assert smaller_shape((7, 8, 1), (2, 2, 2)) == (4, 4, 1)
