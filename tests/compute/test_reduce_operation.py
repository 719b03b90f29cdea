import pytest

import tensorstore_py as ts
from tensorstore_py._compute.reduce_operation import MergeRows, ReduceArray, numbered
from tensorstore_py._compute.reductions import Asked, Reductions
from tensorstore_py._runtime.inline import run_inline


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ("z", 'no dimension is named "z"; there are "y", "x"'),
        (2, "there is no dimension 2; there are 2"),
        ((0, "y"), "a dimension is named twice"),
        ("", 'no dimension is named ""'),
    ],
)
def test_dimensions_that_are_not_there(dims, message):
    with pytest.raises(ts.IndexingError, match=message):
        numbered(dims, ["y", "x"])


def test_without_names_numbers_are_to_be_given():
    with pytest.raises(ts.IndexingError, match="none has a name: give numbers"):
        numbered("x", ["", ""])


def test_a_task_may_run_anywhere_and_again():
    array = ts.open(
        "memory://|zarr3:", create=True, dtype="int32", shape=[10, 6],
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
        context=ts.Context({"memory_limit": {"limit_bytes": 200}}),
    ).result()  # fmt: skip
    array[...] = [[1, 2, 3, 4, 5, 6]] * 10
    found = Reductions(Asked(("sum",)), array.dtype, None)
    operation = ReduceArray(array._driver, array._transform, found, 0)
    merging = MergeRows()

    partial = None
    for block in reversed(list(operation.blocks)):
        run_inline(operation.run(block))  # its result is lost
        one = merging.from_json(merging.to_json(run_inline(operation.run(block))))
        partial = one if partial is None else merging.merge(one, partial)

    assert operation.blocks.count > 1
    assert operation.result(partial)["sum"].tolist() == [10, 20, 30, 40, 50, 60]
