import pytest

from tensorstore_py.errors import PermissionDeniedError, UnavailableError, UnsupportedError
from tensorstore_py.kvstores.obstore.errors import (
    class_of,
    first_line,
    says_missing,
    says_no,
    says_unable,
)


class AlreadyExistsError(Exception):
    pass


class UnauthenticatedError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (UnauthenticatedError(), PermissionDeniedError),
        (NotImplementedError(), UnsupportedError),
        (RuntimeError(), UnavailableError),
    ],
)
def test_each_has_a_class_of_ours(error, cls):
    assert class_of(error) is cls


def test_what_they_say_of_a_key():
    assert says_missing(FileNotFoundError())
    assert says_missing(RuntimeError("Unable to open: Not a directory (os error 20)"))
    assert not says_missing(AlreadyExistsError())
    assert says_no(AlreadyExistsError())
    assert says_unable(NotImplementedError())
    assert says_unable(RuntimeError("non-2xx status code: 501 Not Implemented: ..."))
    assert not says_unable(AlreadyExistsError())


def test_the_first_line_is_for_people():
    assert first_line(RuntimeError("what went wrong \n\nDebug source:\n...")) == "what went wrong"
    assert first_line(RuntimeError()) == "RuntimeError"
