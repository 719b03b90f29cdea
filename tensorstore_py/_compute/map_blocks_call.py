"""`MapBlocksCall`: a function mapped over blocks, as a plan of one step.

What can be refused is refused before the target is made: shapes that do not fit, a target that is
also a source, a function that cannot travel.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorstore_py._compute.alignment import Alignment, Frame
from tensorstore_py._compute.block_function import BlockFunction, PickledFunction
from tensorstore_py._compute.map_blocks_operation import MapBlocks
from tensorstore_py._compute.map_blocks_options import MapOptions
from tensorstore_py._compute.map_blocks_target import data_type_of, target_options
from tensorstore_py._conversion.copy_plan import MemberPaths, PlannedArray, Request
from tensorstore_py._conversion.endpoints import SourceArray, described, open_source
from tensorstore_py._conversion.target_metadata import RequestedMetadata, TargetMetadata
from tensorstore_py._conversion.tree_copy import TreeCopy
from tensorstore_py._plan.arrays import array_json, open_json
from tensorstore_py._plan.call import FoundCall
from tensorstore_py._plan.steps import Stage, Step, register
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    MismatchError,
    PermissionDeniedError,
    SpecError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorstore_py._api.blocks import Blocks
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.endpoints import (
        DestinationEndpoint,
        FoundEndpoint,
        SourceEndpoint,
    )
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._plan.steps import Operation
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.schema import Schema

__all__ = ["MapBlocksCall", "MapRequest"]


class MapRequest(NamedTuple):
    """What is asked for.

    Attributes:
        options: how dimensions are taken.
        wanted: how a new target is to be.
        if_exists: what to do about an array that is at the target.
        identity: what must be the same for a later call to go on with this one.
    """

    function: BlockFunction
    sources: tuple[SourceEndpoint, ...]
    target: DestinationEndpoint
    options: MapOptions
    wanted: RequestedMetadata
    if_exists: Literal["raise", "replace"]
    identity: JsonObject


class _Opened(NamedTuple):
    """What was found: open sources, the target or how it is made, and what is done."""

    sources: list[TensorStore]
    to: FoundEndpoint
    planned: PlannedArray | None
    operation: MapBlocks
    target: TensorStore

    @property
    def form(self) -> str:
        """A few letters that are others when an array has another form."""
        said = [(store.shape, store.dtype.name) for store in (*self.sources, self.target)]
        return sha256(repr(said).encode()).hexdigest()[:16]


class MapBlocksCall(FoundCall["TensorStore", _Opened]):
    """A function that is to be mapped."""

    operation = "map_blocks"

    def __init__(self, request: MapRequest, arguments: Callable[[], JsonObject]) -> None:
        self._request = request
        self._arguments = arguments
        self._made: TensorStore | None = None
        self._begun = False
        source, to = request.sources[0], request.target
        every = MemberPaths.of(None, None)
        self._tree = TreeCopy(
            Request(source, to, False, every, request.if_exists, RequestedMetadata(), None),
            Reporter(None),
        )

    def resume(self, forms: Mapping[str, str]) -> None:
        """See `Call`."""
        del forms  # what is different now, the plan's steps tell
        self._begun, self._found = True, None

    def request(self) -> JsonObject:
        """See `Call`."""
        return self._arguments()

    def identity(self) -> JsonObject:
        """See `Call`."""
        return dict(self._request.identity)

    async def _find(self) -> _Opened:
        request, target = self._request, self._request.target
        found = [await within(False, end.inline, end.find) for end in request.sources]
        sources = [
            await _array(each, number, end.inline)
            for number, (each, end) in enumerate(zip(found, request.sources, strict=True))
        ]
        form = None if found[0].tree is None else found[0].tree.form
        to = await within(False, target.inline, lambda: target.find(form))
        self._refuse(sources, to)
        there = to.array if to.place is None else None
        known = None if target.array is None else target.array.known_schema()
        frames = [_frame(store) for store in sources]
        alignment = Alignment.of(
            frames, _target_frame(there, known), request.options.drop, request.options.new
        )
        types = [store.dtype for store in sources]
        halo = request.options.halos(alignment, types)
        planned = None
        if there is None:
            dtype: Any = request.wanted.dtype or (None if known is None else known.dtype)
            if dtype is None:
                dtype = await data_type_of(request.function, alignment, halo, types)
            form = None if to.place is None else to.place.form
            options = target_options(sources, alignment, dtype, request.wanted, form, known)
            planned = self._planned(sources[0], options, to)
        assumed = there if planned is None else await self._tree.assumed(to, planned)
        assert assumed is not None
        operation = MapBlocks.of(request.function, alignment, halo, sources, assumed)
        return _Opened(sources, to, planned, operation, assumed)

    def _planned(
        self, source: TensorStore, options: dict[str, object], to: FoundEndpoint
    ) -> PlannedArray:
        may_be_there = to.node is not None or to.place is None
        replaced = may_be_there and (self._begun or self._request.if_exists == "replace")
        return PlannedArray(
            SourceArray("", source, None, None, {}),
            TargetMetadata(options, {}, False, ""),
            "replace" if replaced else "create",
            0,
        )

    def _refuse(self, sources: list[TensorStore], to: FoundEndpoint) -> None:
        """Raises what is wrong with the target."""
        request, place = self._request, self._request.target.described
        open_ = to.array if to.place is None else None
        if open_ is not None:
            if not open_.writable:
                raise PermissionDeniedError(
                    "the target was not opened for writing; pass write=True"
                )
            if request.wanted.changes:
                name = request.wanted.changes[0]
                raise SpecError("the target is an open array, which is as it is", (name,))
        elif to.node is not None and to.node.kind != "array":
            raise MismatchError(f"a group is at the target, {place}; name a path inside it")
        elif to.node is not None and request.if_exists != "replace" and not self._begun:
            raise AlreadyExistsError(
                f"an array is at the target already, {place}; open it and pass it to write into "
                'it, or pass if_exists="replace"'
            )
        where = _where(to, request.target)
        for number, store in enumerate(sources):
            if (open_ is not None and store._driver is open_._driver) or _same(store, where):
                raise SpecError(
                    f"it is source {number}, too, which later blocks read; use another place",
                    ("target",),
                )

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        seen, request = await self.found(), self._request

        def arguments() -> JsonObject:
            return {
                "function": request.function.portable(),
                "kwargs": request.function.kwargs,
                "sources": [
                    array_json(store, f"source {number}")
                    for number, store in enumerate(seen.sources)
                ],
                "target": array_json(seen.target, "the target"),
                **request.options.to_json(),
            }

        return (Stage((Step.of("map_blocks", "", arguments, seen.operation, seen.form),)),)

    async def begin(self, again: bool) -> None:
        """Make the target."""
        seen = await self.found()
        if seen.planned is not None:
            planned = seen.planned._replace(action="replace") if again else seen.planned
            self._made = await self._tree.target(seen.to, planned)

    async def check_begun(self) -> None:
        """See `Call`."""
        seen = await self.found()
        if seen.planned is not None and seen.to.place is not None and seen.to.node is None:
            raise FailedPreconditionError(
                f"the target that an earlier call made, {self._request.target.described}, is not "
                "there any more; delete the manifest to begin anew"
            )

    def result(self, outcomes: list[StageOutcome]) -> TensorStore:
        """The target."""
        del outcomes
        return self.known.target if self._made is None else self._made


async def _array(found: FoundEndpoint, number: int, inline: bool) -> TensorStore:
    """The open array at a source."""
    node = found.node
    if node is not None and node.kind != "array":
        raise MismatchError(f"source {number} is a group; name an array in it")
    store = found.array
    if node is not None and (store is None or found.place is not None):
        store = (await within(False, inline, lambda: open_source(found, node, ""))).array
    assert store is not None
    if not store.readable:
        raise PermissionDeniedError(
            f"source {number} was not opened for reading; open it with read=True"
        )
    return store


def _frame(store: TensorStore) -> Frame:
    return Frame(tuple(store.domain.labels), tuple(store.shape))


def _target_frame(there: TensorStore | None, known: Schema | None) -> Frame | None:
    """Labels and extents of the target, if they are known."""
    if there is not None:
        return _frame(there)
    domain = None if known is None else known.domain
    if domain is None or any(not each.finite for each in domain):
        return None
    return Frame(tuple(domain.labels), tuple(domain.shape))


def _where(to: FoundEndpoint, target: DestinationEndpoint) -> KvStoreSpec | None:
    """The place of the target; None: it has none."""
    if to.place is not None:
        return to.place.at(to.path)
    if to.array is not None:
        kept = to.array._driver.kvstore
        return None if kept is None else kept[0]
    return getattr(target.array, "kvstore", None)


def _same(store: TensorStore, where: KvStoreSpec | None) -> bool:
    """Whether an array is at a place."""
    kept = store._driver.kvstore
    if kept is None or where is None:
        return False
    here, there = described(kept[0]).rstrip("/"), described(where).rstrip("/")
    if here != there:
        return False
    # What is in memory is another place in another context.
    return not here.startswith("memory:") or kept[0].replace(path="") == where.replace(path="")


async def _open(arguments: JsonObject, context: Context, blocks: Blocks) -> Operation:
    given = arguments["sources"]
    assert isinstance(given, list)
    sources = [
        await open_json(each, context, f"source {number}") for number, each in enumerate(given)
    ]
    target = await open_json(arguments["target"], context, "the target")
    options = MapOptions.of(*(arguments.get(name) for name in MapOptions._fields))
    frames = [_frame(store) for store in sources]
    alignment = Alignment.of(frames, _frame(target), options.drop, options.new)
    halo = options.halos(alignment, [store.dtype for store in sources])
    function: Any = arguments["function"]
    if isinstance(function, PickledFunction):
        function = function.open()
    kwargs: Any = arguments.get("kwargs", {})
    called = BlockFunction(function, len(sources), kwargs)
    return MapBlocks.of(called, alignment, halo, sources, target, blocks)


register("map_blocks", _open)
