import pytest

from tensorstore_py._interface.update import Replace, Update, merged
from tensorstore_py._runtime.inline import run_inline


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
