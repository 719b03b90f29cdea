"""The doors: what leaves the package, under which name, and what coming in costs."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from types import ModuleType

import pytest

import tensorstore_py
from tensorstore_py import testing
from tensorstore_py.plugin import codec, driver, http, kvstore
from tests.house.sources import ROOT

DOORS = (tensorstore_py, codec, kvstore, driver, http, testing)

# The promise that an author keeps and the face that a user holds share the reference's word.
PROMISE_AND_FACE = {"KvStore"}

# What only programs that use it should pay for.
HEAVY = {
    "aiohappyeyeballs",
    "aiohttp",
    "boto3",
    "botocore",
    "dask",
    "fsspec",
    "google.cloud",
    "httptools",
    "hypothesis",
    "pytest",
    "requests",
    "s3fs",
    "xarray",
    "zarr",
}

#: How many modules `import tensorstore_py` may import, those of Python among them.
MOST_TO_COME_IN = 60


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_door_names_what_leaves_by_it_once(door: ModuleType) -> None:
    names = list(door.__all__)

    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(door, name)] == []


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_door_leaks_nothing_that_it_does_not_name(door: ModuleType) -> None:
    leaked = [
        name
        for name, value in vars(door).items()
        if not name.startswith("_")
        and name not in door.__all__
        and not isinstance(value, ModuleType)
    ]

    assert leaked == [], "\n".join(leaked)


def test_a_name_means_one_thing_at_all_doors() -> None:
    meanings: dict[str, object] = {}
    torn = []
    for door in DOORS:
        for name in door.__all__:
            value = getattr(door, name)
            if meanings.setdefault(name, value) is not value and name not in PROMISE_AND_FACE:
                torn.append(name)

    assert torn == [], "\n".join(torn)


@pytest.mark.parametrize(
    ("door", "page"),
    [
        (codec, "writing_a_codec"),
        (kvstore, "writing_a_store"),
        (driver, "writing_a_driver"),
        (http, "writing_an_http_store"),
    ],
)
def test_the_page_of_a_door_names_nothing_that_it_does_not_have(
    door: ModuleType, page: str
) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    table = text.partition("## What the door has")[2]
    rows = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    assert len(named) > 15
    assert named - set(door.__all__) == set()
    if door in (codec, kvstore, http):
        assert set(door.__all__) - named == set()


def test_the_page_of_driver_authors_names_all_that_is_theirs_alone() -> None:
    text = (ROOT / "docs" / "writing_a_driver.md").read_text(encoding="utf-8")
    table = text.partition("## What the door has")[2]
    rows = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]

    assert sorted(named) == sorted(driver.__all__)


def test_every_public_name_is_explained_with_an_example() -> None:
    unexplained = []
    for name in tensorstore_py.__all__:
        value = getattr(tensorstore_py, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        if "Example" not in (inspect.getdoc(value) or ""):
            unexplained.append(name)

    assert unexplained == [], "\n".join(unexplained)


def modules_after(code: str) -> tuple[set[str], int]:
    """What a fresh process has imported after some code, and how many threads it has."""
    report = (
        "import json, sys, threading\n"
        "print(json.dumps([sorted(sys.modules), threading.active_count()]))"
    )
    code = f"{code}\n{report}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    modules, threads = json.loads(done.stdout.splitlines()[-1])
    return set(modules), threads


def rooms_of(modules: set[str]) -> set[str]:
    """The rooms of the package that modules are in."""
    return {name.split(".")[1] for name in modules if name.startswith("tensorstore_py.")}


def test_coming_in_imports_next_to_nothing() -> None:
    before, _ = modules_after("")

    modules, threads = modules_after("import tensorstore_py")

    assert rooms_of(modules) == {"_runtime", "errors"}
    assert {"asyncio", "ml_dtypes", "numpy", "pydantic", "ssl"} & modules == set()
    assert len(modules - before) < MOST_TO_COME_IN
    assert threads == 1


def test_the_version_is_known_at_once() -> None:
    before, _ = modules_after("")

    modules, _ = modules_after(
        "from tensorstore_py.cli.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: pass"
    )

    assert rooms_of(modules) == {"_runtime", "cli", "errors"}
    assert {"asyncio", "numpy", "pydantic"} & modules == set()
    assert len(modules - before) < MOST_TO_COME_IN


def test_all_names_start_no_thread_and_load_nothing_heavy() -> None:
    modules, threads = modules_after("from tensorstore_py import *")

    assert HEAVY & modules == set()
    assert threads == 1


def test_the_version_is_said_once() -> None:
    metadata = importlib.import_module("importlib.metadata")

    assert metadata.version("tensorstore-py") == tensorstore_py.__version__
