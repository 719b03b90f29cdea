"""What is refused before anything is made."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.compute import functions
from tests.compute.mapping import CHUNK, VALUES, mapped, stored


@pytest.mark.parametrize("at", ["here", "there"])
def test_a_target_that_is_read_is_refused(tmp_path, at):
    store = stored(VALUES, CHUNK, where=f"file://{tmp_path}/a.zarr|zarr3:")
    target = {"here": store[:11], "there": tmp_path / "a.zarr"}[at]
    with pytest.raises(ts.SpecError, match="target: it is source 1, too"):
        mapped(np.add, VALUES, store, target=target, if_exists="replace")
    np.testing.assert_array_equal(store, VALUES)


def test_places_in_memory_are_told_apart_by_their_context():
    shared = ts.Context()
    stored(VALUES, CHUNK, context=shared, where="memory://a|zarr3:")
    source = stored(VALUES, CHUNK, context=shared, where="memory://b|zarr3:")
    mapped(functions.double, source, target="memory://b|zarr3:", context=ts.Context())
    with pytest.raises(ts.SpecError, match="it is source 0, too"):
        mapped(functions.double, source, target="memory://b|zarr3:", context=shared,
               if_exists="replace")  # fmt: skip


def test_what_is_there_is_not_replaced_unasked(tmp_path):
    where = f"file://{tmp_path}/b.zarr|zarr3:"
    there = stored(VALUES, CHUNK, where=where)
    with pytest.raises(ts.AlreadyExistsError, match='if_exists="replace"'):
        mapped(functions.double, VALUES, target=tmp_path / "b.zarr")
    np.testing.assert_array_equal(there, VALUES)
    found = mapped(functions.double, VALUES, target=tmp_path / "b.zarr", if_exists="replace")
    np.testing.assert_array_equal(found, 2 * VALUES)


def test_groups_are_no_arrays(tmp_path):
    ts.Group.open(tmp_path / "g.zarr", create=True).result()
    for source, target in ((tmp_path / "g.zarr", "memory://|zarr3:"),
                           (VALUES, tmp_path / "g.zarr")):  # fmt: skip
        with pytest.raises(ts.MismatchError, match="group"):
            mapped(functions.double, source, target=target)


def test_an_open_target_is_as_it_is():
    target = stored(np.zeros_like(VALUES), CHUNK)
    with pytest.raises(ts.SpecError, match="chunks: the target is an open array"):
        mapped(functions.double, VALUES, target=target, chunks=3)


def test_what_is_done_is_kept_in_a_manifest(tmp_path):
    source = stored(VALUES, CHUNK, where=f"file://{tmp_path}/a.zarr|zarr3:")
    calls = []

    def sometimes(block, domain):
        calls.append(domain.origin)
        if len(calls) == 4:
            raise ZeroDivisionError
        return 2 * block

    def run():
        return mapped(sometimes, source, target=tmp_path / "b.zarr", dtype="int32",
                      manifest=tmp_path / "m.json")  # fmt: skip

    with pytest.raises(ZeroDivisionError):
        run()
    for _ in range(2):
        np.testing.assert_array_equal(run(), 2 * VALUES)
        assert 9 < len(calls) <= 9 + 4
