"""Every example in a docstring runs."""

import doctest
import importlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.house.sources import sources

DOORS = ("tensorstore_py",)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def dotted(name: str) -> str:
    return "tensorstore_py." + name.removesuffix(".py").replace("/", ".")


MODULES = [
    dotted(source.name).removesuffix(".__init__") for source in sources() if ">>>" in source.text
]


class Finder(doctest.DocTestFinder):
    """Finds the examples of public classes, too: these say that they are from the door."""

    def _from_module(self, module: ModuleType | None, object: object) -> bool:
        if module is not None and isinstance(object, type) and object.__module__ in DOORS:
            members = [getattr(member, "__globals__", {}) for member in vars(object).values()]
            return any(names.get("__name__") == module.__name__ for names in members)
        found: bool = super()._from_module(module, object)  # type: ignore[misc]
        return found


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in Finder().find(module, name, module=module):
        runner.run(test)

    assert runner.tries
    assert not runner.failures, capsys.readouterr().out
