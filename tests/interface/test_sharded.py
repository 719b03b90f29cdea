import pytest

from tensorstore_py._interface.sharded import MISSING, ShardedSpec
from tensorstore_py.errors import SpecError


def test_missing_is_the_largest_offset() -> None:
    assert MISSING == 0xFFFF_FFFF_FFFF_FFFF


def test_inner_chunks_have_at_least_one_element() -> None:
    assert ShardedSpec.parse({"chunk_shape": [2, 3]}).chunk_shape == (2, 3)
    assert ShardedSpec.parse({}).chunk_shape is None
    with pytest.raises(SpecError, match=r"^chunk_shape\[1\]"):
        ShardedSpec.parse({"chunk_shape": [2, 0]})
