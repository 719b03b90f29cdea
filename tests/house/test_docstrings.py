"""Every example in a docstring runs."""

import doctest
import importlib
from pathlib import Path

import pytest

from tests.house.sources import sources

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def dotted(name: str) -> str:
    return "tensorstore_py." + name.removesuffix(".py").replace("/", ".")


MODULES = [
    dotted(source.name).removesuffix(".__init__") for source in sources() if ">>>" in source.text
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)

    assert result.attempted
    assert not result.failed, capsys.readouterr().out
