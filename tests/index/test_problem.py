import pytest

from tensorstore_py._index import IndexDomain
from tensorstore_py._index.problem import IndexingError
from tensorstore_py.errors import TensorStoreError


@pytest.mark.parametrize("kind", [IndexError, ValueError, TensorStoreError])
def test_one_error_for_subscription_and_for_calls(kind) -> None:
    assert issubclass(IndexingError, kind)
    with pytest.raises(kind, match='Label "z"'):
        IndexDomain(labels=["x"])["z"]
