"""Repairs: the newest whole version is the latest again, and both libraries read it."""

import pytest

import tensorstore_py as ts
from tests.ocdbt.databases import LIBRARIES, contents, damage, generations, new, root_of


def filled(path, count=20, **config):
    db = new(path, max_inline_value_bytes=5, **config)
    for number in range(count):
        db[f"k{number:02}"] = b"x" * (number + 3)
    return {f"k{number:02}".encode(): b"x" * (number + 3) for number in range(count)}


def read_by_both(path):
    ours, theirs = (contents(path, library=library) for library in LIBRARIES.values())
    assert ours == theirs
    return ours


@pytest.mark.parametrize("kind", ["single", "numbered"])
def test_the_newest_whole_version_is_the_latest_again(tmp_path, kind):
    model = filled(tmp_path, manifest_kind=kind)
    for index in (-1, -2):
        file, offset, _ = root_of(tmp_path, index)
        damage(tmp_path, file, offset + 20)
    files = sorted((tmp_path / "d").iterdir())

    foretold = ts.ocdbt.repair(tmp_path, dry_run=True).result()
    assert generations(tmp_path)[0] == 21
    done = ts.ocdbt.repair(tmp_path).result()

    assert done == foretold._replace(dry_run=False)
    assert (done.generation, done.source, done.keys) == (22, "v19", 18)
    assert "after v19" in str(done)
    assert read_by_both(tmp_path) == {key: model[key] for key in sorted(model)[:18]}
    assert set(files) <= set((tmp_path / "d").iterdir())
    assert ts.ocdbt.check(tmp_path).result().ok
    assert not ts.ocdbt.repair(tmp_path).result().repaired


def test_a_version_that_is_asked_for(tmp_path):
    filled(tmp_path)
    ts.ocdbt.name(tmp_path, "good", 6).result()

    report = ts.ocdbt.repair(tmp_path, version="good").result()

    assert (report.generation, report.source) == (22, "v6")
    assert len(read_by_both(tmp_path)) == 5
    file, offset, _ = root_of(tmp_path, -2)
    damage(tmp_path, file, offset + 20)
    with pytest.raises(ts.DataLossError, match="version 21 is damaged, too"):
        ts.ocdbt.repair(tmp_path, version=21).result()


def test_a_damaged_tree_of_versions_is_left_behind(tmp_path):
    filled(tmp_path, 7, version_tree_arity_log2=1)
    manifest = ts.ocdbt.dump(f"file://{tmp_path}/").result()
    assert [each["generation_number"] for each in manifest["versions"]] == [7, 8]
    for node in manifest["version_tree_nodes"]:
        where = node["location"].split(":")
        damage(tmp_path, where[2], int(where[3]) + 20)
    file, offset, _ = root_of(tmp_path)
    damage(tmp_path, file, offset + 20)

    report = ts.ocdbt.repair(tmp_path).result()

    assert (report.generation, report.source) == (9, "v7")
    assert any("older versions up to" in each for each in report.lost)
    assert len(read_by_both(tmp_path)) == 6


@pytest.mark.parametrize("damaged", ["config", "newest", "both"])
def test_numbered_manifests_go_on_from_the_newest_that_can_be_read(tmp_path, damaged):
    model = filled(tmp_path, manifest_kind="numbered")
    lost = 0
    if damaged in ("config", "both"):
        (tmp_path / "manifest.ocdbt").unlink()
    if damaged in ("newest", "both"):
        lost = 2
        for number in (20, 21):
            (tmp_path / f"manifest.{number:016x}").write_bytes(b"damaged")

    report = ts.ocdbt.repair(tmp_path).result()

    assert report.generation == (22 if lost else 21)
    assert len(report.lost) == 1 + lost
    assert read_by_both(tmp_path) == {key: model[key] for key in sorted(model)[: 20 - lost]}
    assert generations(tmp_path) == list(range(report.generation, 0, -1))
    kv = LIBRARIES["reference"].KvStore.open(f"file://{tmp_path}/|ocdbt:").result()
    kv["more"] = b"1"
    assert ts.ocdbt.check(tmp_path, all_versions=True).result().ok


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize(
    "config", [{}, {"max_decoded_node_bytes": 300, "version_tree_arity_log2": 2}]
)
def test_a_lost_manifest_is_made_again_of_what_data_files_tell(tmp_path, library, config):
    db = new(tmp_path, library, max_inline_value_bytes=0, **config)
    model = {}
    for number in range(40):
        db[f"k{number % 30}"] = model[f"k{number % 30}".encode()] = b"x" * (number + 3)
    older = {generation: contents(tmp_path, generation) for generation in (5, 17, 30)}
    (tmp_path / "manifest.ocdbt").write_bytes(b"damaged")

    report = ts.ocdbt.repair(tmp_path).result()

    assert report.keys == 30
    assert any("configuration" in each for each in report.lost)
    assert read_by_both(tmp_path) == model
    for generation, expected in older.items():
        for each in LIBRARIES.values():
            assert contents(tmp_path, generation, each) == expected
    kv = LIBRARIES["reference"].KvStore.open(f"file://{tmp_path}/|ocdbt:").result()
    kv["more"] = b"1"
    assert ts.ocdbt.check(tmp_path, all_versions=True).result().ok


def test_where_nothing_tells_which_tree_was_the_latest_the_caller_does(tmp_path):
    db = new(tmp_path)
    for number in range(3):
        db[f"k{number}"] = b"1"
    latest = root_of(tmp_path)[0]
    (tmp_path / "manifest.ocdbt").unlink()

    with pytest.raises(ts.FailedPreconditionError, match=r"say root=…, one of") as caught:
        ts.ocdbt.repair(tmp_path).result()
    (root,) = (line.split()[0] for line in str(caught.value).split("\n")[1:] if latest in line)
    assert ts.ocdbt.repair(tmp_path, root=root).result().keys == 3
    assert read_by_both(tmp_path) == {b"k0": b"1", b"k1": b"1", b"k2": b"1"}


def test_nothing_that_is_left(tmp_path):
    with pytest.raises(ts.NotFoundError, match="there is no manifest"):
        ts.ocdbt.repair(tmp_path).result()
    filled(tmp_path)
    for file in (tmp_path / "d").iterdir():
        file.write_bytes(b"damaged")
    with pytest.raises(ts.DataLossError, match="no version is whole"):
        ts.ocdbt.repair(tmp_path).result()
    (tmp_path / "manifest.ocdbt").unlink()
    with pytest.raises(ts.DataLossError, match="no whole tree"):
        ts.ocdbt.repair(tmp_path).result()
    with pytest.raises(ts.SpecError, match="give one of them"):
        ts.ocdbt.repair(tmp_path, version=1, root="btreenode::d/1:0:1")
