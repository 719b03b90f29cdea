"""Copies, migrations and rechunkings by the command line, and their progress."""

import io

import pytest

import tensorstore_py as ts
from tensorstore_py import Progress
from tensorstore_py.cli.main import main
from tensorstore_py.cli.run import Meter


@pytest.fixture
def old(tmp_path):
    root = ts.Group.open(tmp_path / "old", create=True).result()
    array = root.create_array("a/b", dtype="int16", shape=[6]).result()
    array[...] = 3
    root.create_array("c", dtype="int8", shape=[2]).result()
    return tmp_path / "old"


class TestCopy:
    def test_copies(self, old, tmp_path, capsys):
        new = tmp_path / "new"

        code = main(["copy", str(old), str(new), "--chunks", "4", "--zarr-format", "2", "--dtype",
                     "int32", "--include", "a", "--codec", '{"id": "zlib", "level": 1}',
                     "--manifest", str(tmp_path / "m.json")])  # fmt: skip

        assert code == 0
        assert capsys.readouterr().out.startswith("copied 1 array")
        found = ts.Group.open(new).result()
        assert (found.zarr_format, list(found)) == (2, ["a"])
        assert found["a/b"].read().result().tolist() == [3] * 6
        assert found["a/b"].dtype == ts.int32
        assert found["a/b"].chunk_layout.read_chunk.shape == (4,)
        assert (tmp_path / "m.json").exists()

    def test_says_what_would_be_copied(self, old, tmp_path, capsys):
        assert main(["copy", str(old), str(tmp_path / "new"), "--dry-run", "--exclude", "c"]) == 0
        assert "create array /a/b" in capsys.readouterr().out
        assert not (tmp_path / "new").exists()

    def test_says_why_not(self, old, capsys):
        assert main(["copy", str(old / "nowhere"), str(old)]) == 1
        assert "nothing to copy" in capsys.readouterr().err

    def test_nothing_is_copied_to_memory(self, old, capsys):
        for command in (["copy", str(old)], ["rechunk", str(old), "--chunks", "2"]):
            with pytest.raises(SystemExit):
                main([*command, "memory://x/"])
            assert "memory is gone when the command ends" in capsys.readouterr().err

    def test_a_dimension_that_is_not_there_is_refused_by_name(self, tmp_path, capsys):
        spec = {"driver": "zarr3", "kvstore": tmp_path / "image"}
        domain = ts.IndexDomain(shape=[4, 6], labels=["y", "x"])
        ts.open(spec, create=True, dtype="uint8", domain=domain).result()

        code = main(["copy", str(tmp_path / "image"), str(tmp_path / "new"), "--chunks", "w=3"])

        assert code == 1
        told = capsys.readouterr().err
        assert told == 'chunks: no dimension is named "w"; there are "x", "y"\n'
        assert not (tmp_path / "new").exists()

    def test_the_suffix_chooses_the_format(self, old, tmp_path, capsys):
        array = str(old / "c")

        assert main(["copy", array, str(tmp_path / "img.n5"), "--codec", "gzip"]) == 0
        assert main(["copy", array, str(tmp_path / "img.zip")]) == 0
        assert main(["copy", array, str(tmp_path / "img.h5")]) == 1

        n5 = ts.open({"driver": "n5", "kvstore": tmp_path / "img.n5"}).result()
        assert n5.shape == (2,)
        assert n5.codec is not None
        compression = n5.codec.to_json()["compression"]
        assert isinstance(compression, dict)
        assert compression["type"] == "gzip"
        archive = ts.open((tmp_path / "img.zip").as_uri()).result()
        kvstore = archive.spec().kvstore
        assert kvstore is not None
        assert kvstore.to_json()["driver"] == "zip"
        assert "name it .zarr, .n5 or .zip" in capsys.readouterr().err


class TestMigrate:
    def test_migrates(self, tmp_path, capsys):
        ts.Group.open(tmp_path / "old", create=True, zarr_format=2).result()

        assert main(["migrate", str(tmp_path / "old"), "--dry-run"]) == 0
        assert "would migrate" in capsys.readouterr().out
        assert main(["migrate", str(tmp_path / "old"), "--dest", str(tmp_path / "new")]) == 0
        assert main(["migrate", str(tmp_path / "old"), "--keep"]) == 0

        assert (tmp_path / "old" / ".zgroup").exists()
        for name in ("old", "new"):
            assert ts.Group.open(tmp_path / name).result().zarr_format == 3

    def test_says_why_not(self, tmp_path, capsys):
        assert main(["migrate", str(tmp_path / "nowhere")]) == 1
        assert "nothing to migrate" in capsys.readouterr().err


class TestRechunk:
    def test_rechunks(self, tmp_path, capsys):
        old, new = tmp_path / "old", tmp_path / "new"
        domain = ts.IndexDomain(shape=[6, 6], labels=["y", "x"])
        spec = {"driver": "zarr3", "kvstore": f"file://{old}/"}
        array = ts.open(spec, create=True, dtype="int16", domain=domain).result()
        array[...] = 3

        assert main(["rechunk", str(old), str(new), "--chunks", "x=2,y=-1", "--shards", "6"]) == 0

        found = ts.open(new).result()
        assert found.chunk_layout.read_chunk.shape == (6, 2)
        assert found.chunk_layout.write_chunk.shape == (6, 6)
        assert (found.read().result() == 3).all()
        assert "copied 1 array" in capsys.readouterr().out

    def test_it_needs_chunk_shapes(self, capsys):
        with pytest.raises(SystemExit):
            main(["rechunk", "a", "b"])
        assert "--chunks" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def told(stream, workers=0):
    """What is printed of a step of 60 s, a tenth of which is done when it begins."""
    clock = Clock()
    meter = Meter(stream, workers, clock)
    meter.begin("copy")
    for number in range(1, 11):
        meter(Progress(1024 * number, 10240, number, 10))
        clock.now += 6
    meter.close()
    return stream.getvalue()


class TestMeter:
    def test_tells_share_bytes_rate_and_time_left(self):
        lines = told(io.StringIO()).splitlines()

        assert lines[0] == ("copy: 30%, 3.0 KiB of 10.0 KiB, 3 of 10 chunks, 171 B/s, 0:00:42 left")
        assert lines[-1] == "copy: 100%, 10.0 KiB of 10.0 KiB, 10 of 10 chunks, 154 B/s, in 0:01:00"
        assert len(lines) == 5  # one each ten seconds, and the last

    def test_tells_of_each_of_several_workers(self):
        assert ", 4 workers of 43 B/s, " in told(io.StringIO(), 4)

    def test_draws_one_line_on_a_terminal(self):
        text = told(Terminal())
        assert text.count("\n") == 1
        assert text.count("\r") == 9
        assert text.endswith("\x1b[K\n")

    def test_nothing_is_printed_without_a_terminal(self):
        meter = Meter(None)
        meter.begin("copy")
        meter(Progress(1, 1, 1, 1))
        meter.close()

    def test_a_step_without_progress_has_no_line(self):
        stream = Terminal()
        meter = Meter(stream)
        meter.begin("copy")
        meter.close()
        assert stream.getvalue() == ""
