import pytest

from tensorstore_py.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.kvstores.fsspec.errors import class_of


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (PermissionError(), PermissionDeniedError),
        (IsADirectoryError(), FailedPreconditionError),
        (NotImplementedError(), UnsupportedError),
        (ImportError("paramiko"), UnsupportedError),
        (ConnectionResetError(), UnavailableError),
        (TimeoutError(), UnavailableError),
        (Exception(), UnavailableError),
    ],
)
def test_each_has_a_class_of_ours(error, cls):
    assert class_of(error) is cls
