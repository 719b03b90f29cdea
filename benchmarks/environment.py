"""Makes a virtual environment that has this package as `pip install` brings it, and nothing else.

What is measured with everything installed that a developer has says nothing of what a user gets.

    python benchmarks/environment.py build/default                what the package needs
    python benchmarks/environment.py build/fast --extras fast     with extras
    python benchmarks/local.py --ours-python build/default/bin/python

The package is installed from this checkout; the benchmark then runs the checkout itself, with what
the environment has. What is there already is brought up to date.
"""

import argparse
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def make(folder: Path, extras: Sequence[str] = ()) -> Path:
    """Makes the environment; returns its interpreter."""
    builder = venv.EnvBuilder(with_pip=True, symlinks=sys.platform != "win32")
    builder.create(folder)
    python = Path(builder.ensure_directories(str(folder)).env_exe)
    command = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", requirement(extras)]
    subprocess.run(command, check=True)
    return python


def requirement(extras: Sequence[str] = ()) -> str:
    """What pip is asked for: this checkout, with extras."""
    return f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the environment and prints the path of its interpreter."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to make it")
    parser.add_argument("--extras", nargs="*", default=[], metavar="NAME", help="such as fast")
    chosen = parser.parse_args(arguments)
    print(make(chosen.folder, chosen.extras))
    return 0


if __name__ == "__main__":
    sys.exit(main())
