"""What a program pays before its first element: processor time of fresh processes.

    python -m benchmarks.start                    imports, first reads, the command line
    python -m benchmarks.start --rounds 15        more of them
    python -m benchmarks.start --peers            beside the other libraries

The processes take turns. Figures are medians of user and system time, those of code less the time
of `import numpy`, those of `tspy` less nothing. Bytecode is there, as installed packages have it.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tensorstore_py as ts

NUMPY = "import numpy"

#: Code by what it does; `{url}` is an array of Zarr 3 in a local directory.
CODE = {
    "import numpy": NUMPY,
    "import": "import tensorstore_py as ts",
    "import, all public names": "from tensorstore_py import *",
    "import, first read, format named": (
        "import tensorstore_py as ts; ts.open('{url}|zarr3:').result().read().result()"
    ),
    "import, first read, format found": (
        "import tensorstore_py as ts; ts.open('{url}').result().read().result()"
    ),
    "import zarr's names": "import tensorstore_py.zarr",
    "the engine of xarray": "import xarray; import tensorstore_py.integrations.xarray",
}
PEERS = {
    "tensorstore: import, first read": (
        "import tensorstore as ts; ts.open({{'driver': 'zarr3', 'kvstore': '{url}'}})"
        ".result().read().result()"
    ),
    "zarr: import, first read": "import zarr; zarr.open('{path}', mode='r')[:]",
}
COMMANDS = {
    "tspy --version": ["--version"],
    "tspy --help": ["--help"],
    "tspy ls --help": ["ls", "--help"],
    "tspy info ARRAY": ["info", "{path}"],
}
MAIN = "import sys; from tensorstore_py.cli.main import main; sys.exit(main(sys.argv[1:]))"


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Processor time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", *arguments], stdout=subprocess.DEVNULL, check=True, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int, *, peers: bool) -> dict[str, float]:
    """Median seconds of everything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "array")
        url = f"{path.as_uri()}/"
        store = ts.open(f"{url}|zarr3:", create=True, dtype="uint16", shape=[100, 100]).result()
        store.write(np.ones((100, 100), np.uint16)).result()
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        asked = {
            name: [f"{NUMPY}\n{code}".format(url=url, path=path)]
            for name, code in {**CODE, **(PEERS if peers else {})}.items()
        }
        for name, arguments in COMMANDS.items():
            asked[name] = [MAIN, *(each.format(path=path) for each in arguments)]
        taken: dict[str, list[float]] = {name: [] for name in asked}
        for turn in range(rounds + 1):
            for name, arguments in asked.items():
                used = seconds(arguments, environment)
                if turn:  # the first one wrote the bytecode
                    taken[name].append(used)
    return {name: statistics.median(each) for name, each in taken.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", action="store_true", help="beside tensorstore and zarr")
    chosen = parser.parse_args()
    medians = measure(chosen.rounds, peers=chosen.peers)
    numpy = medians["import numpy"]
    print("| | processor time |\n| --- | ---: |")
    for name, median in medians.items():
        own = name in COMMANDS or name == "import numpy"
        print(f"| {name} | {(median if own else median - numpy) * 1e3:.0f} ms |")


if __name__ == "__main__":
    main()
