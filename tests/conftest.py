"""What every test shares: the hypothesis profiles, and nothing that a test should set up itself.

`gate` is what scripts/test runs: derandomised, so that a red gate is the change's doing, not the
day's. `nightly` looks further, with fresh randomness. A test that needs more or fewer cases than
its neighbours scales the profile instead of overriding it, so that `nightly` scales along:

    @settings(max_examples=5 * settings().max_examples)
"""

import gc
import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.servers.fixtures"]

settings.register_profile(
    "gate",
    max_examples=100,
    # Shared machines stall now and then; a slow example is no wrong example.
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    parent=settings.get_profile("gate"),
    max_examples=4000,
    derandomize=False,
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))


def pytest_collection_finish() -> None:
    """Keep the collected tests, tens of thousands, out of what the garbage collector looks through.

    Otherwise it takes more than a second each time.
    """
    gc.collect()
    gc.freeze()
