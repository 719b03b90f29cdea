import numpy as np

from tensorstore_py.drivers.stack.driver import NOBODY, cells
from tensorstore_py.plugin.driver import RegularAxis

FAR = 2**62


def random_box(random, rank, far, least):
    low = random.integers(-far, far, rank)
    return tuple((int(begin), int(begin + random.integers(least, 8))) for begin in low)


def painted(box, layers):
    """The owner of each position, one by one."""
    shape = [high - low for low, high in box]
    out = np.full(shape, NOBODY)
    for place in np.ndindex(*shape):
        for number, layer in enumerate(layers):
            if all(
                begin <= low + at < end
                for (low, _), (begin, end), at in zip(box, layer, place, strict=True)
            ):
                out[place] = number
    return out


def test_cells_say_which_layer_is_on_top():
    random = np.random.default_rng(1)
    for _ in range(50):
        rank = int(random.integers(1, 4))
        box = random_box(random, rank, 5, 1)
        layers = [random_box(random, rank, 8, 0) for _ in range(random.integers(0, 5))]
        grid, owners = cells(box, layers)
        found = np.empty([high - low for low, high in box], int)
        for place in np.ndindex(*found.shape):
            found[place] = owners[
                tuple(axis.cell(at) for axis, at in zip(grid, place, strict=True))
            ]
        np.testing.assert_array_equal(found, painted(box, layers))


def test_layers_without_bounds():
    grid, owners = cells(((5, 9),), [((-FAR, FAR),), ((7, FAR),)])
    assert owners.tolist() == [0, 1]
    assert grid[0].extent == 4


def test_no_dimensions():
    assert int(cells((), [(), ()]).owners) == 1
    assert int(cells((), []).owners) == NOBODY


def test_only_what_is_asked_for_is_cut():
    layers = [((place, place + 1),) for place in range(1000)]
    grid, owners = cells(((10, 13),), layers)
    assert owners.tolist() == [10, 11, 12]
    assert not isinstance(grid[0], RegularAxis)
