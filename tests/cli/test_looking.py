"""`tspy ls`, `tree`, `head`, `cat`, `attrs`, `du` and the selections that they take."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import tensorstore_py as ts
from tensorstore_py.cli.main import COMMANDS, main


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """zarr, zarr3, n5 and a zip archive in one directory, and an array with a damaged chunk."""
    root = tmp_path_factory.mktemp("places")
    run = ts.Group.open(root / "run.zarr", create=True, attributes={"title": "Run 7"}).result()
    image = run.create_array(
        "raw/image",
        dtype="uint16",
        domain=ts.IndexDomain(shape=[4, 6], labels=["y", "x"]),
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
    ).result()
    image[:2] = np.arange(12, dtype="uint16").reshape(2, 6)
    old = ts.Group.open(root / "old.zarr", create=True, zarr_format=2).result()
    old.create_array("t", dtype="float64", shape=[3], fill_value=np.nan).result()[1] = 2.5
    n5 = {"driver": "n5", "kvstore": root / "n5/a/b"}
    ts.open(n5, create=True, dtype="int16", shape=[5]).result()[...] = 4
    inside = f"{(root / 'scans.zip').as_uri()}|zip:x/|zarr3:"
    ts.open(inside, create=True, dtype="uint8", shape=[2, 2]).result()[...] = 9
    damaged(root / "broken.zarr")
    return root


def damaged(path):
    layout = ts.ChunkLayout(chunk_shape=[5, 5])
    spec = {"driver": "zarr3", "kvstore": path}
    array = ts.open(
        spec, create=True, dtype="int32", shape=[10, 10], chunk_layout=layout, codec="gzip"
    ).result()
    array[...] = 1
    chunk = path / "c/1/0"
    chunk.write_bytes(chunk.read_bytes()[:-6])


@pytest.fixture
def tspy(places, monkeypatch, capfdbinary):
    """What a command returns and prints, in the directory of the places."""
    monkeypatch.chdir(places)

    def run(*arguments):
        code = main([*map(str, arguments)])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def told(tspy, *arguments):
    code, out, _ = tspy(*arguments, "--json")
    assert code in (0, 1)
    return json.loads(out)


class TestLs:
    def test_a_directory_says_what_is_in_it(self, tspy):
        code, out, _ = tspy("ls", ".")
        assert code == 0
        assert [line.split() for line in out.splitlines()] == [
            ["name", "kind", "shape", "dtype"],
            ["broken.zarr", "array", "10", "x", "10", "int32"],
            ["n5/", "directory"],
            ["old.zarr/", "group"],
            ["run.zarr/", "group"],
            ["scans.zip", "key"],
        ]

    def test_groups_archives_and_arrays(self, tspy):
        assert told(tspy, "ls", "run.zarr/raw")[0] == {
            "name": "image",
            "kind": "array",
            "shape": [4, 6],
            "dtype": "uint16",
            "labels": ["y", "x"],
            "chunks": [2, 3],
            "driver": "zarr3",
            "bytes": 48,
        }
        assert [each["name"] for each in told(tspy, "ls", "scans.zip")] == ["x"]
        assert told(tspy, "ls", "scans.zip/x")[0]["shape"] == [2, 2]
        assert told(tspy, "ls", "old.zarr/t[1:]")[0]["shape"] == [2]

    def test_long_tells_sizes_of_keys(self, tspy, places):
        sizes = {each["name"]: each.get("bytes") for each in told(tspy, "ls", ".", "--long")}
        assert sizes["scans.zip"] == (places / "scans.zip").stat().st_size

    def test_damaged_metadata_hides_no_other_member(self, tspy, tmp_path):
        group = ts.Group.open(tmp_path / "g", create=True).result()
        for name in ("a", "b"):
            group.create_array(name, dtype="int8", shape=[2]).result()
        (tmp_path / "g/a/zarr.json").write_text('{"zarr_format": 3,')
        code, out, _ = tspy("ls", tmp_path / "g")
        assert code == 1
        assert "b     array" in out
        assert "a/zarr.json" in out.splitlines()[-1]
        assert [each["kind"] for each in told(tspy, "tree", tmp_path / "g")["members"]] == [
            "unreadable",
            "array",
        ]


class TestTree:
    def test_draws_all_levels(self, tspy):
        code, out, _ = tspy("tree", ".")
        assert code == 0
        assert out.splitlines() == [
            "./",
            "├── broken.zarr  10 x 10 int32",
            "├── n5/",
            "│   └── a/",
            "│       └── b  5 int16",
            "├── old.zarr/",
            "│   └── t  3 float64",
            "└── run.zarr/",
            "    └── raw/",
            "        └── image  4 x 6 uint16",
        ]

    def test_ends_at_a_depth_and_shows_keys_if_asked(self, tspy):
        assert told(tspy, "tree", "run.zarr", "-L", 1)["members"] == [
            {"name": "raw", "kind": "group"}
        ]
        names = [each["name"] for each in told(tspy, "tree", ".", "--keys")["members"]]
        assert "scans.zip" in names

    def test_databases_are_looked_into_and_their_arrays_have_paths(self, tspy, tmp_path):
        where = f"{(tmp_path / 'x/db').as_uri()}/|ocdbt:"
        array = ts.open(f"{where}a/b/|zarr3:", create=True, dtype="int8", shape=[2]).result()
        array[...] = 5
        ts.KvStore.open(where).result()["key"] = b"1"
        code, out, _ = tspy("tree", tmp_path / "x", "--keys")
        assert (code, out.splitlines()[1:]) == (
            0,
            ["└── db/", "    ├── a/", "    │   └── b  2 int8", "    └── key"],
        )
        assert told(tspy, "head", tmp_path / "x/db/a/b")["data"] == [5, 5]
        assert told(tspy, "stats", tmp_path / "x")[0]["array"] == "db/a/b"

    def test_is_drawn_in_ascii_where_nothing_else_can_be_printed(self, places):
        done = subprocess.run(
            [sys.executable, "-m", "tensorstore_py", "tree", str(places / "n5")],
            env={
                **os.environ,
                "PYTHONIOENCODING": "ascii",
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            check=True,
        )
        assert b"`-- a/" in done.stdout


class TestCat:
    def test_text_csv_and_json(self, tspy):
        place = "run.zarr/raw/image[y=0:2, x=1:3]"
        assert tspy("cat", place)[1] == "[[1 2]\n [7 8]]\n"
        assert tspy("cat", place, "-f", "csv")[1] == "1,2\n7,8\n"
        assert told(tspy, "cat", place) == {
            "shape": [2, 2],
            "origin": [0, 1],
            "dtype": "uint16",
            "data": [[1, 2], [7, 8]],
        }
        assert told(tspy, "cat", "old.zarr/t")["data"] == ["nan", 2.5, "nan"]

    def test_npy_and_png_hold_the_elements(self, tspy, tmp_path):
        assert tspy("cat", "run.zarr/raw/image", "-o", tmp_path / "a.npy")[0] == 0
        assert np.load(tmp_path / "a.npy")[1].tolist() == [6, 7, 8, 9, 10, 11]
        assert tspy("cat", "scans.zip/x", "-o", tmp_path / "a.png")[0] == 0
        assert np.asarray(Image.open(tmp_path / "a.png")).tolist() == [[9, 9], [9, 9]]

    def test_many_rows_are_written_whole(self, tspy, tmp_path):
        data = np.arange(3_000_000, dtype="int32").reshape(-1, 2)
        array = ts.open(
            {"driver": "zarr3", "kvstore": tmp_path / "t"}, create=True, dtype="int32",
            shape=data.shape, chunk_layout=ts.ChunkLayout(chunk_shape=[100_000, 2]),
        ).result()  # fmt: skip
        array[...] = data
        code, _, err = tspy("cat", tmp_path / "t")
        assert (code, "3,000,000 elements" in err) == (2, True)
        assert tspy("cat", tmp_path / "t", "-o", tmp_path / "t.csv")[0] == 0
        assert (np.loadtxt(tmp_path / "t.csv", delimiter=",", dtype="int32") == data).all()

    def test_a_file_is_replaced_only_if_that_is_said_and_only_as_a_whole(self, tspy, tmp_path):
        file = tmp_path / "a.csv"
        file.write_text("mine")
        assert tspy("cat", "broken.zarr", "-o", file)[0] == 2
        assert tspy("cat", "broken.zarr", "-o", file, "--replace")[0] == 1
        assert file.read_text() == "mine"
        assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]
        assert tspy("cat", "broken.zarr[:5]", "-o", file, "--replace")[0] == 0
        assert file.read_text().startswith("1,1,")

    @pytest.mark.parametrize(
        ("arguments", "code", "problem"),
        [
            (["run.zarr"], 1, "a group is there; name one of its arrays"),
            (["run.zarr[0]"], 1, "a selection is of an array"),
            (["nowhere"], 1, "does not exist"),
            (["old.zarr/t[7]"], 1, "outside [0, 3)"),
            (["old.zarr/t[z=1]"], 1, "z"),
            (["broken.zarr"], 1, "c/1/0"),
            (["broken.zarr[0]", "-f", "png"], 1, "a picture has two dimensions"),
            (["broken.zarr", "-o", "x.tif"], 2, "say --format"),
            (["broken.zarr", "--json", "-f", "csv"], 2, "exclude each other"),
            (["broken.zarr", "-f", "csv", "-o", "x.png"], 2, "x.png is named as png"),
        ],
    )
    def test_says_what_is_wrong(self, arguments, code, problem, tspy):
        found, out, err = tspy("cat", *arguments)
        assert (found, out) == (code, "")
        assert problem in err

    @pytest.mark.parametrize("selection", ["[q]", "[x=1, 2]", "[x=1, x=2]", "[1:2:3:4]"])
    def test_a_selection_that_is_none_is_called_wrongly(self, selection, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["cat", f"broken.zarr{selection}"])
        assert ended.value.code == 2
        assert selection in capsys.readouterr().err


class TestHead:
    def test_prints_the_first_elements_and_says_of_how_many(self, tspy):
        code, out, err = tspy("head", "broken.zarr[:5, 3:]", "-n", 2)
        assert code == 0
        assert out == "[[1 1 1 1 1 1 1]\n [1 1 1 1 1 1 1]]\n"
        assert err == "[0:2, 3:10] of [0:5, 3:10]\n"

    def test_of_less_it_prints_all(self, tspy):
        assert tspy("head", "old.zarr/t") == (0, "[nan 2.5 nan]\n", "")
        assert told(tspy, "head", "old.zarr/t[1]")["data"] == 2.5


class TestAttrs:
    @pytest.fixture
    def group(self, tmp_path):
        attributes = {"title": "Run 7", "steps": [1, 2]}
        ts.Group.open(tmp_path / "g", create=True, attributes=attributes).result()
        return tmp_path / "g"

    def test_prints(self, group, tspy):
        assert tspy("attrs", group)[1] == "title  Run 7\nsteps  [1, 2]\n"
        assert tspy("attrs", group, "title")[1] == "Run 7\n"
        assert told(tspy, "attrs", group) == {"title": "Run 7", "steps": [1, 2]}
        assert told(tspy, "attrs", group, "steps") == [1, 2]
        code, _, err = tspy("attrs", group, "titel")
        assert (code, 'did you mean "title"' in err) == (1, True)

    def test_what_is_new_is_set_and_nothing_is_lost_without_yes(self, group, tspy):
        assert tspy("attrs", group, "--set", "unit=nm", "--set", "n=3")[0] == 0
        for change in (["--set", "title=x"], ["--delete", "title"]):
            code, _, err = tspy("attrs", group, *change)
            assert code == 2
            assert "say --yes" in err
            assert '"Run 7"' in err
        known = {"title": "Run 7", "steps": [1, 2], "unit": "nm", "n": 3}
        assert told(tspy, "attrs", group) == known
        assert tspy("attrs", group, "--set", "title=x", "--delete", "steps", "--yes")[0] == 0
        assert told(tspy, "attrs", group) == {"title": "x", "unit": "nm", "n": 3}

    @pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 1), ("no\n", 1)])
    def test_a_person_is_asked(self, answer, code, group, tspy, monkeypatch):
        terminal = io.StringIO(answer)
        terminal.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", terminal)
        assert tspy("attrs", group, "--delete", "title")[0] == code
        assert ("title" in told(tspy, "attrs", group)) == (code == 1)


class TestDu:
    @pytest.mark.parametrize("command", ["du", "stats", "verify"])
    def test_where_there_is_no_array_that_is_said(self, command, tspy, tmp_path):
        (tmp_path / "notes.txt").write_text("x")
        code, out, err = tspy(command, tmp_path)
        assert (code, out) == (1, "")
        assert "there is no array in" in err

    def test_bytes_and_chunks_of_each_array(self, tspy, places):
        found = told(tspy, "du", ".")
        by_name = {each["array"]: each for each in found["arrays"]}
        image = by_name["run.zarr/raw/image"]
        files = [each for each in (places / "run.zarr/raw/image").rglob("*") if each.is_file()]
        assert image == {
            "array": "run.zarr/raw/image",
            "stored_bytes": sum(each.stat().st_size for each in files),
            "logical_bytes": 48,
            "chunks": 4,
            "missing_chunks": 2,
            "stray_chunks": 0,
        }
        assert found["total"]["array"] == "4 arrays"
        assert found["total"]["missing_chunks"] == 2

    def test_chunks_beyond_the_shape_are_stray(self, tspy, tmp_path):
        spec = {"driver": "zarr", "kvstore": tmp_path / "a"}
        layout = ts.ChunkLayout(chunk_shape=[2])
        ts.open(spec, create=True, dtype="int8", shape=[4], chunk_layout=layout).result()[...] = 1
        (tmp_path / "a/9").write_bytes(b"x")
        (tmp_path / "a/notes").write_bytes(b"x")
        (found,) = told(tspy, "du", tmp_path / "a")["arrays"]
        assert (found["chunks"], found["missing_chunks"], found["stray_chunks"]) == (2, 0, 1)
        assert tspy("du", "broken.zarr[0]")[0] == 1


#: Runs the command line with a package that imports nothing by itself, and says what was imported.
_COUNT = """
import sys, types, importlib.util
spec = importlib.util.find_spec("tensorstore_py")
package = types.ModuleType("tensorstore_py")
package.__path__, package.__version__ = spec.submodule_search_locations, "7"
sys.modules["tensorstore_py"] = package
from tensorstore_py.cli.main import main
try:
    main([sys.argv[1]])
except SystemExit as ended:
    assert not ended.code
print(*(name for name in sys.modules if name.startswith("tensorstore_py")), file=sys.stderr)
print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


class TestStart:
    @pytest.mark.parametrize("option", ["--version", "--help"])
    def test_imports_next_to_nothing(self, option):
        done = subprocess.run(
            [sys.executable, "-c", _COUNT, option],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        )
        own, tops = done.stderr.splitlines()
        assert own.split() == [
            "tensorstore_py",
            "tensorstore_py.cli",
            "tensorstore_py.cli.exit_codes",
            "tensorstore_py.cli.main",
        ]
        assert not {"numpy", "pydantic", "asyncio", "tqdm", "rich"} & set(tops.split())

    def test_every_command_is_listed_and_has_examples_or_an_epilog(self, capsys):
        with pytest.raises(SystemExit):
            main(["--help"])
        text = capsys.readouterr().out
        for name in (name for about in COMMANDS.values() for name in about):
            assert f"\n  {name} " in text
            with pytest.raises(SystemExit) as ended:
                main([name, "--help"])
            assert not ended.value.code
            assert f"usage: tspy {name} " in capsys.readouterr().out
