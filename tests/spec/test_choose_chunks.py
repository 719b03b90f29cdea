import pytest
import tensorstore as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.choose_chunks import (
    chunk_extents,
    common_chunks,
    nested_chunks,
    placed_chunks,
)
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py.errors import MismatchError, SpecError

VOLUME = IndexDomain(shape=[1000, 2000, 3000])


# The worked examples of the two driver documents.
@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ({}, (101, 101, 101)),
        ({"chunk_shape": [100, 200, 300]}, (100, 200, 300)),
        ({"chunk_aspect_ratio": [1, 2, 2]}, (64, 128, 128)),
        ({"chunk_aspect_ratio": [1, 2, 2], "chunk_elements": 2000000}, (79, 159, 159)),
    ],
)
def test_one_kind_of_chunk(constraints, expected):
    layout = ChunkLayout(**constraints).constraints

    assert common_chunks(layout, VOLUME) == ((0, 0, 0), expected)


@pytest.mark.parametrize(
    ("constraints", "read", "write"),
    [
        ({}, (101, 101, 101), (101, 101, 101)),
        (
            {
                "chunk_aspect_ratio": [2, 1, 1],
                "read_chunk_elements": 2000000,
                "write_chunk_elements": 1000000000,
            },
            (200, 100, 100),
            (1000, 1000, 1000),
        ),
        ({"write_chunk_shape": [100, 0, 0], "read_chunk_shape": [30, 0, 0]}, None, None),
        (
            {"write_chunk_shape_soft_constraint": [100, 4, 4], "read_chunk_shape": [30, 4, 4]},
            (30, 4, 4),
            (90, 4, 4),
        ),
        (
            {"write_chunk_shape": [100, 4, 4], "read_chunk_shape_soft_constraint": [30, 4, 4]},
            (25, 4, 4),
            (100, 4, 4),
        ),
    ],
)
def test_read_chunks_divide_write_chunks(constraints, read, write):
    layout = ChunkLayout(**constraints).constraints

    if read is None:
        with pytest.raises(MismatchError, match="100 are not made of whole read chunks of 30"):
            nested_chunks(layout.read_chunk, layout.write_chunk, VOLUME)
        return
    assert nested_chunks(layout.read_chunk, layout.write_chunk, VOLUME) == (
        read,
        write,
    )


def test_the_search_proceeds_as_in_the_reference():
    # An exact search would find 137 x 100, which is nearer to a million elements.
    layout = ChunkLayout(chunk_aspect_ratio=[2.75405507306722, 2, 1, 1]).constraints

    assert chunk_extents(layout.read_chunk, IndexDomain(shape=[4704, 2869, 19, 4])) == (
        137,
        99,
        19,
        4,
    )


def test_the_full_extent():
    grid = ChunkLayout(chunk_shape=[-1, 5]).read_chunk.constraints

    assert chunk_extents(grid, IndexDomain(shape=[0, 7])) == (1, 5)
    assert chunk_extents(grid, IndexDomain(shape=[30, 7])) == (30, 5)
    with pytest.raises(SpecError, match="dimension 0"):
        chunk_extents(grid, IndexDomain(rank=2))


def test_the_grid_is_aligned_with_the_domain_unless_it_says_where():
    grid = ChunkLayout(chunk_shape=[10, 10, 10]).constraints
    domain = IndexDomain(inclusive_min=[25, -3, -(2**62) + 1], exclusive_max=[50, 50, 50])

    assert placed_chunks(None, grid.read_chunk, domain)[0] == (5, 7, 0)

    placed = ChunkLayout(grid_origin=[None, 2, None], chunk_shape=[10, 10, 10]).constraints

    assert placed_chunks(placed.grid_origin, placed.read_chunk, domain)[0] == (5, 2, 0)


@pytest.mark.parametrize(
    "ratios", [[1e-300, 1e300], [1e-320, 1.0], [1e308, 1e308], [5e-324, 5e-324]]
)
def test_extreme_ratios_end(ratios):
    grid = ChunkLayout(chunk_aspect_ratio=ratios).read_chunk.constraints

    for domain in (IndexDomain(shape=[5000, 5000]), IndexDomain(rank=2)):
        shape = chunk_extents(grid, domain)

        assert all(1 <= extent <= 2**20 for extent in shape)


@pytest.mark.parametrize(
    "constraints",
    [
        {"chunk_shape": [1, 2]},
        {"chunk_aspect_ratio": [1]},
        {"grid_origin": [0], "chunk_elements": 4},
    ],
)
def test_another_rank(constraints):
    layout = ChunkLayout(**constraints).constraints

    with pytest.raises(SpecError, match="but the array has 3"):
        common_chunks(layout, VOLUME)


def test_read_and_write_chunks_that_cannot_be_one():
    layout = ChunkLayout(read_chunk_shape=[1, 1, 1], write_chunk_shape=[2, 2, 2]).constraints

    with pytest.raises(MismatchError, match="not compatible"):
        common_chunks(layout, VOLUME)


EXTENTS = st.one_of(st.integers(0, 20), st.integers(0, 5000))


@st.composite
def layouts(draw):
    """A shape, and constraints that do not contradict themselves at once."""
    shape = draw(st.lists(EXTENTS, min_size=1, max_size=4))
    rank = len(shape)

    def vector(values):
        return st.lists(st.one_of(st.none(), values), min_size=rank, max_size=rank)

    kinds = {
        "shape": vector(st.one_of(st.just(-1), st.integers(1, 60), st.integers(1, 9000))),
        "aspect_ratio": vector(st.one_of(st.integers(1, 5), st.floats(0.01, 10))),
        "elements": st.one_of(st.integers(0, 1000), st.integers(1, 10**9)),
    }
    arguments = {}
    for usage in ("chunk", "read_chunk", "write_chunk"):
        for kind, values in kinds.items():
            if draw(st.integers(0, 3)) == 0:
                soft = draw(st.sampled_from(["", "_soft_constraint"]))
                arguments[f"{usage}_{kind}{soft}"] = draw(values)
    return shape, arguments


def chosen_by_the_reference(driver, shape, layout):
    spec = {"driver": driver, "kvstore": "memory://"}
    store = reference.open(
        spec, create=True, dtype="uint8", shape=shape, chunk_layout=layout
    ).result()
    return store.chunk_layout.read_chunk.shape, store.chunk_layout.write_chunk.shape


@given(layouts())
@settings(max_examples=2 * settings().max_examples)
def test_as_the_reference_chooses(case):
    shape, arguments = case
    try:
        theirs = reference.ChunkLayout(**arguments)
    except ValueError:
        with pytest.raises(MismatchError, match="constraint"):
            ChunkLayout(**arguments)
        return
    layout = ChunkLayout(**arguments).constraints
    domain = IndexDomain(shape=shape)

    def joint():
        return nested_chunks(layout.read_chunk, layout.write_chunk, domain)

    def single():
        return (common_chunks(layout, domain)[1],) * 2

    for driver, choose in (("zarr3", joint), ("zarr", single)):
        try:
            expected = chosen_by_the_reference(driver, shape, theirs)
        except ValueError:
            continue
        assert choose() == expected
