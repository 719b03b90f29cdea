"""What the tests of xarray's integration share: which of xarray's own tests are run."""

#: Marks of xarray's own tests, which test_published.py runs.
MARKS = ("flaky", "network", "skip_if_param", "skip_with_dask_array", "slow", "upstream")


def pytest_configure(config):
    for name in MARKS:
        config.addinivalue_line("markers", f"{name}: a mark of xarray's")


def pytest_collection_modifyitems(config, items):
    """Leave out what the table of test_published.py names, and what xarray's marks skip."""
    left = [item for item in items if item.path.stem == "test_published" and is_left_out(item)]
    config.hook.pytest_deselected(items=left)
    out = set(left)
    items[:] = [item for item in items if item not in out]


def is_left_out(item):
    if item.originalname in item.module.LEFT_OUT or item.get_closest_marker("skip"):
        return True
    if any(name in item.name for name in item.module.LEFT_OUT_WITH):
        return True
    if any(mark.args and mark.args[0] is True for mark in item.iter_markers("skipif")):
        return True
    for mark in item.iter_markers("skip_if_param"):
        conditions = {**mark.kwargs}
        conditions.pop("reason", None)
        if conditions.pop("condition", True) and all(
            item.callspec.params.get(name) == value for name, value in conditions.items()
        ):
            return True
    return False
