"""One OCDBT database in the hands of both libraries, beside a dictionary.

Whatever they do in turn, both show what the dictionary has after each step, by handles that have
been open all the time and by new ones; and each version that was ever seen stays what it was.
"""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import tensorstore as reference
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import tensorstore_py as ts
from tensorstore_py.kvstores.ocdbt.manifest import decode_manifest

__all__ = ["KEYS", "SIZES", "DatabaseMachine"]

KEYS = ["a", "a/1", "a/1/long/" + "x" * 90, "b", "b/é", "b0", "c/1", "c/2", "c/3", "d" * 300, "~"]
SIZES = [0, 1, 4, 60, 99, 100, 101, 700, 5000, 200_000, 2**20]

LIBRARIES = [ts, reference]
libraries = st.integers(0, 1)
keys = st.sampled_from(KEYS)
sizes = st.sampled_from(SIZES)
ranges = st.tuples(
    st.sampled_from(["", "a", "a/", "b", "c/2"]), st.sampled_from(["", "a0", "b/", "c", "c/3", "z"])
)
edits = st.lists(
    st.tuples(st.sampled_from(["write", "write", "delete", "range"]), keys, sizes, ranges),
    max_size=6,
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "manifest_kind": st.sampled_from(["single", "numbered"]),
        "max_decoded_node_bytes": st.sampled_from([0, 1, 150, 400, 2000]),
        "max_inline_value_bytes": st.sampled_from([0, 5, 100, 2**20]),
        "version_tree_arity_log2": st.integers(1, 4),
        "compression": st.sampled_from(
            [None, {"id": "zstd"}, {"id": "zstd", "level": 9}, {"id": "zstd", "level": -5}]
        ),
    },
)
members = st.fixed_dictionaries(
    {},
    optional={
        "target_data_file_size": st.sampled_from([0, 1, 300, 10_000]),
        "value_data_prefix": st.sampled_from(["v/", "values-", ""]),
        "btree_node_data_prefix": st.just("nodes/"),
        "version_tree_node_data_prefix": st.just("d/v"),
        "assume_config": st.booleans(),
    },
)


class DatabaseMachine(RuleBasedStateMachine):
    """See the head of this file."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="databases-"))
        self.model: dict[bytes, bytes] = {}
        self.versions: dict[int, tuple[int, dict[bytes, bytes]]] = {}
        self.counter = 0

    def teardown(self):
        shutil.rmtree(self.folder)

    @initialize(config=configs, more=members, apart=st.booleans(), first=libraries)
    def create(self, config, more, apart, first):
        base = {"driver": "file", "path": f"{self.folder}/db/"}
        self.spec = {"driver": "ocdbt", "base": base, "config": config, **more}
        self.spec["context"] = {"file_io_sync": False}
        self.manifests = self.folder / "db"
        if apart:
            self.manifests = self.folder / "manifests"
            self.spec["manifest"] = {"driver": "file", "path": f"{self.manifests}/"}
        self.reopen()
        self.write(first, "a", 3)

    @rule()
    def reopen(self):
        self.handles = [self.opened(library) for library in LIBRARIES]

    @rule(which=libraries, key=keys, size=sizes)
    def write(self, which, key, size):
        value = self.value(size)
        stamp = self.handles[which].write(key, value).result()
        assert stamp.generation
        self.model[key.encode()] = value
        self.check()

    @rule(which=libraries, key=keys)
    def delete(self, which, key):
        self.handles[which].write(key, None).result()
        self.model.pop(key.encode(), None)
        self.check()

    @rule(which=libraries, bounds=ranges)
    def delete_range(self, which, bounds):
        self.handles[which].delete_range(LIBRARIES[which].KvStore.KeyRange(*bounds)).result()
        self.remove(self.model, bounds)
        self.check()

    @rule(which=libraries, key=keys, size=sizes, outdated=st.booleans())
    def write_if_equal(self, which, key, size, outdated):
        kv, value = self.handles[which], self.value(size)
        # What is stored again has the same generation.
        outdated = outdated and value != self.model.get(key.encode())
        before = kv.read(key).result().stamp.generation
        if outdated:
            self.handles[1 - which].write(key, value).result()
            self.model[key.encode()] = value
            value = self.value(size)
        done = kv.write(key, value, if_equal=before).result().generation
        assert bool(done) is not outdated
        if done:
            self.model[key.encode()] = value
        self.check()

    @rule(which=libraries, key=keys, begin=st.integers(0, 5), end=st.integers(5, 200))
    def read_part(self, which, key, begin, end):
        library, value = LIBRARIES[which], self.model.get(key.encode())
        if value is None:
            assert self.handles[which].read(key).result().state == "missing"
            return
        if library is ts:
            part = slice(min(begin, len(value)), min(end, len(value)))
            found = self.handles[which].read(key, byte_range=part).result()
            assert bytes(found.value) == value[part]
        found = self.handles[which].read(key).result()
        same = self.handles[which].read(key, if_not_equal=found.stamp.generation).result()
        assert same.state == "unspecified"

    @rule(which=libraries, bounds=ranges)
    def list_range(self, which, bounds):
        found = self.handles[which].list(LIBRARIES[which].KvStore.KeyRange(*bounds)).result()
        low, high = (bound.encode() for bound in bounds)
        expected = sorted(key for key in self.model if low <= key and (not high or key < high))
        # The reference lists in any order.
        assert (found if LIBRARIES[which] is ts else sorted(found)) == expected

    @rule(which=libraries, steps=edits, atomic=st.booleans(), commits=st.booleans())
    def transaction(self, which, steps, atomic, commits):
        library, model = LIBRARIES[which], dict(self.model)
        transaction = library.Transaction(atomic=atomic)
        staged = self.handles[which].with_transaction(transaction)
        for kind, key, size, bounds in steps:
            if kind == "write":
                model[key.encode()] = self.value(size)
                staged.write(key, model[key.encode()]).result()
            elif kind == "delete":
                model.pop(key.encode(), None)
                staged.write(key, None).result()
            else:
                self.remove(model, bounds)
                staged.delete_range(library.KvStore.KeyRange(*bounds)).result()
            found = staged.read(key).result()
            assert (bytes(found.value) if found.state == "value" else None) == model.get(
                key.encode()
            )
        if commits:
            transaction.commit_sync()
            self.model = model
        else:
            transaction.abort()
        self.check()

    @rule(which=libraries, number=st.integers(0, 200), by_time=st.booleans())
    def read_a_version(self, which, number, by_time):
        generation = sorted(self.versions)[number % len(self.versions)]
        time_ns, expected = self.versions[generation]
        version = iso(time_ns) if by_time else generation
        assert contents(self.opened(LIBRARIES[which], version=version)) == expected

    def check(self):
        for library, kv in zip(LIBRARIES, self.handles, strict=True):
            assert contents(kv) == self.model
            assert contents(self.opened(library)) == self.model
        latest = self.latest()
        assert latest.generation >= max(self.versions, default=0)
        self.versions[latest.generation] = (latest.time_ns, dict(self.model))

    def opened(self, library, **more):
        return library.KvStore.open({**self.spec, **more}, context=library.Context()).result()

    def latest(self):
        numbered = sorted(self.manifests.glob("manifest.0*"))
        path = numbered[-1] if numbered else self.manifests / "manifest.ocdbt"
        version = decode_manifest(path.read_bytes()).latest
        assert version is not None
        return version

    def value(self, size):
        self.counter += 1
        return (b"%d," % self.counter * (size // 2 + 1))[:size]

    @staticmethod
    def remove(model, bounds):
        low, high = (bound.encode() for bound in bounds)
        for key in [key for key in model if low <= key and (not high or key < high)]:
            del model[key]


def contents(kv):
    """All of a database."""
    return {bytes(key): bytes(kv.read(key).result().value) for key in kv.list().result()}


def iso(time_ns):
    """A time as specs have it."""
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns % 10**9:09}Z"
