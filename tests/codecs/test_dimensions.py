import numpy as np
import pytest

from tensorstore_py.codecs.dimensions import ReshapeSpec, TransposeSpec
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.driver import bind_chain, parse_codec_json, resolve_chain
from tensorstore_py.testing.codecs import CodecSuite, chunk_type, sample


class TestNamedOrders(CodecSuite):
    configurations = (
        {"name": "transpose", "configuration": {"order": "C"}},
        {"name": "transpose", "configuration": {"order": "F"}},
    )


class TestPermutations(CodecSuite):
    configurations = (
        {"name": "transpose", "configuration": {"order": [0, 1, 2]}},
        {"name": "transpose", "configuration": {"order": [1, 2, 0]}},
        {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
    )
    shapes = ((1, 5, 1), (2, 3, 4))


def transpose(order: object) -> TransposeSpec:
    spec = parse_codec_json("zarr3", {"name": "transpose", "configuration": {"order": order}})
    assert isinstance(spec, TransposeSpec)
    return spec


def test_an_encoded_dimension_is_the_decoded_one_that_the_order_names() -> None:
    chunk = chunk_type((2, 3, 4), "uint8")

    bound = transpose([1, 2, 0]).bind(chunk)

    assert bound.encoded.shape == (3, 4, 2)
    array = sample(chunk)
    assert bound.encode(array)[2, 3, 1] == array[1, 2, 3]


def test_only_views_are_made() -> None:
    chunk = chunk_type((2, 3, 4), "uint8")
    bound = transpose([1, 2, 0]).bind(chunk)
    array = sample(chunk)

    assert np.shares_memory(bound.encode(array), array)
    assert np.shares_memory(bound.decode(bound.encode(array)), array)
    view = bound.view_of(array)
    assert view is not None
    assert np.shares_memory(view, array)


@pytest.mark.parametrize(("order", "resolved"), [("C", (0, 1, 2)), ("F", (2, 1, 0))])
def test_metadata_states_the_permutation(order: str, resolved: tuple[int, ...]) -> None:
    chunk = chunk_type((2, 3, 4), "uint8")

    spec = resolve_chain([transpose(order)], chunk)[0]

    assert spec.to_json() == {"order": list(resolved)}


@pytest.mark.parametrize("order", [[0, 0], [1, 2], [-1, 0], ["a"], "X", 3, None, [0.5], [True, 0]])
def test_what_is_no_permutation_is_refused(order: object) -> None:
    with pytest.raises(SpecError, match=r"^configuration\.order"):
        transpose(order)


def test_the_order_is_required() -> None:
    with pytest.raises(SpecError, match=r"^configuration\.order: .*required"):
        parse_codec_json("zarr3", "transpose")


def test_an_order_of_another_rank_does_not_fit() -> None:
    with pytest.raises(SpecError, match=r"^codecs\[0\]\.configuration\.order: .*2 dimensions"):
        bind_chain([transpose([1, 0])], chunk_type((2, 3, 4), "uint8"))


def test_a_named_order_agrees_with_the_permutation_that_it_means() -> None:
    assert transpose("F").merged(transpose([1, 0])).to_json() == {"order": [1, 0]}
    assert transpose([1, 0]).merged(transpose("F")).to_json() == {"order": [1, 0]}
    assert transpose("F").merged(transpose("F")).to_json() == {"order": "F"}
    with pytest.raises(MismatchError, match="order"):
        transpose([0, 1]).merged(transpose("F"))


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
