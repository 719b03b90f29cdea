import copy
import pickle

import pytest

from tensorstore_py._spec.open_mode import OpenMode


def test_flags():
    mode = OpenMode(open=True)

    assert repr(mode) == "OpenMode(open=True)"
    assert repr(OpenMode()) == "OpenMode()"

    mode.delete_existing = True

    assert repr(mode) == "OpenMode(open=True, delete_existing=True)"
    assert mode == copy.copy(mode) == pickle.loads(pickle.dumps(mode))
    assert mode != OpenMode(open=True)
    assert mode != 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(mode)
    with pytest.raises(TypeError):
        OpenMode(True)  # type: ignore[call-arg]
