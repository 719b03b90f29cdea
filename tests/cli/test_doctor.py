"""What the doctor of the command line finds wrong, and what it leaves behind."""

import json
import os
import time

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


def told(capsys, *arguments, code=0):
    """The checks, by name; those of one name in a list."""
    assert main(["doctor", "--json", *map(str, arguments)]) == code
    found = json.loads(capsys.readouterr().out)
    checks: dict[str, list[dict[str, str]]] = {}
    for each in found["checks"]:
        checks.setdefault(each["check"], []).append(each)
    assert sum(found[status] for status in ("ok", "warn", "fail")) == len(found["checks"])
    return checks


def status(checks, name):
    return [each["status"] for each in checks.get(name, [])]


@pytest.fixture
def group(tmp_path):
    group = ts.Group.open(tmp_path / "run.zarr", create=True, zarr_format=2).result()
    image = group.create_array("raw/image", dtype="uint16", shape=[4, 6]).result()
    image[...] = np.ones((4, 6), dtype="uint16")
    return group


class TestHealthy:
    def test_all_is_well(self, group, tmp_path, capsys):
        before = sorted((tmp_path / "run.zarr").rglob("*"))
        checks = told(capsys, tmp_path / "run.zarr")
        assert {each["status"] for found in checks.values() for each in found} == {"ok"}
        assert set(checks) == {"spec", "list", "read", "metadata", "leftovers", "chunks"}
        assert sorted((tmp_path / "run.zarr").rglob("*")) == before

    def test_for_people(self, group, tmp_path, capsys):
        assert main(["doctor", str(tmp_path / "run.zarr")]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("ok    spec")
        assert lines[-1] == "6 checks, all is well"

    def test_writes_leave_nothing(self, group, tmp_path, capsys):
        before = sorted((tmp_path / "run.zarr").rglob("*"))
        checks = told(capsys, tmp_path / "run.zarr", "--write")
        assert status(checks, "conditions") == status(checks, "write") == ["ok"]
        assert sorted((tmp_path / "run.zarr").rglob("*")) == before

    def test_spec_files_archives_and_databases(self, group, tmp_path, capsys):
        uri = tmp_path.as_uri()
        spec = {"driver": "zarr", "kvstore": f"{uri}/run.zarr/raw/image/"}
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        assert main(["cp", str(tmp_path / "run.zarr"), str(tmp_path / "run.zip")]) == 0
        assert main(["cp", str(tmp_path / "run.zarr"), f"{uri}/db|ocdbt:"]) == 0
        capsys.readouterr()
        for place in ("spec.json", "run.zip"):
            assert status(told(capsys, tmp_path / place), "chunks") == ["ok"]
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        for place in (f"{uri}/db|ocdbt:", tmp_path / "db", tmp_path / "run.zip"):
            checks = told(capsys, place, "--write")
            assert status(checks, "conditions") == ["ok"]
        after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert before == after


class TestMetadata:
    def test_two_formats_side_by_side(self, group, tmp_path, capsys):
        (tmp_path / "run.zarr/raw/zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
        [found] = told(capsys, tmp_path / "run.zarr")["metadata"]
        assert found["status"] == "warn"
        assert "zarr2 and zarr3 side by side: raw" in found["found"]
        assert found["remedy"]

    def test_consolidated_metadata_that_is_out_of_date(self, group, tmp_path, capsys):
        group.consolidate().result()
        assert status(told(capsys, tmp_path / "run.zarr"), "metadata") == ["ok"]
        made = ts.Group.open(tmp_path / "run.zarr", consolidated=False).result()
        made.create_array("new", dtype="int8", shape=[2]).result()
        made.delete("raw/image").result()
        [found] = told(capsys, tmp_path / "run.zarr")["metadata"]
        assert "lacks new" in found["found"]
        assert "has still raw/image" in found["found"]

    def test_documents_that_cannot_be_read(self, group, tmp_path, capsys):
        (tmp_path / "run.zarr/raw/image/.zarray").write_text("{")
        checks = told(capsys, tmp_path / "run.zarr", code=1)
        assert "fail" in status(checks, "metadata")


class TestLeftovers:
    def test_temporary_files_of_killed_writers(self, group, tmp_path, capsys):
        young, old = (tmp_path / f"run.zarr/{name}.__lock" for name in ("young", "old"))
        young.write_text("x")
        assert status(told(capsys, tmp_path / "run.zarr"), "leftovers") == ["ok"]
        old.write_text("x")
        os.utime(old, (time.time() - 7200,) * 2)
        [found] = told(capsys, tmp_path / "run.zarr")["leftovers"]
        assert found["status"] == "warn"
        assert "old.__lock" in found["found"]
        assert "young" not in found["found"]

    def test_what_nothing_needs_in_a_database(self, tmp_path, capsys):
        place = f"{tmp_path.as_uri()}/db|ocdbt:"
        store = ts.KvStore.open(place).result()
        store["a"] = b"1" * 10_000
        store["a"] = b"2" * 100
        for named in (place, tmp_path / "db"):
            [found] = told(capsys, named)["leftovers"]
            assert found["status"] == "warn"
            assert "ocdbt compact" in found["remedy"]


class TestChunks:
    @pytest.mark.parametrize(
        ("driver", "chunk", "words"),
        [
            ("zarr3", 64, "--shards"),
            ("zarr", 200, "--zarr-format 3"),
            ("zarr3", 20_000, "to read one element"),
        ],
    )
    def test_sizes(self, driver, chunk, words, tmp_path, capsys):
        spec = {"driver": driver, "kvstore": tmp_path / "a"}
        layout = ts.ChunkLayout(chunk_shape=[chunk, chunk])
        shape = [100_000, 100_000]
        codec = ts.CodecSpec({"driver": "zarr3", "codecs": ["bytes", "zstd"]})
        ts.open(
            spec, create=True, dtype="uint8", shape=shape, chunk_layout=layout,
            codec=codec if driver == "zarr3" else None,
        ).result()  # fmt: skip
        [found] = told(capsys, tmp_path / "a")["chunks"]
        assert found["status"] == "warn"
        assert words in found["found"] + found["remedy"]
        # What is advised can be done.
        words = found["remedy"].replace("TARGET", str(tmp_path / "b")).split()[1:]
        assert main([*words, "--dry-run"]) == 0

    def test_no_compression(self, tmp_path, capsys):
        spec = {"driver": "zarr3", "kvstore": tmp_path / "a"}
        ts.open(spec, create=True, dtype="uint8", shape=[10**9]).result()
        assert status(told(capsys, tmp_path / "a"), "codec") == ["warn"]


class TestWhatFails:
    def test_no_such_place(self, tmp_path, capsys):
        assert status(told(capsys, tmp_path / "none", code=1), "list") == ["fail"]
        assert status(told(capsys, tmp_path / "none", "--write"), "conditions") == ["ok"]
        assert status(told(capsys, "nope://x", code=1), "spec") == ["fail"]

    def test_services(self, moto_s3, capsys):
        place = {
            "driver": "s3",
            "bucket": moto_s3.make_bucket(),
            "endpoint": moto_s3.endpoint,
            "aws_region": moto_s3.region,
            "aws_credentials": {
                "type": "static",
                "access_key_id": moto_s3.access_key,
                "secret_access_key": moto_s3.secret_key,
            },
        }
        checks = told(capsys, json.dumps(place), "--write")
        assert moto_s3.secret_key not in json.dumps(checks)
        assert status(checks, "credentials") == status(checks, "clock") == ["ok"]
        assert status(checks, "conditions") == status(checks, "write") == ["ok"]
        assert moto_s3.keys(place["bucket"]) == []

        moto_s3.put(place["bucket"], "a", b"1" * 300_000)
        answer = moto_s3.call("POST", f"/{place['bucket']}/dir/left?uploads=")
        assert answer.status == 200
        checks = told(capsys, json.dumps(place))
        [left] = checks["leftovers"]
        assert left["status"] == "warn"
        assert "dir/left" in left["found"]
        assert "throughput" in checks

    def test_credentials_of_the_environment_are_named_and_not_shown(
        self, moto_s3, capsys, monkeypatch
    ):
        place = {
            "driver": "s3",
            "bucket": moto_s3.make_bucket(),
            "endpoint": moto_s3.endpoint,
            "aws_credentials": {"type": "environment"},
        }
        monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
        checks = told(capsys, json.dumps(place), code=1)
        assert status(checks, "credentials") == ["fail"]
        for name, value in moto_s3.environment.items():
            monkeypatch.setenv(name, value)
        [found] = told(capsys, json.dumps(place), "--write")["credentials"]
        assert found["found"] == "the environment (AWS_ACCESS_KEY_ID)"

    def test_a_server_without_conditional_writes(self, swift_s3, capsys):
        place = {
            "driver": "s3",
            "bucket": swift_s3.make_bucket(),
            "endpoint": swift_s3.endpoint,
            "aws_region": swift_s3.region,
            "aws_credentials": {
                "type": "static",
                "access_key_id": swift_s3.access_key,
                "secret_access_key": swift_s3.secret_key,
            },
        }
        checks = told(capsys, json.dumps(place), "--write", code=1)
        [found] = checks["write"]
        assert "no conditional writes" in found["found"]
        assert swift_s3.keys(place["bucket"]) == []

    def test_google(self, gcs_server, capsys, monkeypatch):
        monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
        checks = told(capsys, "gs://bucket/x/", "--write")
        assert status(checks, "conditions") == ["ok"]
        assert status(checks, "credentials") == ["ok"]

    def test_web_servers(self, nginx_http, capsys):
        (nginx_http.files / "a").write_bytes(b"1")
        checks = told(capsys, nginx_http.url)
        assert status(checks, "list") == ["warn"]
