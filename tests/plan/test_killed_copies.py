"""Workers and callers killed at random: what comes of it is whole, and nothing is done for nothing.

The small form; scripts/soak does the same for as long as is wanted.
"""

from tests.plan.killing import Killing


def test_killed_at_random_the_target_is_bit_equal(tmp_path):
    trial = Killing(tmp_path, seed=7, kills=6)

    trial.run()

    assert trial.killed == 6
    trial.check()
