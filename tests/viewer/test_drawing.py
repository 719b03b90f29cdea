"""What is drawn, in a real browser, is what is stored; and what lies above it."""

import matplotlib as mpl
import numpy as np
import pytest

import tensorstore_py as ts
from tests.viewer.arrays import LINK, NO_PANELS, gray, noise, stored


def test_what_is_drawn_is_what_is_stored(show, volume):
    values, store = volume

    page = show(store, f"{LINK}gray&at=4,0,0", **NO_PANELS)
    part = page.drawn((400, 600), (200, 300))

    expected = gray(values[4, 100:500, 100:700], 0, 5000)
    assert np.array_equal(part[..., 0], expected)
    assert np.array_equal(part[..., 2], expected)
    assert (part[..., 3] == 255).all()


def test_colour_maps_are_those_of_others(show, volume):
    values, store = volume
    page = show(store, f"{LINK}viridis&at=0,0,0", **NO_PANELS)

    part = page.drawn((300, 300), (150, 150))

    table = np.round(255 * mpl.colormaps["viridis"](range(256))[:, :3]).astype(int)
    expected = table[gray(values[0, 150:450, 250:550], 0, 5000)]
    assert np.abs(part[..., :3].astype(int) - expected).max() <= 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float32", "bfloat16"])
def test_types_are_drawn_by_value(show, dtype):
    values = (noise(64, 64, dtype="int64", high=100) % (2 if dtype == "bool" else 100)).astype(
        ts.dtype(dtype).numpy_dtype
    )
    high = 1 if dtype == "bool" else 99

    link = f"centre=32,32&scale=1&contrast=0,{high}&map=gray"
    page = show(stored(values, dtype=dtype), link, **NO_PANELS)

    assert np.array_equal(page.drawn((64, 64), (32, 32))[..., 0], gray(values, 0, high))


def test_what_is_no_number_has_its_own_colour(show):
    values = np.ones((8, 8), "f4")
    values[1, 2], values[3, 4], values[5, 6] = np.nan, np.inf, -np.inf

    page = show(stored(values), "centre=4,4&scale=1&contrast=0,1&map=gray")
    part = page.drawn((8, 8), (4, 4))[..., :3]

    colours = {tuple(map(int, part[place])) for place in ((1, 2), (3, 4), (5, 6), (0, 0))}
    assert len(colours) == 4
    assert tuple(part[0, 0]) == (255, 255, 255)
    assert "NaN" in page.text(".panel")


def test_three_channels_are_colours(show):
    values = noise(80, 90, 3, dtype="uint8", high=256)

    page = show(stored(values), "centre=40,45&scale=1&dims=0,1,2", **NO_PANELS)

    assert np.array_equal(page.drawn((80, 90), (40, 45))[..., :3], values)


def test_the_grid_is_drawn_where_chunks_begin(show, volume):
    _, store = volume
    page = show(store, f"{LINK}gray&show=grid", **NO_PANELS)
    over, seen = page.pixels("overlay"), page.pixels()
    top = int(seen.shape[0] / 2 - 300 + 0.5) + over.shape[0] - seen.shape[0]
    left = int(seen.shape[1] / 2 - 400 + 0.5) + over.shape[1] - seen.shape[1]

    row = over[top + 350, left + 130 : left + 630, 3]  # across, between two rows of chunks
    column = over[top + 110 : top + 490, left + 450, 3]

    assert {round((place + 130) / 128) for place in np.flatnonzero(row)} == {2, 3, 4}
    assert all(abs((place + 130 + 64) % 128 - 64) <= 2 for place in np.flatnonzero(row))
    assert {round((place + 110) / 100) for place in np.flatnonzero(column)} == {2, 3, 4}


def test_the_map_says_what_is_stored_and_how_large(show):
    store = stored(np.zeros((40, 60), "uint8"), chunk_layout=ts.ChunkLayout(chunk_shape=[10, 10]))
    store[:10, :20] = 7
    store[30:, 50:] = noise(10, 10, dtype="uint8", high=256)

    page = show(store, "show=stored")

    assert "3 of 24 are stored" in page.text(".panel")
    assert "300 B" in page.text(".panel")
    page.press("m")
    assert "are stored" not in page.text(".panel")


def test_levels_of_an_image_are_taken_as_they_suit(show):
    pixels = noise(1024, 1024)
    store = ts.KvStore.open("memory://").result()
    image = ts.pyramid(
        pixels, store, axes="yx", levels=3, pixel_size=0.5, units="um"
    ).result()  # fmt: skip

    page = show(image.group, "centre=512,512&scale=0.25&contrast=0,5000&map=gray")

    coarse = image.levels[2].read().result()
    part = page.drawn((256, 256), (128, 128))[..., 0]
    assert np.array_equal(part, gray(coarse, 0, 5000))
    assert "Level 2 of 3" in page.text(".panel")
    page.press("1")
    assert "Level 0 of 3" in page.text(".panel")


def test_one_dimension_is_a_line(show):
    page = show(stored(np.linspace(-1, 1, 5000)), "map=gray")

    seen = page.pixels()[..., 3] > 0

    heights = [np.flatnonzero(seen[:, column]).mean() for column in (50, 300)]
    assert heights[0] > heights[1] + 100
    assert page.answers.tiles()["failed"] == 0
