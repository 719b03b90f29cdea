import json

import pytest

from tensorstore_py._hierarchy.consolidating import consolidate
from tensorstore_py._hierarchy.opening import read_group
from tensorstore_py.errors import NotFoundError
from tests.hierarchy.trees import get, put, run, tree


def test_a_document_of_its_own():
    found = tree("zarr", "p/", groups=["", "g"], arrays=["g/a", "o"])
    put(found, "p/g/.zattrs", b'{"u":1}')
    put(found, "p/g/a/.zattrs", b'{"v":2}')

    known = run(consolidate(found, "g"))

    assert json.loads(get(found, "p/g/.zmetadata")) == {
        "zarr_consolidated_format": 1,
        "metadata": {
            ".zgroup": {"zarr_format": 2},
            ".zattrs": {"u": 1},
            "a/.zarray": {"zarr_format": 2, "shape": [3]},
            "a/.zattrs": {"v": 2},
        },
    }
    assert known.names("g") == ["a"]


def test_inline_in_the_group():
    found = tree("zarr3", groups=["", "g"], arrays=["g/a"])
    put(found, "zarr.json", b'{"zarr_format":3,"node_type":"group","attributes":{"a":1},"x":2}')

    run(consolidate(found, ""))
    run(consolidate(found, ""))  # the old copy is no part of the new one

    assert json.loads(get(found, "zarr.json")) == {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"a": 1},
        "x": 2,
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": False,
            "metadata": {
                "g": {"zarr_format": 3, "node_type": "group", "attributes": {}},
                "g/a": {"zarr_format": 3, "node_type": "array", "shape": [3]},
            },
        },
    }


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_what_it_returns_is_what_is_read(driver):
    found = tree(driver, groups=["", "g"], arrays=["g/a"])

    known = run(consolidate(found, ""))
    read = run(read_group(found, "", consolidated=True)).consolidated

    for path in ("g", "g/a"):
        assert known.documents(path) == read.documents(path)


def test_a_group_that_is_not_there():
    with pytest.raises(NotFoundError, match='no group found at "g/zarr'):
        run(consolidate(tree(), "g"))
