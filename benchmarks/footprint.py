"""What a library costs besides time: memory above the result, and the time of its import.

Each figure comes from a fresh process, since both can be observed only once.
"""

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.layouts import Layout

ROOT = Path(__file__).resolve().parent.parent

# The high-water mark is set back after the first small read has started threads and pools; where
# the kernel refuses that, it has not been higher than the read will bring it anyway.
MEMORY = """
import json, sys
from pathlib import Path
import numpy
from benchmarks.layouts import BY_NAME
from benchmarks.libraries import load

def status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

name, layout, place = sys.argv[1:]
library = load(name, sync=False)
handle = library.open(BY_NAME[layout], Path(place))
library.read_each(handle, [(slice(0, 8),) * 3])
try:
    Path("/proc/self/clear_refs").write_text("5")
except OSError:
    pass
before = status("VmRSS")
result = library.read(handle)
print(json.dumps(status("VmHWM") - before - result.nbytes))
"""

IMPORT = """
import time
import numpy
began = time.perf_counter()
import {module} as library
getattr(library, "open", None)  # which some import when it is asked for
print(time.perf_counter() - began)
"""


def _output_of(
    python: Path, code: str, *arguments: str, environment: dict[str, str] | None = None
) -> float:
    done = subprocess.run(
        [str(python), "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(json.loads(done.stdout))


def memory_beyond_output(
    library: str, layout: Layout, place: Path, python: Path, rounds: int = 3
) -> float:
    """Peak resident bytes of a full read above what was resident before it and the result itself.

    The median of fresh processes. Linux only.
    """
    arguments = (library, layout.name, str(place))
    return statistics.median(_output_of(python, MEMORY, *arguments) for _ in range(rounds))


def import_seconds(libraries: Mapping[str, Path], rounds: int = 15) -> dict[str, float]:
    """Median seconds that importing each library adds to a process that has numpy, interleaved.

    With bytecode, as installed packages have it, whatever the environment says of writing it.
    """
    taken: dict[str, list[float]] = {name: [] for name in libraries}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(rounds):
            for name, python in libraries.items():
                code = IMPORT.format(module=name.removesuffix("_fused"))
                taken[name].append(_output_of(python, code, environment=environment))
    # the first round wrote the bytecode
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}
