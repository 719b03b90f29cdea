import pytest

from tensorstore_py._chunked.array import ChunkedArray
from tensorstore_py._chunked.failures import CHUNK_FAILURES, corrupt_chunk, missing_chunk
from tensorstore_py.errors import DataLossError, NotFoundError, ResourceExhaustedError
from tests.chunked.arrays import Opened


def chunked() -> ChunkedArray:
    return Opened((4, 6), (2, 3)).array


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (DataLossError("bad"), DataLossError, "bad"),
        (ResourceExhaustedError("large"), ResourceExhaustedError, "large"),
        (MemoryError(), ResourceExhaustedError, "of shape [2, 3] and type uint16 takes 12 bytes"),
    ],
)
def test_whatever_is_wrong_with_a_chunk_is_told_with_its_key(error, kind, text):
    assert isinstance(error, CHUNK_FAILURES)

    found = corrupt_chunk(chunked(), (0, 1), error)

    assert type(found) is kind
    assert text in str(found)
    assert str(found).startswith("Error reading ")


def test_a_missing_chunk_is_told_with_its_key_and_the_remedy():
    found = missing_chunk(chunked(), (0, 1))

    assert type(found) is NotFoundError
    assert "fill_missing_data_reads" in str(found)
