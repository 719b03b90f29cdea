"""What consoles and notebooks show: text, tables, trees, drawings, and pages of them."""

import re

import pytest

from tensorstore_py._display.codec_words import codec_list, codec_words
from tensorstore_py._display.drawing import drawing
from tensorstore_py._display.geometry import Axis
from tensorstore_py._display.info import Info, columns, human_size, rows, times
from tensorstore_py._display.json_view import json_view
from tensorstore_py._display.markup import Markup, element, join
from tensorstore_py._display.outline import outline
from tensorstore_py._display.page import folded, page
from tensorstore_py._display.text_drawing import BOXES, text_drawing
from tests.display.pages import Page


class TestCodecWords:
    @pytest.mark.parametrize(
        ("json", "words"),
        [
            ({"driver": "zarr3", "codecs": ["zstd"]}, "zstd"),
            ({"driver": "zarr3", "codecs": []}, "none"),
            ({"driver": "n5", "compression": {"type": "gzip", "level": 6}}, "gzip (level 6)"),
            (
                {
                    "driver": "zarr",
                    "filters": [{"id": "delta", "dtype": "<i2"}],
                    "compressor": None,
                },
                "delta (dtype <i2)",
            ),
            (
                {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
                "transpose (order 1 × 0)",
            ),
            (
                {
                    "codecs": [
                        {
                            "name": "sharding_indexed",
                            "configuration": {
                                "chunk_shape": [4],
                                "codecs": [{"name": "zstd", "configuration": {"level": 1}}],
                                "index_location": "end",
                            },
                        }
                    ]
                },
                "sharding_indexed (zstd (level 1))",
            ),
            (
                {
                    "codecs": [
                        {"name": "x", "configuration": {"on": True, "off": False, "no": None}}
                    ]
                },
                "x (on)",
            ),
            ({"codecs": [{"configuration": 5}, 7]}, "? (5), 7"),
        ],
    )
    def test_codecs_in_words(self, json, words):
        assert codec_words(json) == words

    def test_each_codec_in_order(self):
        json = {"filters": [{"id": "delta"}], "compressor": {"id": "blosc", "cname": "lz4"}}
        assert codec_list(json) == [("delta", ""), ("blosc", "cname lz4")]


def lines(html, kind):
    (path,) = re.findall(rf'<path d="([^"]*)" class="tsv-{kind}"', html) or [""]
    return path.count("M")


class TestDrawing:
    def test_a_line_between_any_two_chunks(self):
        assert lines(drawing([Axis(0, 100, "x", 10)]), "thin") == 9
        assert lines(drawing([Axis(0, 100, "y", 50), Axis(0, 95, "x", 10)]), "thin") == 1 + 9
        # a box has three sides, two of which an axis of the front is on
        assert (
            lines(drawing([Axis(0, 4, "", 2), Axis(0, 4, "", 2), Axis(0, 4, "", 2)]), "thin") == 5
        )

    def test_a_view_begins_within_a_chunk(self):
        html = drawing([Axis(5, 25, "x", 10, None, 0)])

        assert lines(html, "thin") == 2
        (first,) = re.findall(r'<rect[^>]* width="([\d.]+)"', html)
        assert float(first) == pytest.approx(190 * 5 / 20, abs=0.1)
        assert lines(drawing([Axis(-5, 25, "x", 10, None, 3)]), "thin") == 3

    def test_shards_have_lines_of_their_own(self):
        html = drawing([Axis(0, 100, "x", 10, 50)])

        assert (lines(html, "thin"), lines(html, "bold")) == (9, 1)
        assert html.count("tsv-shard") == html.count("tsv-cell") == 1

    def test_many_chunks_are_counted_and_not_drawn(self):
        axes = [Axis(0, 10**9, "z", 7), Axis(0, 10**12, "y", 3), Axis(0, 2**62, "x", 1)]
        html = drawing(axes)

        assert Page(html).size < 10_000
        assert lines(html, "thin") < 150
        assert re.search(r"a line for up to [\d,]{15,} chunks", html)
        html = drawing([Axis(0, 1000, "x", 1, 500)])
        assert (lines(html, "thin"), lines(html, "bold")) == (0, 1)
        assert "shards without their chunks" in html

    @pytest.mark.parametrize("rank", range(33))
    def test_every_rank(self, rank):
        html = drawing([Axis(0, 10 + dim, f"d{dim}", 5) for dim in range(rank)])

        assert Page(html).size < 10_000
        assert ("the last 3 of" in html) == (rank > 3)

    @pytest.mark.parametrize(
        "axis",
        [Axis(None, None), Axis(0, 0, "x", 5), Axis(0, None, "x", 5), Axis(0, 5), Axis(3, 1)],
    )
    def test_ends_that_are_not_known_and_emptiness(self, axis):
        html = drawing([Axis(0, 5, "y", 5), axis])

        assert Page(html).elements.count("polygon") == 1
        assert ("tsv-open" in html) == (not axis.extent)

    def test_labels_are_text_and_short(self):
        page = Page(drawing([Axis(0, 5, '<script>"' + "x" * 5000, 1)]))

        assert '<script>"x' in page.text
        assert page.size < 2000

    def test_a_chunk_that_is_all_of_it_is_not_marked(self):
        assert "tsv-cell" not in drawing([Axis(0, 10, "", 10), Axis(0, 20, "", 32)])


class TestInfo:
    def test_a_table_is_text_html_and_a_mapping(self):
        info = Info([("Type", "Array"), ("Data", "<f8")])

        assert repr(info) == "Type : Array\nData : <f8"
        assert info["Data"] == "<f8"
        assert Page(info._repr_html_()).text.split() == ["Info", "Type", "Array", "Data", "<f8"]
        assert repr(Info([])) == ""

    def test_rows_and_columns(self):
        assert rows([]) is None
        assert Page(columns(["", "Array"], [["Shape", "<1>"]])).text.split() == [
            "Array", "Shape", "<1>",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (2**20 - 1, "1024.0 KiB"),
            (400_000_000, "381.5 MiB"),
            (2**60, "1.0 EiB"),
            (2**90, "1.2e+27 B"),
        ],
    )
    def test_sizes_are_for_people(self, size, expected):
        assert human_size(size) == expected

    def test_extents(self):
        assert times([1000, None, 1]) == "1,000 × ∞ × 1"


class TestJsonView:
    def test_what_is_short_is_a_line_and_what_is_long_is_folded(self):
        page = Page(json_view({"a": {"x": 1}, "b": {str(each): "long" * 9 for each in range(9)}}))

        assert page.elements.count("details") == 1
        assert "{'x': 1}" in page.text
        assert "9 members" in page.text

    def test_hostile_members_are_text(self):
        page = Page(
            json_view({"<script>": "<img src=x onerror=alert(1)>", "x": ["</ul></div>"] * 90})
        )

        assert "<script>" in page.text
        assert "<img src=x onerror=alert(1)>" in page.text

    def test_however_much_there_is_so_much_is_shown(self):
        deep: object = 1
        for _ in range(500):
            deep = [deep]
        wide = {str(one): {str(two): "x" * 100 for two in range(500)} for one in range(500)}

        assert Page(json_view({"deep": deep})).size < 5000
        page = Page(json_view({"wide": wide, "long": 5}))
        assert page.size < 300_000
        assert "411 more" in page.text
        assert "(1,000,002 characters)" in Page(json_view(["y" * 10**6])).text

    def test_values_without_members(self):
        assert "5" in Page(json_view(5)).text
        assert Page(json_view({})).text == ""
        assert "nan" in Page(json_view({"a": float("nan")})).text


HOSTILE = """<script>alert("x")</script><img src=x onerror='y'>&amp;"""


class TestMarkup:
    def test_text_cannot_become_an_element_or_leave_an_attribute(self):
        html = element("a", HOSTILE, title=HOSTILE)

        assert html.count("<") == 2
        assert html.count('"') == 2
        assert "'" not in html

    def test_markup_is_put_in_as_it_is_and_none_is_left_out(self):
        assert join(element("b", "x"), None, "<", 3) == "<b>x</b>&lt;3"

    def test_attributes(self):
        found = element("p", class_="a", stroke_width=1, open=True, hidden=False, id=None)
        assert found == '<p class="a" stroke-width="1" open></p>'

    def test_long_texts_are_cut(self):
        html = element("p", "<" * 5000)

        assert len(html) < 8100
        assert html.endswith("… (5,000 characters)</p>")

    def test_what_no_document_can_hold_is_replaced(self):
        html = element("p", "a\ud800b\x00c\x1bd\u202ee\n")

        assert html == "<p>a\\ud800b�c�d�e\n</p>"
        assert isinstance(html, Markup)
        html.encode()


class TestOutline:
    def test_groups_open_and_close_and_arrays_do_not(self):
        children = {"": ["a", "z"], "a": ["a/b"]}
        page = Page(outline(children, {"a": "", "a/b": "(2,) int8", "z": "(3,) int8"}))

        assert page.elements.count("details") == 1
        assert page.text.split() == ["a/", "1", "b", "(2,)", "int8", "z", "(3,)", "int8"]

    def test_nothing(self):
        assert outline({}, {}) is None

    def test_names_and_labels_are_text(self):
        name = "<b onclick='x()'>&"
        page = Page(outline({"": [name]}, {name: "<i>"}))

        assert name in page.text
        assert "<i>" in page.text

    def test_however_many_nodes_there_are_so_many_are_shown(self):
        children = {"": [str(one) for one in range(20_000)]}
        children |= {one: [f"{one}/{two}" for two in range(2000)] for one in children[""][:100]}
        labels = {path: "(1,) int8" for one in children[""][:100] for path in children[one]}
        page = Page(outline(children, labels))

        assert page.size < 200_000
        assert page.elements.count("li") < 1200
        assert "1,900 more" in page.text
        assert "19,9" in page.text

    def test_a_deep_tree(self):
        children, path = {"": ["x"]}, "x"
        for _ in range(2000):
            children[path] = [f"{path}/x"]
            path += "/x"
        assert Page(outline(children, {})).size < 20_000


class TestPage:
    def test_a_page_names_what_it_shows_and_escapes_it(self):
        found = Page(page("Group", "<memory>", folded("more", "&lt;"), None, open_text := "x<y"))

        assert found.text.split() == ["Group", "<memory>", "more", "&lt;", *open_text.split()]

    def test_a_page_needs_no_name(self):
        assert "code" not in Page(page("Schema")).elements

    def test_colours_are_those_of_the_theme_or_of_the_screen(self):
        html = page("x")

        assert "prefers-color-scheme:dark" in html
        for variable in (
            "--jp-content-font-color1",
            "--vscode-editor-foreground",
            "--jp-brand-color1",
        ):
            assert f"var({variable}," in html
        style = html.partition("<style>")[2].partition("</style>")[0]
        # no rule reaches beyond the page
        rules = style.replace("@media(prefers-color-scheme:dark){", "").split("}")
        assert all(rule.strip().startswith(".tsv") for rule in rules if rule.strip())

    def test_what_folds_is_closed_unless_it_is_to_be_open(self):
        assert "<details>" in folded("a", "b")
        assert "<details open>" in folded("a", "b", open_=True)


def in_text(*axes, **options):
    return [line.rstrip() for line in text_drawing(axes, **options)]


class TestTextDrawing:
    def test_all_lines_of_chunks_and_shards(self):
        assert in_text(Axis(0, 4, "y", 2), Axis(0, 5, "x", 1, 2), width=27) == [
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

    def test_the_last_chunk_is_as_short_as_it_is(self):
        (_, line, _, label, _) = in_text(Axis(0, 95, "x", 10))
        cells = line.strip("│").split("│")
        assert len(cells) == 10
        assert {len(cell) for cell in cells[:-1]} == {4}
        assert 0 < len(cells[-1]) < 4
        assert label.strip() == "x 95"

    def test_a_third_dimension_is_behind(self):
        top, *_ = in_text(Axis(0, 9, "t", 1), Axis(0, 4, "y", 2), Axis(0, 4, "x", 2))
        assert top.endswith("┐ t 9")
        assert top.startswith(" " * 8 + "┌")
        single = in_text(Axis(0, 1, "t", 1), Axis(0, 4, "y", 2), Axis(0, 4, "x", 2))
        assert single[0].startswith("    ┌")

    def test_many_chunks_are_a_line_for_several(self):
        text = "\n".join(in_text(Axis(0, 2**62, "y", 3), Axis(0, 10**12, "x", 7)))
        assert "a line for up to " in text
        assert len(text) < 2000

    @pytest.mark.parametrize("width", [20, 40, 80, 200])
    @pytest.mark.parametrize("rank", range(5))
    def test_it_is_no_wider_than_the_terminal(self, rank, width):
        for extent, chunk in ((7, 2), (1000, 64), (10**6, 10), (0, 5), (5, None), (1, 1)):
            axes = [Axis(0, extent + dim, "", chunk, None if dim % 2 else 4) for dim in range(rank)]
            lines = in_text(*axes, width=width)
            figure = [line for line in lines if not line.lstrip().startswith("(")]
            assert all(len(line) <= max(width, 40) for line in figure)
            assert bool(lines) == bool(rank)

    @pytest.mark.parametrize(
        "axis", [Axis(None, None), Axis(0, 0, "x", 5), Axis(-5, 25, "x", 10, 20, 3)]
    )
    def test_ends_that_are_not_known_emptiness_and_origins(self, axis):
        lines = in_text(Axis(0, 5, "y", 5), axis)
        assert axis.named in lines[-1] or axis.named in lines[-2]

    def test_ascii_says_the_same(self):
        axes = [Axis(0, 4, "t", 1), Axis(0, 4, "y", 2), Axis(0, 6, "x", 1, 2)]
        boxes, plain = in_text(*axes), in_text(*axes, plain=True)
        assert all(line.isascii() for line in plain)
        assert [len(line) for line in boxes] == [len(line) for line in plain]
        assert {each for line in boxes[:-2] for each in line} <= {*BOXES, *" ty46"}
