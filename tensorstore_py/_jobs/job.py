"""`Job`: a job file, checked: sources, targets, steps and engine.

Everything that can be seen to be wrong without asking a store is refused here, with the JSON path.
The one invariant: whatever a job that is not trusted says was either parsed as trust allows, or is
mere data. No engine (`JobEngine`) is imported before a job that names it runs.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._api.group_spec import group_model
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.prepared import as_model
from tensorstore_py._api.spec import Spec
from tensorstore_py._jobs.documents import Document, as_place, in_memory
from tensorstore_py._jobs.operations import operations
from tensorstore_py._plan.call import call_named
from tensorstore_py._plan.engines import engine_of
from tensorstore_py._runtime.executors import process_pool, thread_pool
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import (
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
    did_you_mean,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._jobs.operations import JobOperation, Member
    from tensorstore_py._plan.call import Call
    from tensorstore_py._plan.plan import Plan
    from tensorstore_py._spec.trust import Trust

__all__ = ["ENGINES", "JOB", "MEMBERS", "Allowed", "Job", "JobEngine", "JobStep"]


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
    """An engine that is named, one of `ENGINES`; None: this process.

    `address` is of a scheduler; None: one is made.
    """

    kind: str | None = None
    workers: int | None = None
    address: str | None = None

    @classmethod
    def parse(cls, json: object) -> JobEngine:
        """What a job says.

        Raises SpecError: something is wrong with it; has the path to the member.
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
            UnavailableError: no cluster answers at the address.
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


#: The member that tells a job file from other documents: its version.
JOB: Final = "tensorstore_py_job"
#: What else a job may say, in the order in which people want to read it.
MEMBERS: Final = (
    "description",
    "steps",
    "engine",
    "manifest",
    "report",
    "progress",
    "context",
)


class Allowed(NamedTuple):
    """What a job from an untrusted author may do."""

    read: Trust
    write: Trust


class JobStep(NamedTuple):
    """One step; `options` as its function takes them, `plan` if it was made already."""

    operation: str
    options: Mapping[str, object]
    plan: Plan | None = None

    def call(self, context: Context | None) -> Call[Any]:
        """What it asks for; without a context its specs are bound to one of its own.

        Raises SpecError: something is wrong with its arguments.
        """
        if self.plan is not None:
            return self.plan.call
        try:
            shared = {} if context is None else {"context": context}
            return call_named(self.operation, {**self.options, **shared})
        except TensorStoreError:
            raise
        except (TypeError, ValueError) as error:
            raise SpecError(str(error)) from error


class Job(NamedTuple):
    """A job.

    Attributes:
        steps: what is done, one after the other.
        engine: what runs it.
        progress: whether to tell how far it is; None: to a terminal only.
        context: what all steps share; None: nothing.
    """

    steps: tuple[JobStep, ...]
    engine: JobEngine = JobEngine()
    description: str = ""
    manifest: Document | None = None
    report: Document | None = None
    progress: bool | None = None
    context: object = None

    @classmethod
    def parse(cls, json: object, folder: Path | None, allowed: Allowed | None = None) -> Job:
        """What a job file says; its relative paths are relative to `folder`.

        `allowed` says what it may do; None: whatever it says.

        Raises SpecError: something is wrong with it; has the path to the member.
        """
        if not isinstance(json, dict) or JOB not in json:
            raise SpecError(f'expected a job file, with the member "{JOB}": 1')
        if json[JOB] != 1:
            raise SpecError(f"expected 1, the version of job files, not {json[JOB]!r}", (JOB,))
        rest = {name: value for name, value in json.items() if name not in (JOB, "steps")}
        job = cls.parse_rest(rest, folder, allowed)
        steps = json.get("steps")
        if not isinstance(steps, list) or not steps:
            raise SpecError("expected a list of at least one step", ("steps",))
        found = [_step(each, number, folder, allowed) for number, each in enumerate(steps)]
        return job._replace(steps=tuple(found))

    @classmethod
    def parse_rest(cls, json: JsonObject, folder: Path | None, allowed: Allowed | None) -> Job:
        """What a document says of a job, but for the steps; errors as for `parse`."""
        _check_members(json, MEMBERS)
        for name, kind in (("description", str), ("progress", bool)):
            if name in json and not isinstance(json[name], kind):
                expected = "true or false" if kind is bool else "text"
                raise SpecError(f"expected {expected}, not {json[name]!r}", (name,))
        description, progress = json.get("description", ""), json.get("progress")
        assert isinstance(description, str)
        assert progress is None or isinstance(progress, bool)
        return cls(
            (),
            _engine(json.get("engine"), allowed),
            description,
            _document(json, "manifest", folder, allowed),
            _document(json, "report", folder, allowed),
            progress,
            _context(json.get("context"), allowed),
        )

    def bound_context(self) -> Context | None:
        """The context that all steps share; None: each has its own."""
        return None if self.context is None else Context(self.context)


def _check_members(json: JsonObject, known: tuple[str, ...]) -> None:
    for name in json:
        if name not in known:
            raise SpecError(f"no such member{did_you_mean(name, known)}", (name,))


@contextmanager
def _inside(*path: str | int) -> Iterator[None]:
    """Errors in this tell where it is."""
    try:
        yield
    except SpecError as error:
        raise error.inside(*path) from None


def _step(json: object, number: int, folder: Path | None, allowed: Allowed | None) -> JobStep:
    with _inside("steps", number):
        if not isinstance(json, dict) or not isinstance(json.get("operation"), str):
            raise SpecError('expected an object such as {"operation": "copy", "source": ...}')
        name, known = json["operation"], operations()
        if name not in known:
            hint = did_you_mean(name, sorted(known))
            raise SpecError(f"there is no operation {name!r}{hint}", ("operation",))
        step = JobStep(name, _options(known[name], json, folder, allowed))
        step.call(None)
        return step


def _options(
    operation: JobOperation, json: JsonObject, folder: Path | None, allowed: Allowed | None
) -> dict[str, object]:
    members = operation.members
    _check_members(json, ("operation", *members))
    for each in members.values():
        if each.required and each.name not in json:
            raise SpecError(f"{operation.name} needs this", (each.name,))
    options = {}
    for name, value in json.items():
        if name != "operation":
            with _inside(name):
                options[name] = _option(members[name], value, folder, allowed)
    return options


def _option(member: Member, value: object, folder: Path | None, allowed: Allowed | None) -> object:
    if member.several:
        if not isinstance(value, list) or not value:
            raise SpecError("expected a list of at least one place")
        found = []
        for number, each in enumerate(value):
            with _inside(number):
                found.append(_option(member._replace(several=False), each, folder, allowed))
        return found
    if member.kind in ("read", "write"):
        place = as_place(value, folder)
        if member.kind == "write" and in_memory(place):
            raise SpecError("what is in memory is gone when the job ends; name a file, or a "
                            "store elsewhere")  # fmt: skip
        if allowed is None:
            _check_place(place)
            return place
        return _allowed_place(place, allowed.read if member.kind == "read" else allowed.write)
    if value is None:  # as if nothing was said
        return None
    member.check(value)
    if allowed is None:
        return value
    if member.kind == "other":
        raise SpecError("a job that is not trusted may not say this; leave it out")
    return _allowed_codec(value, allowed.read) if member.name == "codec" else value


def _check_place(place: object) -> None:
    """Have the errors of specs tell where they are."""
    try:
        group_model(place)
    except (SpecError, UnsupportedError):
        as_model(place)


def _allowed_place(place: object, trust: Trust) -> object:
    if isinstance(place, Path):
        KvStore.Spec(place, trust=trust)
        return place
    return Spec(place, trust=trust)


def _allowed_codec(value: object, trust: Trust) -> object:
    if not isinstance(value, dict) or "driver" not in value:
        raise SpecError('a job that is not trusted has to say it in full, such as {"driver": '
                        '"zarr3", "codecs": ["zstd"]}')  # fmt: skip
    return trust.parsed(lambda: CodecSpec(value))


def _engine(json: object, allowed: Allowed | None) -> JobEngine:
    with _inside("engine"):
        engine = JobEngine.parse(json)
        if allowed is not None and engine.kind in ("dask", "ray"):
            raise SpecError("a job that is not trusted may not choose who runs it; leave it out, "
                            "and pass --engine", ("kind",))  # fmt: skip
        return engine


def _document(
    json: JsonObject, name: str, folder: Path | None, allowed: Allowed | None
) -> Document | None:
    given = json.get(name)
    if given is None:
        return None
    with _inside(name):
        if not isinstance(given, str):
            raise SpecError(f"expected a URL or a path, not {given!r}")
        document = Document(as_place(given, folder))
        document.spec(None if allowed is None else allowed.write)
        return document


def _context(json: object, allowed: Allowed | None) -> object:
    with _inside("context"):
        if json is not None:
            Context.Spec(json, trust=None if allowed is None else allowed.read)
        return json
