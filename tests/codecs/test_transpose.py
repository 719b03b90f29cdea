import numpy as np
import pytest

from tensorstore_py.codecs.transpose import TransposeSpec
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import bind_chain, parse_codec_json, resolve_chain
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
