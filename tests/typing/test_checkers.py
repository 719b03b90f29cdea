"""What mypy and pyright say of specs and calls: of right ones nothing, of wrong ones where."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import tensorstore_py as ts
from tensorstore_py.typing import DriverSpec, KvStoreSpec, S3StoreSpec, Zarr3Spec, ZarrSpec

right: Zarr3Spec = {
    "driver": "zarr3",
    "kvstore": {"driver": "s3", "bucket": "b"},
    "metadata": {"shape": [3], "codecs": ["zstd", {"name": "crc32c"}]},
    "schema": {"dtype": "int8", "chunk_layout": {"chunk": {"shape": [2]}}},
    "create": True,
}
over: DriverSpec = {"driver": "cast", "dtype": "int8", "base": right}
handle: Zarr3Spec = {"driver": "zarr3", "kvstore": ts.KvStore.open("memory://").result()}
member: Zarr3Spec = {"driver": "zarr3", "kvstor": "memory://"}  # wrong
inner: Zarr3Spec = {"driver": "zarr3", "kvstore": {"driver": "s3", "buket": "b"}}  # wrong
deep: ZarrSpec = {"driver": "zarr", "kvstore": "memory://", "metadata": {"chunk": [2]}}  # wrong
value: S3StoreSpec = {"driver": "s3", "bucket": 5}  # wrong
name: KvStoreSpec = {"driver": "s4", "bucket": "b"}  # wrong
missing: KvStoreSpec = {"driver": "gcs"}  # wrong

ts.open(right, open=True, dtype="int8", shape=(3,), codec="zstd", fill_value=5).result()
ts.open({"driver": "zarr3", "kvstore": "memory://"}, dtype="int8", shape=[3], rank=1)
ts.Group.open("memory://").result().create_array("a", dtype="int8", shape=[3])
ts.open("memory://", dtpe="int8")  # wrong
ts.open("memory://", rank="3")  # wrong
ts.Schema(shpe=[3])  # wrong
ts.copy("memory://", "memory://", progress=5)  # wrong
ts.copy("memory://", "memory://", progress=True)
"""
WRONG = [at for at, line in enumerate(PROGRAM.split("\n"), 1) if line.endswith("# wrong")]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_what_is_wrong_is_shown_where_it_is_written(checker, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    if checker == "mypy":
        # Kept from one run to the next: of the first one, most is the package itself.
        cache = f"--cache-dir={ROOT / '.mypy_cache/checkers'}"
        command = [sys.executable, "-m", "mypy", cache, "--config-file="]
    else:
        config = tmp_path / "pyrightconfig.json"
        config.write_text(f'{{"extraPaths": ["{ROOT}"], "typeCheckingMode": "standard"}}')
        tool = Path(sys.executable).with_name("basedpyright")
        command = [str(tool), f"--pythonpath={sys.executable}", f"--project={config}"]
    done = subprocess.run(
        [*command, str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(ROOT), "HOME": str(tmp_path)},
    )
    shown = re.findall(r"program\.py:(\d+)[:\d]*(?: -)? error", done.stdout)

    assert sorted({int(each) for each in shown}) == WRONG, done.stdout + done.stderr
