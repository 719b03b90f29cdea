"""The `chunk_grid` member: what it may say, what is written, and what follows for the chunks."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py.drivers.zarr3.chunk_grid import (
    RectilinearGrid,
    bound_chains,
)
from tensorstore_py.drivers.zarr3.chunk_key_encoding import DefaultKeyEncoding
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    ChunkType,
    CodecChain,
)
from tensorstore_py.plugin.driver import (
    ChunkGridModel,
    ChunkKeyEncodingModel,
    IrregularAxis,
    RegularAxis,
    bind_chain,
    parse_codec_list,
)

SIZE = st.integers(1, 9)
RUN = st.tuples(SIZE, st.integers(1, 4)).map(list)
CUT = SIZE | st.lists(SIZE | RUN, min_size=1, max_size=6)


def regular(*sizes: object) -> dict:
    return {"name": "regular", "configuration": {"chunk_shape": list(sizes)}}


def rectilinear(*sizes: object, **more: object) -> dict:
    configuration = {"kind": "inline", "chunk_shapes": list(sizes), **more}
    return {"name": "rectilinear", "configuration": configuration}


def grid(*sizes: object) -> RectilinearGrid:
    return RectilinearGrid.parse(rectilinear(*sizes)["configuration"])


def expanded(cut: object) -> list[int]:
    assert isinstance(cut, list)
    sizes: list[int] = []
    for entry in cut:
        sizes += [entry] if isinstance(entry, int) else [entry[0]] * entry[1]
    return sizes


class TestForms:
    def test_a_regular_grid(self):
        found = ChunkGridModel.parse_named(regular(4, 5))
        assert (found.shape, found.grid_id) == ((4, 5), "regular")
        assert found.named_json() == regular(4, 5)

    @pytest.mark.parametrize(
        ("said", "runs", "written"),
        [
            (4, 4, 4),
            ([1, 2, 3], ((1, 1), (2, 1), (3, 1)), [1, 2, 3]),
            ([[4, 2]], ((4, 2),), [[4, 2]]),
            ([[1, 3], 3], ((1, 3), (3, 1)), [[1, 3], 3]),
            ([4, 4, 4], ((4, 3),), [[4, 3]]),
            ([[5, 1], 5, [5, 2], [2, 1]], ((5, 4), (2, 1)), [[5, 4], 2]),
            ([6], ((6, 1),), [6]),
            ([], (), []),
            ([3.0, [2.0, 2]], ((3, 1), (2, 2)), [3, [2, 2]]),
        ],
    )
    def test_sizes_of_one_dimension(self, said, runs, written):
        found = grid(said)
        assert found.cuts == (runs,)
        assert found.named_json() == rectilinear(written)

    @given(st.lists(CUT, max_size=4))
    def test_what_is_written_is_read_again(self, cuts):
        found = grid(*cuts)
        assert ChunkGridModel.parse_named(found.named_json()) == found
        assert found.rank == len(cuts)

    def test_an_exorbitant_number_of_chunks_takes_no_memory(self):
        found = grid([[1, 2**62], [2, 2**62]], 3)
        found.check_reaches([2**62, 3])
        assert found.largest == (2, 3)
        assert found.axes([2**61, 7])[0].count == 2**61


MALFORMED = [
    ({"name": "rectangular", "configuration": {}}, ("name",), '"rectangular"'),
    ({"name": 5, "configuration": {}}, ("name",), "5"),
    ({"configuration": {}}, ("name",), "nothing"),
    ("rectilinear", (), "object"),
    ({"name": "rectilinear"}, ("configuration", "kind"), "required"),
    ({"name": "rectilinear", "configuration": []}, ("configuration",), "object"),
    ({**rectilinear(4), "version": 2}, ("version",), "no such member"),
    ({**rectilinear(4), "must_understand": 1}, ("must_understand",), "true or false"),
    (
        {"name": "rectilinear", "configuration": {"chunk_shapes": [4]}},
        ("configuration", "kind"),
        "required",
    ),
    (rectilinear(4, kind="external"), ("configuration", "kind"), '"external"'),
    (rectilinear(4, kind=None), ("configuration", "kind"), "null"),
    (rectilinear(4, chunk_shape=[4]), ("configuration", "chunk_shape"), "no such member"),
    (
        {"name": "rectilinear", "configuration": {"kind": "inline"}},
        ("configuration", "chunk_shapes"),
        "required",
    ),
    (rectilinear(chunk_shapes=4), ("configuration", "chunk_shapes"), "array"),
    (rectilinear(*[1] * 33), ("configuration", "chunk_shapes"), "32 dimensions"),
    (rectilinear(0), ("configuration", "chunk_shapes", 0), "0"),
    (rectilinear(4, -1), ("configuration", "chunk_shapes", 1), "-1"),
    (rectilinear(4, None), ("configuration", "chunk_shapes", 1), "null"),
    (rectilinear("4"), ("configuration", "chunk_shapes", 0), '"4"'),
    (rectilinear(True), ("configuration", "chunk_shapes", 0), "true"),
    (rectilinear(1.5), ("configuration", "chunk_shapes", 0), "1.5"),
    (rectilinear({"size": 4}), ("configuration", "chunk_shapes", 0), "size"),
    (rectilinear(2**63), ("configuration", "chunk_shapes", 0), "9223372036854775808"),
    (rectilinear(4, [3, 0]), ("configuration", "chunk_shapes", 1, 1), "0"),
    (rectilinear([3, "x"]), ("configuration", "chunk_shapes", 0, 1), '"x"'),
    (rectilinear([3, None]), ("configuration", "chunk_shapes", 0, 1), "null"),
    (rectilinear([3, [4]]), ("configuration", "chunk_shapes", 0, 1), "[size, how many]"),
    (rectilinear([3, [4, 2, 1]]), ("configuration", "chunk_shapes", 0, 1), "[size, how many]"),
    (rectilinear([[]]), ("configuration", "chunk_shapes", 0, 0), "[size, how many]"),
    (rectilinear([[4, 0]]), ("configuration", "chunk_shapes", 0, 0, 1), "0"),
    (rectilinear([[0, 4]]), ("configuration", "chunk_shapes", 0, 0, 0), "0"),
    (rectilinear([[4, 2.5]]), ("configuration", "chunk_shapes", 0, 0, 1), "2.5"),
    (rectilinear([[4, [2, 1]]]), ("configuration", "chunk_shapes", 0, 0, 1), "2"),
    (rectilinear([[4, 2**64]]), ("configuration",), "18446744073709551616"),
    (regular(4, [4, 4]), ("configuration", "chunk_shape", 1), "4"),
    (regular(0), ("configuration", "chunk_shape", 0), "0"),
    ({"name": "regular"}, ("configuration", "chunk_shape"), "required"),
]


@pytest.mark.parametrize(("json", "path", "said"), MALFORMED)
def test_malformed_grids_are_refused_at_the_member(json, path, said):
    with pytest.raises(SpecError) as caught:
        ChunkGridModel.parse_named(json)
    assert caught.value.path == path
    assert said in caught.value.problem


class TestCoverage:
    def test_chunks_may_overflow_by_many(self):
        grid([4, 4, 4], 3, []).check_reaches([1, 100, 0])

    def test_chunks_must_reach_the_end(self):
        with pytest.raises(SpecError, match=r"chunks of 11 elements in all.*12; add") as caught:
            grid(3, [[4, 2], 3]).check_reaches([5, 12])
        assert caught.value.path == ("chunk_shapes", 1)

    def test_no_chunks_are_enough_for_no_elements_only(self):
        with pytest.raises(SpecError, match="chunks of 0 elements"):
            grid([]).check_reaches([1])


class TestSizes:
    @pytest.mark.parametrize(
        ("cut", "size"),
        [
            (4, 4), ([[4, 3]], 4), ([4, 4, 2], 4), ([[4, 9], 1], 4), ([4, 5], None),
            ([4, 2, 4], None), ([4, 2, 2], None), ([2, 4, 4], None), ([], None),
        ],
    )  # fmt: skip
    def test_a_dimension_has_one_size_if_only_the_last_chunk_is_smaller(self, cut, size):
        assert grid(cut).shape == (size,)

    def test_shapes_that_chunks_have(self):
        found = grid([6, [9, 2], 12], 4, [2, 2])
        assert (found.largest, found.common) == ((12, 4, 2), (3, 4, 2))
        assert not found.is_even

    @pytest.mark.parametrize("cuts", [(4, 5), ([4, 4], 5), ([[3, 7]], [2]), ()])
    def test_a_grid_of_one_size_a_dimension_is_even(self, cuts):
        assert grid(*cuts).is_even

    def test_axes_are_irregular_only_where_they_must_be(self):
        kinds = [type(axis) for axis in grid(4, [[4, 3]], [4, 5, 6]).axes([9, 12, 15])]
        assert kinds == [RegularAxis, RegularAxis, IrregularAxis]

    @given(st.lists(CUT, min_size=1, max_size=3), st.data())
    def test_axes_have_the_sizes_that_the_document_says(self, cuts, data):
        most = [99 if isinstance(cut, int) else sum(expanded(cut)) for cut in cuts]
        shape = [data.draw(st.integers(0, high)) for high in most]
        for axis, cut, extent in zip(grid(*cuts).axes(shape), cuts, shape, strict=True):
            sizes = [axis.size(cell) for cell in range(axis.count)]
            wanted = [cut] * axis.count if isinstance(cut, int) else expanded(cut)[: axis.count]
            assert sizes == wanted
            assert sum(sizes) >= extent
            assert sum(sizes[:-1]) < max(extent, 1)


class TestResized:
    @pytest.mark.parametrize(
        ("cut", "extent", "after"),
        [
            ([2, 3], 5, [2, 3]),
            ([2, 3], 1, [2, 3]),
            ([2, 3], 0, [2, 3]),
            ([2, 3], 9, [2, 3, 4]),
            ([2, 3], 8, [2, [3, 2]]),
            ([[3, 2]], 7, [[3, 2], 1]),
            (3, 1000, 3),
            ([], 7, [7]),
        ],
    )
    def test_what_chunks_do_not_reach_is_one_more(self, cut, extent, after):
        assert grid(cut).resized([extent], [1]) == grid(after)

    def test_new_chunks_can_be_divided(self):
        assert grid([4, 8]).resized([13], [4]) == grid([4, 8, 4])
        assert grid([4, 8]).resized([17], [4]) == grid([4, [8, 2]])

    def test_a_regular_grid_stays_as_it_is(self):
        found = ChunkGridModel.parse_named(regular(4, 5))
        assert found.resized([100, 0], [1, 1]) == found


def binding(*codecs: object) -> Callable[[tuple[int, ...]], CodecChain]:
    """Binds the codecs to chunks of a shape."""
    zero = np.zeros((), "uint16")
    listed = parse_codec_list("zarr3", list(codecs))
    return lambda shape: bind_chain(listed, ChunkType(shape, zero.dtype, zero))


def shards(*sizes: int) -> list[object]:
    return [{"name": "sharding_indexed", "configuration": {"chunk_shape": list(sizes)}}]


class TestChains:
    def test_an_even_grid_needs_none(self):
        assert bound_chains(grid(4, [2, 2]), binding("bytes")) is None

    def test_each_shape_has_its_chain(self):
        chains = bound_chains(grid(4, [2, 5]), binding("bytes"))
        assert chains is not None
        assert [chains.of(shape).encoded_size() for shape in ((4, 2), (4, 5))] == [16, 40]
        assert chains.of((4, 2)) is chains.of((4, 2))

    def test_shards_fit_all_chunks(self):
        chains = bound_chains(grid([4, 2, 6], [3, 9]), binding(*shards(2, 3)))
        assert chains is not None
        assert chains.of((6, 9)).to_bytes.grid_shape == (3, 3)  # type: ignore[attr-defined]

    def test_shards_that_do_not_are_refused_before_any_is_met(self):
        with pytest.raises(SpecError, match=r"does not divide .* 9 \(in chunks of shape") as caught:
            bound_chains(grid([4, [6, 3], 9, 8]), binding(*shards(2)))
        assert caught.value.path[:2] == ("codecs", 0)

    def test_a_codec_that_fits_none_is_refused(self):
        with pytest.raises(SpecError, match="dimensions"):
            bound_chains(grid([4, 6]), binding(*shards(2, 2)))


CASES = [
    ({"name": "default"}, "c/1/23", "c"),
    ({"name": "default", "configuration": {"separator": "."}}, "c.1.23", "c"),
    ({"name": "v2"}, "1.23", "0"),
    ({"name": "v2", "configuration": {"separator": "/"}}, "1/23", "0"),
]


@pytest.mark.parametrize(("json", "key", "scalar"), CASES)
def test_a_position_becomes_a_key_and_back(json: dict, key: str, scalar: str) -> None:
    encoding = ChunkKeyEncodingModel.parse_named(json)

    assert encoding.bind(2).encode((1, 23)) == key
    assert encoding.bind(2).decode(key) == (1, 23)
    assert encoding.bind(0).encode(()) == scalar
    assert encoding.bind(0).decode(scalar) == ()


@pytest.mark.parametrize("json", [case[0] for case in CASES])
def test_what_was_parsed_is_printed(json: dict) -> None:
    assert ChunkKeyEncodingModel.parse_named(json).named_json() == json


def test_the_usual_separator_is_left_out_unless_asked_for() -> None:
    encoding = ChunkKeyEncodingModel.parse_named(
        {"name": "v2", "configuration": {"separator": "."}}
    )

    assert encoding.named_json() == {"name": "v2"}
    assert encoding.named_json(include_defaults=True) == {
        "name": "v2",
        "configuration": {"separator": "."},
    }


@pytest.mark.parametrize(
    ("json", "path"),
    [
        (2, ()),
        ("v3", ("name",)),
        ({"name": "v2", "must_understand": 1}, ("must_understand",)),
        ({}, ("name",)),
        ({"name": "v3"}, ("name",)),
        ({"name": "v2", "separator": "."}, ("separator",)),
        ({"name": "v2", "configuration": []}, ("configuration",)),
        ({"name": "v2", "configuration": {"separator": "-"}}, ("configuration", "separator")),
        ({"name": "v2", "configuration": {"seperator": "."}}, ("configuration", "seperator")),
    ],
)
def test_errors_name_the_member(json: object, path: tuple) -> None:
    with pytest.raises(SpecError) as caught:
        ChunkKeyEncodingModel.parse_named(json)

    assert caught.value.path == path


@pytest.mark.parametrize("must_understand", [True, False])
def test_a_name_alone_and_what_must_be_understood_are_taken(must_understand: bool) -> None:
    assert ChunkKeyEncodingModel.parse_named("v2") == ChunkKeyEncodingModel.parse_named(
        {"name": "v2"}
    )
    json = {"name": "default", "must_understand": must_understand}
    assert ChunkKeyEncodingModel.parse_named(json) == DefaultKeyEncoding()


def test_the_built_in_ones_are_registered() -> None:
    assert set(ChunkKeyEncodingModel.registry.names()) >= {"default", "v2"}
