from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.group_spec import group_model, places
from tensorstore_py._conversion.old_nodes import OldNode
from tensorstore_py._conversion.translation import open_as, same_array, translate
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._spec.binding import bind

PLAIN = {
    "zarr_format": 2, "shape": [5, 4], "chunks": [2, 2], "dtype": "<i4", "compressor": None,
    "filters": None, "fill_value": None, "order": "C",
}  # fmt: skip


@pytest.fixture
def ends():
    context = ts.Context()
    new, old = places(bind(group_model("memory://"), context), context, None)
    return old, new


def array(ends, **members) -> Any:
    document: dict[str, object] = {**PLAIN, **members}
    found = run_inline(open_as(ends[0], "", document))
    return OldNode("", "array", 2, document, {}, None), found


def test_chunks_stay_where_they_can(ends):
    node, stored = array(ends)
    stored[...] = np.arange(20, dtype="int32").reshape(5, 4)

    found: Any = run_inline(translate(node, *ends))

    assert not found.copies
    assert found.document["chunk_key_encoding"]["name"] == "v2"
    assert run_inline(same_array(stored, run_inline(open_as(ends[1], "", found.document)))) == ""


def test_what_has_no_words_is_made_anew(ends):
    node, _ = array(ends, dtype="<U1", filters=[{"id": "categorize", "labels": ["a", "b"],
                                                 "dtype": "<U1", "astype": "|u1"}])  # fmt: skip

    found: Any = run_inline(translate(node, *ends))

    assert found.copies
    assert '"categorize" has no counterpart' in found.why
    assert found.document["chunk_key_encoding"]["name"] == "default"


def test_what_there_is_no_type_for_is_impossible(ends):
    node, _ = array(ends, dtype=[["a", "<i2", [3]], ["b", "|u1"]])

    found: Any = run_inline(translate(node, *ends))

    assert found.document is None
    assert "made anew" in found.why


def test_what_cannot_be_opened_is_impossible(ends):
    node = OldNode("", "array", 2, {**PLAIN, "compressor": {"id": "nothing"}}, {}, None)

    found: Any = run_inline(translate(node, *ends))

    assert found.document is None
    assert "cannot be opened" in found.why


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"shape": [5, 5]}, "shape would be"),
        ({"dtype": "<f4"}, "data type would be float32"),
        ({"fill_value": 1}, "not stored"),
        ({"order": "F"}, "chunks would not decode"),
    ],
)
def test_differences_are_found(ends, members, message):
    _, one = array(ends, fill_value=0)
    one[...] = np.arange(20, dtype="int32").reshape(5, 4)
    _, other = array(ends, fill_value=0, **members) if "fill_value" not in members else array(
        ends, **members
    )  # fmt: skip

    assert message in run_inline(same_array(one, other))
