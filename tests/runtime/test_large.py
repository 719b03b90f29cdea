"""Values that are too large for `bytes`."""

import pytest

from tensorstore_py._runtime.large import LARGE_BYTES, joined, large_memory


@pytest.mark.parametrize("size", [10, LARGE_BYTES + 10])
def test_parts_are_joined_in_order_and_nobody_changes_them(size):
    parts: list[bytes | bytearray | memoryview] = [
        b"begin",
        memoryview(bytes(size)),
        b"",
        bytearray(b"end"),
    ]

    value = joined(parts)

    assert bytes(value) == b"".join(parts)
    assert memoryview(value).readonly


def test_large_memory_can_be_written_to():
    memory = large_memory(3)
    memory[:] = b"abc"

    assert bytes(memory) == b"abc"
