"""`JobEngine`: which engine a job names, and that engine while the job runs.

No engine is imported before a job that names it runs.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._plan.engines import engine_of
from tensorstore_py._runtime.executors import process_pool, thread_pool
from tensorstore_py.errors import SpecError, UnavailableError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = ["ENGINES", "JobEngine"]

Json = dict[str, Any]  # Any: nested JSON

_WORKERS: Final[Json] = {
    "type": "integer",
    "minimum": 1,
    "description": "How many; by default as many as the engine makes.",
}
_ADDRESS: Final[Json] = {
    "type": "string",
    "description": "Of the scheduler, such as tcp://host:8786; by default a cluster is made here.",
}
#: What is said of each kind, and its members.
ENGINES: Final[dict[str, tuple[str, Json]]] = {
    "threads": ("Threads of this process.", {"workers": _WORKERS}),
    "processes": ("Processes of this machine.", {"workers": _WORKERS}),
    "dask": (
        "A cluster of dask.distributed's.",
        {"address": _ADDRESS, "workers": {**_WORKERS, "description": "Of a cluster made here."}},
    ),
    "ray": ("Ray, wherever its own settings say.", {}),
}


class JobEngine(NamedTuple):
    """An engine that is named.

    Attributes:
        kind: one of `ENGINES`; None: this process.
        workers: how many; None: nobody said.
        address: of a scheduler; None: one is made.
    """

    kind: str | None = None
    workers: int | None = None
    address: str | None = None

    @classmethod
    def parse(cls, json: object) -> JobEngine:
        """What a job says.

        Raises:
            SpecError: something is wrong with it; has the path to the member.
        """
        if json is None:
            return cls()
        if not isinstance(json, dict) or not isinstance(json.get("kind"), str):
            raise SpecError('expected an object such as {"kind": "processes", "workers": 4}')
        kind = json["kind"]
        if kind not in ENGINES:
            hint = did_you_mean(kind, sorted(ENGINES))
            raise SpecError(f"there is no engine {kind!r}{hint}", ("kind",))
        members = ENGINES[kind][1]
        for name in json:
            if name != "kind" and name not in members:
                hint = did_you_mean(name, ["kind", *members])
                raise SpecError(f"the engine {kind!r} has no such member{hint}", (name,))
        workers, address = json.get("workers"), json.get("address")
        if workers is not None and (type(workers) is not int or workers < 1):
            raise SpecError(f"expected a number of workers from 1 on, not {workers!r}",
                            ("workers",))  # fmt: skip
        if address is not None and not isinstance(address, str):
            raise SpecError(f"expected the address of a scheduler, not {address!r}", ("address",))
        if address is not None and workers is not None:
            raise SpecError("a cluster that is there has its own; leave it out", ("workers",))
        return cls(kind, workers, address)

    def to_json(self) -> JsonObject | None:
        """It as a job says it."""
        if self.kind is None:
            return None
        return {name: value for name, value in self._asdict().items() if value is not None}

    @contextmanager
    def running(self) -> Iterator[object]:
        """What `executor=` takes, as long as the job runs.

        Raises:
            UnsupportedError: it is not installed.
            UnavailableError: nobody answers at the address.
        """
        if self.kind == "threads":
            with thread_pool(self.workers) as pool:
                yield pool
        elif self.kind == "processes":
            with process_pool(self.workers) as pool:
                yield pool
        elif self.kind == "dask":
            with _dask(self.address, self.workers) as client:
                yield client
        else:
            engine_of(self.kind)  # which is refused before anything is done, if it is not there
            yield self.kind


@contextmanager
def _dask(address: str | None, workers: int | None) -> Iterator[object]:
    try:
        distributed: Any = import_module("distributed")  # at first use: it is large
    except ImportError:
        raise UnsupportedError(
            'dask.distributed is not installed: pip install "dask[distributed]"'
        ) from None
    if address is not None:
        try:
            client = distributed.Client(address)
        except (OSError, ValueError) as error:
            raise UnavailableError(f"no scheduler of dask's at {address}: {error}") from error
        with client:
            yield client
        return
    cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1,
                                       dashboard_address=None)  # fmt: skip
    with cluster, distributed.Client(cluster) as client:
        yield client
