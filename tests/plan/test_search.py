import random

from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._plan.parts import DONE, FREE, TAKEN
from tensorstore_py._plan.search import PAGE, Search


def search(count, share=None, *, anywhere=False, seed=0):
    chance = random.Random(seed).random
    return Search(count, range(count) if share is None else share, chance, anywhere=anywhere)


def claimed(looking, states):
    """What one worker finds that nobody disturbs; returns the parts, and how many listings."""
    found, listings = [], 0
    while (part := looking.next_free()) is not None:
        if looking.wants_page(part):
            low, high = looking.page(part)
            looking.learn(low, states[low:high])
            listings += 1
            continue
        if states[part] == FREE:
            states[part] = TAKEN
            found.append(part)
            looking.claimed(part)
            continue
        looking.refused(part)
        if looking.wants_page(part):
            low, high = looking.page(part)
            looking.learn(low, states[low:high])
            listings += 1
        looking.move_on()
    return found, listings


def test_alone_it_goes_on_in_order_and_asks_nobody():
    found, listings = claimed(search(2000), bytearray(2000))

    assert found == list(range(2000))
    assert listings == 0


def test_begins_with_its_share():
    found, _ = claimed(search(100, range(40, 60)), bytearray(100))

    assert found[:20] == list(range(40, 60))
    assert sorted(found) == list(range(100))


def test_begins_anywhere():
    begins = {search(1000, anywhere=True, seed=seed).next_free() for seed in range(20)}

    assert len(begins) > 15


def test_goes_on_in_order_behind_what_was_done_earlier():
    states = bytearray([DONE] * 700 + [FREE] * 300)

    found, listings = claimed(search(1000), states)

    assert found == list(range(700, 1000))
    assert listings == 2


@given(st.lists(st.sampled_from([FREE, FREE, TAKEN, DONE]), max_size=1200), st.integers(0, 9))
def test_finds_all_that_is_free_with_few_listings(states, seed):
    states = bytearray(states)
    free = {part for part, state in enumerate(states) if state == FREE}

    found, listings = claimed(search(len(states), anywhere=True, seed=seed), states)

    assert len(found) == len(free)
    assert set(found) == free
    assert listings <= 2 * (len(states) // PAGE + 1)


def test_knows_what_is_left():
    looking = search(1200)
    states = bytearray([DONE] * PAGE)
    states[7] = TAKEN

    assert len(looking.learn(0, states)) == PAGE - 1
    assert looking.learn(0, states) == []
    assert looking.note(7, DONE)
    assert not looking.note(7, DONE)
    assert looking.is_done(7)
    assert looking.unfinished() == list(range(PAGE, 1200))
    assert looking.page(1100) == (1000, 1200)


def test_what_is_taken_stays_so_whatever_an_older_listing_says():
    looking = search(10)
    looking.claimed(0)
    looking.learn(0, bytearray(10))

    assert looking.next_free() == 1
    assert sorted(claimed(looking, bytearray(10))[0]) == list(range(1, 10))


def test_there_is_nothing_in_no_parts():
    assert search(0).next_free() is None
    assert search(5, range(2, 2)).next_free() is not None
