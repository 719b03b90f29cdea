import numpy as np
import pytest

from tensorstore_py.codecs.reshape import ReshapeSpec
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import bind_chain, parse_codec_json
from tensorstore_py.testing.codecs import CodecSuite, chunk_type


class TestReshape(CodecSuite):
    configurations = (
        {"name": "reshape", "configuration": {"shape": [-1]}},
        {"name": "reshape", "configuration": {"shape": [[0, 1], [2]]}},
        {"name": "reshape", "configuration": {"shape": [[0], 1, -1]}},
        {"name": "reshape", "configuration": {"shape": [[0, 1, 2], []]}},
    )
    shapes = ((1, 5, 1), (2, 3, 4))


@pytest.mark.parametrize(
    ("shape", "old", "new"),
    [
        ([[0, 1], [2], 3], (100, 50, 64, 3), (5000, 64, 3)),
        ([6, -1], (2, 3, 4), (6, 4)),
        ([-1], (), (1,)),
        ([], (), ()),
        ([], (1, 1), ()),
        ([2, [1], 2], (2, 3, 2), (2, 3, 2)),
        ([2, 2, [1]], (4, 3), (2, 2, 3)),
        ([[0, 2]], (3, 1, 4), (12,)),
        ([[0], [], [1]], (3, 4), (3, 1, 4)),
    ],
)
def test_sizes(shape: list[object], old: tuple[int, ...], new: tuple[int, ...]) -> None:
    assert ReshapeSpec.parse({"shape": shape}).sizes(old) == new


@pytest.mark.parametrize(
    ("shape", "old", "problem"),
    [
        ([5], (2, 3), r"^shape: a chunk of shape \[2, 3\] has 6 elements, which cannot .* \[5\]"),
        ([4, -1], (2, 3), "^shape: a chunk of shape"),
        ([[0]], (2, 3), "^shape: a chunk of shape"),
        ([[0], [2]], (2, 3), r"^shape\[1\]: there is no dimension 2, the chunk has 2"),
        ([3, [0]], (2, 3), r"^shape\[1\]: \[0\] are not the dimensions of \[2, 3\]"),
        ([2, [2], 3], (2, 3, 4), r"^shape\[1\]: \[2\] are not the dimensions"),
        ([[0, 2], 3], (2, 3, 4), r"^shape\[0\]: \[0, 2\] are not the dimensions"),
    ],
)
def test_chunks_of_another_shape_are_refused(
    shape: list[object], old: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        ReshapeSpec.parse({"shape": shape}).sizes(old)


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ([-1, -1], "-1 can stand for one dimension only"),
        ([[1], [0]], r"listed once each and in order, not \[1, 0\]"),
        ([[1, 0], 10, [3, 4]], "listed once each"),
        ([[0], [0]], "listed once each"),
        ([0], r"shape\[0\]: expected a positive size"),
        ([-2], r"shape\[0\]: "),
        ([1.5], r"shape\[0\]: "),
        ([True], r"shape\[0\]: "),
        ([["0"]], r"shape\[0\]: "),
        ([[32]], r"shape\[0\]: "),
        ([None], r"shape\[0\]: "),
        (5, "shape: expected an array"),
        ([1] * 33, "shape: expected an array of up to 32"),
    ],
)
def test_what_is_no_shape_is_refused(shape: object, problem: str) -> None:
    with pytest.raises(SpecError, match=r"^configuration\.shape.*") as raised:
        parse_codec_json("zarr3", {"name": "reshape", "configuration": {"shape": shape}})

    assert raised.match(problem)


def test_elements_keep_their_order() -> None:
    codecs = [
        parse_codec_json("zarr3", {"name": "transpose", "configuration": {"order": [1, 0]}}),
        parse_codec_json("zarr3", {"name": "reshape", "configuration": {"shape": [-1]}}),
    ]
    chain = bind_chain(codecs, chunk_type((2, 3), "u1"))

    assert bytes(chain.encode(np.arange(6, dtype="u1").reshape(2, 3))).hex() == "000301040205"


def test_a_chunk_is_decoded_where_it_belongs() -> None:
    chain = bind_chain(
        [parse_codec_json("zarr3", {"name": "reshape", "configuration": {"shape": [[0, 1]]}})],
        chunk_type((2, 3), "u1"),
    )

    out = np.zeros((2, 3), "u1")
    view = chain.to_array[0].view_of(out)
    assert view is not None
    assert np.shares_memory(out, view)
    assert chain.to_array[0].view_of(np.zeros((3, 2), "u1").T) is None
