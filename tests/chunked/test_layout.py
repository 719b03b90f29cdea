import pytest

from tensorstore_py._chunked.layout import Remembered


def test_made_once_for_equal_content():
    seen: Remembered[object] = Remembered(2)
    first = seen.get((1, "a"), object)
    assert seen.get((1, "a"), object) is first
    assert seen.get((1, "b"), object) is not first


def test_the_least_recently_used_is_forgotten():
    seen: Remembered[object] = Remembered(2)
    first, second = seen.get("a", object), seen.get("b", object)
    seen.get("a", object)
    seen.get("c", object)
    assert seen.get("a", object) is first
    assert seen.get("b", object) is not second


def test_what_could_not_be_made_is_tried_again():
    seen: Remembered[int] = Remembered(2)

    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        seen.get("a", fail)
    assert seen.get("a", lambda: 5) == 5


def test_making_may_ask_for_something_else():
    seen: Remembered[int] = Remembered(4)
    assert seen.get("a", lambda: 1 + seen.get("b", lambda: 2)) == 3


def test_the_layout_of_an_array_says_what_the_engine_needs():
    import tensorstore_py as ts

    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": {"dtype": ">i2"}}
    store = ts.open(
        spec, create=True, shape=[4, 6], fill_value=3,
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
    ).result()  # fmt: skip
    layout = store._driver._known.state.layout  # type: ignore[attr-defined]
    assert layout.data_type == ts.int16
    assert layout.fill_value == 3
    assert [axis.count for axis in layout.grid] == [2, 2]
    assert layout.keys.encode((1, 0)) == "1.0"
    assert layout.domain.implicit_upper_bounds == (True, True)
    assert not layout.always_store
