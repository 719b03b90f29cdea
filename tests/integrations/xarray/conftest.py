"""What the tests of xarray's integration share."""

#: Marks of xarray's own tests, which test_published.py runs.
MARKS = ("flaky", "network", "skip_if_param", "skip_with_dask_array", "slow", "upstream")


def pytest_configure(config):
    for name in MARKS:
        config.addinivalue_line("markers", f"{name}: a mark of xarray's")
