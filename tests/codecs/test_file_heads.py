"""What the head of each codec's file says, which is where people look first."""

import json
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import tensorstore_py.codecs
from tensorstore_py.plugin.driver import parse_codec_json

HEADS = {
    module.name: import_module(f"tensorstore_py.codecs.{module.name}").__doc__ or ""
    for module in iter_modules(tensorstore_py.codecs.__path__)
}
#: Those for codecs that other packages bring along.
OPEN = ("zarr_python",)
#: The member that names a codec in each family.
TAGS = {"zarr": "id", "zarr3": "name", "n5": "type"}


def part(head: str, name: str) -> str:
    match = re.search(rf"^{name}: (.*?)(?=^[A-Z][a-z]+: |\Z)", head, re.MULTILINE | re.DOTALL)
    assert match is not None, f'no line begins with "{name}: "'
    return " ".join(match[1].split())


@pytest.mark.parametrize("name", HEADS)
def test_it_says_where_the_specification_is_and_what_the_limits_are(name: str) -> None:
    assert part(HEADS[name], "Specification").startswith("https://")
    assert part(HEADS[name], "Limits")


@pytest.mark.parametrize("name", [name for name in HEADS if name not in OPEN])
def test_its_examples_are_right(name: str) -> None:
    examples = re.findall(r"`(\{.*?\})`", part(HEADS[name], "Example"))

    assert examples
    for example in examples:
        json_form = json.loads(example)
        (family,) = (name for name, tag in TAGS.items() if tag in json_form)
        assert parse_codec_json(family, json_form).codec_id == json_form[TAGS[family]]


def test_every_file_is_looked_at() -> None:
    folder = Path(tensorstore_py.codecs.__path__[0])

    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert set(HEADS) == files | {path.parent.name for path in folder.glob("*/__init__.py")}
