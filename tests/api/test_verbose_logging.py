"""What subsystems tell when they are asked to, where it goes, and what it does not hold."""

import logging
import subprocess
import sys

import pytest

import tensorstore_py as ts
from tensorstore_py.testing import FaultServer, WebValues


@pytest.fixture
def told(caplog):
    """Switch on flags, and get the records: `records = told("memory=1")`."""
    caplog.set_level(logging.INFO, "tensorstore_py.verbose")

    def told(flags, **options):
        ts.experimental_update_verbose_logging(flags, **options)
        caplog.clear()
        return caplog.records

    yield told
    ts.experimental_update_verbose_logging("", overwrite=True)


def test_operations_of_one_kind_of_store(told, tmp_path):
    records = told("memory")
    ts.KvStore.open(tmp_path.as_uri() + "/").result().write("file", b"1").result()
    store = ts.KvStore.open("memory://at/").result()
    store.write("key", b"12345").result()
    store.read("key").result()
    store.read("missing").result()
    store.list().result()
    assert {record.name for record in records} == {"tensorstore_py.verbose.memory"}
    texts = [record.getMessage() for record in records]
    assert [text.split()[0] for text in texts] == ["write", "read", "read", "list"]
    assert '"at/key"' in texts[0]
    assert "5 bytes" in texts[0]
    assert "missing" in texts[2]


def test_failures_are_told(told, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    store = ts.KvStore.open(tmp_path.as_uri() + "/").result()
    records = told("file=1")
    with pytest.raises(ts.TensorStoreError) as caught:
        store.write("file/below", b"1").result()
    assert type(caught.value).__name__ in records[0].getMessage()


@pytest.mark.parametrize(
    ("steps", "tells"),
    [
        ([("", False)], False),
        ([("memory", False)], True),
        ([("all=2", False)], True),
        ([("all", False), ("memory=-1", False)], False),
        ([("memory=1", False), ("file=1", False)], True),
        ([("memory=1", False), ("file=1", True)], False),
        ([("memory=1", False), ("", True)], False),
        ([("memory=much", False)], False),
        ([("=1,,memory=5000", False)], True),
        ([("all.of=1", False)], False),
    ],
)
def test_flags_add_up_unless_they_replace_each_other(told, steps, tells):
    records = told("")
    for flags, overwrite in steps:
        told(flags, overwrite=overwrite)
    ts.KvStore.open("memory://").result().write("key", b"1").result()
    assert bool(records) == tells


def test_flags_of_a_command_line(told):
    records = told("")
    ts.parse_tensorstore_flags(["program", "--other=1", "--tensorstore_verbose_logging=memory"])
    ts.KvStore.open("memory://").result().write("key", b"1").result()
    assert len(records) == 1
    ts.parse_tensorstore_flags(["program", "--tensorstore_verbose_logging", "file", "x"])
    ts.parse_tensorstore_flags(["program", "--", "--tensorstore_verbose_logging=memory"])
    ts.KvStore.open("memory://").result().write("key", b"1").result()
    assert len(records) == 1


def test_no_secret_is_told(told, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = FaultServer(WebValues({"a": b"0123456789"}).handle)
    with server.running():
        store = ts.KvStore.open(
            {
                "driver": "http",
                "base_url": f"{server.url}/?token=secret1",
                "headers": ["Authorization: Bearer secret2"],
            }
        ).result()
        records = told("all=9")
        store.read("a").result()
    names = {record.name.rpartition(".")[2] for record in records}
    assert names == {"http_kvstore", "http_transport"}
    told_text = " ".join(record.getMessage() for record in records)
    assert "secret" not in told_text
    assert server.requests[0].headers["authorization"] == "Bearer secret2"
    assert "200, 10 bytes" in told_text


@pytest.mark.parametrize("configured", [False, True])
def test_the_environment_switches_it_on(configured):
    code = "import tensorstore_py as ts, sys, logging\n"
    if configured:
        code += "logging.basicConfig(stream=sys.stdout, level=0, format='%(name)s')\n"
    code += "ts.KvStore.open('memory://').result().write('key', b'1').result()\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), "TENSORSTORE_VERBOSE_LOGGING": "memory=1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if configured:
        assert "tensorstore_py.verbose.memory" in done.stdout
        assert not done.stderr
    else:
        assert done.stderr.startswith('tensorstore_py.verbose.memory: write "key": 1 of 1 values')
