import re

import pytest

from tensorstore_py._display.drawing import Axis, drawing
from tests.display.pages import Page


def lines(html, kind):
    (path,) = re.findall(rf'<path d="([^"]*)" class="tsv-{kind}"', html) or [""]
    return path.count("M")


def test_a_line_between_any_two_chunks():
    assert lines(drawing([Axis(0, 100, "x", 10)]), "thin") == 9
    assert lines(drawing([Axis(0, 100, "y", 50), Axis(0, 95, "x", 10)]), "thin") == 1 + 9
    # a box has three sides, two of which an axis of the front is on
    assert lines(drawing([Axis(0, 4, "", 2), Axis(0, 4, "", 2), Axis(0, 4, "", 2)]), "thin") == 5


def test_a_view_begins_within_a_chunk():
    html = drawing([Axis(5, 25, "x", 10, None, 0)])

    assert lines(html, "thin") == 2
    (first,) = re.findall(r'<rect[^>]* width="([\d.]+)"', html)
    assert float(first) == pytest.approx(190 * 5 / 20, abs=0.1)
    assert lines(drawing([Axis(-5, 25, "x", 10, None, 3)]), "thin") == 3


def test_shards_have_lines_of_their_own():
    html = drawing([Axis(0, 100, "x", 10, 50)])

    assert (lines(html, "thin"), lines(html, "bold")) == (9, 1)
    assert html.count("tsv-shard") == html.count("tsv-cell") == 1


def test_many_chunks_are_told_and_not_drawn():
    axes = [Axis(0, 10**9, "z", 7), Axis(0, 10**12, "y", 3), Axis(0, 2**62, "x", 1)]
    html = drawing(axes)

    assert Page(html).size < 10_000
    assert lines(html, "thin") < 150
    assert re.search(r"a line for up to [\d,]{15,} chunks", html)
    html = drawing([Axis(0, 1000, "x", 1, 500)])
    assert (lines(html, "thin"), lines(html, "bold")) == (0, 1)
    assert "shards without their chunks" in html


@pytest.mark.parametrize("rank", range(33))
def test_every_rank(rank):
    html = drawing([Axis(0, 10 + dim, f"d{dim}", 5) for dim in range(rank)])

    assert Page(html).size < 10_000
    assert ("the last 3 of" in html) == (rank > 3)


@pytest.mark.parametrize(
    "axis", [Axis(None, None), Axis(0, 0, "x", 5), Axis(0, None, "x", 5), Axis(0, 5), Axis(3, 1)]
)
def test_ends_that_are_not_known_and_emptiness(axis):
    html = drawing([Axis(0, 5, "y", 5), axis])

    assert Page(html).elements.count("polygon") == 1
    assert ("tsv-open" in html) == (not axis.extent)


def test_labels_are_text_and_short():
    page = Page(drawing([Axis(0, 5, '<script>"' + "x" * 5000, 1)]))

    assert '<script>"x' in page.text
    assert page.size < 2000


def test_a_chunk_that_is_all_of_it_is_not_marked():
    assert "tsv-cell" not in drawing([Axis(0, 10, "", 10), Axis(0, 20, "", 32)])
