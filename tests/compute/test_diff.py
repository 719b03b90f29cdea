"""Differences of arrays and of trees."""

import concurrent.futures
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import Difference, DifferingBlock, DifferingMember

DATA = np.arange(600, dtype="i4").reshape(20, 30)


def stored(data, chunks, driver="zarr3"):
    array = ts.open(
        f"memory://|{driver}:", create=True, dtype=data.dtype, shape=data.shape,
        chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
        context=ts.Context({"memory_limit": {"limit_bytes": 6000}}),
    ).result()  # fmt: skip
    array[...] = data
    return array


def tree(where, **options):
    root = ts.Group.open(where, create=True, attributes={"title": "t"}, **options).result()
    domain = ts.IndexDomain(shape=[20, 30], labels=["y", "x"])
    image = root.create_array("raw/image", dtype="int32", domain=domain).result()
    image[...] = DATA
    root.create_array("mask", dtype="bool", shape=[3]).result()
    return root


class TestDiff:
    @given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 29)), max_size=8), st.data())
    @settings(max_examples=30)
    def test_every_difference_is_found(self, places, draw):
        changed = DATA.copy()
        for place in places:
            changed[place] -= 1000
        sides = [
            stored(data, draw.draw(st.tuples(st.integers(2, 20), st.integers(2, 30))), driver)
            for data, driver in ((DATA, "zarr3"), (changed, "zarr2"))
        ]

        found = ts.diff(*sides).result()

        differ = np.argwhere(changed != DATA)
        assert bool(found) == bool(places)
        assert (found.differing_elements, found.elements) == (len(differ), 600)
        assert sum(block.elements for block in found.blocks) == len(differ)
        for block in found.blocks:
            inside = tuple(slice(low, high) for low, high in block.box)
            assert (changed != DATA)[inside].sum() == block.elements
            assert changed[block.first] != DATA[block.first]
            assert block.largest == np.abs(changed - DATA)[inside].max()

    def test_ten_lines_of_a_user(self):
        old, new = stored(DATA, (10, 30)), stored(DATA, (5, 5), "n5")
        new[3, 4] = -1

        found = ts.diff(old, new).result()

        assert str(found).split("\n")[0] == "1 of 600 elements differs, in 1 block"
        assert found.blocks[0].values == (94, -1)
        assert found.blocks[0].first == (3, 4)
        assert not ts.diff(old[4:], new[4:][ts.d[:].translate_to[0]]).result()

    def test_tolerance_and_nan(self):
        one, other = ts.array([1.0, np.nan, 3]), ts.array([1.001, np.nan, 3])

        assert ts.diff(one, other).result().differing_elements == 1
        assert not ts.diff(one, other, atol=0.01).result()
        assert not ts.diff(one, other, rtol=0.01).result()
        assert ts.diff(one, other, atol=0.01, equal_nan=False).result().differing_elements == 1

    def test_shapes_and_types(self):
        found = ts.diff(ts.array(DATA), ts.array(DATA[:, :5])).result()
        assert [(each.what, each.one, each.other) for each in found.members] == [
            ("shape", (20, 30), (20, 5))
        ]
        assert (found.elements, found.arrays) == (0, 0)
        typed = ts.diff(ts.array(DATA), ts.array(DATA.astype("f8"))).result()
        assert [each.what for each in typed.members] == ["dtype"]
        assert (typed.differing_elements, typed.elements) == (0, 600)
        assert ts.diff(ts.array(DATA), ts.array(DATA.astype("M8[s]"))).result().elements == 0

    @pytest.mark.parametrize(
        ("values", "dtype"),
        [(["a", "b"], "ustring"), ([b"a", b"b"], "string"), ([{"a": 1}, 2], "json")],
    )
    def test_elements_of_any_length(self, values, dtype):
        one, other = np.empty(2, object), np.empty(2, object)
        one[:], other[:] = values, [values[0], values[0]]

        found = ts.diff(ts.array(one, dtype=dtype), ts.array(other, dtype=dtype)).result()

        assert (found.blocks[0].first, found.blocks[0].values) == ((1,), (values[1], values[0]))

    def test_trees(self):
        old = tree("memory://old/", zarr_format=2)
        new = ts.Group.open("memory://new/", create=True, attributes={"title": "t"}).result()
        ts.copy(old, new, chunks=7).result()
        assert not ts.diff(old, new).result()
        assert ts.diff(old, new).result().arrays == 2

        new["raw/image"][2, 3] = 0
        new.attrs["title"] = "u"
        new["raw"].attrs["n"] = 1
        new.delete("mask").result()
        new.create_group("mask").result()
        new.create_group("more").result()
        found = ts.diff(old, new).result()

        assert [(each.path, each.what) for each in found.members] == [
            ("", "attributes"), ("mask", "kind"), ("more", "only in one"), ("raw", "attributes"),
        ]  # fmt: skip
        assert found.members[0][2:] == ({"title": "t"}, {"title": "u"})
        assert found.members[3][2:] == ({}, {"n": 1})
        assert [block.path for block in found.blocks] == ["raw/image"]
        assert "array /raw/image, " in str(found)
        assert " /more: group, only in the second\n" in str(found)

    def test_a_tree_and_an_array(self):
        root = tree("memory://a/")

        found = ts.diff(root, root["mask"]).result()

        assert ("", "kind") in [(each.path, each.what) for each in found.members]

    def test_other_processes_progress_and_plan(self, tmp_path):
        one, other = tree(tmp_path / "a"), tree(tmp_path / "b")
        other["raw/image"][5, 5] = 9
        seen: list[ts.Progress] = []

        here = ts.diff(one, other, progress=seen.append).result()
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            there = ts.diff(one, other, executor=pool).result()
        plan = ts.plan(ts.diff, one, other).result()
        again = ts.Plan.from_json(plan.to_json()).run().result()

        assert here == there == again
        assert (here.blocks[0].values, here.differing_elements) == ((155, 9), 1)
        assert seen[-1].bytes_done == plan.bytes == DATA.nbytes + 3

    @pytest.mark.parametrize("option", ["rtol", "atol", "max_blocks"])
    def test_what_is_wrong_is_said_at_once(self, option):
        asked: dict[str, Any] = {option: -1}
        with pytest.raises(ts.SpecError, match=option):
            ts.diff(ts.array([1]), ts.array([1]), **asked)

    def test_nothing_to_compare(self):
        assert not ts.diff(ts.array(np.zeros((0, 3))), ts.array(np.zeros((0, 3)))).result()

    async def test_awaited(self):
        assert not await ts.diff(ts.array([1]), ts.array([1]))


BLOCK = DifferingBlock("a", ((0, 4),), ((1, 3),), 2, (1,), (b"x" * 100, "b"))


class TestDifference:
    def test_it_is_true_if_there_is_one(self):
        assert not Difference((), (), 0, 0, 10, 1)
        assert Difference((), (), 1, 1, 10, 1)
        assert Difference((DifferingMember("", "dtype", "a", "b"),), (), 0, 0, 10, 1)

    def test_none_is_said_in_a_line(self):
        assert (
            str(Difference((), (), 0, 0, 12_000, 2))
            == "no difference in 12,000 elements of 2 arrays"
        )

    def test_long_lists_are_cut(self):
        members = tuple(DifferingMember(f"m{at}", "only in one", None, "group") for at in range(30))
        found = Difference(members, (BLOCK,) * 50, 1000, 2000, 10_000, 2)

        text = str(found)

        assert text.count("\n") == 42
        assert " and 10 more differences of members\n" in text
        assert text.endswith(" and 980 more blocks")
        assert " /m0: group, only in the second\n" in text

    def test_long_values_are_cut(self):
        assert len(str(BLOCK)) < 200
        assert str(BLOCK).endswith("…" + " and 'b'")

    def test_it_travels(self):
        found = Difference((), (BLOCK,), 1, 2, 4, 1)

        assert pickle.loads(pickle.dumps(found)) == found
