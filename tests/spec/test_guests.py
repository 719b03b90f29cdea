import pytest

import tensorstore_py as ts
from tensorstore_py._spec.guests import (
    admits,
    foreign_classes,
    is_built_in,
    not_admitted,
    only_built_in,
)


def test_anything_is_admitted_unless_it_was_restricted():
    assert admits("guest")
    with only_built_in(frozenset({"lab"})):
        assert (admits("lab"), admits("guest")) == (True, False)
    with pytest.raises(KeyError), only_built_in(frozenset()):
        raise KeyError
    assert admits("guest")


def test_what_is_built_in_is_of_this_package_and_runs_no_code_of_others():
    class Guest:
        pass

    class Dressed:
        __module__ = ts.__name__ + ".codecs.numcodecs"

    assert is_built_in(ts.Spec)
    assert not is_built_in(Guest)
    assert is_built_in(Dressed)
    foreign_classes.add(Dressed)
    try:
        assert not is_built_in(Dressed)
    finally:
        foreign_classes.remove(Dressed)


def test_the_error_says_how_to_admit_it():
    assert 'Trust(plugins=["lab"])' in str(not_admitted("driver", "lab"))
