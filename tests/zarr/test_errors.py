"""Errors are of the builtin classes of zarr-python's, and of those of this package."""

import pickle

import pytest

import tensorstore_py as ts


@pytest.mark.parametrize("expected", [FileNotFoundError, ts.NotFoundError, ValueError])
@pytest.mark.parametrize("function", [ts.zarr.open, ts.zarr.open_array, ts.zarr.open_group])
def test_nothing_is_there(tmp_path, function, expected):
    with pytest.raises(expected, match="mode='a'"):
        function(tmp_path / "a", mode="r")


@pytest.mark.parametrize("expected", [FileExistsError, ts.AlreadyExistsError, ValueError])
@pytest.mark.parametrize("shape", [None, 3])
def test_something_is_there(tmp_path, shape, expected):
    ts.zarr.open(tmp_path, mode="w-", shape=shape)
    with pytest.raises(expected, match="mode='w'"):
        ts.zarr.open(tmp_path, mode="w-", shape=shape)


@pytest.mark.parametrize("expected", [PermissionError, ts.PermissionDeniedError, ValueError])
def test_what_is_read_only_is_not_changed(expected):
    z = ts.zarr.array([1, 2], read_only=True)
    group = ts.zarr.Group(ts.zarr.group().ts, read_only=True)
    store = ts.zarr.MemoryStore(read_only=True)
    for change in (
        lambda: z.resize(3),
        lambda: z.__setitem__(0, 1),
        lambda: group.zeros("a", 3),
        store.clear,
    ):
        with pytest.raises(expected, match="mode='r\\+'"):
            change()


@pytest.mark.parametrize(
    "kind", [ts.zarr.NodeExistsError, ts.zarr.NodeNotFoundError, ts.zarr.ReadOnlyError]
)
def test_survive_pickling_and_say_what_they_are(kind):
    error = pickle.loads(pickle.dumps(kind("why")))
    assert (type(error), str(error)) == (kind, "why")
