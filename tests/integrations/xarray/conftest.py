"""What xarray's published tests need: their marks, and to be left out where that is said.

A module says which tests it leaves out, and why: in `EXCLUDED` by name, with or without parameters,
in `EXCLUDED_PARAMETERS` by one of the parameters. Those that their authors leave out (`skip`,
`skipif`, and `skip_if_param` for some parameters) are left out, too.
"""

import pytest

_MARKS = (
    "flaky: fails now and then, by its authors' word",
    "network: needs the internet",
    "skip_if_param(**parameters): is left out for some parameters",
    "skip_with_dask_array(arg): is left out with dask",
    "slow: takes long",
    "slow_hypothesis: takes long",
    "upstream: looks for what changes in other libraries",
)


def pytest_configure(config: pytest.Config) -> None:
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = [item for item in items if isinstance(item, pytest.Function) and _is_left_out(item)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in set(out)]


def _is_left_out(item: pytest.Function) -> bool:
    excluded = getattr(item.module, "EXCLUDED", {})
    if item.name in excluded or item.originalname in excluded:
        return True
    if any(name in item.name for name in getattr(item.module, "EXCLUDED_PARAMETERS", ())):
        return True
    if not excluded:
        return False
    if item.get_closest_marker("skip") or any(
        mark.args[:1] == (True,) for mark in item.iter_markers("skipif")
    ):
        return True
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for mark in item.iter_markers("skip_if_param"):
        said = {
            key: each for key, each in mark.kwargs.items() if key not in ("reason", "condition")
        }
        if mark.kwargs.get("condition", True) and all(
            parameters.get(key) == each for key, each in said.items()
        ):
            return True
    return False
