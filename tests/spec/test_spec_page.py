import pytest

import tensorstore_py as ts
from tests.display.pages import Page

HOSTILE = "<script>alert('x')</script>"


@pytest.mark.parametrize(
    "shown",
    [
        ts.Schema(),
        ts.Schema(rank=3),
        ts.Schema(dtype="uint8", shape=[]),
        ts.Schema(dtype="float32", domain=ts.IndexDomain(rank=2), fill_value=5),
        ts.ChunkLayout(),
        ts.ChunkLayout(rank=0),
        ts.ChunkLayout(rank=32),
        ts.ChunkLayout(read_chunk_elements=1000),
        ts.CodecSpec({"driver": "zarr3"}),
        ts.CodecSpec({"driver": "n5", "compression": {"type": "gzip"}}),
        ts.Spec("memory://"),
        ts.Spec({"driver": "zarr"}),
        ts.KvStore.Spec("memory://a/"),
        ts.KvStore.Spec({"driver": "zip", "base": "memory://a.zip"}),
    ],
    ids=repr,
)
def test_whatever_is_left_open_is_not_shown(shown):
    page = Page(shown._repr_html_())

    assert type(shown).__name__.rpartition(".")[2] in page.text
    assert "None" not in page.text


def test_a_schema_says_what_it_asks_for():
    schema = ts.Schema(
        dtype="uint16",
        domain=ts.IndexDomain(shape=[100, 200], labels=["y", HOSTILE]),
        chunk_layout=ts.ChunkLayout(read_chunk_shape=[10, 20], write_chunk_shape=[50, 100]),
        codec={"driver": "zarr3", "codecs": ["zstd"]},
        dimension_units=["4nm", None],
        fill_value=7,
    )
    page = Page(schema._repr_html_())

    for word in ("uint16", "10 × 20", "50 × 100", "zstd", "4 nm, none", "7", "[0, 100)"):
        assert word in page.text
    assert "svg" in page.elements


def test_secrets_stay_secret():
    spec = {
        "driver": "http",
        "base_url": "https://me:secret@host?key=secret",
        "headers": ["Cookie: secret"],
    }
    for shown in (ts.KvStore.Spec(spec), ts.Spec({"driver": "zarr3", "kvstore": spec})):
        assert "secret" not in shown._repr_html_()


def test_a_layout_has_a_line_for_each_dimension():
    page = Page(ts.ChunkLayout(chunk_shape=[4, None, 6], inner_order=[2, 1, 0])._repr_html_())

    assert page.rows() == 1 + 3 + 1
    assert "2, 1, 0" in page.text


def test_codecs_have_a_line_each():
    codecs = [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 3}}]
    page = Page(ts.CodecSpec({"driver": "zarr3", "codecs": codecs})._repr_html_())

    assert page.rows() == 2
    assert "level 3" in page.text


def test_a_hostile_path_is_text():
    spec = ts.Spec({"driver": "zarr3", "kvstore": {"driver": "memory", "path": HOSTILE}})

    assert HOSTILE in Page(spec._repr_html_()).text
    assert HOSTILE in Page(spec.kvstore._repr_html_()).text  # type: ignore[union-attr]
