"""`ts.digest`: a hash of what an array or a tree holds, and not of how it is stored.

A tree's digest is made of those of its arrays, and of paths and attributes.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import limits, read_surely, selected
from tensorstore_py._compute.arrays import array_arguments, contents, end_of
from tensorstore_py._compute.fingerprint import LANES, PRIME, added, fingerprint
from tensorstore_py._display.public_name import public
from tensorstore_py._index import propagate_bounds
from tensorstore_py._plan.arrays import open_json
from tensorstore_py._plan.call import FoundCall, register_call
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.running import run_call
from tensorstore_py._plan.steps import Stage, Step, register
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._compute.arrays import Contents
    from tensorstore_py._compute.fingerprint import Lanes
    from tensorstore_py._conversion.endpoints import SourceArray, SourceEndpoint
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.json_value import Json

__all__ = [
    "Digest",
    "DigestArray",
    "DigestCall",
    "MergeLanes",
    "digest",
    "digest_of",
    "tree_digest",
]


_VERSION: Final = "tsd1"
_FORM: Final = re.compile(r"tsd[1-9][0-9]*:[0-9a-f]{64}")


@public
class Digest(str):
    """What `ts.digest` gives: a text such as `"tsd1:9f2c…"`, equal for what is equal.

    Attributes:
        version: of the algorithm: what comes before the colon.
        hex: the 64 hexadecimal digits behind it.

    Raises:
        SpecError: the text is no digest.

    Example:
        >>> import tensorstore_py as ts
        >>> found = ts.digest(ts.array([1, 2, 3], dtype="int16")).result()
        >>> found == ts.Digest(str(found)), found.version, len(found.hex)
        (True, 'tsd1', 64)
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """The digest that a text tells."""
        if not _FORM.fullmatch(text):
            raise SpecError(f"expected a digest such as tsd1:9f2c… with 64 digits, not {text!r}")
        return super().__new__(cls, text)

    @property
    def version(self) -> str:
        """Of the algorithm."""
        return self.partition(":")[0]

    @property
    def hex(self) -> str:
        """The digits."""
        return self.partition(":")[2]

    def __repr__(self) -> str:
        return f"Digest({str(self)!r})"


def digest_of(document: object) -> Digest:
    """The digest of a JSON document in its canonical form."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return Digest(f"{_VERSION}:{hashlib.sha256(text.encode()).hexdigest()}")


class MergeLanes:
    """How fingerprints are merged."""

    def merge(self, one: object, other: object) -> Lanes:
        """The fingerprint of both parts."""
        assert isinstance(one, tuple)
        assert isinstance(other, tuple)
        return added(one, other)

    def to_json(self, result: object) -> Json:
        """As JSON."""
        assert isinstance(result, tuple)
        return list(result)

    def from_json(self, json: Any) -> Lanes:  # noqa: ANN401 - JSON
        """Of JSON.

        Raises SpecError: it is no fingerprint.
        """
        if (
            not isinstance(json, list)
            or len(json) != LANES
            or not all(isinstance(each, int) and 0 <= each < PRIME for each in json)
        ):
            raise SpecError("a partial result is damaged: it is no fingerprint")
        return tuple(json)


class DigestArray:
    """The digest of one array as an operation on blocks, with results that merge.

    `Digest` is what comes of it: the text that is the same for equal arrays. The one invariant: it
    depends on the data type, the shape and the elements, and on nothing else.
    """

    def __init__(self, source: Driver, view: IndexTransform) -> None:
        self._source = source
        self._view = propagate_bounds(source.domain.mark_bounds_implicit[False], view)
        self.inline = source.inline
        self.memory = source.memory
        self.progress_bytes = self.item_bytes = source.data_type.array_dtype.itemsize
        self.blocks = Blocks.of_read(source, self._view, **limits(self.item_bytes, self.memory))

    async def run(self, block: Block) -> Lanes:
        """The fingerprint of a block."""
        data = await read_surely(self._source, self._view[selected(block.bounds)])
        origin = [
            low - first
            for (low, _), first in zip(block.bounds, self._view.input_origin, strict=True)
        ]
        make = partial(fingerprint, data, origin, self._source.data_type)
        return await offload(self.inline, make)

    def result(self, found: Lanes | None) -> Digest:
        """The digest for the fingerprint of all blocks; None: there are none."""
        return digest_of(
            {
                "dtype": self._source.data_type.name,
                "shape": list(self._view.input_shape),
                "elements": list(found or (0,) * LANES),
            }
        )


def digest(
    source: object,
    *,
    manifest: object = None,
    executor: object = None,
    progress: ProgressLike = None,
    context: Context | None = None,
) -> Future[Digest]:
    """A hash of an array, or of a group with everything in it, that storage has no part in.

    Chunks, shards, codecs, memory order, stores and formats make no difference: a copy that holds
    the same has the same digest. Of an array the data type, the shape and the elements count; where
    its domain begins, names and units of dimensions, the fill value and attributes do not. Of a
    tree paths, kinds and attributes count, too, but for those that formats keep names of
    dimensions in.

    Elements are compared bit by bit: -0.0 is not 0.0, and NaN has many forms. The digest is that of
    a sum over all elements, whose keys are known to everybody: it tells what differs by accident
    (with a probability of error below 2^-100), and is no defence against somebody who looks for
    two arrays with one digest.

    Args:
        source: an open array or a view of one, a `Group`, or whatever `ts.copy` takes.
        manifest: where to keep what is done, as for `ts.copy`: the same call goes on from there
            after a crash, and any number of them, on any machines, share the work.
        executor: who reads and computes, as for `ts.copy`; None: this process.
        progress: called with a `Progress`; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `Digest`, a text that begins with the version of the algorithm.

    Raises:
        NotFoundError: (by the Future) nothing is there.
        UnsupportedError: (by the Future) elements are Python objects of any kind.
        FailedPreconditionError: (by the Future) the manifest is that of another call, or the source
            has changed since it began.
        DataLossError: (by the Future) a chunk is corrupt, twice; names its key.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.open("memory://|zarr2:", create=True, dtype="int16", shape=[60]).result()
        >>> old[7] = 5
        >>> new = ts.Group.open("memory://", create=True).result()
        >>> _ = ts.copy(old, new.kvstore / "a", zarr_format=3, chunks=7).result()
        >>> ts.digest(old).result() == ts.digest(new["a"]).result()
        True
    """
    where = None if manifest is None else document_place(manifest, as_context(context))
    return run_call(_call(source, context=context), executor, Reporter(progress, "digest"), where)


def _call(
    source: object,
    *,
    context: Context | None = None,
) -> DigestCall:
    return DigestCall(end_of(source, as_context(context)))


class DigestCall(FoundCall[Digest, "tuple[Contents, dict[str, DigestArray]]"]):
    """A digest that is asked for."""

    operation = "digest"

    def __init__(self, end: SourceEndpoint) -> None:
        self._end = end

    def request(self) -> JsonObject:
        """See `Call`."""
        return {"source": self._end.to_json()}

    def identity(self) -> JsonObject:
        """See `Call`."""
        return {"source": self._end.described}

    async def _find(self) -> tuple[Contents, dict[str, DigestArray]]:
        found = await contents(False, self._end)
        operations = {
            path: DigestArray(each.driver, each.array._transform)
            for path, each in sorted(found.arrays.items())
        }
        return found, operations

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        found, operations = await self.found()
        steps = (_step(path, found.arrays[path], each) for path, each in operations.items())
        return (Stage(tuple(steps)),)

    def result(self, outcomes: list[StageOutcome]) -> Digest:
        """The digest."""
        found, operations = self.known
        lanes: dict[int, Lanes] = {}
        for outcome in outcomes:
            for number, done in outcome.steps.items():
                assert isinstance(done.result, tuple)
                lanes[number] = done.result
        digests = {
            path: operation.result(lanes.get(number))
            for number, (path, operation) in enumerate(operations.items())
        }
        return tree_digest(found, digests) if found.is_tree else digests[""]


def _step(path: str, each: SourceArray, operation: DigestArray) -> Step:
    return Step.of("digest", path, lambda: {"source": array_arguments(each.array, path)}, operation)


async def _open(arguments: JsonObject, context: Context, blocks: Blocks) -> DigestArray:
    array = await open_json(arguments["source"], context, "the source of a digest")
    operation = DigestArray(array._driver, array._transform)
    operation.blocks = blocks
    return operation


register("digest", _open, MergeLanes())
register_call(digest, _call)


def tree_digest(found: Contents, arrays: dict[str, Digest]) -> Digest:
    """The digest of a tree."""
    members = [
        [path, found.attributes(path), arrays.get(path)]
        for path in sorted([*found.groups, *found.arrays])
    ]
    return digest_of({"members": members})
