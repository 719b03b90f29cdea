"""What is done to the picture in a real browser: sliders, keys, pointer, tree, links."""

import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tests.viewer.arrays import LINK, NO_PANELS, gray, noise, stored


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
    page.page.get_by_role("treeitem", name="image").last.wait_for(state="visible")


@pytest.mark.parametrize(
    ("place", "name"), [("run.zarr/", "run.zarr"), ("a.zip|zip:", "a.zip"), ("a.zip|zip:b/", "b")]
)
def test_what_is_shown_is_named_by_its_file(show, tmp_path, place, name):
    spec = {"driver": "zarr", "kvstore": f"{tmp_path.as_uri()}/{place}"}
    page = show(ts.open(spec, create=True, dtype="uint8", shape=[3, 4]).result())

    assert page.text(".crumbs") == name


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


def test_a_table_has_a_slider_for_colours_too(show):
    values = noise(20, 30, 3, dtype="uint8", high=256)
    page = show(stored(values), "dims=0,1,2&at=0,0,0")

    page.page.get_by_text("Values as a table").click()
    page.page.get_by_label("dim 2", exact=True).fill("2")

    page.page.wait_for_selector(f"td >> nth=1 >> text='{values[0, 1, 2]}'")
