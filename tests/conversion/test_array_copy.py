import pytest

import tensorstore_py as ts
from tensorstore_py._api.blocks import Blocks
from tensorstore_py._conversion.array_copy import Left, copy_blocks, form_digest
from tensorstore_py._conversion.manifest import ArrayRecord
from tensorstore_py._conversion.member import SourceArray
from tensorstore_py._conversion.new_form import NewForm
from tensorstore_py._plan.task_numbers import TaskNumbers
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


def blocks(array):
    return Blocks.of_write(array._driver, array._transform, least=1, most=1)


def test_what_is_left():
    array = arrays()[0]

    left = Left(blocks(array), TaskNumbers([0, 3]))

    assert [block.bounds for block in left] == [((2, 4),), ((4, 6),)]
    assert (left.count, left.chunks, left.size, left.largest) == (2, 2, 4, 2)


def test_nothing_is_done_yet():
    whole = blocks(arrays()[0])

    left = Left(whole, TaskNumbers())

    assert (left.count, left.chunks, left.size) == (whole.count, whole.chunks, whole.size)
    assert [*left] == [*whole]


def test_done_blocks_are_not_copied():
    old, new = arrays()
    old[...] = 5
    record = ArrayRecord("form", done=TaskNumbers([1]))

    copied = run_inline(
        copy_blocks(SourceArray("", old, None, None, {}), new, FORM, record, None, Told(None))
    )

    assert copied == (5, 3)
    assert new.read().result().tolist() == [5, 5, 0, 0, 5, 5, 5]
    assert record.complete


def test_blocks_must_be_what_they_were():
    old, new = arrays()

    with pytest.raises(ts.FailedPreconditionError, match="was cut into other blocks"):
        run_inline(
            copy_blocks(
                SourceArray("", old, None, None, {}), new, FORM, ArrayRecord("form", "9-a"), None,
                Told(None),
            )
        )  # fmt: skip


def test_a_digest_is_of_the_source_and_what_is_asked():
    old = SourceArray("", arrays()[0], {"a": 1}, None, {})

    same = form_digest(SourceArray("b", arrays()[0], {"a": 1}, None, {"x": 1}), FORM)

    assert form_digest(old, FORM) == same
    assert form_digest(old._replace(document={"a": 2}), FORM) != same
    assert form_digest(old, FORM._replace(options={"dtype": ts.int8})) != same
