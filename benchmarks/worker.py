"""One process, one library: reads a request a line from stdin, answers a JSON line on stdout.

Libraries keep threads, pools and settings of their own; in one process they would share cores,
allocators and the interpreter lock, and the last one measured would pay for the others.
"""

import gc
import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks import bare, layouts, workloads
from benchmarks.libraries import Library, load, versions
from benchmarks.volume import Volume, shared_volume


class Worker:
    """Holds the library and the volume between requests."""

    def __init__(self, name: str, root: Path, *, sync: bool, disk: Path | None) -> None:
        self.name = name
        self.root = root
        self.disk = disk
        self.scratch = root / f"scratch-{name}-{os.getpid()}"
        self.bare = name == "bare"
        self.library: Library | None = None if self.bare else load(name, sync=sync)
        self.volume: Volume = shared_volume(root / "volume.npy")
        # of the layout that was asked for last: a layout's rows come one after another
        self.sample: tuple[str, Volume] = ("", self.volume)

    def sample_of(self, layout: layouts.Layout) -> Volume:
        """The volume as a layout has it, made once for all of its rows."""
        if self.sample[0] != layout.name:
            self.sample = (layout.name, layout.sample(self.volume))
        return self.sample[1]

    def about(self) -> Any:
        """The interpreter and the versions of what is installed for it."""
        numpy = importlib.metadata.version("numpy")
        found = {"numpy": numpy, **versions(self.name)}
        return {"python": platform.python_version(), "versions": found}

    def prepare(self, layout: str) -> Any:
        """Writes the shared data of one layout, unless they are there."""
        assert self.library is not None
        place = self.root / "shared" / layout
        sample = self.sample_of(layouts.BY_NAME[layout])
        if not place.exists():
            handle = self.library.create(layouts.BY_NAME[layout], place, sample.shape[0])
            self.library.write(handle, sample)
        files = [path for path in place.rglob("*") if path.is_file()]
        stored = sum(path.stat().st_size for path in files)
        return {"stored_bytes": stored, "files": len(files), "bytes": sample.nbytes}

    def run(self, workload: str, layout: str, *, check: bool) -> Any:
        """Runs one trial; the seconds, or the answer to whether its result is right."""
        place = self.root / "shared" / layout
        chosen = layouts.BY_NAME[layout]
        sample = self.sample_of(chosen)
        if self.library is None:
            if workload == workloads.COLD:
                place = workloads.cold_copy(place, self.disk)
            found = bare.trial(workload, chosen, place, sample)
            if found is None:
                raise NotImplementedError("nothing is read")
            trial = found
        else:
            bench = workloads.Bench(self.library, chosen, sample, place, self.scratch, self.disk)
            trial = workloads.BY_NAME[workload].prepare(bench)
        gc.collect()
        began = time.perf_counter()
        result = trial.run()
        seconds = time.perf_counter() - began
        if check and not trial.check(result):
            raise ValueError(f"{workload} on {layout} gave a wrong result")
        return {"seconds": seconds / trial.divisor}


def main() -> None:
    """Serves requests until stdin closes."""
    name, root, sync, disk = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    # whatever a library prints must not garble the answers
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin:
        request = json.loads(line)
        action = request.pop("action")
        try:
            if worker is None:
                where = Path(disk) if disk else None
                worker = Worker(name, Path(root), sync=sync == "sync", disk=where)
            answer = {"ok": getattr(worker, action)(**request)}
        except NotImplementedError as error:
            answer = {"lacks": str(error)}
        except Exception:  # noqa: BLE001 - a library's failure is a result to report
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
