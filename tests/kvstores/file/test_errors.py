import errno
import os

import pytest

from tensorstore_py import errors
from tensorstore_py.kvstores.file.errors import translate


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, errors.PermissionDeniedError),
        (errno.EROFS, errors.PermissionDeniedError),
        (errno.ENOENT, errors.NotFoundError),
        (errno.EEXIST, errors.AlreadyExistsError),
        (errno.ENOTDIR, errors.FailedPreconditionError),
        (errno.EISDIR, errors.FailedPreconditionError),
        (errno.ENOSPC, errors.FailedPreconditionError),
        (errno.ENOLCK, errors.FailedPreconditionError),
        (errno.ENAMETOOLONG, errors.SpecError),
        (errno.ELOOP, errors.SpecError),
        (errno.EIO, errors.UnavailableError),
        (errno.ESTALE, errors.UnavailableError),
        (errno.EMFILE, errors.UnavailableError),
        (errno.ENOTTY, errors.FailedPreconditionError),
    ],
)
def test_each_number_has_a_class_that_is_a_value_error(number, kind):
    error = translate(OSError(number, os.strerror(number)), "write", "/data/a")

    assert type(error) is kind
    assert isinstance(error, ValueError)
    assert str(error).startswith(f'cannot write "/data/a": {os.strerror(number)}')


def test_says_what_to_do():
    error = translate(OSError(errno.ENOSPC, "No space left on device"), "write", "/a")

    assert str(error) == 'cannot write "/a": No space left on device; free some space'


def test_names_another_file_that_is_in_the_way():
    error = PermissionError(errno.EPERM, "Operation not permitted", "/data/a.__lock")

    assert 'not permitted at "/data/a.__lock"; check' in str(translate(error, "write", "/data/a"))
    assert " at " not in str(translate(error, "write", "/data/a.__lock"))
    assert " at " not in str(translate(OSError(errno.EIO, "I/O error", 3), "write", "/data/a"))


def test_counts_the_attempts():
    error = translate(OSError(errno.EIO, "I/O error"), "read", "/a", attempts=3)

    assert isinstance(error, errors.UnavailableError)
    assert error.attempts == 3


def test_shows_names_that_are_no_text():
    error = translate(OSError(errno.EIO, "I/O error"), "read", "/\udcff")

    assert '"/\\xff"' in str(error)


def test_an_error_without_a_number_is_not_lost():
    assert "odd" in str(translate(OSError("odd"), "read", "/a"))
