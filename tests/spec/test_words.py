from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py._api.options import OPTIONS
from tensorstore_py._spec import words
from tensorstore_py._spec.schema_constraints import SchemaConstraints

ZARR3 = {"driver": "zarr3", "kvstore": "memory://"}


@pytest.mark.parametrize(
    "table", [words.ARGUMENTS, words.MEMBERS, words.SCHEMA_MEMBERS, words.LAYOUT_MEMBERS]
)
def test_each_word_leads_somewhere(table):
    assert all(word and phrase for word, phrase in table.items())


def test_no_argument_that_exists_is_told_to_be_another():
    assert not OPTIONS & words.ARGUMENTS.keys()


def test_no_member_that_exists_is_told_to_be_another():
    assert not SchemaConstraints.__dataclass_fields__.keys() & words.SCHEMA_MEMBERS.keys()
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec({**ZARR3, "qqq": 1})
    for name in words.MEMBERS:
        assert f'"{name}"' not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("chunks", "chunk_layout=ts.ChunkLayout(chunk_shape="),
        ("shards", "write_chunk_shape="),
        ("mode", 'read=True for mode "r"'),
        ("compressor", 'codec="zstd"'),
        ("compression", 'codec="zstd"'),
        ("fillvalue", "fill_value="),
        ("store", "the first argument"),
        ("path", "the first argument"),
        ("overwrite", "delete_existing=True"),
        ("order", "inner_order="),
        ("zarr_format", '"zarr3"'),
        ("dimension_separator", "chunk_key_encoding"),
        ("dimension_names", "labels="),
        ("attributes", "attrs.update"),
        ("metadata", "in the spec"),
    ],
)
def test_arguments_of_other_libraries_lead_to_ours(word, remedy):
    wrong: dict[str, Any] = {word: 1}
    for call in (ts.open, ts.Spec):
        with pytest.raises(TypeError) as caught:
            call(ZARR3, **wrong)
        assert f"'{word}'; " in str(caught.value)
        assert remedy in str(caught.value)
    with pytest.raises(TypeError, match=f'Schema has no argument "{word}"; '):
        ts.Schema(**wrong)


@pytest.mark.parametrize(
    ("spec", "path", "remedy"),
    [
        ({"chunks": [4]}, ("chunks",), '"chunk_layout": {"chunk": {"shape":'),
        ({"shape": [4]}, ("shape",), '"domain": {"shape":'),
        ({"compressor": {}}, ("compressor",), '"codec":'),
        ({"fill_value": 1}, ("fill_value",), 'a member of "schema"'),
        ({"bucket": "b"}, ("bucket",), 'a member of "kvstore"'),
        ({"schema": {"shape": [4]}}, ("schema", "shape"), '"domain": {"shape":'),
        (
            {"schema": {"chunk_layout": {"chunk_shape": [4]}}},
            ("schema", "chunk_layout", "chunk_shape"),
            '"chunk": {"shape":',
        ),
        ({"metadata": {"chunks": [4]}}, ("metadata", "chunks"), '"chunk_grid"'),
        ({"metadata": {"dtype": "<u2"}}, ("metadata", "dtype"), '"data_type"'),
        ({"metadata": {"compressor": None}}, ("metadata", "compressor"), '"codecs"'),
        (
            {"driver": "zarr", "metadata": {"data_type": "uint8"}},
            ("metadata", "data_type"),
            '"dtype"',
        ),
        ({"driver": "zarr", "metadata": {"codecs": []}}, ("metadata", "codecs"), '"compressor"'),
        ({"driver": "auto", "chunks": [4]}, ("chunks",), '"chunk_layout"'),
    ],
)
def test_members_of_other_libraries_lead_to_ours(spec, path, remedy):
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec({**ZARR3, **spec})

    assert caught.value.path == path
    assert remedy in str(caught.value)
