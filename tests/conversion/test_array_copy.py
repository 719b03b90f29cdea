import pytest

import tensorstore_py as ts
from tensorstore_py._api.copy import ArrayCopy
from tensorstore_py._conversion.array_copy import copy_blocks, form_digest, way
from tensorstore_py._conversion.member import SourceArray
from tensorstore_py._conversion.new_form import NewForm
from tensorstore_py._conversion.stored_chunks import ChunkCopy
from tensorstore_py._plan.tasks import Damaged
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._runtime.progress import Told

FORM = NewForm({}, {}, False, "")


def arrays():
    context = ts.Context({"memory_limit": {"limit_bytes": 8}})
    return [
        ts.open(
            {"driver": "zarr3", "kvstore": f"memory://{name}/"}, create=True, dtype="int8",
            shape=[7], chunk_layout=ts.ChunkLayout(chunk_shape=[2]), context=context,
        ).result()
        for name in "ab"
    ]  # fmt: skip


@pytest.mark.parametrize(("same", "kind"), [(True, ChunkCopy), (False, ArrayCopy)])
def test_chunks_stay_as_they_are_where_they_may(same, kind):
    old, new = arrays()

    found = way(SourceArray("", old, None, None, {}), new, FORM._replace(same_chunks=same))

    assert isinstance(found, kind)


def test_all_blocks_are_copied_and_told_of():
    old, new = arrays()
    old[...] = 5
    seen: list[ts.Progress] = []
    told = Told(seen.append)
    told.begin(7, 0, 1)

    damaged: list[Damaged] = []
    copied = run_inline(copy_blocks(SourceArray("", old, None, None, {}), new, FORM, told, damaged))

    assert copied == (7, 4)
    assert damaged == []
    assert new.read().result().tolist() == [5] * 7
    assert (seen[-1].bytes_done, seen[-1].chunks_done, seen[-1].chunks_total) == (7, 4, 4)


def test_a_digest_is_of_the_source_and_what_is_asked():
    old = SourceArray("", arrays()[0], {"a": 1}, None, {})

    same = form_digest(SourceArray("b", arrays()[0], {"a": 1}, None, {"x": 1}), FORM)

    assert form_digest(old, FORM) == same
    assert form_digest(old._replace(document={"a": 2}), FORM) != same
    assert form_digest(old, FORM._replace(options={"dtype": ts.int8})) != same
