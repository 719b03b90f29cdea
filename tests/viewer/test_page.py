"""The page as a whole, in a real browser: errors, text of others, memory, frames, windows."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.viewer.arrays import LINK, noise, stored


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


def test_an_array_without_elements_says_so(show):
    page = show(ts.array(np.zeros((0, 5))))

    assert "no elements" in page.text("main")


def test_what_is_not_there_is_said(show):
    page = show(ts.Group.open("memory://", create=True).result(), "path=gone/away")

    assert 'nothing is at "/gone/away"' in page.text("[role=alert]")


def test_a_page_whose_server_is_gone_says_so(show, volume):
    page = show(volume[1], f"{LINK}gray&at=0,0,0")
    page.view.close()

    page.page.get_by_label("z", exact=True).fill("3")

    page.page.wait_for_selector(".problems")
    assert "it was closed" in page.text(".problems")


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
