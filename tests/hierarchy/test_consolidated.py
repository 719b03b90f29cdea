import warnings
from typing import Any

import pytest

from tensorstore_py._hierarchy.consolidated import Consolidated, read_consolidated
from tensorstore_py.errors import DataLossError
from tests.hierarchy.trees import put, run, tree

NODES: Any = {path: {"zarr.json": {"path": path}} for path in ("", "a", "a/b", "x/orphan")}


def test_it_tells_of_the_nodes_below_its_group():
    known = Consolidated(NODES, "base", 1.0, "there")

    assert known.documents("base/a/b") == {"zarr.json": {"path": "a/b"}}
    assert known.documents("base") == {"zarr.json": {"path": ""}}
    assert known.documents("base/c") is None
    assert (known.names("base"), known.names("base/a"), known.names("base/a/b")) == (
        ["a"],
        ["b"],
        [],
    )
    assert (
        repr(known) == "Consolidated(['base', 'base/a', 'base/a/b', 'base/x/orphan'], stale=False)"
    )


def test_the_first_change_is_warned_of():
    known = Consolidated(NODES, "", 1.0, '"zarr.json"')
    node = known.at("a")
    assert node.documents() == {"zarr.json": {"path": "a"}}

    with pytest.warns(UserWarning, match=r'in "zarr\.json" is out of date, since "/a" was changed'):
        node.spoil()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known.spoil("a/b")

    assert known.stale
    assert node.documents() is None


def test_a_document_of_its_own_is_read():
    found = tree("zarr", "p/")
    put(
        found,
        "p/g/.zmetadata",
        b'{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2}}}',
    )

    known = run(read_consolidated(found.form, found.store, "p/g/", "g"))

    assert known.documents("g") == {".zgroup": {"zarr_format": 2}}
    assert run(read_consolidated(found.form, found.store, "p/h/", "h")) is None
    assert run(read_consolidated(tree("zarr3").form, found.store, "p/g/", "g")) is None


def test_a_corrupt_document_is_named():
    found = tree("zarr")
    put(found, ".zmetadata", b'{"zarr_consolidated_format":2}')

    with pytest.raises(DataLossError, match=r'"\.zmetadata": zarr_consolidated_format: expected 1'):
        run(read_consolidated(found.form, found.store, "", ""))
