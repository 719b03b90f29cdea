"""`tspy serve` as a program: what it prints, what it serves, how it ends."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tests.runtime.processes import FOREGROUND, ROOT

PROGRAM = FOREGROUND + "import sys; from tensorstore_py.cli.main import main; sys.exit(main())"
DATA = np.arange(240, dtype="uint16").reshape(12, 20)


@contextmanager
def serving(*arguments):
    """What it tells with `--json`, while it serves; it ends well when it is interrupted."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        PROGRAM,
        "serve",
        "--json",
        *map(str, arguments),
    ]
    told: dict[str, Any] = {}
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while not lines or lines[-1] != "}\n":
                lines.append(process.stdout.readline())
                assert lines[-1], process.communicate()
            told |= json.loads("".join(lines))
            yield told
        finally:
            process.send_signal(signal.SIGINT)
            _, problems = process.communicate(timeout=60)
    told["problems"] = problems
    assert process.returncode == 0, problems


@pytest.fixture
def place(tmp_path):
    spec = {"driver": "n5", "kvstore": tmp_path / "a.n5"}
    array = ts.open(spec, create=True, dtype="uint16", shape=DATA.shape).result()
    array.write(DATA).result()
    return tmp_path / "a.n5"


pytestmark = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C goes to a process group there")


def read(url) -> Any:
    found: Any = zarr.open_array(url, mode="r")
    return found[...]


def test_a_selection_is_served_until_it_is_interrupted(place):
    with serving(f"{place}[3, 5:9]") as told:
        assert list(told["urls"]) == ["zarr3", "zarr2", "precomputed"]
        assert read(told["urls"]["zarr3"]).tolist() == DATA[3, 5:9].tolist()
        source = told["neuroglancer_state"]["layers"][0]["source"]
        assert source == f"precomputed://{told['urls']['precomputed']}"
    assert told["problems"] == ""


def test_several_places_and_a_directory_of_arrays_and_groups(place):
    folder = place.parent
    group = ts.Group.open(folder / "more" / "g.zarr", create=True, attributes={"k": 1}).result()
    group.create_array("b", dtype="uint16", shape=DATA.shape).result().write(DATA).result()
    with serving(place, folder, "--as", "zarr2") as told:
        assert list(told["urls"]) == ["zarr2"]
        assert told["arrays"] == ["a.n5", f"{folder.name}/a.n5", f"{folder.name}/more/g.zarr/b"]
        found = zarr.open_group(told["urls"]["zarr2"] + f"{folder.name}/more/g.zarr", mode="r")
        assert found.attrs["k"] == 1
        for path in told["arrays"]:
            np.testing.assert_array_equal(read(told["urls"]["zarr2"] + path), DATA)


def test_an_array_that_a_format_lacks_is_named(place):
    other = {"driver": "zarr3", "kvstore": place.parent / "b.zarr"}
    ts.open(other, create=True, dtype="float64", shape=[2]).result()
    with serving(place.parent, "--as", "precomputed") as told:
        info = told["urls"]["precomputed"] + "a.n5/info"
        with urlopen(info, timeout=60) as answer:
            assert json.load(answer)["data_type"] == "uint16"
    assert told["problems"].startswith("/b.zarr is not served as precomputed: ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--port", "70000"], "port"),
        (["--cors", "evil"], "origin"),
        (["--as", "stored"], "selection"),
        (["--host", "host.invalid"], "host.invalid"),
    ],
)
def test_what_is_wrong_is_said(arguments, problem, place, capsys):
    assert main(["serve", f"{place}[3]", *arguments]) == 1
    assert problem in capsys.readouterr().err
