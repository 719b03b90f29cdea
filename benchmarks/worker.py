"""One process, one library: reads a request a line from stdin, answers a JSON line on stdout.

Libraries keep threads, pools and settings of their own; in one process they would share cores,
allocators and the interpreter lock, and the last one measured would pay for the others.
"""

import gc
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks import bare, layouts, workloads
from benchmarks.libraries import Library, load
from benchmarks.volume import Volume, shared_volume


class Worker:
    """Holds the library and the volume between requests."""

    def __init__(self, name: str, root: Path, *, sync: bool) -> None:
        self.root = root
        self.scratch = root / f"scratch-{name}-{os.getpid()}"
        self.bare = name == "bare"
        self.library: Library | None = None if self.bare else load(name, sync=sync)
        self.volume: Volume = shared_volume(root / "volume.npy")

    def prepare(self, layout: str) -> Any:
        """Writes the shared data of one layout, unless they are there."""
        assert self.library is not None
        place = self.root / "shared" / layout
        if not place.exists():
            handle = self.library.create(layouts.BY_NAME[layout], place, self.volume.shape[0])
            self.library.write(handle, self.volume)
        files = [path for path in place.rglob("*") if path.is_file()]
        return {"stored_bytes": sum(path.stat().st_size for path in files), "files": len(files)}

    def run(self, workload: str, layout: str, *, check: bool) -> Any:
        """Runs one trial; the seconds, or the answer to whether its result is right."""
        place = self.root / "shared" / layout
        if self.library is None:
            found = bare.trial(workload, layouts.BY_NAME[layout], place, self.volume)
            if found is None:
                raise NotImplementedError("nothing is read")
            trial = found
        else:
            bench = workloads.Bench(
                self.library, layouts.BY_NAME[layout], self.volume, place, self.scratch
            )
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
    name, root, sync = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    # whatever a library prints must not garble the answers
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin:
        request = json.loads(line)
        action = request.pop("action")
        try:
            if worker is None:
                worker = Worker(name, Path(root), sync=sync == "sync")
            answer = {"ok": getattr(worker, action)(**request)}
        except NotImplementedError as error:
            answer = {"lacks": str(error)}
        except Exception:  # noqa: BLE001 - a library's failure is a result to report
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
