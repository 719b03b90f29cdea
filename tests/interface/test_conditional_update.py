"""Updates end: nothing that others do, and nothing that a store does, keeps one for ever."""

import pytest

from tensorstore_py._interface.conditional_update import conditional_update
from tensorstore_py._interface.update import Replace, Update
from tensorstore_py._runtime.attempts import CONFLICTS, RetryPolicy
from tensorstore_py.errors import AbortedError, UnavailableError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin import UNKNOWN, TimestampedStorageGeneration
from tensorstore_py.testing import CountedWaits, LoopStore, StoreAround, drive


class Append(Update):
    """Add a letter."""

    async def apply(self, stored):
        return b"" if stored is None else bytes(stored) + b"x"


class Refusing(StoreAround):
    """Refuses so many conditional writes; `meddle` is what others do before each of them."""

    splices = False

    def __init__(self, base, times, meddle=None, error=None):
        super().__init__(base)
        self.left = times
        self.writes = 0
        self._meddle = meddle
        self._error = error

    async def write(self, key, value, *, if_equal=None):
        self.writes += 1
        if self.left > 0:
            self.left -= 1
            if self._error is not None:
                raise self._error
            if self._meddle is not None:
                await self.base.write(key, self._meddle(self.writes))
            return TimestampedStorageGeneration.now(UNKNOWN)
        return await super().write(key, value, if_equal=if_equal)


def letters(number):
    return b"%d" % number


@pytest.fixture(params=["inline", "loop"])
def base(request):
    memory = MemoryStore(SharedMap())
    return memory if request.param == "inline" else LoopStore(memory)


def test_others_who_are_always_faster_end_it(base):
    store = Refusing(base, 10**6, letters)

    with (
        CountedWaits() as waits,
        pytest.raises(AbortedError, match=r'update "k".*try again') as lost,
    ):
        drive(store, lambda: store.update("k", Append()))

    assert lost.value.attempts == store.writes == CONFLICTS.attempts
    assert len(waits.seconds) == CONFLICTS.attempts - 1


def test_a_store_that_refuses_although_nothing_changed_ends_it(base):
    store = Refusing(base, 10**6)

    with CountedWaits(), pytest.raises(UnavailableError, match='cannot update "k"') as refused:
        drive(store, lambda: store.update("k", Append()))

    assert refused.value.attempts == store.writes == CONFLICTS.fruitless


def test_hundreds_who_were_faster_are_not_too_many(base):
    store = Refusing(base, 900, letters)

    with CountedWaits():
        drive(store, lambda: store.update("k", Append()))

    assert drive(store, lambda: store.read("k")).value == b"900x"


def test_what_may_have_been_stored_is_made_again_a_few_times(base):
    mine = AbortedError("who knows")
    store = Refusing(base, 10**6, error=mine)

    with CountedWaits(), pytest.raises(AbortedError) as unsure:
        drive(store, lambda: store.update("k", Append()))

    assert unsure.value is mine
    assert store.writes == 9


def test_what_replaces_is_not_refused_and_not_read(base):
    store = Refusing(base, 0)

    drive(store, lambda: conditional_update(store, "k", Replace(b"1"), RetryPolicy(attempts=1)))

    assert drive(store, lambda: store.read("k")).value == b"1"
