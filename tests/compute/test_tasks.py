"""Tasks of computations: their arrays and functions, and that they may run anywhere and again."""

import functools
import json
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.begin import as_context
from tensorstore_py._api.blocks import Block
from tensorstore_py._compute.arrays import array_arguments, contents, end_of, one_array
from tensorstore_py._compute.block_function import BlockFunction, PickledFunction
from tensorstore_py._compute.diff_operation import DiffArrays, MergeFindings, Tolerance
from tensorstore_py._compute.digest import DigestArray, MergeLanes, digest_of
from tensorstore_py._compute.reduce_operation import MergeRows, ReduceArray, numbered
from tensorstore_py._compute.reductions import ReductionRequest, Reductions
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py._spec.registry import only_built_in
from tests.chunked.stores import counting, created
from tests.compute import functions


def found(given):
    end = end_of(given, as_context(None))
    return run_inline(contents(end.inline, end))


class TestArrays:
    def test_a_tree(self):
        root = ts.Group.open("memory://", create=True, zarr_format=2, attributes={"a": 1}).result()
        domain = ts.IndexDomain(shape=[3], labels=["x"])
        root.create_array("b/c", dtype="int8", domain=domain, attributes={"d": 2}).result()

        there = found(root)

        assert (sorted(there.groups), sorted(there.arrays), there.is_tree) == (
            ["", "b"],
            ["b/c"],
            True,
        )
        assert [there.attributes(path) for path in ("", "b", "b/c")] == [{"a": 1}, {}, {"d": 2}]

    @pytest.mark.parametrize("where", ["memory://|zarr3:", "memory://|n5:"])
    def test_an_array_and_a_view_of_one(self, where):
        array = ts.open(where, create=True, dtype="int8", shape=[4]).result()

        assert one_array(found(array), "x").array.shape == (4,)
        assert one_array(found(array[1:3]), "x").array.domain.origin == (1,)
        assert not found(array).is_tree

    def test_a_part_of_a_tree(self):
        root = ts.Group.open("memory://", create=True).result()
        root.create_array("a/b/c", dtype="int8", shape=[2]).result()

        assert sorted(found(root["a"]).arrays) == ["b/c"]

    def test_an_empty_group_is_no_array(self):
        root = ts.Group.open("memory://", create=True).result()

        with pytest.raises(ts.MismatchError, match=r"x takes one array, .* it has no arrays"):
            one_array(found(root), "x")

    def test_an_array_that_cannot_be_read(self):
        options: dict[str, Any] = {
            "create": True,
            "dtype": "int8",
            "shape": [2],
            "read": False,
            "write": True,
        }
        array = ts.open("memory://|zarr3:", **options)

        with pytest.raises(ts.PermissionDeniedError, match="not opened for reading"):
            found(array.result())

    def test_what_is_in_a_transaction_stays_here(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        array = ts.open(spec, create=True, dtype="int8", shape=[2]).result()
        with ts.Transaction() as transaction, pytest.raises(ts.UnsupportedError, match='"/a/b"'):
            array_arguments(array.with_transaction(transaction), "a/b")
        np.testing.assert_array_equal(array, [0, 0])

    @pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
    def test_a_local_path_of_any_format(self, driver, tmp_path):
        spec = {"driver": driver, "kvstore": tmp_path / "a"}
        ts.open(spec, create=True, dtype="int8", shape=[4]).result()

        assert one_array(found(tmp_path / "a"), "x").array.shape == (4,)
        assert one_array(found(f"file://{tmp_path}/a/"), "x").array.shape == (4,)

    def test_nothing_is_there(self, tmp_path):
        (tmp_path / "a").mkdir()
        for nothing in (
            tmp_path / "a",
            f"file://{tmp_path}/b/",
            ts.KvStore.open("memory://a/").result(),
        ):
            with pytest.raises(ts.NotFoundError, match=r"^no array or group is at"):
                found(nothing)


HEX = "0123456789abcdef" * 4


class TestArrayDigest:
    def test_a_digest_is_a_text(self):
        digest = ts.Digest(f"tsd1:{HEX}")

        assert (digest.version, digest.hex) == ("tsd1", HEX)
        assert repr(digest) == f"Digest('tsd1:{HEX}')"
        assert digest == f"tsd1:{HEX}"
        assert pickle.loads(pickle.dumps(digest)) == digest

    @pytest.mark.parametrize(
        "text", ["", HEX, f"tsd1:{HEX}0", f"tsd1:{HEX[:-1]}G", f"sha256:{HEX}"]
    )
    def test_other_texts_are_none(self, text):
        with pytest.raises(ts.SpecError, match="expected a digest"):
            ts.Digest(text)

    def test_a_document_in_any_order(self):
        assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1}) != digest_of({"a": 1})

    def test_a_task_may_run_anywhere_and_again(self):
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
    def test_damaged_results_are_refused(self, damaged):
        with pytest.raises(ts.SpecError, match="damaged"):
            MergeLanes().from_json(damaged)


def operation(one, other, most=100):
    here, there = (
        ts.open(
            "memory://|zarr3:", create=True, dtype=each.dtype, shape=each.shape,
            chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
            context=ts.Context({"memory_limit": {"limit_bytes": 400}}),
        ).result()
        for each, chunks in ((one, (2, 3)), (other, (3, 2)))
    )  # fmt: skip
    here[...], there[...] = one, other
    args = here._driver, here._transform, there._driver, there._transform
    return DiffArrays(*args, Tolerance(), most, "a/b")


def merged(task):
    merging = MergeFindings()
    partial = None
    for block in reversed(list(task.blocks)):
        run_inline(task.run(block))  # its result is lost
        found = run_inline(task.run(block))
        one = merging.from_json(json.loads(json.dumps(merging.to_json(found))))
        partial = one if partial is None else merging.merge(one, partial)
    return partial


class TestDiffOperation:
    @pytest.mark.parametrize("dtype", ["i2", "f4", "c16", "M8[s]", "S5", "bool"])
    def test_a_task_may_run_anywhere_and_again(self, dtype):
        one = np.arange(60).reshape(10, 6).astype(dtype)
        other = one.copy()
        other[4, 1], other[9, 5] = one[1, 2], one[0, 0]
        task = operation(one, other)

        found = merged(task)

        assert task.blocks.count > 1
        count = int((one != other).sum())
        assert (found.differing, found.elements) == (count, 60)
        blocks = list(found.blocks.values())
        assert found.differing_blocks == len(blocks) == count
        first = blocks[0]
        assert (first.path, first.first, first.elements) == (
            "a/b",
            tuple(np.argwhere(one != other)[0]),
            1,
        )
        assert first.box == tuple((at, at + 1) for at in first.first)
        assert all(
            low <= at < high for (low, high), at in zip(first.bounds, first.first, strict=True)
        )
        assert first.values == (one[first.first], other[first.first])

    def test_lists_are_bounded_and_counts_are_not(self):
        one = np.zeros((20, 6), "i4")
        task = operation(one, one + 1, most=2)

        found = merged(task)

        assert list(found.blocks) == [0, 1]
        assert (found.differing_blocks, found.differing) == (task.blocks.count, 120)
        assert not merged(operation(one, one + 1, most=0)).blocks

    @pytest.mark.parametrize("damaged", [[[1], 1, 1, 1, 1], 5, [[["a"]], 1], [[]]])
    def test_damaged_results_are_refused(self, damaged):
        with pytest.raises(ts.SpecError, match="damaged"):
            MergeFindings().from_json(damaged)


class TestReduceOperation:
    @pytest.mark.parametrize(
        ("dims", "message"),
        [
            ("z", 'no dimension is named "z"; there are "y", "x"'),
            (2, "there is no dimension 2; there are 2"),
            ((0, "y"), "a dimension is named twice"),
            ("", 'no dimension is named ""'),
        ],
    )
    def test_dimensions_that_are_not_there(self, dims, message):
        with pytest.raises(ts.IndexingError, match=message):
            numbered(dims, ["y", "x"])

    def test_without_names_numbers_are_to_be_given(self):
        with pytest.raises(ts.IndexingError, match="none has a name: give numbers"):
            numbered("x", ["", ""])

    def test_a_task_may_run_anywhere_and_again(self):
        array = ts.open(
            "memory://|zarr3:", create=True, dtype="int32", shape=[10, 6],
            chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
            context=ts.Context({"memory_limit": {"limit_bytes": 200}}),
        ).result()  # fmt: skip
        array[...] = [[1, 2, 3, 4, 5, 6]] * 10
        found = Reductions(ReductionRequest(("sum",)), array.dtype, None)
        operation = ReduceArray(array._driver, array._transform, found, 0)
        merging = MergeRows()

        partial = None
        for block in reversed(list(operation.blocks)):
            run_inline(operation.run(block))  # its result is lost
            one = merging.from_json(merging.to_json(run_inline(operation.run(block))))
            partial = one if partial is None else merging.merge(one, partial)

        assert operation.blocks.count > 1
        assert operation.result(partial)["sum"].tolist() == [10, 20, 30, 40, 50, 60]


def called(function, *blocks, inputs=1, **kwargs):
    made = BlockFunction(function, inputs, kwargs)
    return run_inline(made(True, *blocks, domain=ts.IndexDomain(shape=[2])))


def told(_, domain):
    return domain.shape


def told_by_keyword(_, *, domain=None):
    return domain.shape


def untold(domain):
    return domain


class TestBlockFunction:
    @pytest.mark.parametrize(
        ("function", "name"),
        [
            (functions.double, "tests.compute.functions:double"),
            (np.subtract, "numpy:subtract"),
            (json.JSONEncoder.default, "json.encoder:JSONEncoder.default"),
            ("tests.compute.functions:double", "tests.compute.functions:double"),
        ],
    )
    def test_what_can_be_imported_travels_by_its_name(self, function, name):
        made = BlockFunction(function, 1, {})
        assert (made.name, made.to_json(), made.portable()) == (name, name, name)

    @pytest.mark.parametrize(
        "function", [lambda block: block + 1, functools.partial(functions.scaled, factor=3)]
    )
    def test_anything_else_is_pickled_and_part_of_no_document(self, function):
        made = BlockFunction(function, 1, {})
        there = pickle.loads(pickle.dumps(made.portable()))
        assert called(there.open(), 5) == function(5)
        with pytest.raises(ts.UnsupportedError, match="put it into a module"):
            made.to_json()

    def test_without_cloudpickle_a_lambda_stays_here(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(
            ts.UnsupportedError, match=r"<lambda> cannot be sent.*pip install cloudpick"
        ):
            BlockFunction(lambda block: block, 1, {}).portable()
        partial = functools.partial(functions.scaled, factor=3)
        pickled = BlockFunction(partial, 1, {}).portable()
        assert isinstance(pickled, PickledFunction)
        assert pickled.open()(2) == 6

    def test_a_function_whose_module_is_not_there(self):
        gone = pickle.dumps(functions.double).replace(b"functions", b"functionz")
        with pytest.raises(
            ts.UnsupportedError, match=r"cannot import the function a:b.*PYTHONPATH"
        ):
            PickledFunction("a:b", gone).open()
        with pytest.raises(ts.UnsupportedError, match=r"cannot import the function no\.such:thing"):
            BlockFunction("no.such:thing", 1, {})

    @pytest.mark.parametrize(
        "wrong", ["double", "module:", ":f", "tests.compute.functions:NOTHING"]
    )
    def test_names_of_no_function(self, wrong):
        with pytest.raises(ts.SpecError, match="function: "):
            BlockFunction(wrong, 1, {})

    def test_what_is_no_function(self):
        with pytest.raises(TypeError, match="expected a function"):
            BlockFunction(7, 1, {})  # type: ignore[arg-type]

    def test_a_document_that_is_not_trusted_names_no_code(self):
        with (
            only_built_in(frozenset()),
            pytest.raises(ts.SpecError, match=r'plugins=\["os:system"\]'),
        ):
            BlockFunction("os:system", 1, {})
        with only_built_in(frozenset({"tests.compute.functions:double"})):
            assert BlockFunction("tests.compute.functions:double", 1, {}).inline

    def test_a_function_that_wants_it_gets_the_domain(self):
        assert called(told, 0) == called(told_by_keyword, 0) == (2,)
        assert called(untold, 7) == 7  # it is the name of the block
        assert called(told, 0, domain=ts.IndexDomain(shape=[5])) == (5,)
        assert called(np.negative, 3) == -3  # has no signature

    def test_arguments(self):
        assert called(functions.scaled, 4, factor=3) == 12

    @pytest.mark.parametrize(
        "function", [functions.plus_one, functools.partial(functions.plus_one)]
    )
    def test_coroutine_functions_are_no_work_for_threads(self, function):
        assert not BlockFunction(function, 1, {}).inline

    def test_what_a_plain_function_gives_may_have_to_be_awaited(self):
        assert called(lambda block: functions.plus_one(block + 1), 3) == 5


class TestMapBlocks:
    def test_of_the_other_end_no_more_than_a_chunk_is_read(self):
        store = counting()
        source = created(store, [64, 4], [4, 4], path="a/")
        target = created(store, [64, 4], [4, 4], path="b/")
        made = ts.plan(
            ts.map_blocks, functions.double, source, target=target, halo={0: 2},
            boundary="periodic",
        ).result()  # fmt: skip
        store.reset()
        operation = made.steps[0].live
        assert operation is not None
        first = Block(((0, 4), (0, 4)), 1)
        run_inline(operation.run(first))
        assert sorted(key for key in store.reads if key.startswith("a/c")) == [
            "a/c/0/0", "a/c/1/0", "a/c/15/0",
        ]  # fmt: skip
