import pytest

from tensorstore_py import errors
from tensorstore_py.kvstores.zarr_store.errors import typed


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), errors.PermissionDeniedError),
        (FileNotFoundError("no"), errors.NotFoundError),
        (NotADirectoryError("no"), errors.FailedPreconditionError),
        (NotImplementedError("no"), errors.UnsupportedError),
        (ValueError("no"), errors.FailedPreconditionError),
        (TypeError("no"), errors.SpecError),
        (OSError("no"), errors.UnavailableError),
        (RuntimeError("no\nand why"), errors.UnavailableError),
    ],
)
def test_errors_say_what_was_tried_and_why_not(error, kind):
    found = typed(error, "read", '"a/b"')

    assert type(found) is kind
    assert str(found) == 'cannot read "a/b": no'


def test_errors_without_words_have_a_name():
    assert str(typed(OSError(), "read", '"a"')) == 'cannot read "a": OSError'


def test_our_own_errors_are_as_they_are():
    error = errors.DataLossError("gone")

    assert typed(error, "read", '"a"') is error
