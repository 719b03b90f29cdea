import argparse
import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tensorstore_py.cli.trusted import add_trust, array_or_group, document, trust


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_trust(parser)
    return parser.parse_args(arguments)


def test_nothing_is_restricted_unless_it_is_said():
    assert trust(parsed()) is None
    assert array_or_group("memory://", None) == "memory://"
    assert document("memory://a", None) == "memory://a"


@pytest.mark.parametrize("option", ["--store", "--plugin"])
def test_what_would_restrict_nothing_is_refused(option):
    with pytest.raises(ts.SpecError, match=f"{option} restricts nothing without --untrusted"):
        trust(parsed(option, "memory://"))


def test_says_what_is_trusted(tmp_path):
    found = trust(
        parsed("--untrusted", "--store", '{"driver": "memory", "path": "a/"}', "--plugin", "lab",
               "--store", str(tmp_path)),
        write=True,
    )  # fmt: skip

    assert repr(found) == (
        f"Trust(stores=['memory://a/', 'file://{tmp_path}/'], plugins=['lab'], write=True)"
    )


@pytest.fixture
def places(tmp_path):
    for name in ("in", "secret"):
        array = ts.open(
            f"file://{tmp_path}/{name}/a/|zarr3:", create=True, dtype="int8", shape=[4]
        ).result()
        array[...] = 3
    (tmp_path / "out").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", ["copy", "rechunk"])
def test_copies_only_between_named_stores(command, places, capsys):
    trusted = ["--untrusted", "--store", str(places / "in"), "--store", f"file://{places}/out/",
               "--chunks", "2"]  # fmt: skip
    out = places / "out"

    for source, dest, manifest, named in (
        (places / "secret" / "a", out / "a", out / "m.json", "secret"),
        (f"file://{places}/secret/a/", out / "a", out / "m.json", "secret"),
        (json.dumps({"driver": "zarr3", "kvstore": f"file://{places}/secret/a/"}), out / "a",
         out / "m.json", "secret"),
        (places / "in" / "a", places / "elsewhere", out / "m.json", "elsewhere"),
        (places / "in" / "a", out / "a", places / "elsewhere.json", "elsewhere"),
    ):  # fmt: skip
        code = main([command, str(source), str(dest), "--manifest", str(manifest), *trusted])
        assert code == 1
        assert named in capsys.readouterr().err
    assert sorted(each.name for each in places.iterdir()) == ["in", "out", "secret"]
    assert list(out.iterdir()) == []

    code = main([command, str(places / "in" / "a"), f"file://{places}/out/a/", *trusted,
                 "--manifest", str(out / "m.json")])  # fmt: skip
    assert code == 0
    np.testing.assert_array_equal(ts.open(out / "a").result(), [3] * 4)
    assert (out / "m.json").exists()


def test_migrates_only_in_named_stores(places, capsys):
    ts.Group.open(places / "in" / "old", create=True, zarr_format=2).result()
    trusted = ["--untrusted", "--store", str(places / "in")]

    assert main(["migrate", str(places / "secret"), *trusted]) == 1
    assert main(["migrate", str(places / "in" / "old"), "--dest", str(places / "x"), *trusted]) == 1
    assert not (places / "x").exists()
    assert main(["migrate", str(places / "in" / "old"), *trusted]) == 0
    assert "secret" in capsys.readouterr().err
    assert ts.Group.open(places / "in" / "old").result().zarr_format == 3


def test_validates_as_far_as_it_is_trusted(tmp_path, capsys):
    files = {
        "array.json": {"driver": "zarr3", "kvstore": "memory://a/", "create": True},
        "store.json": {"driver": "file", "path": "/etc/"},
        "context.json": {"aws_credentials": {"type": "profile"}},
    }
    for name, spec in files.items():
        (tmp_path / name).write_text(json.dumps(spec))
    names = [str(tmp_path / name) for name in files]

    assert main(["validate", *names]) == 0
    assert main(["validate", *names, "--untrusted", "--store", "memory://"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(f"{tmp_path}/")[:37] for line in lines] == [
        "array.json:create: a spec that is not",
        "store.json: file:///etc/ is in none o",
        "context.json:aws_credentials.type: a ",
    ]
    assert main(["validate", names[0], "--untrusted", "--store", "memory://", "--write"]) == 0


def test_validate_says_what_does_not_go_together(capsys):
    assert main(["validate", "a.json", "--untrusted", "--env"]) == 2
    assert main(["validate", "a.json", "--store", "memory://"]) == 2
    assert "without --untrusted" in capsys.readouterr().err
