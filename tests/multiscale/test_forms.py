"""How many levels, how large, in which chunks and shards."""

import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.axes import as_axes
from tensorstore_py.multiscale.forms import level_forms


def forms(shape, axes, present=None, item_bytes=2, **options):
    asked = {"levels": None, "scale": 2, "chunks": None, "shards": None, **options}
    return level_forms(shape, as_axes(axes, len(shape)), item_bytes, present, **asked)


def test_levels_go_on_until_the_last_is_small():
    found = forms((5, 3, 100, 1000, 1001), "tczyx")

    assert [form.shape[2:] for form in found.levels] == [
        (100, 1000, 1001), (50, 500, 501), (25, 250, 251),
    ]  # fmt: skip
    assert {form.shape[:2] for form in found.levels} == {(5, 3)}
    assert found.factors[-1] == (1, 1, 4, 4, 4)


def test_an_axis_of_one_pixel_stays_as_it_is():
    found = forms((3, 64, 64), "zyx", levels=5)

    assert [form.shape[0] for form in found.levels] == [3, 2, 1, 1, 1]
    assert found.factors[-1] == (4, 16, 16)


@pytest.mark.parametrize(
    ("shape", "axes", "present", "chunk"),
    [
        ((30, 3000, 3000), "zyx", (1, 3000, 3000), (1, 500, 500)),
        ((512, 512, 512), "zyx", (128, 128, 128), (128, 128, 128)),
        ((512, 512, 512), "zyx", (32, 32, 32), (64, 64, 128)),
        ((4, 20, 3000, 3000), "tzyx", None, (1, 20, 128, 256)),
        ((10, 10), "yx", None, (10, 10)),
        ((0, 10), "yx", None, (1, 10)),
    ],
)
def test_chunks_go_by_those_of_the_source(shape, axes, present, chunk):
    assert forms(shape, axes, present).chunks[0] == chunk


def test_small_levels_have_small_chunks_and_shards():
    found = forms((100, 300), "yx", levels=3, chunks=64, shards=128)

    assert found.chunks == ((64, 64), (50, 64), (25, 64))
    assert [form.chunk for form in found.levels] == [(128, 128), (50, 128), (25, 128)]


def test_a_scale_for_each_level():
    found = forms((60, 100, 100), "zyx", scale=[{"y": 2, "x": 2}, (3, 2, 2)])

    assert [form.shape for form in found.levels] == [(60, 100, 100), (60, 50, 50), (20, 25, 25)]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"levels": True}, ("levels",)),
        ({"levels": 99, "chunks": 2}, ("levels",)),
        ({"scale": 1.5}, ("scale",)),
        ({"scale": [{"x": 2}], "levels": 5}, ("scale",)),
        ({"chunks": {"x": -2}}, ("chunks",)),
        ({"chunks": "big"}, ("chunks",)),
        ({"chunks": (2, 2), "shards": (3, 2)}, ("shards",)),
    ],
)
def test_what_does_not_go_together(options, path):
    with pytest.raises(ts.SpecError) as raised:
        forms((64, 64), "yx", **options)

    assert raised.value.path == path
