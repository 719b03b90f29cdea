"""The chunk layouts that the two driver documents work out, to the number, in both libraries."""

from typing import Any

import pytest
import tensorstore as reference

import tensorstore_py as ts

LIBRARIES = [ts, reference]
SHAPE = [1000, 2000, 3000]

# driver, constraints, read chunk, write chunk
EXAMPLES: list[tuple[str, dict[str, Any], list[int], list[int]]] = [
    ("zarr", {}, [101] * 3, [101] * 3),
    ("zarr", {"chunk_shape": [100, 200, 300]}, [100, 200, 300], [100, 200, 300]),
    ("zarr", {"chunk_aspect_ratio": [1, 2, 2]}, [64, 128, 128], [64, 128, 128]),
    (
        "zarr",
        {"chunk_aspect_ratio": [1, 2, 2], "chunk_elements": 2_000_000},
        [79, 159, 159],
        [79, 159, 159],
    ),
    ("zarr3", {}, [101] * 3, [101] * 3),
    (
        "zarr3",
        {
            "chunk_aspect_ratio": [2, 1, 1],
            "read_chunk_elements": 2_000_000,
            "write_chunk_elements": 1_000_000_000,
        },
        [200, 100, 100],
        [1000, 1000, 1000],
    ),
    (
        "zarr3",
        {"read_chunk_shape": [64] * 3, "write_chunk_shape": [512] * 3},
        [64] * 3,
        [512] * 3,
    ),
]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
@pytest.mark.parametrize(("driver", "constraints", "read", "write"), EXAMPLES, ids=str)
def test_chosen_for_a_new_array(library, driver, constraints, read, write):
    store = library.open(
        {"driver": driver, "kvstore": {"driver": "memory"}},
        create=True,
        dtype=library.uint16,
        shape=SHAPE,
        chunk_layout=library.ChunkLayout(**constraints) if constraints else None,
    ).result()
    assert store.chunk_layout.to_json() == {
        "grid_origin": [0, 0, 0],
        "inner_order": [0, 1, 2],
        "read_chunk": {"shape": read},
        "write_chunk": {"shape": write},
    }


# The zarr document's: data type, order, what comes out for chunks [100, 200] or [4, 5, 6].
SUBARRAY = [["x", "<u2", [2, 3]]]
STATED: list[tuple[Any, str, list[int], list[int], list[int]]] = [
    ("<u2", "C", [100, 200], [100, 200], [0, 1]),
    (SUBARRAY, "C", [100, 200], [100, 200, 2, 3], [0, 1, 2, 3]),
    ("<u2", "C", [4, 5, 6], [4, 5, 6], [0, 1, 2]),
    ("<u2", "F", [4, 5, 6], [4, 5, 6], [2, 1, 0]),
    (SUBARRAY, "C", [4, 5, 6], [4, 5, 6, 2, 3], [0, 1, 2, 3, 4]),
    (SUBARRAY, "F", [4, 5, 6], [4, 5, 6, 2, 3], [2, 1, 0, 3, 4]),
]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
@pytest.mark.parametrize(("dtype", "order", "chunks", "shape", "inner_order"), STATED, ids=str)
def test_layouts_of_metadata(library, dtype, order, chunks, shape, inner_order):
    extents = [10 * size for size in chunks]
    metadata = {"dtype": dtype, "order": order, "chunks": chunks, "shape": extents}
    store = library.open(
        {"driver": "zarr", "kvstore": {"driver": "memory"}, "metadata": metadata}, create=True
    ).result()
    assert store.chunk_layout.to_json() == {
        "grid_origin": [0] * len(shape),
        "inner_order": inner_order,
        "read_chunk": {"shape": shape},
        "write_chunk": {"shape": shape},
    }
    # Chunked dimensions can be resized, those of an element cannot.
    inner = shape[len(chunks) :]
    assert store.schema.domain.to_json() == {
        "exclusive_max": [*([size] for size in extents), *inner],
        "inclusive_min": [0] * len(shape),
    }
