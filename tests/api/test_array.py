import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts


def test_memory_is_shared():
    memory = np.zeros((2, 3), np.int16)
    store = ts.array(memory)
    store[1, 1:] = [4, 5]
    assert memory.tolist() == [[0, 0, 0], [0, 4, 5]]
    memory[0, 0] = 7
    assert store[0, 0].read().result() == 7
    assert not np.shares_memory(store.read().result(), memory)


def test_a_read_only_array_is_a_read_only_store():
    memory = np.zeros(3)
    memory.flags.writeable = False
    assert ts.array(memory).mode == reference.array(memory).mode == "r"


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        [1.5],
        [b"a"],
        5,
        np.arange(6)[::2],
        np.asfortranarray(np.zeros((2, 3))),
        np.zeros((2, 3, 4)).transpose(1, 2, 0),
        None,
        {"a": 1},
        [True],
        np.array([1], ">i4"),
        np.array([1j]),
        np.broadcast_to(np.int8(3), (4,)),
    ],
    ids=repr,
)
def test_type_and_layout_as_the_reference(value):
    ours, theirs = ts.array(value), reference.array(value)
    assert ours.dtype.name == theirs.dtype.name
    assert ours.mode == theirs.mode
    assert str(ours.chunk_layout) == str(theirs.chunk_layout)
    assert str(ours.domain) == str(theirs.domain)


def test_a_dtype_converts():
    assert ts.array([1, 2], dtype="uint8").read().result().dtype == np.uint8
    assert ts.array([1, 2], dtype=ts.json).read().result().tolist() == [1, 2]
    with pytest.raises(OverflowError):
        ts.array([300], dtype="uint8")
    with pytest.raises(ValueError):
        ts.array([1], dtype="uint9")


def test_text_is_text():
    store = ts.array(["a", "bcd"])
    assert store.dtype == ts.ustring
    store[0] = "long enough"
    assert store.read().result().tolist() == ["long enough", "bcd"]


async def test_in_an_event_loop():
    store = ts.array(np.arange(4))
    await store[1:3].write([8, 9])
    assert (await store.read()).tolist() == [0, 8, 9, 3]


def test_a_copy_between_arrays():
    source, target = ts.array(np.arange(6).reshape(2, 3)), ts.array(np.zeros((2, 3), np.int64))
    target.write(source).result()
    assert target.read().result().tolist() == [[0, 1, 2], [3, 4, 5]]
