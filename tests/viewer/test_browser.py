"""The page in a real browser: what is drawn is what is stored, and what is done has its effect."""

import threading

import matplotlib as mpl
import numpy as np
import pytest

import tensorstore_py as ts

NO_PANELS = {"size": (700, 560)}  # where the settings are closed at first


def gray(values, low, high):
    """The levels of gray, or places in a colour map, that values are drawn with."""
    scaled = np.floor((values.astype("f8") - low) * (255 / (high - low)) + 0.5)
    return scaled.clip(0, 255).astype("u1")


def stored(values, **options):
    store = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype=options.pop("dtype", values.dtype.name),
        domain=ts.IndexDomain(shape=values.shape, labels=options.pop("labels", None)),
        **options,
    ).result()
    store[...] = values
    return store


def noise(*shape, dtype="uint16", high=5000):
    return np.random.default_rng(0).integers(0, high, size=shape).astype(dtype)


@pytest.fixture
def volume():
    values = noise(6, 600, 800)
    chunks = ts.ChunkLayout(chunk_shape=[2, 100, 128])
    return values, stored(values, labels=["z", "y", "x"], chunk_layout=chunks)


LINK = "dims=1,2,&centre=300,400&scale=1&contrast=0,5000&map="


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


def test_sliders_and_keys_choose_the_slice(show, volume):
    values, store = volume
    page = show(store, f"{LINK}gray&at=0,0,0")
    slider = page.page.get_by_label("z", exact=True)

    slider.fill("3")
    page.settled()
    first = page.drawn((100, 100), (50, 50))[..., 0]
    page.page.locator(".area").focus()
    page.press("]", "]")

    assert np.array_equal(first, gray(values[3, 250:350, 350:450], 0, 5000))
    assert page.link()["at"].startswith("5,")
    second = page.drawn((100, 100), (50, 50))[..., 0]
    assert np.array_equal(second, gray(values[5, 250:350, 350:450], 0, 5000))


def test_dimensions_can_be_exchanged(show, volume):
    values, store = volume
    page = show(store)

    page.page.get_by_label("Down").select_option(label="z")
    page.settled()

    assert page.link()["dims"] == "0,2,"
    page.go("dims=2,0,&at=0,7,0&centre=400,3&scale=1&contrast=0,5000&map=gray")
    page.settled()
    part = page.drawn((200, 6), (100, 3))[..., 0]
    assert np.array_equal(part, gray(values[:, 7, 300:500].T, 0, 5000))


def test_zoom_pan_and_link(show, volume):
    _, store = volume
    page = show(store, f"{LINK}magma&at=2,0,0", **NO_PANELS)

    page.press("+")
    page.page.mouse.move(400, 300)
    page.page.mouse.down()
    page.page.mouse.move(340, 330, steps=3)
    page.page.mouse.up()
    page.settled()

    link = page.link()
    assert float(link["scale"]) == pytest.approx(1.5)
    centre = [float(part) for part in link["centre"].split(",")]
    assert centre == pytest.approx([280, 440])
    before = page.pixels()
    page.go(page.page.evaluate("location.hash.slice(1)"))
    page.settled()
    assert np.array_equal(page.pixels(), before)
    assert page.link() == link


def test_the_wheel_zooms_about_the_pointer(show, volume):
    _, store = volume
    page = show(store, f"{LINK}gray", **NO_PANELS)
    page.page.mouse.move(300, 200)
    before = page.text(".reading")

    page.page.mouse.wheel(0, -120)
    page.settled()

    assert float(page.link()["scale"]) > 1.2
    assert page.text(".reading") == before


def test_contrast_changes_without_a_request(show, volume):
    values, store = volume
    page = show(store, f"{LINK}gray&at=0,0,0")
    asked = page.answers.tiles()["asked"]

    page.page.get_by_label("Highest value").fill("1000")
    page.page.get_by_label("Highest value").press("Enter")
    page.page.get_by_label("Inverted").check()
    page.settled()

    part = page.drawn((100, 100), (50, 50))[..., 0]
    assert np.array_equal(part, 255 - gray(values[0, 250:350, 350:450], 0, 1000))
    assert page.answers.tiles()["asked"] == asked


def test_values_under_the_pointer_are_exact(show):
    values = 2**62 + np.arange(64, dtype="int64").reshape(8, 8)
    page = show(stored(values), "centre=4,4&scale=40", **NO_PANELS)
    canvas = page.page.locator("canvas.picture").bounding_box()
    # the middle of the picture is the corner between elements 3 and 4
    x, y = canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2

    page.page.mouse.move(x + 60, y - 20)

    assert page.text(".value") == str(2**62 + 3 * 8 + 5)
    assert "dim 0 3" in " ".join(page.text(".reading").split())


def test_a_value_between_sampled_pixels_is_asked_for(show):
    values = noise(3000, 3000)
    page = show(stored(values, chunk_layout=ts.ChunkLayout(chunk_shape=[500, 500])))
    page.page.mouse.move(300, 300)
    row, column = (
        int(part.split()[-1].replace(",", ""))
        for part in page.page.locator(".reading .place").all_inner_texts()
    )

    page.page.wait_for_selector(".value:not(:has-text('≈'))")

    assert page.text(".value") == str(values[row, column])


def test_the_tree_leads_to_arrays(show):
    group = ts.Group.open("memory://", create=True).result()
    inner = group.create_array("raw/deep/image", dtype="uint8", shape=[30, 40]).result()
    inner[...] = 200
    group.create_array("mask", dtype="bool", shape=[5]).result()
    page = show(group)

    page.page.get_by_role("button", name="raw").first.click()
    page.page.get_by_role("button", name="deep", exact=True).click()
    page.page.get_by_role("button", name="image").click()
    page.page.wait_for_selector("canvas.picture")
    page.settled()

    assert page.link()["path"] == "raw/deep/image"
    assert page.text(".crumbs").split("/")[-1].strip() == "image"
    page.page.go_back()
    page.page.wait_for_selector("text=A group")
    page.go("path=raw/deep/image")
    page.settled()
    assert page.page.get_by_role("treeitem", name="image").last.is_visible()


def test_names_and_attributes_of_others_are_text(show):
    name = "<img src=x onerror=alert(1)>"
    group = ts.Group.open("memory://", create=True).result()
    group.attrs["<b>x</b>"] = "<script>alert(2)</script>"
    group.create_array(
        name, dtype="uint8", domain=ts.IndexDomain(shape=[4, 4], labels=["<i>y</i>", "x"]),
        attributes={"note": "</pre><script>alert(3)</script>"},
    ).result()  # fmt: skip
    page = show(group)
    assert "<script>alert(2)" in page.text("main")

    page.page.get_by_role("button", name=name).click()
    page.page.wait_for_selector("canvas.picture")
    page.settled()

    assert page.page.locator("img, main script, .panel i:not([style]):not(.missing)").count() == 0
    assert name in page.text(".crumbs")
    assert "<i>y</i>" in page.text(".panel")


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


def test_a_damaged_chunk_shows_why_and_the_others_are_drawn(show, tmp_path):
    values = noise(600, 600)
    store = ts.open(
        {"driver": "zarr3", "kvstore": tmp_path.as_uri() + "/a/"}, create=True, dtype="uint16",
        shape=[600, 600], chunk_layout=ts.ChunkLayout(chunk_shape=[256, 256]),
    ).result()  # fmt: skip
    store[...] = values
    (tmp_path / "a" / "c" / "0" / "1").write_bytes(b"torn")

    page = show(store, "centre=300,300&scale=0.9&contrast=0,5000")

    assert "A tile cannot be read" in page.text(".problems")
    assert "c/0/1" in page.text(".problems")
    assert "256–511" in page.text(".problems")
    assert len(np.unique(page.pixels()[..., 0])) > 200
    store[...] = values
    page.page.get_by_role("button", name="Try again").click()
    page.page.wait_for_selector(".problems", state="detached")


def test_what_is_not_there_is_said(show):
    page = show(ts.Group.open("memory://", create=True).result(), "path=gone/away")

    assert 'nothing is at "/gone/away"' in page.text("[role=alert]")


def test_a_page_whose_server_is_gone_says_so(show, volume):
    page = show(volume[1], f"{LINK}gray&at=0,0,0")
    page.view.close()

    page.page.get_by_label("z", exact=True).fill("3")

    page.page.wait_for_selector(".problems")
    assert "it was closed" in page.text(".problems")


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


def test_text_is_a_table_and_a_single_value_stands_alone(show):
    words = np.array([[f"row {row} <b>{column}</b>" for column in range(3)] for row in range(50)])
    page = show(stored(words.astype(object), dtype="ustring"))
    page.page.wait_for_selector("td")
    assert page.page.locator("td").nth(4).inner_text() == "row 1 <b>1</b>"
    page.page.get_by_label("dim 0: on").click()
    page.page.wait_for_selector("text=row 49 <b>2</b>")

    page = show(ts.array(np.float64(2.5)))
    page.page.wait_for_selector(".single")
    assert page.text(".single") == "2.5"


def test_one_dimension_is_a_line(show):
    page = show(stored(np.linspace(-1, 1, 5000)), "map=gray")

    seen = page.pixels()[..., 3] > 0

    heights = [np.flatnonzero(seen[:, column]).mean() for column in (50, 300)]
    assert heights[0] > heights[1] + 100
    assert page.answers.tiles()["failed"] == 0


def test_what_leaves_the_view_is_cancelled(show):
    begun, go_on = [], threading.Event()

    def slow(domain, chunk, _):
        begun.append(domain.inclusive_min[0])
        go_on.wait(60)
        chunk[...] = 9

    slices = ts.virtual_chunked(
        slow, dtype="uint8", shape=[64, 256, 256],
        chunk_layout=ts.ChunkLayout(chunk_shape=[1, 256, 256]),
        context=ts.Context({"data_copy_concurrency": {"limit": 1}}),
    )  # fmt: skip
    try:
        page = show(slices, "centre=128,128&scale=1&at=0,0,0&contrast=0,9", wait=False)
        page.answers.until(lambda tiles: tiles["under_way"] == 1)
        for number in range(1, 12):
            page.page.keyboard.press("]")
            page.answers.until(lambda tiles, wanted=number: tiles["cancelled"] == wanted)
    finally:
        go_on.set()
    page.settled()

    assert page.answers.tiles() == {
        "asked": 12, "read": 1, "failed": 0, "cancelled": 11, "under_way": 0,
    }  # fmt: skip
    assert (page.drawn((200, 200), (100, 100))[..., 0] == 255).all()
    # what was given up before it was its turn is never made
    assert len(begun) <= 4


def test_memory_is_bounded_whatever_is_looked_at(show):
    made = []

    def fill(domain, chunk, _):
        made.append(chunk.nbytes)
        chunk[...] = domain.inclusive_min[1] % 251

    huge = ts.virtual_chunked(  # 100 GB
        fill, dtype="uint16", shape=[1000, 5000, 10_000],
        chunk_layout=ts.ChunkLayout(chunk_shape=[64, 64, 64]),
    )  # fmt: skip
    page = show(huge)
    assert "Sampled" in page.text(".panel")

    tiles = page.answers.tiles()["asked"]
    assert sum(made) <= tiles * 2**26
    page.press("+", "+", "+", "+", "]", "]", "ArrowRight", "ArrowDown", "+", "+", "+", "+")

    status = page.answers.json("status")
    assert status["tiles"]["failed"] == 0
    assert 0 < status["cached_bytes"] <= 2**28 < sum(made)


def test_a_notebook_shows_it_in_a_frame(show, volume):
    page = show(volume[1])
    outer = page.page.context.new_page()

    outer.set_content(page.view._repr_html_())
    frame = outer.frame_locator("iframe")

    frame.locator("main[aria-busy=false]").wait_for()
    assert frame.locator("canvas.picture").is_visible()


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_follow_the_system_and_the_button(show, volume, dark):
    page = show(volume[1], dark=dark)

    def light():
        colour = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(colour.split("(")[1].split(",")[0]) > 128

    assert light() is not dark
    page.page.get_by_label("Colours of the page: auto").click()
    page.page.wait_for_selector("html[data-theme=light]")
    assert light()
    page.page.get_by_label("Colours of the page: light").click()
    page.page.wait_for_selector("html[data-theme=dark]")
    assert not light()


@pytest.mark.parametrize("width", [360, 3840])
def test_it_fits_narrow_and_wide_windows(show, volume, width):
    page = show(volume[1], size=(width, 800))

    canvas = page.page.locator("canvas.picture").bounding_box()

    assert page.page.evaluate("document.documentElement.scrollWidth") == width
    assert canvas["width"] > width * 0.7
    page.page.get_by_label("Help").click()
    dialog = page.page.locator("dialog").bounding_box()
    assert dialog["x"] >= 0
    assert dialog["x"] + dialog["width"] <= width
