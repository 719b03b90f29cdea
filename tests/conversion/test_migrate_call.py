"""Migrations to somewhere else as plans; what a migration is, is in test_migrate."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import tensorstore_py as ts
from tests.plan.trees import SMALL, check, processes


@pytest.fixture
def old(tmp_path):
    group = ts.Group.open(
        tmp_path / "old", create=True, zarr_format=2, attributes={"a": 1}
    ).result()
    layout = ts.ChunkLayout(chunk_shape=[4, 5])
    image = group.create_array("raw/image", dtype="uint16", shape=[12, 14], chunk_layout=layout)
    image.result()[...] = ts.array([[row * 14 + column for column in range(14)]
                                    for row in range(12)], dtype="uint16")  # fmt: skip
    group.create_array("mask", dtype="int8", shape=[6]).result()[...] = 3
    return tmp_path / "old"


@pytest.mark.parametrize("manifest", [False, True])
@pytest.mark.parametrize("engine", [ThreadPoolExecutor, processes])
def test_workers_migrate(old, tmp_path, engine, manifest):
    kept = {"manifest": tmp_path / "m.json"} if manifest else {}
    plain = ts.migrate(old, dest=tmp_path / "plain").result()

    with engine(2) as executor:
        done = ts.migrate(
            old, dest=tmp_path / "new", executor=executor, context=ts.Context(SMALL), **kept
        ).result()

    assert done.steps == plain.steps
    assert (done.where, done.to, done.dry_run) == (plain.where, plain.to, plain.dry_run)
    check(tmp_path / "new")
    assert ts.Group.open(tmp_path / "new").result().zarr_format == 3


def test_a_second_call_goes_on(old, tmp_path):
    for _ in range(2):
        ts.migrate(old, dest=tmp_path / "new", manifest=tmp_path / "m.json").result()

    check(tmp_path / "new")


def test_what_is_going_to_be_done(old, tmp_path):
    plan = ts.plan(ts.migrate, old, dest=tmp_path / "new").result()

    assert [step.name for step in plan.steps] == ["mask", "raw/image"]
    assert not (tmp_path / "new").exists()
    again = ts.Plan.from_json(plan.to_json())
    assert again.run().result().to == 3
    check(tmp_path / "new")


@pytest.mark.parametrize("name", ["executor", "manifest"])
def test_a_migration_in_place_runs_here(old, name, tmp_path):
    with pytest.raises(ts.SpecError, match="pass dest="):
        ts.migrate(old, **{name: tmp_path / "m.json"})
    with pytest.raises(ts.SpecError, match="has no plan; pass dest="):
        ts.plan(ts.migrate, old)


def test_version_1_stays_in_this_process(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old/meta").write_text(
        '{"zarr_format": 1, "shape": [4], "chunks": [2], "dtype": "|i1", "compression": null, '
        '"compression_opts": null, "fill_value": 0, "order": "C"}'
    )
    (tmp_path / "old/attrs").write_text("{}")
    (tmp_path / "old/0").write_bytes(b"\x01\x02")

    with processes(1) as executor, pytest.raises(ts.UnsupportedError, match="version 1 of Zarr"):
        ts.migrate(tmp_path / "old", dest=tmp_path / "new", executor=executor).result()
    assert not (tmp_path / "new").exists()
    with ThreadPoolExecutor(1) as executor:
        ts.migrate(tmp_path / "old", dest=tmp_path / "new", executor=executor).result()

    assert ts.open(tmp_path / "new").result().read().result().tolist() == [1, 2, 0, 0]
