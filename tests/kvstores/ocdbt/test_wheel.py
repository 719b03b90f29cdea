"""OCDBT databases beside the reference: both write to one, and read what the other wrote."""

import random
from pathlib import Path

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.ocdbt.btree import Leaf, decode_node, encode_node
from tensorstore_py.kvstores.ocdbt.manifest import decode_manifest, encode_manifest
from tensorstore_py.kvstores.ocdbt.references import MISSING
from tensorstore_py.kvstores.ocdbt.versions import decode_version_node, encode_version_node
from tests.kvstores.ocdbt.databases import contents, open_anew, spec_of

CONFIGS = [
    {},
    {"max_decoded_node_bytes": 300, "max_inline_value_bytes": 0, "compression": None},
    {"max_decoded_node_bytes": 1000, "version_tree_arity_log2": 1},
    {"manifest_kind": "numbered", "version_tree_arity_log2": 2, "max_inline_value_bytes": 20},
    {"manifest_kind": "numbered", "max_decoded_node_bytes": 500, "compression": None},
    {"max_decoded_node_bytes": 0},
]


def some_changes(source):
    keys = ["".join(source.choices("ab/é1", k=source.randint(1, 7))) for _ in range(6)]
    return {
        key.encode(): None if source.random() < 0.3 else source.randbytes(source.randint(0, 200))
        for key in keys
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_writers_of_both_libraries_take_turns(tmp_path, config, seed):
    source = random.Random(seed)
    model: dict[bytes, bytes] = {}
    for step in range(20):
        library = source.choice([ts, reference])
        kv = open_anew(library, spec_of(tmp_path, **({"config": config} if not step else {})))
        changes = some_changes(source)
        if source.random() < 0.5:
            with library.Transaction() as transaction:
                staged = kv.with_transaction(transaction)
                for key, value in changes.items():
                    staged.write(key, value).result()
        else:
            for key, value in changes.items():
                kv.write(key, value).result()
        model.update({key: value for key, value in changes.items() if value is not None})
        for key, value in changes.items():
            if value is None:
                model.pop(key, None)
        if source.random() < 0.2:
            kv.delete_range(library.KvStore.KeyRange("a", "b")).result()
            model = {key: value for key, value in model.items() if not b"a" <= key < b"b"}

        assert contents(open_anew(ts, spec_of(tmp_path))) == model
        assert contents(open_anew(reference, spec_of(tmp_path))) == model


def test_new_databases_have_the_same_configuration(tmp_path):
    configs = []
    for library in (ts, reference):
        folder = tmp_path / library.__name__
        open_anew(library, spec_of(folder))["a"] = b"1"
        manifest = decode_manifest((folder / "manifest.ocdbt").read_bytes())
        configs.append(manifest.config._replace(uuid=b""))

    assert configs[0] == configs[1]


@pytest.mark.parametrize("kind", ["single", "numbered"])
def test_an_assumed_configuration_makes_a_database_for_both(tmp_path, kind):
    spec = spec_of(tmp_path, assume_config=True, config={"manifest_kind": kind})

    open_anew(ts, spec)["a"] = b"1"

    for library in (ts, reference):
        assert contents(open_anew(library, spec_of(tmp_path))) == {b"a": b"1"}


def test_what_changes_nothing_makes_no_version_but_is_decided_by_what_is_stored_now(tmp_path):
    ours, other = (open_anew(ts, spec_of(tmp_path)) for _ in range(2))
    ours["a"] = b"1"
    before = (tmp_path / "manifest.ocdbt").read_bytes()

    ours.write("nothing", None).result()
    ours.delete_range(ts.KvStore.KeyRange("x", "y")).result()
    assert (tmp_path / "manifest.ocdbt").read_bytes() == before

    other["b"] = b"2"
    ours.write("b", None).result()
    assert contents(open_anew(ts, spec_of(tmp_path))) == {b"a": b"1"}


def test_versions_of_both_are_the_same_ones(tmp_path):
    config = {"version_tree_arity_log2": 1}
    for number in range(40):
        library = (ts, reference)[number % 3 == 1]
        kv = open_anew(library, spec_of(tmp_path, **({"config": config} if not number else {})))
        kv["n"] = b"%d" % number

    for generation in range(2, 42):
        spec = spec_of(tmp_path, version=generation)
        found = [bytes(open_anew(library, spec)["n"]) for library in (ts, reference)]
        assert found == [b"%d" % (generation - 2)] * 2
    with pytest.raises(ts.NotFoundError, match="version v42"):
        open_anew(ts, spec_of(tmp_path, version=42)).read("n").result()


def test_what_the_reference_writes_is_encoded_to_the_same_bytes(tmp_path):
    config = {"max_decoded_node_bytes": 300, "compression": None, "version_tree_arity_log2": 1}
    kv = open_anew(reference, spec_of(tmp_path, config=config))
    for number in range(9):
        with reference.Transaction() as transaction:
            for key in range(number * 4):
                kv.with_transaction(transaction)[f"key/{key}"] = b"v" * number
    raw = (tmp_path / "manifest.ocdbt").read_bytes()
    manifest = decode_manifest(raw)
    assert encode_manifest(manifest) == raw
    nodes = []

    def bytes_of(at):
        data = Path(tmp_path, at.file.path.decode()).read_bytes()
        return data[at.offset : at.offset + at.length]

    def check_tree(at):
        node = decode_node(bytes_of(at), at.file.base, 1 << 20)
        assert encode_node(node, None) == bytes_of(at)
        nodes.append(node)
        for child in () if isinstance(node, Leaf) else node.children:
            check_tree(child.reference)

    def check_versions(versions, subtrees):
        for version in versions:
            if version.root is not MISSING:
                check_tree(version.root)
        for subtree in subtrees:
            node = decode_version_node(bytes_of(subtree.reference), b"", 1 << 20)
            assert encode_version_node(node, None) == bytes_of(subtree.reference)
            check_versions(node.versions, node.subtrees)

    check_versions(manifest.versions, manifest.subtrees)
    assert {node.height for node in nodes} >= {0, 1, 2}


@pytest.mark.parametrize("which", ["manifest", "data"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, which):
    kv = open_anew(ts, spec_of(tmp_path, config=CONFIGS[1]))
    with ts.Transaction() as transaction:
        for key in range(60):
            kv.with_transaction(transaction)[f"key/{key}"] = b"v" * (key % 9)
    expected = contents(kv)
    data = max((tmp_path / "d").iterdir(), key=lambda path: path.stat().st_size)
    path = tmp_path / "manifest.ocdbt" if which == "manifest" else data
    whole = path.read_bytes()
    source = random.Random(0)
    errors = []
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(len(changed))] = source.randrange(256)
        if source.random() < 0.3:
            del changed[source.randint(0, len(changed)) :]
        path.write_bytes(changed)
        try:
            found = contents(open_anew(ts, spec_of(tmp_path)))
        except ts.DataLossError as error:
            errors.append(str(error))
        else:
            # What is no node has no checksum: values in data files.
            assert found.keys() == expected.keys()
    assert [error for error in errors if path.name not in error] == []
    assert len(errors) > 200


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"config": {"uuid": "00"}}, "config.uuid.*32 hexadecimal digits"),
        ({"config": {"manifest_kind": "x"}}, "config.manifest_kind"),
        ({"config": {"compression": {"id": "gzip"}}}, "config.compression"),
        ({"version": 0}, "version.*expected a generation"),
        ({"version": "yester day"}, "version.*2025-01-01T01:23:45.678Z"),
        ({"coordinator": {"address": "a"}}, "coordinator.*address"),
    ],
)
def test_what_is_not_possible_is_refused(members, message):
    with pytest.raises((ts.SpecError, ts.UnsupportedError), match=message):
        ts.KvStore.open({"driver": "ocdbt", "base": "memory://db/", **members}).result()


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"max_inline_value_bytes": 7}, "max_inline_value_bytes: expected 7 but received 100"),
        ({"compression": None}, "compression: expected null but received"),
        ({"manifest_kind": "numbered"}, 'manifest_kind: expected "numbered" but received "single"'),
    ],
)
def test_another_configuration_is_refused_by_both(tmp_path, config, name):
    open_anew(reference, spec_of(tmp_path))["a"] = b"1"

    for library in (ts, reference):
        kv = open_anew(library, spec_of(tmp_path, config=config))
        with pytest.raises(ValueError, match=f"Configuration mismatch on {name}"):
            kv.read("a").result()


@pytest.mark.parametrize(
    "url",
    ["memory://a/|ocdbt:", "memory://a/|ocdbt:b/c", "memory://a/|ocdbt:@v3/b",
     "memory://a/|ocdbt:@2025-01-01T01:23:45.678Z/p", "memory://a/|ocdbt:%40v3/x"],
)  # fmt: skip
def test_urls_mean_the_same(url):
    ours, theirs = (library.KvStore.Spec(url) for library in (ts, reference))

    assert ours.to_json() == theirs.to_json()
    assert ours.url == theirs.url == url
