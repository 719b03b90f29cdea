import pytest

from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._interface.update import Replace, Update, merged
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap


class Append(Update):
    """Adds to the end of what is there."""

    def __init__(self, *tails):
        self.tails = tails

    async def apply(self, stored):
        return (stored or b"") + b"".join(self.tails)


class JoinedAppend(Append):
    def then(self, later):
        if isinstance(later, JoinedAppend):
            return JoinedAppend(*self.tails, *later.tails)
        return super().then(later)


def applied(update, stored=None):
    return run_inline(update.apply(stored))


def test_a_replacement_forgets_what_was_before():
    last = Replace(b"new")
    assert merged([Append(b"x"), Replace(b"old"), Append(b"y"), last]) is last
    assert last.replaces
    assert applied(last, b"stored") == b"new"


@pytest.mark.parametrize("kind", [Append, JoinedAppend])
def test_updates_are_made_in_turn(kind):
    update = merged([kind(b"a"), kind(b"b"), kind(b"c")])
    assert not update.replaces
    assert applied(update, b"_") == b"_abc"
    assert applied(update, b"_") == b"_abc"


def test_updates_that_know_each_other_become_one():
    both = merged([JoinedAppend(b"a"), JoinedAppend(b"b")])
    assert isinstance(both, JoinedAppend)
    assert both.tails == (b"a", b"b")
    mixed = merged([Append(b"a"), JoinedAppend(b"b"), JoinedAppend(b"c")])
    assert isinstance(mixed.then(JoinedAppend(b"d")), type(mixed))
    assert applied(mixed) == b"abc"


def test_what_follows_a_replacement_needs_nothing_stored():
    update = merged([Replace(b"a"), Append(b"b")])
    assert update.replaces
    assert applied(update, b"stored") == b"ab"
    assert applied(merged([Replace(None), Append(b"b"), Replace(None)])) is None


def test_kept_is_independent_of_the_callers_memory():
    memory = bytearray(b"abc")
    kept = merged([Replace(memory), Append(b"d")]).kept()
    memory[:] = b"xyz"
    assert applied(kept) == b"abcd"


@pytest.mark.parametrize("way", ["parts_in", "splice_in"])
class TestInAStore:
    """Whoever knows no better reads all of the value, and keeps nothing of it in place."""

    def test_what_is_there_is_changed_and_its_generation_told(self, way):
        store = MemoryStore(SharedMap())
        stamp = run_inline(store.write("k", b"_"))
        generation, parts = run_inline(getattr(Append(b"a"), way)(store, "k"))
        assert (generation, list(parts)) == (stamp.generation, [b"_a"])

    def test_what_is_missing_is_begun_on_condition_that_it_still_is(self, way):
        store = MemoryStore(SharedMap())
        generation, parts = run_inline(getattr(Append(b"a"), way)(store, "k"))
        assert (generation, list(parts)) == (NO_VALUE, [b"a"])

    def test_what_becomes_nothing_has_no_parts(self, way):
        store = MemoryStore(SharedMap())
        stamp = run_inline(store.write("k", b"_"))
        update = merged([Append(b"a"), Replace(None)])
        assert run_inline(getattr(update, way)(store, "k")) == (stamp.generation, None)
