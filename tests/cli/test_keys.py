"""Keys and trees of keys by the command line: cp, mv, rm."""

import contextlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def run(tmp_path):
    """A group with an array, `raw/image`; the working directory is above it."""
    group = ts.Group.open(tmp_path / "run.zarr", create=True).result()
    image = group.create_array(
        "raw/image",
        dtype="uint16",
        shape=[4, 6],
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
    ).result()
    image[...] = np.arange(24, dtype="uint16").reshape(4, 6)
    return tmp_path / "run.zarr"


def files(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(Path(directory).rglob("*"))
        if path.is_file()
    }


def said(capsys, *arguments, code=0):
    """What a command prints: standard output, or where it fails standard error."""
    assert main([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def url(path, inside=""):
    return f"{path.as_uri()}{inside}"


class TestCopy:
    def test_a_tree_is_copied_byte_for_byte(self, run, tmp_path, capsys):
        assert said(capsys, "cp", run, tmp_path / "b.zarr", "--verify").startswith("copied 7 keys")
        assert files(tmp_path / "b.zarr") == files(run)

    def test_a_key_keeps_its_name_in_a_directory(self, run, tmp_path, capsys):
        said(capsys, "cp", run / "zarr.json", f"{tmp_path}/new/")
        said(capsys, "cp", run / "zarr.json", tmp_path / "named")
        assert (tmp_path / "new/zarr.json").read_bytes() == (run / "zarr.json").read_bytes()
        assert (tmp_path / "named").read_bytes() == (run / "zarr.json").read_bytes()

    def test_a_key_does_not_replace_a_directory(self, run, tmp_path, capsys):
        (tmp_path / "there").mkdir()
        told = said(capsys, "cp", run / "zarr.json", tmp_path / "there", code=1)
        assert "is a directory; end it with /" in told

    @pytest.mark.parametrize("to", ["b.zip", "b.zip|zip:inner/", "db|ocdbt:", "db|ocdbt:a/b"])
    def test_archives_and_databases(self, to, run, tmp_path, capsys):
        place = url(tmp_path, f"/{to}")
        said(capsys, "cp", run, place)
        if place.endswith(".zip"):
            place += "|zip:"
        said(capsys, "cp", place, tmp_path / "back")
        assert files(tmp_path / "back") == files(run)

    def test_what_is_in_an_archive_is_named_by_a_path(self, run, tmp_path, capsys):
        said(capsys, "cp", run, tmp_path / "b.zip")
        said(capsys, "cp", tmp_path / "b.zip/raw", tmp_path / "raw")
        said(capsys, "cp", f"{tmp_path}/b.zip/", tmp_path / "all")
        said(capsys, "cp", tmp_path / "b.zip", tmp_path / "c.zip")
        assert files(tmp_path / "raw") == files(run / "raw")
        assert files(tmp_path / "all") == files(run)
        assert (tmp_path / "c.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()

    def test_what_is_in_a_database_is_named_by_a_path(self, run, tmp_path, capsys):
        said(capsys, "cp", run, url(tmp_path / "db", "|ocdbt:"))
        said(capsys, "cp", tmp_path / "db/raw", tmp_path / "raw")
        assert files(tmp_path / "raw") == files(run / "raw")
        said(capsys, "cp", run / "raw", tmp_path / "db/more")
        said(capsys, "rm", tmp_path / "db/raw", "--yes")
        keys = ts.KvStore.open(url(tmp_path / "db", "|ocdbt:")).result().list().result()
        assert {key.partition(b"/")[0] for key in keys} == {b"zarr.json", b"more"}
        said(capsys, "cp", tmp_path / "db", tmp_path / "copy")
        assert files(tmp_path / "copy") == files(tmp_path / "db")

    def test_a_database_refers_to_values_of_itself(self, run, tmp_path, capsys):
        said(capsys, "cp", run, url(tmp_path / "db", "|ocdbt:a"))
        big = np.random.default_rng(0).bytes(200_000)
        store = ts.KvStore.open(url(tmp_path / "db", "|ocdbt:")).result()
        store["a/big"] = big
        before = sum(map(len, files(tmp_path / "db").values()))

        said(capsys, "cp", url(tmp_path / "db", "|ocdbt:a"), url(tmp_path / "db", "|ocdbt:b"))

        assert store["b/big"] == big
        assert sum(map(len, files(tmp_path / "db").values())) - before < len(big)

    def test_nothing_is_overwritten_unless_asked(self, run, tmp_path, capsys):
        there = tmp_path / "there"
        there.mkdir()
        (there / "zarr.json").write_text("mine")
        (there / "other").write_text("mine")

        assert "something is at" in said(capsys, "cp", run, there, code=1)
        assert files(there) == {"zarr.json": b"mine", "other": b"mine"}

        assert "1 were there" in said(capsys, "cp", run, there, "--if-exists", "skip")
        assert (there / "zarr.json").read_text() == "mine"
        assert (there / "raw/zarr.json").exists()

        told = said(capsys, "cp", run, there, "--if-exists", "replace", code=2)
        assert "this would replace" in told
        assert (there / "zarr.json").read_text() == "mine"

        said(capsys, "cp", run, there, "--if-exists", "replace", "--yes")
        assert files(there) == files(run)

    def test_skipped_keys_of_another_size_are_told(self, run, tmp_path, capsys):
        said(capsys, "cp", run, tmp_path / "b")
        (tmp_path / "b/zarr.json").write_text("other")
        assert main(["cp", str(run), str(tmp_path / "b"), "--if-exists", "skip"]) == 0
        assert "1 key at" in capsys.readouterr().err

    def test_a_dry_run_changes_nothing(self, run, tmp_path, capsys):
        told = said(capsys, "cp", run, tmp_path / "b", "--dry-run")
        assert "would copy 7 keys" in told
        assert "(group)" in told
        assert not (tmp_path / "b").exists()
        found = json.loads(said(capsys, "cp", run, tmp_path / "b", "--dry-run", "--json"))
        assert (found["keys"], found["dry_run"], found["kind"]) == (7, True, "group")

    @pytest.mark.parametrize(
        ("to", "problem"),
        [
            ("run.zarr", "are the same"),
            ("run.zarr/", "are the same"),
            ("run.zarr/raw/../", "are the same"),
            ("run.zarr/x/y", "is inside"),
            ("run.zarr/b.zip", "is inside"),
            ("{uri}/run.zarr/x|zip:a/", "is inside"),
            ("memory://x/", "memory is gone"),
            ("b.n5", "named .n5, and the group is of format zarr3"),
            ("b.h5", "not written here"),
        ],
    )
    def test_targets_that_make_no_sense(self, to, problem, run, tmp_path, capsys):
        before = files(tmp_path)
        to = to.format(uri=tmp_path.as_uri()) if "://" in to or "{" in to else f"{tmp_path}/{to}"
        with contextlib.suppress(SystemExit):
            assert main(["cp", str(run), to]) in (1, 2)
        assert problem in capsys.readouterr().err
        assert files(tmp_path) == before

    def test_a_source_inside_the_target(self, run, tmp_path, capsys):
        told = said(capsys, "cp", run / "raw", run, "--if-exists", "replace", "-y", code=2)
        assert "is inside" in told
        assert (run / "raw/image/zarr.json").exists()

    def test_what_is_not_there(self, run, tmp_path, capsys):
        assert "nothing is at" in said(capsys, "cp", tmp_path / "x", tmp_path / "y", code=1)
        told = said(capsys, "cp", f"{run}[0]", tmp_path / "y", code=1)
        assert "without a selection" in told

    def test_documents_come_last_and_a_failure_says_how_to_go_on(self, run, tmp_path, capsys):
        in_the_way = tmp_path / "b/raw/image/c/0/0"
        in_the_way.mkdir(parents=True)

        told = said(capsys, "cp", run, tmp_path / "b", code=1)

        assert "of 7 keys were copied, and all are still at" in told
        assert "--if-exists skip" in told
        assert not list((tmp_path / "b").rglob("zarr.json"))
        in_the_way.rmdir()
        said(capsys, "cp", run, tmp_path / "b", "--if-exists", "skip")
        assert files(tmp_path / "b") == files(run)

    def test_what_is_being_replaced_is_no_array(self, run, tmp_path, capsys):
        """Readers find nothing rather than new chunks under the old metadata."""
        said(capsys, "cp", run, tmp_path / "b")
        (tmp_path / "b/raw/image/c/0/0").unlink()
        (tmp_path / "b/raw/image/c/0/0").mkdir()
        said(capsys, "cp", run, tmp_path / "b", "--if-exists", "replace", "--yes", code=1)
        assert not list((tmp_path / "b").rglob("zarr.json"))


class TestMove:
    def test_local_trees_are_renamed(self, run, tmp_path, capsys):
        before, number = files(run), (run / "zarr.json").stat().st_ino
        told = said(capsys, "mv", run, tmp_path / "new/place")
        assert told.startswith("moved 7 keys")
        assert files(tmp_path / "new/place") == before
        assert (tmp_path / "new/place/zarr.json").stat().st_ino == number
        assert not run.exists()

    def test_to_an_archive_and_within_it(self, run, tmp_path, capsys):
        before = files(run)
        said(capsys, "mv", run, tmp_path / "b.zip")
        assert not run.exists()
        said(capsys, "mv", tmp_path / "b.zip/raw", tmp_path / "b.zip/old")
        said(capsys, "mv", tmp_path / "b.zip/old", tmp_path / "raw")
        assert files(tmp_path / "raw") == {
            name.removeprefix("raw/"): value
            for name, value in before.items()
            if name.startswith("raw/")
        }
        assert said(capsys, "ls", f"{tmp_path}/b.zip", "--json").strip() == "[]"

    def test_behind_a_link(self, run, tmp_path, capsys):
        before = files(run)
        (tmp_path / "link").symlink_to(run)
        assert "is a link" in said(capsys, "mv", tmp_path / "link", tmp_path / "b", code=2)
        said(capsys, "mv", f"{tmp_path}/link/", tmp_path / "b")
        assert files(tmp_path / "b") == before
        assert not files(run)

    def test_a_key(self, run, tmp_path, capsys):
        said(capsys, "mv", run / "zarr.json", url(tmp_path / "db", "|ocdbt:a/"))
        assert not (run / "zarr.json").exists()
        assert "a/zarr.json" in ts.KvStore.open(url(tmp_path / "db", "|ocdbt:")).result()

    def test_nothing_is_deleted_if_the_target_has_something_else(self, run, tmp_path, capsys):
        before = files(run)
        said(capsys, "cp", run, tmp_path / "b")
        (tmp_path / "b/zarr.json").write_text("another")
        told = said(capsys, "mv", run, tmp_path / "b", "--if-exists", "skip", code=1)
        assert "nothing of it was deleted" in told
        assert "zarr.json" in told
        assert files(run) == before

    def test_what_was_interrupted_goes_on(self, run, tmp_path, capsys):
        before = files(run)
        said(capsys, "cp", run / "raw", tmp_path / "b/raw")
        said(capsys, "mv", run, tmp_path / "b", "--if-exists", "skip")
        assert files(tmp_path / "b") == before
        assert not run.exists()

    def test_a_dry_run(self, run, tmp_path, capsys):
        assert "would move 7 keys" in said(capsys, "mv", run, tmp_path / "b", "-n")
        assert run.exists()

    def test_what_is_never_moved(self, run, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(run / "raw")
        assert "working directory" in said(capsys, "mv", run, tmp_path / "b", code=2)
        monkeypatch.chdir(tmp_path)
        said(capsys, "cp", run, tmp_path / "b.zip")
        told = said(capsys, "mv", f"{tmp_path}/b.zip/", tmp_path / "b", code=2)
        assert "all of a store" in told


class TestRemove:
    def test_says_what_goes_and_asks(self, run, capsys):
        assert main(["rm", str(run)]) == 2
        out, err = capsys.readouterr()
        assert "group" in out
        assert "delete 7 keys" in err
        assert run.exists()

    @pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
    def test_a_terminal_is_asked(self, answer, code, run, capsys, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
        assert main(["rm", str(run)]) == code
        assert run.exists() == bool(code)
        assert "[y/N]" in capsys.readouterr().err

    def test_several_places(self, run, tmp_path, capsys):
        said(capsys, "cp", run, tmp_path / "b.zip")
        found = json.loads(
            said(capsys, "rm", run / "zarr.json", run / "raw", f"{tmp_path}/b.zip/raw/",
                 "--yes", "--json")
        )  # fmt: skip
        assert found["deleted"]
        assert [each["kind"] for each in found["places"]] == ["key", "group", "group"]
        assert found["keys"] == 1 + 6 + 6
        assert not list(run.iterdir())
        left = said(capsys, "cp", f"{tmp_path}/b.zip/", tmp_path / "left", "-n", "--json")
        assert json.loads(left)["keys"] == 1

    def test_one_that_is_not_there_keeps_all(self, run, tmp_path, capsys):
        assert "nothing is at" in said(capsys, "rm", run, tmp_path / "x", "-y", code=1)
        assert run.exists()

    def test_a_dry_run(self, run, capsys):
        assert "7" in said(capsys, "rm", run, "--dry-run")
        assert run.exists()

    @pytest.mark.parametrize("place", ["/", ".", "..", "~", "file:///", "{uri}/"])
    def test_what_is_never_deleted(self, place, run, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(run)
        monkeypatch.setenv("HOME", str(tmp_path))
        if place == "~":
            monkeypatch.chdir("/")
            place = str(tmp_path)
        told = said(capsys, "rm", place.format(uri=tmp_path.as_uri()), "--yes", code=2)
        assert "never deleted" in told
        assert run.exists()

    def test_a_whole_store_goes_only_by_name(self, run, tmp_path, capsys):
        said(capsys, "cp", run, url(tmp_path / "db", "|ocdbt:"))
        whole = url(tmp_path / "db", "|ocdbt:")
        assert "--whole-store" in said(capsys, "rm", whole, "--yes", code=2)
        said(capsys, "rm", whole, "--yes", "--whole-store")
        assert not ts.KvStore.open(whole).result().list().result()

    def test_links(self, run, tmp_path, capsys):
        link = tmp_path / "link"
        link.symlink_to(run)
        assert "is a link" in said(capsys, "rm", link, "--yes", code=2)
        said(capsys, "rm", f"{link}/", "--yes")
        assert not files(run)

    def test_what_killed_writers_left_goes_too(self, run, capsys):
        (run / "raw/zz.__lock").write_text("")
        said(capsys, "rm", run, "--yes")
        assert not run.exists()

    def test_an_empty_directory(self, tmp_path, capsys):
        (tmp_path / "a/b").mkdir(parents=True)
        said(capsys, "rm", tmp_path / "a", "--yes")
        assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("version", [2, 3])
def test_consolidated_metadata_above_is_told_of(version, tmp_path, capsys, monkeypatch):
    root = ts.Group.open(tmp_path / "g", create=True, zarr_format=version).result()
    for name in ("a", "b", "c"):
        root.create_array(name, dtype="int8", shape=[2]).result()
    root.consolidate().result()
    place = tmp_path / "g"
    for command in (
        ["rm", f"{place}/a", "--yes"],
        ["mv", f"{place}/b", f"{tmp_path}/b"],
        ["cp", f"{tmp_path}/b", f"{place}/d"],
        ["create", f"{place}/e", "--group"],
    ):
        assert main(command) == 0
        told = capsys.readouterr().err
        assert "out of date now: consolidated metadata" in told
        assert str(place) in told
    monkeypatch.chdir(place)  # which is above none of these
    assert main(["cp", f"{tmp_path}/b", f"{tmp_path}/elsewhere"]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["rm", f"{place}", "--yes"]) == 0
    assert capsys.readouterr().err == ""


class TestServices:
    """The same on S3, and from web servers."""

    @pytest.fixture
    def place(self, moto_s3):
        bucket = moto_s3.make_bucket()

        def named(path):
            return json.dumps({
                "driver": "s3",
                "bucket": bucket,
                "path": path,
                "endpoint": moto_s3.endpoint,
                "aws_region": moto_s3.region,
                "aws_credentials": {
                    "type": "static",
                    "access_key_id": moto_s3.access_key,
                    "secret_access_key": moto_s3.secret_key,
                },
            })  # fmt: skip

        return named

    def test_up_and_down(self, place, run, tmp_path, capsys, moto_s3):
        told = said(capsys, "cp", run, place("a/run.zarr"), "--verify")
        assert moto_s3.secret_key not in told
        said(capsys, "cp", place("a/run.zarr"), place("b/run.zarr"))
        said(capsys, "mv", place("b/run.zarr"), place("c"), "--verify")
        assert "nothing is at" in said(capsys, "rm", place("b/"), "--yes", code=1)
        said(capsys, "mv", place("c/"), tmp_path / "back")
        assert files(tmp_path / "back") == files(run)
        assert "all of a store" in said(capsys, "rm", place(""), "--yes", code=2)
        found = json.loads(said(capsys, "rm", place("a/run.zarr"), "--yes", "--json"))
        assert (found["keys"], found["places"][0]["kind"]) == (7, "group")
        assert moto_s3.secret_key not in json.dumps(found)

    def test_markers_of_directories_are_left_out(self, place, run, tmp_path, capsys, moto_s3):
        bucket = json.loads(place(""))["bucket"]
        for key in ("a/", "a/b/"):
            moto_s3.put(bucket, key, b"")
        moto_s3.put(bucket, "a/b/c", b"1")
        said(capsys, "mv", place("a/"), tmp_path / "a")
        assert files(tmp_path / "a") == {"b/c": b"1"}
        assert moto_s3.keys(bucket) == []

    def test_google(self, run, tmp_path, capsys, gcs_server, monkeypatch):
        monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
        said(capsys, "cp", run, "gs://bucket/a")
        said(capsys, "mv", "gs://bucket/a", "gs://bucket/b")
        said(capsys, "cp", "gs://bucket/b/", tmp_path / "back", "--verify")
        assert files(tmp_path / "back") == files(run)
        assert "nothing is at" in said(capsys, "rm", "gs://bucket/a", "-y", code=1)

    def test_a_key_and_a_directory_of_one_name(self, place, run, capsys):
        said(capsys, "cp", run / "zarr.json", place("x"))
        said(capsys, "cp", run, place("x/"))
        assert json.loads(said(capsys, "rm", place("x"), "-y", "--json"))["keys"] == 1
        assert json.loads(said(capsys, "rm", place("x"), "-y", "--json"))["keys"] == 7

    def test_web_servers_give_single_keys(self, nginx_http, tmp_path, capsys):
        (nginx_http.files / "a.bin").write_bytes(b"abc")
        said(capsys, "cp", f"{nginx_http.url}a.bin", f"{tmp_path}/d/")
        assert (tmp_path / "d/a.bin").read_bytes() == b"abc"
        told = said(capsys, "cp", f"{nginx_http.url}none", tmp_path / "n", code=1)
        assert "cannot list" in told
        assert "read-only" in said(capsys, "cp", tmp_path / "d/a.bin", f"{nginx_http.url}x", code=1)
        assert "read-only" in said(capsys, "rm", f"{nginx_http.url}a.bin", "-y", code=1)
