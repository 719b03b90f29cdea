"""Which dimension is which."""

import pytest

import tensorstore_py as ts
from tensorstore_py._compute.alignment import Alignment, Frame


def frame(**sizes):
    return Frame(tuple(sizes), tuple(sizes.values()))


def plain(*sizes):
    return Frame(("",) * len(sizes), sizes)


def of(*sources, target=None, drop=(), new=None):
    return Alignment.of(sources, target, drop, new or {})


def test_by_label_in_any_order():
    found = of(frame(y=3, x=4), frame(x=4, t=2, y=1))
    assert found.space == frame(x=4, t=2, y=3)
    assert found.sources == ((2, 0), (0, 1, 2))
    assert found.once == ((), (2,))


def test_from_the_last_one_back_without_labels():
    found = of(plain(4), plain(2, 3, 4), plain(3, 1))
    assert found.space == plain(2, 3, 4)
    assert found.sources == ((2,), (0, 1, 2), (1, 2))
    assert found.once == ((), (), (2,))


def test_labels_that_only_one_has_are_kept():
    assert of(plain(2, 3), frame(y=2, x=3)).made == frame(y=2, x=3)


def test_what_the_target_lacks_is_dropped():
    assert of(frame(z=2, y=3, x=4), target=frame(y=3, x=4)).dropped == (0,)
    assert of(plain(2, 3, 4), target=plain(3, 4)).dropped == (0,)


def test_what_only_the_target_has_is_new_and_last():
    found = of(frame(z=2, y=3, x=4), target=frame(c=5, x=4, y=3))
    assert found.dropped == (0,)
    assert found.made == frame(y=3, x=4, c=5)
    assert found.order == (2, 1, 0)
    assert found.target_dims == (None, 2, 1)


def test_without_labels_it_is_where_the_target_has_it():
    found = of(plain(3, 4), target=plain(5, 3, 4))
    assert (found.made, found.order) == (plain(5, 3, 4), (0, 1, 2))
    assert found.target_dims == (None, 0, 1)


def test_as_it_was_asked_for():
    found = of(frame(z=2, y=3), drop=["z"], new={"c": 5, 0: 7})
    assert found.made == Frame(("", "y", "c"), (7, 3, 5))
    assert found.output == (None, 1, None)
    assert of(plain(2, 3), drop=[0], new={-1: 4}).made == plain(3, 4)
    assert of(plain(2), drop=[0]).made == plain()


def test_asked_for_and_there():
    found = of(frame(z=2, y=3), target=frame(c=5, y=3), drop=["z"], new={"c": 5})
    assert (found.made, found.order) == (frame(y=3, c=5), (1, 0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([frame(y=3), frame(y=4)], None), r'dimension 0 \("y"\) of source 1 has extent 4.*has 3'),
        (([plain(3)], plain(4)), r"dimension 0 of the target has extent 4.*has 3"),
        (([plain(1)], plain(4)), r"dimension 0 of the target has extent 4"),
        (([frame(z=2, y=3)], frame(t=3), ["z"]), r"the target has the dimensions \(t: 3\).*\(y: 3"),
    ],
)
def test_what_does_not_fit(arguments, message):
    sources, target, *drop = arguments
    with pytest.raises(ts.MismatchError, match=message):
        of(*sources, target=target, drop=drop[0] if drop else ())


@pytest.mark.parametrize(
    ("new", "message"),
    [({"y": 4}, 'new: a dimension is named "y" already'), ({5: 4}, "none of number 5")],
)
def test_new_dimensions_that_cannot_be(new, message):
    with pytest.raises(ts.SpecError, match=message):
        of(frame(y=3), new=new)
