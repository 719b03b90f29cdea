import pickle

from tensorstore_py._compute.difference import Difference, DifferingBlock, DifferingMember

BLOCK = DifferingBlock("a", ((0, 4),), ((1, 3),), 2, (1,), (b"x" * 100, "b"))


def test_it_is_true_if_there_is_one():
    assert not Difference((), (), 0, 0, 10, 1)
    assert Difference((), (), 1, 1, 10, 1)
    assert Difference((DifferingMember("", "dtype", "a", "b"),), (), 0, 0, 10, 1)


def test_none_is_said_in_a_line():
    assert (
        str(Difference((), (), 0, 0, 12_000, 2)) == "no difference in 12,000 elements of 2 arrays"
    )


def test_long_lists_are_cut():
    members = tuple(DifferingMember(f"m{at}", "only in one", None, "group") for at in range(30))
    found = Difference(members, (BLOCK,) * 50, 1000, 2000, 10_000, 2)

    text = str(found)

    assert text.count("\n") == 42
    assert " and 10 more differences of members\n" in text
    assert text.endswith(" and 980 more blocks")
    assert " /m0: group, only in the second\n" in text


def test_long_values_are_cut():
    assert len(str(BLOCK)) < 200
    assert str(BLOCK).endswith("…" + " and 'b'")


def test_it_travels():
    found = Difference((), (BLOCK,), 1, 2, 4, 1)

    assert pickle.loads(pickle.dumps(found)) == found
