import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tensorstore_py._spec import registry as module
from tensorstore_py._spec.registry import CodecRegistry, Registry, codec, codecs
from tensorstore_py.errors import SpecError


@pytest.fixture
def shapes() -> Registry[object]:
    return Registry("shape", folders=(), tag="shape")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with one registering module and one that must not be imported."""
    name = "sample_builtin_folder"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text("imports = []\nclasses = {}\n")
    (package / "square.py").write_text(
        f"import {name} as p\np.imports.append('square')\nclass Square: pass\n"
        "p.registry.register('square', Square)\n"
    )
    (package / "_private.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for loaded in [each for each in sys.modules if each.startswith(name)]:
        del sys.modules[loaded]


def test_registering_names_the_class(shapes):
    @shapes.registering("circle", aliases=["disc"], schemes=["round"])
    class Circle:
        shape: str

    assert shapes.get("circle") is shapes.get("disc") is Circle
    assert shapes.for_scheme("round") is Circle
    assert Circle.shape == "circle"
    assert shapes.names() == ["circle"]
    assert shapes.schemes() == ["round"]


def test_a_class_keeps_a_name_of_its_own(shapes):
    @shapes.registering("circle")
    class Circle:
        shape = "round one"

    assert Circle.shape == "round one"


def test_unknown_names_suggest_the_nearest(shapes):
    shapes.register("circle", type("Circle", (), {}))

    with pytest.raises(SpecError, match=r'no shape is named "cirle" \(did you mean "circle"\?\)'):
        shapes.get("cirle")
    assert shapes.find("cirle") is None
    with pytest.raises(SpecError, match='no shape has the URL scheme "x"'):
        shapes.for_scheme("x")


def test_a_name_cannot_be_taken_twice(shapes):
    first, second = type("First", (), {}), type("Second", (), {})
    shapes.register("circle", first, aliases=["disc"])
    shapes.register("circle", first)

    with pytest.raises(ValueError, match="registered already"):
        shapes.register("disc", second)


def test_the_folder_is_walked_once_and_only_when_needed(folder):
    registry: Registry[object] = Registry("shape", folders=(folder,), tag="shape")
    registry.register("circle", type("Circle", (), {}))
    package = vars(import_module(folder))
    package["registry"] = registry

    registry.get("circle")

    assert package["imports"] == []

    registry.get("square")
    assert registry.find("cube") is None

    assert package["imports"] == ["square"]


def test_guests_come_by_the_entry_point_group(monkeypatch, shapes, tmp_path):
    (tmp_path / "sample_guest.py").write_text("loads = 0\ndef register():\n    pass\nloads += 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("guest", "sample_guest", module.ENTRY_POINT_GROUP)
    asked = []

    def entry_points(group: str) -> EntryPoints:
        asked.append(group)
        return EntryPoints([entry])

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)

    shapes.find("anything")
    shapes.find("anything else")

    assert asked == ["tensorstore_py.plugins"]
    assert sys.modules.pop("sample_guest").loads == 1
    module._guests_loaded.discard("sample_guest")


def test_codecs_are_apart_by_family():
    families: CodecRegistry[object] = CodecRegistry(folders=())
    two, three = type("Two", (), {}), type("Three", (), {})
    families["zarr"].register("gzip", two)
    families["zarr3"].register("gzip", three)

    assert families.get("zarr", "gzip") is two
    assert families.get("zarr3", "gzip") is three
    assert families.families() == ["zarr", "zarr3"]
    with pytest.raises(SpecError, match='no zarr3 codec is named "gzp"'):
        families.get("zarr3", "gzp")


def test_one_codec_file_may_serve_two_families():
    @codec("sample-codec", family="sample_a")
    @codec("sample-codec", family="sample_b")
    class Sample:
        codec_id: str

    assert codecs.get("sample_a", "sample-codec") is Sample
    assert codecs.get("sample_b", "sample-codec") is Sample
    assert Sample.codec_id == "sample-codec"


def test_a_resolver_is_asked_for_what_nobody_registered() -> None:
    shapes: Registry[object] = Registry("shape", folders=(), tag="shape")
    asked: list[str] = []

    def resolve(name: str) -> type[object] | None:
        asked.append(name)
        return type(name, (), {}) if name.startswith("poly") else None

    shapes.add_resolver(resolve)

    @shapes.registering("circle")
    class Circle: ...

    assert shapes.get("circle") is Circle
    assert shapes.get("polygon").shape == "polygon"  # type: ignore[attr-defined]
    assert asked == ["polygon"]
    with pytest.raises(SpecError, match='no shape is named "square"'):
        shapes.get("square")
    assert shapes.names() == ["circle"]
