"""What others change again and again ends, whatever it is: with how often it was tried."""

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore
from tensorstore_py.plugin import CONFLICTS, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py.testing import CountedWaits


class Rivals:
    """Others who always store a value between a look and the conditional write that follows."""

    def __init__(self, monkeypatch):
        self.writes = 0
        self._write = MemoryStore.write
        for name in ("write", "keep"):
            monkeypatch.setattr(MemoryStore, name, self.refusing())
        monkeypatch.setattr(MemoryStore, "write_together", self.refusing_together())

    async def touch(self, store, key):
        """Store what is there again: the generation is another one."""
        found = await store.read(key)
        await self._write(store, key, bytes(found.value) if found.state == "value" else b"{}")
        self.writes += 1

    def refusing(self):
        async def write(store, key, value, *, if_equal=None):
            if if_equal is None:
                return await self._write(store, key, value)
            await self.touch(store, key)
            return TimestampedStorageGeneration.now(UNKNOWN)

        return write

    def refusing_together(self):
        async def write_together(store, values, conditions):
            assert conditions
            key = next(iter(values))
            await self.touch(store, key)
            return key

        return write_together


def array(context, **members):
    spec = {"driver": "zarr3", "kvstore": "memory://a/", **members}
    opened = ts.open(spec, create=True, dtype="uint8", shape=[8], context=context).result()
    opened[:] = 1
    return opened


def resize(context):
    return array(context).resize(exclusive_max=[16]).result


def part_of_a_chunk(context):
    opened = array(context)
    return lambda: opened[1:3].write(5).result()


def member_of_a_document(context):
    spec = {"driver": "json", "kvstore": "memory://j", "json_pointer": "/a"}
    opened = ts.open(spec, context=context).result()
    return lambda: opened.write(5).result()


def attribute(context):
    group = ts.Group.open("memory://g/", create=True, context=context).result()
    return lambda: group.attrs.update(a=1).result()


def entry_of_an_archive(context):
    kv = ts.KvStore.open("memory://z.zip|zip:", context=context).result()
    kv["a"] = b"1"
    return lambda: kv.write("b", b"2").result()


def atomic_transaction(context):
    opened = array(context)
    transaction = ts.Transaction(atomic=True)
    opened.with_transaction(transaction)[1:3] = 5
    return transaction.commit_sync


@pytest.mark.parametrize(
    "begin",
    [
        resize,
        part_of_a_chunk,
        member_of_a_document,
        attribute,
        entry_of_an_archive,
        atomic_transaction,
    ],
)
def test_it_ends_with_the_number_of_attempts(monkeypatch, begin):
    run = begin(ts.Context())
    rivals = Rivals(monkeypatch)

    with CountedWaits() as waits, pytest.raises(ts.AbortedError, match="others changed it") as lost:
        run()

    assert lost.value.attempts == rivals.writes == CONFLICTS.attempts
    assert len(waits.seconds) == CONFLICTS.attempts - 1
