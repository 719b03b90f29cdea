import tensorstore_py as ts
from tensorstore_py.cli.main import main


def test_migrates(tmp_path, capsys):
    ts.Group.open(tmp_path / "old", create=True, zarr_format=2).result()

    assert main(["migrate", str(tmp_path / "old"), "--dry-run"]) == 0
    assert "would migrate" in capsys.readouterr().out
    assert main(["migrate", str(tmp_path / "old"), "--dest", str(tmp_path / "new")]) == 0
    assert main(["migrate", str(tmp_path / "old"), "--keep"]) == 0

    assert (tmp_path / "old" / ".zgroup").exists()
    for name in ("old", "new"):
        assert ts.Group.open(tmp_path / name).result().zarr_format == 3


def test_says_why_not(tmp_path, capsys):
    assert main(["migrate", str(tmp_path / "nowhere")]) == 1
    assert "nothing to migrate" in capsys.readouterr().err
