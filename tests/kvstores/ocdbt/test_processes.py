"""Writers of several processes on one database: none of their increments is lost."""

import json
import os

import pytest
import tensorstore as reference

import tensorstore_py as ts
from benchmarks.ocdbt_writers import Shape, compete
from tests.kvstores.ocdbt.databases import contents, open_anew, spec_of

OURS, BOTH = ["tensorstore_py"], ["tensorstore_py", "tensorstore"]


@pytest.mark.parametrize(
    ("libraries", "keys", "config"),
    [(OURS, "one", {}), (BOTH, "each", {"max_decoded_node_bytes": 100}),
     (BOTH, "one", {"manifest_kind": "numbered"})],
)  # fmt: skip
def test_no_increment_on_files_is_lost(tmp_path, libraries, keys, config):
    base = {"driver": "file", "path": f"{tmp_path}/"}

    found = compete(base, Shape(16, 10, 2, keys), libraries, config)

    assert (found.increments, found.lost) == (160, 0)
    # In one key each increment is a version; those of several keys share some.
    assert found.versions == 160 if keys == "one" else found.versions <= 160


def test_no_increment_in_a_bucket_is_lost(moto_s3, monkeypatch):
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    base = {"driver": "s3", "bucket": moto_s3.make_bucket(), "endpoint": moto_s3.endpoint}

    found = compete({**base, "path": "db/"}, Shape(4, 6, 2, "one"), BOTH, {})

    assert (found.increments, found.lost, found.versions) == (24, 0, 24)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", ["single", "numbered"])
def test_a_forked_child_reads_and_writes_what_its_parent_does(tmp_path, kind):
    kv = open_anew(ts, spec_of(tmp_path, config={"manifest_kind": kind}))
    kv["a"] = b"parent"
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            kv["b"] = b"child"
            with ts.Transaction() as transaction:
                staged = kv.with_transaction(transaction)
                staged["c"] = bytes(staged["a"]) + b" and child"
            os.write(writing, json.dumps([bytes(kv[key]).decode() for key in "abc"]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert json.load(pipe) == ["parent", "child", "parent and child"]

    expected = {b"a": b"parent", b"b": b"child", b"c": b"parent and child"}
    assert contents(kv) == expected
    kv["a"] = b"parent again"
    for library in (ts, reference):
        assert contents(open_anew(library, spec_of(tmp_path))) == expected | {b"a": b"parent again"}


@pytest.mark.parametrize("kind", ["single", "numbered"])
def test_a_transaction_is_made_again_or_refused_if_others_changed_what_it_read(tmp_path, kind):
    kv = open_anew(ts, spec_of(tmp_path, config={"manifest_kind": kind}))
    kv["n"] = b"1"
    other = open_anew(reference, spec_of(tmp_path))
    transaction = ts.Transaction(repeatable_read=True)
    staged = kv.with_transaction(transaction)
    staged["sum"] = bytes(staged["n"]) + b"!"
    other["n"] = b"2"

    with pytest.raises(ts.AbortedError):
        transaction.commit_sync()

    assert contents(kv) == {b"n": b"2"}
