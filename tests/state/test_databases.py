"""OCDBT databases of every configuration, in the hands of both libraries: `databases.py`."""

from hypothesis import HealthCheck, settings

from tests.state.databases import DatabaseMachine

TestDatabases = DatabaseMachine.TestCase
TestDatabases.settings = settings(
    max_examples=settings().max_examples // 5,
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
