import random

import pytest

from tests.fuzz.mutations import mutate, mutate_bytes, mutate_seed, mutate_text
from tests.fuzz.seeds import keep, kept, seeds
from tests.fuzz.trial import attempt

SEEDS = seeds()
TRIALS = 4


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_what_is_whole_is_read_without_an_error(seed):
    assert attempt(seed) == []


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_what_is_damaged_ends_in_typed_errors_and_takes_no_memory(seed):
    for number in range(TRIALS):
        attempt(mutate_seed(random.Random(f"{seed.name} {number}"), seed), measure=number < 2)


@pytest.mark.parametrize("number", range(5))
def test_damage_follows_from_the_seed_and_leaves_what_it_is_given(number):
    document = {"a": [1, {"b": "c"}], "d": 2.5}
    text = b'{"a": [1, {"b": "c"}]}'
    one, other = random.Random(number), random.Random(number)

    for _ in range(20):
        assert repr(mutate(one, document)) == repr(mutate(other, document))
        assert mutate_text(one, text) == mutate_text(other, text)
        assert mutate_bytes(one, bytes(range(50))) == mutate_bytes(other, bytes(range(50)))
        assert mutate_seed(one, SEEDS[0]) == mutate_seed(other, SEEDS[0])
    assert document == {"a": [1, {"b": "c"}], "d": 2.5}


def test_most_damage_is_noticed():
    damaged = [mutate_seed(random.Random(number), SEEDS[2]) for number in range(20)]

    assert sum(bool(attempt(seed, measure=False)) for seed in damaged) > 10


def test_seeds_are_kept_in_a_folder(tmp_path):
    chosen = [seed for seed in SEEDS if seed.name in ("zip", "group_zarr", "strings", "json")]
    for seed in chosen:
        keep(tmp_path, seed)

    assert list(kept(tmp_path)) == sorted(chosen, key=lambda seed: seed.name)
