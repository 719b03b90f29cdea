import pickle

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._compute.array_digest import DigestArray, MergeLanes, digest_of
from tensorstore_py._runtime.inline import run_inline

HEX = "0123456789abcdef" * 4


def test_a_digest_is_a_text():
    digest = ts.Digest(f"tsd1:{HEX}")

    assert (digest.version, digest.hex) == ("tsd1", HEX)
    assert repr(digest) == f"Digest('tsd1:{HEX}')"
    assert digest == f"tsd1:{HEX}"
    assert pickle.loads(pickle.dumps(digest)) == digest


@pytest.mark.parametrize("text", ["", HEX, f"tsd1:{HEX}0", f"tsd1:{HEX[:-1]}G", f"sha256:{HEX}"])
def test_other_texts_are_none(text):
    with pytest.raises(ts.SpecError, match="expected a digest"):
        ts.Digest(text)


def test_a_document_in_any_order():
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1}) != digest_of({"a": 1})


def test_a_task_may_run_anywhere_and_again():
    array = ts.open(
        "memory://|zarr3:", create=True, dtype="int32", shape=[10, 6],
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
        context=ts.Context({"memory_limit": {"limit_bytes": 200}}),
    ).result()  # fmt: skip
    array[...] = np.arange(60, dtype="int32").reshape(10, 6)
    operation, merging = DigestArray(array._driver, array._transform), MergeLanes()

    partial = None
    for block in reversed(list(operation.blocks)):
        run_inline(operation.run(block))  # its result is lost
        one = merging.from_json(merging.to_json(run_inline(operation.run(block))))
        partial = one if partial is None else merging.merge(one, partial)

    assert operation.blocks.count > 1
    assert operation.result(partial) == ts.digest(array).result()


@pytest.mark.parametrize("damaged", [[1], "abcd", [1, 2, 3, 2**31], [1, 2, 3, -1], None])
def test_damaged_results_are_refused(damaged):
    with pytest.raises(ts.SpecError, match="damaged"):
        MergeLanes().from_json(damaged)
