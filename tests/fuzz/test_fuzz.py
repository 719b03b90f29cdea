import random

import pytest

from tests.fuzz.mutations import mutate_seed
from tests.fuzz.seeds import seeds
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
