import re

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts


def without_addresses(part):
    """The name of a case, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(part))


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


READ_ONLY = np.arange(3)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("source", "options", "mode", "shared"),
    [
        (np.arange(3), {}, "rw", True),
        (np.arange(3), {"copy": True}, "rw", False),
        (np.arange(3), {"copy": False}, "rw", True),
        (np.arange(3), {"write": False}, "r", True),
        (np.arange(3), {"write": True, "copy": False}, "rw", True),
        (np.arange(3), {"write": False, "copy": True}, "r", False),
        (READ_ONLY, {}, "r", True),
        (READ_ONLY, {"write": True}, "rw", False),
        (READ_ONLY, {"copy": True}, "rw", False),
        (memoryview(b"abc"), {}, "r", True),
        (memoryview(bytearray(b"abc")), {"copy": False}, "rw", True),
        (np.arange(3), {"dtype": "float64"}, "rw", False),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, memoryview) else str(part),
)
def test_sharing_and_access_as_the_reference(source, options, mode, shared):
    store = ts.array(source, **options)
    assert store.mode == reference.array(source, **options).mode == mode
    assert np.shares_memory(vars(store._driver)["_array"], np.asarray(source)) == shared


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ([1, 2], {"copy": False}),
        (5, {"copy": False}),
        (np.arange(3), {"copy": False, "dtype": "float64"}),
        (np.array([{}], object), {"copy": False}),
        (READ_ONLY, {"copy": False, "write": True}),
    ],
    ids=without_addresses,
)
def test_memory_that_cannot_be_shared(source, options):
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        ts.array(source, **options)
    with pytest.raises((ValueError, TypeError)):
        reference.array(source, **options)


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        (np.array([1.5]), "int32"),
        (np.array([1, "a"], object), "ustring"),
        ([object()], "json"),
        (np.array([object()]), None),
    ],
    ids=lambda part: type(part).__name__,
)
def test_elements_that_would_not_survive(source, dtype):
    for library in (ts, reference):
        with pytest.raises(TypeError):
            library.array(source, dtype=dtype)


def test_json_elements_are_nobody_elses():
    element = {"a": [1]}
    source = np.array([element, 2], object)
    store = ts.array(source)
    element["a"].append(2)
    source[1] = 3
    store.read().result()[0]["a"].append(4)
    assert store.read().result().tolist() == [{"a": [1]}, 2]


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3],
        {"x": 1},
        [[1], [2, 3], None],
        [[1, 2], [3, 4], [5, 6]],
        [[1, 2, 3]],
        "abc",
        (1, "a", True),
        np.arange(3),
        np.array([{"a": 1}, None, [2]], object),
        [True, np.float32(2), np.str_("a")],
    ],
    ids=without_addresses,
)
def test_json_is_written_as_by_the_reference(value):
    found = []
    for library in (ts, reference):
        store = library.array([0, 0, 0], dtype="json")
        store.write(value).result()
        found.append(repr(store.read().result()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "value", [[1, 2], np.zeros((3, 2)), [object(), 1, 2], object()], ids=without_addresses
)
def test_json_that_does_not_fit(value):
    for library in (ts, reference):
        with pytest.raises((ValueError, TypeError)):
            library.array([0, 0, 0], dtype="json").write(value).result()
