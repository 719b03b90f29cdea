"""Drawings of arrays in characters, which terminals show."""

import pytest

from tensorstore_py._display.geometry import Axis
from tensorstore_py._display.text_drawing import BOXES, text_drawing


def drawn(*axes, **options):
    return [line.rstrip() for line in text_drawing(axes, **options)]


def test_all_lines_of_chunks_and_shards():
    assert drawn(Axis(0, 4, "y", 2), Axis(0, 5, "x", 1, 2), width=27) == [
        "    ┏━━━┯━━━┳━━━┯━━━┳━━━┓",
        "    ┃░░░│   ┃   │   ┃   ┃",
        "    ┃░░░│   ┃   │   ┃   ┃",
        "y 4 ┠───┼───╂───┼───╂───┨",
        "    ┃   │   ┃   │   ┃   ┃",
        "    ┃   │   ┃   │   ┃   ┃",
        "    ┗━━━┷━━━┻━━━┷━━━┻━━━┛",
        "             x 5",
        "    (░ a chunk, ━ shards)",
    ]


def test_the_last_chunk_is_as_short_as_it_is():
    (_, line, _, label, _) = drawn(Axis(0, 95, "x", 10))
    cells = line.strip("│").split("│")
    assert len(cells) == 10
    assert {len(cell) for cell in cells[:-1]} == {4}
    assert 0 < len(cells[-1]) < 4
    assert label.strip() == "x 95"


def test_a_third_dimension_is_behind():
    top, *_ = drawn(Axis(0, 9, "t", 1), Axis(0, 4, "y", 2), Axis(0, 4, "x", 2))
    assert top.endswith("┐ t 9")
    assert top.startswith(" " * 8 + "┌")
    single = drawn(Axis(0, 1, "t", 1), Axis(0, 4, "y", 2), Axis(0, 4, "x", 2))
    assert single[0].startswith("    ┌")


def test_many_chunks_are_a_line_for_several():
    text = "\n".join(drawn(Axis(0, 2**62, "y", 3), Axis(0, 10**12, "x", 7)))
    assert "a line for up to " in text
    assert len(text) < 2000


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("rank", range(5))
def test_it_is_no_wider_than_the_terminal(rank, width):
    for extent, chunk in ((7, 2), (1000, 64), (10**6, 10), (0, 5), (5, None), (1, 1)):
        axes = [Axis(0, extent + dim, "", chunk, None if dim % 2 else 4) for dim in range(rank)]
        lines = drawn(*axes, width=width)
        figure = [line for line in lines if not line.lstrip().startswith("(")]
        assert all(len(line) <= max(width, 40) for line in figure)
        assert bool(lines) == bool(rank)


@pytest.mark.parametrize(
    "axis", [Axis(None, None), Axis(0, 0, "x", 5), Axis(-5, 25, "x", 10, 20, 3)]
)
def test_ends_that_are_not_known_emptiness_and_origins(axis):
    lines = drawn(Axis(0, 5, "y", 5), axis)
    assert axis.named in lines[-1] or axis.named in lines[-2]


def test_ascii_says_the_same():
    axes = [Axis(0, 4, "t", 1), Axis(0, 4, "y", 2), Axis(0, 6, "x", 1, 2)]
    boxes, plain = drawn(*axes), drawn(*axes, plain=True)
    assert all(line.isascii() for line in plain)
    assert [len(line) for line in boxes] == [len(line) for line in plain]
    assert {each for line in boxes[:-2] for each in line} <= {*BOXES, *" ty46"}
