import numpy as np
import pytest

from tensorstore_py import IndexDomain
from tensorstore_py.drivers.downsample.blocks import (
    base_box,
    block_extents,
    downsampled,
    downsampled_domain,
)


@pytest.mark.parametrize(
    ("domain", "factor", "method", "expected"),
    [
        (IndexDomain(shape=[10]), 3, "mean", "{ [0, 4) }"),
        (IndexDomain(shape=[9]), 3, "mean", "{ [0, 3) }"),
        (IndexDomain(inclusive_min=[-3], shape=[10]), 4, "mean", "{ [-1, 2) }"),
        (IndexDomain(inclusive_min=[-3], shape=[10]), 4, "stride", "{ [0, 2) }"),
        (IndexDomain(inclusive_min=[1], shape=[2]), 4, "stride", "{ [1, 1) }"),
        (IndexDomain(inclusive_min=[5], shape=[0]), 2, "mean", "{ [2, 2) }"),
        (IndexDomain(shape=[10], implicit_upper_bounds=[True]), 3, "mean", "{ [0, 4*) }"),
        (IndexDomain(labels=["x"]), 3, "mean", '{ "x": (-inf*, +inf*) }'),
        (IndexDomain(shape=[10]), 2**62, "mean", "{ [0, 1) }"),
    ],
    ids=str,
)
def test_domains(domain, factor, method, expected):
    assert str(downsampled_domain(domain, [factor], method)) == expected


@pytest.mark.parametrize("origin", [-7, -1, 0, 1, 5])
@pytest.mark.parametrize("factors", [(1, 1), (2, 3), (4, 1), (50, 7)])
def test_blocks_make_what_all_at_once_makes(origin, factors):
    base = np.arange(11 * 13).reshape(11, 13)
    bounds = ((origin, origin + 11), (0, 13))
    domain = downsampled_domain(
        IndexDomain(inclusive_min=[origin, 0], shape=[11, 13]), factors, "max"
    )
    whole = tuple(zip(domain.inclusive_min, domain.exclusive_max, strict=True))
    expected: dict[tuple[int, int], int] = {}
    for row in range(11):
        for column in range(13):
            place = ((row + origin) // factors[0], column // factors[1])
            expected[place] = max(expected.get(place, -1), int(base[row, column]))
    for low in range(*whole[0]):
        for high in range(low + 1, whole[0][1] + 1):
            box = ((low, high), whole[1])
            below = base_box(box, factors, bounds)
            (a, b), (c, d) = below
            part = base[a - origin : b - origin, c:d]
            found = downsampled(part, below, box, factors, "max")
            assert found.shape == (high - low, whole[1][1])
            for place in np.ndindex(*found.shape):
                assert found[place] == expected[(place[0] + low, place[1])]


@pytest.mark.parametrize(
    ("chunk", "factors", "shape", "item_bytes", "expected"),
    [
        ([32, 32], [2, 2], [1000, 1000], 1, [256, 1000]),
        ([64, 64, 64], [2, 2, 2], [64, 64, 64], 2, [64, 64, 64]),
        ([None], [2], [100], 8, [100]),
        ([4096, 4096], [16, 16], [4096, 4096], 8, [128, 256]),
        ([5], [3], [3], 1, [3]),
        ([1], [2**40], [10], 1, [1]),
        ([], [], [], 1, []),
    ],
)
def test_extents_of_blocks(chunk, factors, shape, item_bytes, expected):
    assert block_extents(chunk, factors, shape, item_bytes) == expected
