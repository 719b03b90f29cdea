"""Installs the package with each extra by itself, in a clean environment, and uses what it is for.

An extra that lacks a package, or leans on one that only another extra brings, is noticed by nobody
who has installed all of them. So each is installed alone, from a wheel built of this tree, and a
short program does through public names what the extra is there for. Needs a package index, and
half a minute for each; it is no step of the gate. `core` is the package without any extra: every
module of it must import, but those that are for a library that is not installed.

    python scripts/check_extras.py               all of them
    python scripts/check_extras.py core fast     only these
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 900

# Modules that are for a library: they are imported by the program of its extra.
GUESTS = (
    "tensorstore_py._serving.",
    "tensorstore_py._viewer.",
    "tensorstore_py.integrations.",
    "tensorstore_py.testing",
    "tensorstore_py.zarr.key_value_store",
)

ARRAY = """
import numpy as np
import tensorstore_py as ts

def there_and_back(driver, kvstore, **more):
    store = ts.open({"driver": driver, "kvstore": kvstore, **more}, create=True,
                    dtype="float32", shape=[20, 30]).result()
    store[...] = np.arange(30, dtype="float32")
    assert store[19].read().result().tolist() == list(range(30))
    return store
"""

PROGRAMS = {
    "core": """
import importlib, pkgutil, subprocess, sys
import tensorstore_py

import deflate  # what makes gzip and zlib fast is no extra
there_and_back("zarr3", "memory://", metadata={"codecs": ["gzip"]})
there_and_back("zarr", "memory://", metadata={"compressor": {"id": "zlib", "level": 5}})
for driver in ("zarr", "zarr3", "n5"):
    there_and_back(driver, "memory://")
names = [found.name for found in pkgutil.walk_packages(tensorstore_py.__path__, "tensorstore_py.")]
names = [name for name in names if not name.startswith(GUESTS) and not name.endswith("__main__")]
assert len(names) > 300, len(names)
lacking = {}
for name in names:
    try:
        importlib.import_module(name)
    except ImportError as error:
        lacking[name] = str(error)
assert not lacking, lacking
""",
    "fast": "",  # a name that installs nothing more than the core
    "codecs": """
there_and_back("zarr", "memory://", metadata={"compressor": {"id": "zfpy", "mode": 4}})
there_and_back("zarr", "memory://", metadata={"compressor": {"id": "pcodec"}})
import msgpack
""",
    "s3": """
import s3fs
ts.KvStore.open("s3://bucket/array/").result()
""",
    "gcs": """
import google.auth
ts.KvStore.open("gs://bucket/array/").result()
""",
    "fsspec": """
there_and_back("zarr3", {"driver": "fsspec", "url": "memory://lab/"})
""",
    "obstore": """
there_and_back("zarr3", {"driver": "obstore", "url": "memory:///"})
""",
    "dask": """
from tensorstore_py.integrations.dask import to_dask
array = to_dask(there_and_back("zarr3", "memory://"), None)
assert float(array.sum().compute(scheduler="threads")) == 20 * sum(range(30))
""",
    "xarray": """
import xarray
from tensorstore_py.integrations.xarray import to_zarr
assert "tensorstore" in xarray.backends.list_engines()
to_zarr(xarray.Dataset({"a": ("x", np.arange(5))}), "a.zarr")
assert xarray.open_dataset("a.zarr", engine="tensorstore")["a"].values.tolist() == [0, 1, 2, 3, 4]
""",
    "zarr": """
import zarr
zarr.create_array(ts.zarr.as_store("a.zarr"), shape=(4,), dtype="int16")[:] = 7
assert zarr.open_array("a.zarr")[:].tolist() == [7, 7, 7, 7]
""",
    "serve": """
with ts.serve(there_and_back("n5", "memory://")).result() as server:
    served = ts.open(server.urls["zarr3"]).result()
    assert served[19].read().result().tolist() == list(range(30))
""",
    "progress": """
import tqdm
there_and_back("zarr3", "memory://").read(progress=True).result()
""",
    "docs": """
import black, material, mike, mkdocs, mkdocstrings, mkdocstrings_handlers.python
""",
    "cli": """
import rich
from tensorstore_py.cli.main import main
there_and_back("zarr3", {"driver": "file", "path": "a.zarr/"})
assert main(["verify", "a.zarr", "--progress"]) == 0
assert main(["completion", "bash"]) == 0
""",
    "demo": """
from PIL import Image
Image.fromarray(np.zeros((2, 2), "uint8")).save("a.png")
""",
}


def extras() -> list[str]:
    """The extras of pyproject.toml, but `dev`, with which the gate runs."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [name for name in document["project"]["optional-dependencies"] if name != "dev"]


def run(*command: str, cwd: Path) -> str:
    """Runs a command; returns what it said if it failed, else nothing."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()[-2000:]


def programs_of(environment: Path) -> Path:
    """Where an environment has its programs."""
    return environment / ("Scripts" if sys.platform == "win32" else "bin")


def built(folder: Path) -> str:
    """Builds the wheel of this tree in a folder, and returns its path."""
    problem = run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder),
        str(ROOT), cwd=folder,
    )  # fmt: skip
    if problem:
        raise SystemExit(problem)
    return str(next(folder.glob("*.whl")))


def problem_of(name: str, wheel: str, folder: Path) -> str:
    """Installs one extra in a new environment and runs its program; returns what went wrong."""
    folder.mkdir()
    venv.create(folder / "environment", with_pip=True)
    programs = programs_of(folder / "environment")
    python = str(programs / "python")
    wanted = wheel if name == "core" else f"{wheel}[{name}]"
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return (
        run(*install, wanted, cwd=folder)
        or run(python, "-m", "pip", "check", cwd=folder)
        or run(str(programs / "tspy"), "--version", cwd=folder)
        or run(python, "-c", f"GUESTS = {GUESTS!r}\n{ARRAY}{PROGRAMS[name]}", cwd=folder)
    )


def main(arguments: list[str]) -> int:
    """Checks what is named, or all; prints a line each and returns the exit code."""
    known = ["core", *extras()]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="EXTRA", help=f"of {', '.join(known)}")
    names = parser.parse_args(arguments).names or known
    if unknown := set(names) - set(known):
        parser.error(f"no extra is named {', '.join(sorted(unknown))}; there are {known}")
    failures = 0
    with tempfile.TemporaryDirectory(prefix="extras-") as folder:
        wheel = built(Path(folder))
        for name in names:
            problem = problem_of(name, wheel, Path(folder, name))
            failures += bool(problem)
            print(f"{name}: {problem or 'ok'}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
