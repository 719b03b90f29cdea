"""What is stored ahead of the metadata; `api/test_append.py` has appends, which use it."""

import pytest

from tensorstore_py._interface.write_ahead import WriteAhead
from tensorstore_py.errors import AbortedError
from tensorstore_py.kvstores.memory import MemorySpec, MemoryStore, SharedMap


class Plain(MemoryStore):
    """Stores one key at a time."""

    def __init__(self):
        super().__init__(SharedMap(), atomic=False)

    async def value(self, key):
        return (await self.read(key)).value


async def begun(store):
    """The overlay with the metadata staged."""
    stamp = await store.write("meta", b"1")
    ahead = WriteAhead()
    overlay = ahead.overlay(MemorySpec(), store)
    await overlay.write("meta", b"2", if_equal=stamp.generation)
    return ahead, overlay


async def test_only_the_metadata_is_staged():
    store = Plain()
    ahead, overlay = await begun(store)

    await overlay.write("chunk", b"new")
    assert (await store.value("chunk"), await store.value("meta")) == (b"new", b"1")
    assert (await overlay.read("meta")).value == b"2"

    await ahead.finish()
    assert await store.value("meta") == b"2"


async def test_chunks_are_not_stored_once_the_metadata_has_changed():
    store = Plain()
    ahead, overlay = await begun(store)
    await store.write("chunk", b"theirs")
    await store.write("meta", b"3")

    for condition in (None, b"\x00" + (2).to_bytes(8, "little")):
        with pytest.raises(AbortedError, match="nothing of others is lost"):
            await overlay.write("chunk", b"mine", if_equal=condition)
    with pytest.raises(AbortedError):
        await ahead.finish()
    assert (await store.value("chunk"), await store.value("meta")) == (b"theirs", b"3")


async def test_what_a_crash_left_is_written_over():
    store = Plain()
    ahead, overlay = await begun(store)
    await store.write("chunk", b"left")

    await overlay.write("chunk", b"mine")
    await ahead.finish()

    assert await store.value("chunk") == b"mine"


async def test_giving_up_tells_those_who_know_old_values():
    ahead, overlay = await begun(Plain())
    told = []
    overlay.changing(lambda: told.append(True))

    ahead.give_up()

    assert told == [True]
    assert not ahead.open


async def test_a_store_of_several_keys_at_once_gets_them_at_the_end():
    store = MemoryStore(SharedMap())
    ahead, overlay = await begun(store)

    await overlay.write("chunk", b"new")
    assert (await store.read("chunk")).state == "missing"
    await ahead.finish()
    assert (await store.read("chunk")).value == b"new"
