import json
from typing import Literal

import numpy as np
import pytest

from tensorstore_py.drivers.zarr.metadata import ZarrMetadata
from tensorstore_py.drivers.zarr.spec import ZarrSpec
from tensorstore_py.plugin.driver import ArrayLayout

DOCUMENT: dict[str, object] = {
    "zarr_format": 2,
    "shape": [10, 20],
    "chunks": [5, 4],
    "dtype": "<u2",
    "compressor": None,
    "fill_value": 3,
    "order": "C",
    "filters": None,
}
PAIR = [["x", "<u2", [2, 3]], ["y", ">f4"]]
PAIR_FILL = "AQACAAMABAAFAAYAP4AAAA=="


def bound(
    field: str | None = None,
    separator: str | None = None,
    labels: tuple[str, ...] | None = None,
    **members: object,
) -> ArrayLayout:
    metadata = ZarrMetadata.read(json.dumps({**DOCUMENT, **members}).encode())
    asked = {} if separator is None else {"dimension_separator": separator}
    spec = ZarrSpec.parse({"kvstore": "memory://", "metadata": asked}).replace(field=field)
    return spec.replace(array_dimensions=labels or False).layout(metadata)


def test_the_schema_is_that_of_the_documentation() -> None:
    layout = bound(shape=[1000, 2000, 3000], chunks=[100, 200, 300], fill_value=42)

    assert layout.schema.to_json() == {
        "chunk_layout": {
            "grid_origin": [0, 0, 0],
            "inner_order": [0, 1, 2],
            "read_chunk": {"shape": [100, 200, 300]},
            "write_chunk": {"shape": [100, 200, 300]},
        },
        "codec": {"compressor": None, "driver": "zarr", "filters": None},
        "domain": {"exclusive_max": [[1000], [2000], [3000]], "inclusive_min": [0, 0, 0]},
        "dtype": "uint16",
        "fill_value": 42,
        "rank": 3,
    }


@pytest.mark.parametrize(
    ("field", "dtype", "inner", "order", "fill_value"),
    [
        ("x", "uint16", [2, 3], [2, 1, 0, 3, 4], [[1, 2, 3], [4, 5, 6]]),
        ("y", "float32", [5], [2, 1, 0, 3], [10.0, 11.0, 12.0, 13.0, 14.0]),
    ],
)
def test_a_field_adds_its_inner_dimensions(
    field: str, dtype: str, inner: list[int], order: list[int], fill_value: list
) -> None:
    layout = bound(
        field,
        shape=[1000, 2000, 3000],
        chunks=[100, 200, 300],
        dtype=[["x", "<u2", [2, 3]], ["y", "<f4", [5]]],
        fill_value="AQACAAMABAAFAAYAAAAgQQAAMEEAAEBBAABQQQAAYEE=",
        order="F",
    )
    written = layout.schema.to_json()
    chunk = {"shape": [100, 200, 300, *inner]}

    assert written["chunk_layout"] == {
        "grid_origin": [0] * len(order),
        "inner_order": order,
        "read_chunk": chunk,
        "write_chunk": chunk,
    }
    assert written["domain"] == {
        "exclusive_max": [[1000], [2000], [3000], *inner],
        "inclusive_min": [0] * len(order),
    }
    assert (written["dtype"], written["fill_value"]) == (dtype, fill_value)


def test_inner_dimensions_are_no_part_of_a_chunk_s_name() -> None:
    layout = bound("x", dtype=PAIR, fill_value=None)

    assert layout.keys.encode((1, 4, 0, 0)) == "1.4"
    assert layout.keys.decode("1.4") == (1, 4, 0, 0)
    assert layout.keys.decode("x") is None
    assert [axis.count for axis in layout.grid] == [2, 5, 1, 1]


def test_the_document_s_separator_goes_before_the_one_asked_for() -> None:
    assert bound().keys.encode((1, 2)) == "1.2"
    assert bound(separator="/").keys.encode((1, 2)) == "1/2"
    assert bound(separator="/", dimension_separator=".").keys.encode((1, 2)) == "1.2"


def test_an_array_of_rank_0_has_one_chunk() -> None:
    layout = bound(shape=[], chunks=[])

    assert layout.keys.encode(()) == "0"
    assert bytes(layout.chain.encode(np.array(258, "u2"))) == b"\x02\x01"


def test_without_a_fill_value_zeros_are_read_and_everything_is_stored() -> None:
    layout = bound(fill_value=None)

    assert layout.chain.chunk.fill_value.item() == 0
    assert layout.schema.fill_value is None
    assert layout.always_store
    assert not bound().always_store


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_chunks_are_stored_in_the_document_s_orders(order: Literal["C", "F"], dtype: str) -> None:
    chunk = np.arange(20, dtype="u2").reshape(5, 4)
    chain = bound(order=order, dtype=dtype).chain

    data = chunk.astype(dtype).tobytes(order)

    assert bytes(chain.encode(chunk)) == data
    assert np.array_equal(chain.decode(data), chunk)


def test_characters_of_a_text_stay_together_in_fortran_order() -> None:
    chunk = np.array([[b"abc", b"de"], [b"f", b"ghi"]], "S3")
    chain = bound(shape=[2, 2], chunks=[2, 2], dtype="|S3", fill_value=None, order="F").chain

    data = chain.encode(chunk.view("S1").reshape(2, 2, 3))

    assert bytes(data) == chunk.tobytes("F")


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_field_s_fill_value_may_vary_over_its_inner_dimensions(order: str) -> None:
    layout = bound("x", dtype=PAIR, fill_value=PAIR_FILL, order=order)

    assert layout.chain.chunk.fill_value.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert layout.chain.to_bytes.partial
    assert not bound("x", dtype=PAIR[:1], fill_value=None).chain.to_bytes.partial


def test_a_compressor_sees_whole_elements() -> None:
    # blosc writes the element size that it shuffled by at position 3 of its header
    compressor = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    text = bound(shape=[4], chunks=[4], dtype="|S3", fill_value=None, compressor=compressor)
    pair = bound("y", dtype=PAIR, fill_value=None, compressor=compressor)

    assert bytes(text.chain.encode(np.zeros((4, 3), "S1")))[3] == 3
    assert bytes(pair.chain.encode(np.zeros((5, 4), "f4")))[3] == 16


def test_labels_are_the_caller_s() -> None:
    assert bound(labels=("a", "b")).domain.labels == ("a", "b")
    assert bound().domain.labels == ("", "")
