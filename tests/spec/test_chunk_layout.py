import pickle

import pytest
import tensorstore as reference

from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py.errors import MismatchError, SpecError

GRID = ChunkLayout.Grid

# Keyword arguments on which both libraries must agree: repr, or the class of the error.
ARGUMENTS = [
    {},
    {"rank": 2},
    {"rank": 0},
    {"rank": 33},
    {"inner_order": []},
    {"inner_order": [1, 0], "rank": 2},
    {"inner_order": [0, 0]},
    {"inner_order": [0, 2]},
    {"rank": 2, "inner_order": [0]},
    {"inner_order_soft_constraint": [1, 0], "inner_order": [0, 1]},
    {"inner_order": [1, 0], "grid_origin": [0]},
    {"grid_origin_soft_constraint": [1, None], "grid_origin": [None, 4]},
    {"grid_origin": [2**62]},
    {"chunk_shape": [1, 2], "write_chunk_shape": [1, 3]},
    {"chunk_shape": [-1, 3], "write_chunk_shape": [5, 3]},
    {"chunk_shape_soft_constraint": [4, 4], "read_chunk_shape_soft_constraint": [5, 5]},
    {"chunk_elements_soft_constraint": 5, "chunk_elements": 6},
    {"chunk_aspect_ratio": [1, 2], "codec_chunk_aspect_ratio_soft_constraint": [3, None]},
    {"codec_chunk_elements": 7, "read_chunk_aspect_ratio": [None, 3]},
    {"chunk_shape": 5},
    {"chunk_elements": 1.5},
    {"finalize": True},
    {"rank": 2, "finalize": True},
    {"grid_origin": [0, 0], "finalize": True},
    {"grid_origin": [0, None], "chunk_shape": [1, 2], "finalize": True},
    {"grid_origin": [0, 0], "chunk_shape": [1, 2], "chunk_elements": 9, "finalize": True},
    {
        "grid_origin": [0, 0],
        "write_chunk_shape": [4, 2],
        "read_chunk_shape": [2, 0],
        "codec_chunk_shape_soft_constraint": [1, 1],
        "finalize": True,
    },
    {
        "grid_origin": [0, 0],
        "write_chunk_shape": [4, 2],
        "read_chunk_shape": [3, 0],
        "finalize": True,
    },
]

JSONS = [
    {},
    [],
    {"foo": 1},
    {"rank": 2.0},
    {"rank": "2"},
    {"rank": 33},
    {"inner_order": None},
    {"inner_order": "C"},
    {"rank": 2, "inner_order": [0]},
    {"grid_origin": None},
    {"grid_origin": [1, None]},
    {"write_chunk": None},
    {"write_chunk": {}},
    {"read_chunk": {"shape": [3, -4]}},
    {"chunk": {"shape": [1, 2], "aspect_ratio": [1, 2], "elements": 5}},
    {"chunk": {"shape": [1, 2]}, "write_chunk": {"shape": [1, 3]}},
    {"codec_chunk": {"elements": 3, "shape": [3]}},
]


def outcome(make):
    try:
        return repr(make())
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
def test_arguments_as_in_the_reference(arguments):
    expected = outcome(lambda: reference.ChunkLayout(**arguments))

    assert expected == outcome(lambda: ChunkLayout(**arguments))


@pytest.mark.parametrize("json", JSONS, ids=repr)
def test_json_as_in_the_reference(json):
    assert outcome(lambda: reference.ChunkLayout(json)) == outcome(lambda: ChunkLayout(json))


@pytest.mark.parametrize(
    ("json", "path"),
    [
        ({"write_chnk": {}}, ("write_chnk",)),
        ({"rank": -1}, ("rank",)),
        ({"inner_order": [0, 0]}, ("inner_order",)),
        ({"inner_order": [0, "a"]}, ("inner_order",)),
        ({"rank": 2, "grid_origin": [0]}, ("grid_origin",)),
        ({"read_chunk": {"shape": [3, -4]}}, ("read_chunk", "shape", 1)),
        ({"chunk": {"elements": 1}, "read_chunk": {"elements": 2}}, ("read_chunk",)),
    ],
)
def test_errors_have_the_path(json, path):
    with pytest.raises(SpecError) as caught:
        ChunkLayout(json)

    assert caught.value.path == path


def test_properties():
    shards = ChunkLayout(
        grid_origin=[-8, 0, 5],
        write_chunk=GRID(shape=[32, 64, 15]),
        read_chunk=GRID(shape=[8, 0, 5]),
        codec_chunk=GRID(shape=[0, 4, 0]),
        inner_order=[2, 0, 1],
        finalize=True,
    )

    assert shards.rank == shards.ndim == 3
    assert shards.grid_origin == (-8, 0, 5)
    assert shards.inner_order == (2, 0, 1)
    assert shards.inner_order_soft_constraint is None
    # What is read together is, where nothing is said, what is written together.
    assert shards.read_chunk.shape == (8, 64, 5)
    assert shards.write_chunk.shape == (32, 64, 15)
    assert shards.codec_chunk.shape == (None, 4, None)
    for template, extents in [
        (shards.read_chunk_template, (8, 64, 5)),
        (shards.write_chunk_template, (32, 64, 15)),
    ]:
        assert template == IndexDomain(inclusive_min=[-8, 0, 5], shape=extents)
    for again in (ChunkLayout(shards), pickle.loads(pickle.dumps(shards))):
        assert again == shards


def test_codec_chunk_shape_is_about_codec_chunks():
    layout = ChunkLayout(codec_chunk_shape=[2, 3], codec_chunk_aspect_ratio=[None, 2])

    assert layout.to_json() == {"codec_chunk": {"aspect_ratio": [None, 2.0], "shape": [2, 3]}}


def test_templates_know_hard_constraints_only():
    soft = ChunkLayout(grid_origin_soft_constraint=[1, 2], chunk_shape=[3, None])

    assert repr(soft.read_chunk_template) == "{ (-inf, +inf), (-inf, +inf) }"
    assert repr(ChunkLayout(grid_origin=[1, 2], chunk_shape=[3, None]).read_chunk_template) == (
        "{ [1, 4), (-inf, +inf) }"
    )
    with pytest.raises(SpecError, match="Rank of chunk layout is unspecified"):
        _ = ChunkLayout().read_chunk_template


def test_unknown_rank():
    assert ChunkLayout().rank == -1
    assert ChunkLayout().grid_origin is None
    assert ChunkLayout(rank=1).grid_origin == (None,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"rank": 2}, {}),
        ({"chunk_elements": 1}, {"rank": 2, "chunk_elements": 1}),
        ({"chunk_elements": 1}, {"chunk_elements_soft_constraint": 1}),
        ({"chunk_shape": [1]}, {"chunk_shape": [1], "rank": 1}),
        ({"chunk_shape": [None]}, {"rank": 1}),
        ({"chunk_shape": [1]}, {"rank": 1}),
    ],
)
def test_equality_as_in_the_reference(one, other):
    expected = reference.ChunkLayout(**one) == reference.ChunkLayout(**other)

    assert expected == (ChunkLayout(**one) == ChunkLayout(**other))


def test_update_is_all_or_nothing():
    layout = ChunkLayout(chunk_shape=[1, 2])

    with pytest.raises(MismatchError, match="read_chunk_shape"):
        layout.update(inner_order=[1, 0], read_chunk_shape=[1, 3])

    assert layout == ChunkLayout(chunk_shape=[1, 2])
    assert layout != 5
    with pytest.raises(TypeError, match='did you mean "read_chunk_shape"'):
        layout.update(read_chunk_shap=[1])  # type: ignore[call-arg]
