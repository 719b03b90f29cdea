"""The tables by which names are found without importing what they do not need."""

import ast
import importlib
import inspect
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py.plugin.driver import DriverSpec
from tensorstore_py.plugin.kvstore import KvStoreSpec
from tests.house.sources import PACKAGE
from tests.internals import operations, registries

FOLDERS = ("_chunked", "codecs", "drivers", "kvstores")


def detects(cls: Any) -> bool:
    """Whether a class finds out by itself that something is of its format."""
    if issubclass(cls, KvStoreSpec) and cls in KvStoreSpec.detectable():
        return True
    return issubclass(cls, DriverSpec) and cls in DriverSpec.detectable()


def registered(folder: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """What the modules of a folder register, found by importing them all."""
    inside = f"tensorstore_py.{folder}."
    found: dict[str, dict[str, set[str]]] = {}

    def add(cls: Any, kind: str, name: str) -> None:
        if cls.__module__.startswith(inside):
            module = cls.__module__.removeprefix(inside).partition(".")[0]
            found.setdefault(module, {}).setdefault(kind, set()).add(name)

    for each in registries():
        for name, cls in each._classes.items():
            add(cls, each.kind, name)
            if detects(cls):
                add(cls, f"{each.kind} detecting", name)
        for alias, name in each._aliases.items():
            add(each.get(name), f"{each.kind} alias", alias)
        for scheme, cls in each._schemes.items():
            add(cls, f"{each.kind} scheme", scheme)
        for resolver in each._resolvers:
            add(resolver, f"{each.kind} resolver", getattr(resolver, "__name__", ""))
    return {
        module: {kind: tuple(sorted(names)) for kind, names in kinds.items()}
        for module, kinds in found.items()
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_table_of_a_folder_says_what_its_modules_register(folder: str) -> None:
    table = importlib.import_module(f"tensorstore_py.{folder}").REGISTERED

    said = {
        module: {kind: tuple(sorted(names)) for kind, names in kinds.items()}
        for module, kinds in table.items()
        if kinds
    }

    assert said == registered(folder)


@pytest.mark.parametrize("folder", [each for each in FOLDERS if each != "_chunked"])
def test_the_table_of_a_folder_has_all_its_modules_in_order(folder: str) -> None:
    package = importlib.import_module(f"tensorstore_py.{folder}")

    modules = [each.name for each in iter_modules(package.__path__)]

    assert list(package.REGISTERED) == sorted(modules)


def test_operations_are_where_their_table_says() -> None:
    for registered, table in operations():
        assert registered == {name: f"tensorstore_py.{home}" for name, home in table.items()}


def test_public_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(PACKAGE, "__init__.py").read_text(encoding="utf-8"))
    (static,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "_typing.TYPE_CHECKING"
    )
    seen = {
        alias.name: (node.module or "").removeprefix("tensorstore_py.")
        for node in static.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    rooms = {name for name, home in seen.items() if home == "tensorstore_py"}
    errors = set(ts.__all__) & set(ts.errors.__all__)

    assert {name: home for name, home in seen.items() if name not in rooms} == ts._HOMES
    assert {*ts._HOMES, *rooms, *errors} == set(ts.__all__)
    assert rooms <= set(ts._ROOMS)


def test_a_public_class_says_that_it_is_from_the_package() -> None:
    elsewhere = [
        name
        for name in ts.__all__
        if inspect.isclass(cls := getattr(ts, name))
        and cls.__module__ not in ("tensorstore_py", "tensorstore_py.errors")
    ]

    assert elsewhere == []


@pytest.mark.parametrize("room", ts._ROOMS)
def test_a_room_is_an_attribute(room: str) -> None:
    assert getattr(ts, room).__name__ == f"tensorstore_py.{room}"
