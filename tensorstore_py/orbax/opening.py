"""`open` and `steps`: which directory a checkpoint is in, and what of it is asked for."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tensorstore_py._api.begin import as_context, begin
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._spec.context import bind
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812
from tensorstore_py.errors import FailedPreconditionError, NotFoundError, SpecError
from tensorstore_py.orbax import documents
from tensorstore_py.orbax.checkpoint import Checkpoint, raise_damaged
from tensorstore_py.orbax.layout import Directory, Step, find_steps, found_tree, is_tree
from tensorstore_py.orbax.leaves import Leaf, Node, branches, leaves_of

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.dtype import DTypeLike

__all__ = ["directory_at", "open", "steps"]

_DEFAULT: Final = "default"
#: What makes a directory a zarr array or group.
_ZARR: Final = frozenset({"zarr.json", ".zarray", ".zgroup"})


def open(
    where: object,
    *,
    step: int | None = None,
    item: str | None = None,
    dtype: DTypeLike | None = None,
    context: Context | None = None,
) -> Future[Checkpoint]:
    """Open a checkpoint that Orbax wrote, of whatever layout; no array is opened.

    Args:
        where: its directory: a URL, a JSON spec of a store, a `KvStore` or its `Spec`, or a local
            path as `os.PathLike`. It may hold one tree, the items of a composite checkpoint, or
            the steps of a CheckpointManager.
        step: which step; the last complete one by default.
        item: which item; by default all of them, one key for each, or what Orbax itself would give
            where there is but one. Containers are those that Orbax restores without a target:
            tuples are lists, and named ones dicts, unless it was told to keep them
            (`support_rich_types`), or `save` made them.
        dtype: read floating-point arrays as this type; others stay as they are.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: (at once) the place is wrong, or `dtype`.
        NotFoundError: (by the Future) there is no checkpoint, no such step or no such item.
        FailedPreconditionError: (by the Future) it was not written to its end.
        DataLossError: (by the Future) a document is corrupt; names it. Of several items only
            those that are sound are opened; see `Checkpoint.damaged`.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context = ts.Context()
        >>> weights = {"dense": {"kernel": np.ones((3, 4), "float32"), "bias": np.zeros(4)}}
        >>> ts.orbax.save(weights, "memory://run/", context=context).result()
        >>> tree = ts.orbax.open("memory://run/", context=context).result()
        >>> tree.names(), tree["dense"]["kernel"].shape
        (['dense.bias', 'dense.kernel'], (3, 4))
        >>> tree["dense"].read().result()["bias"]
        array([0., 0., 0., 0.])
    """
    shared = as_context(context)
    directory = directory_at(where, shared)
    wanted = None if dtype is None else DType(dtype)

    async def body() -> Checkpoint:
        return await _opened(directory, step, item, wanted)

    return begin(False, body, None)


def steps(where: object, *, context: Context | None = None) -> Future[list[Step]]:
    """The steps that a CheckpointManager's directory has, in order, also incomplete ones.

    Args:
        where: the directory, as for `open`.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: (at once) the place is wrong.
        UnsupportedError: (by the Future) the store cannot list its keys.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context = ts.Context()
        >>> for step in 5, 10:
        ...     where = f"memory://run/{step}/default/"
        ...     ts.orbax.save({"w": np.full(2, step)}, where, context=context).result()
        >>> [step.number for step in ts.orbax.steps("memory://run/", context=context).result()]
        [5, 10]
        >>> ts.orbax.open("memory://run/", context=context).result().read().result()
        {'w': array([10, 10])}
    """
    shared = as_context(context)
    directory = directory_at(where, shared)

    async def body() -> list[Step]:
        return await find_steps(directory, await directory.names())

    return begin(False, body, None)


def directory_at(where: object, context: Context) -> Directory:
    """The directory that a user names, not looked at yet.

    Raises SpecError: something is wrong with it.
    """
    if isinstance(where, str) and "://" not in where and where.lstrip()[:1] != "{":
        raise SpecError(
            f"{where!r} is no URL; pass a local path as pathlib.Path({where!r}), "
            "or as file:///absolute/path/"
        )
    given = where.absolute() if isinstance(where, Path) else where
    if isinstance(given, KvStore | KvStore.Spec):
        model: KvStoreSpec = given.model
    else:
        model = KvStore.Spec(given).model
    if isinstance(where, PathLike) or model.path[-1:] not in ("", "/"):
        model = model.replace(path=f"{model.path.rstrip('/')}/")
    return Directory(bind(model, context), context)


async def _opened(
    directory: Directory, step: int | None, item: str | None, dtype: DType | None
) -> Checkpoint:
    last = directory.model.path.rstrip("/").rpartition("/")[2]
    if documents.UNFINISHED in last:
        raise FailedPreconditionError(
            f"the checkpoint {directory.describe()} was not written to its end; rename it to have "
            "what there is of it"
        )
    names = known = await directory.names()
    number, top = None, directory
    chosen = await _chosen(directory, names, step)
    if chosen is not None:
        number, directory = chosen.number, directory.below(chosen.name)
        names = await directory.names()
    said = None
    if documents.CHECKPOINT_METADATA in names:
        said = await directory.json(documents.CHECKPOINT_METADATA)
    handlers = said.get("item_handlers") if isinstance(said, dict) else None
    node = await _looked_up(directory, names, item, handlers)
    if node is None or not directory.of_orbax:
        raise NotFoundError(_nothing(top, names | known))
    whole = {last: node} if isinstance(node, Leaf) else node
    leaves = [leaf for _, leaf in leaves_of(whole)]
    if leaves and all(leaf.kind == "damaged" for leaf in leaves):
        raise_damaged(leaves[0])
    composite = not is_tree(names)
    asked = _item(whole, item, directory, composite, documents.MARK_OF_V1 in names)
    return Checkpoint._of(asked, directory, number, said, dtype)


def _nothing(directory: Directory, names: frozenset[str]) -> str:
    """That there is no checkpoint, and what there is instead."""
    where = directory.describe()
    missing = f"neither {documents.METADATA} nor {documents.MANIFEST}"
    known = sorted(names & _ZARR)
    if known:
        return (
            f"{where} is no Orbax checkpoint: it has {known[0]}, as an array or a group of zarr, "
            f"and {missing}; open it by ts.open or ts.Group.open, look at it by: tspy info"
        )
    return (
        f"no Orbax checkpoint found at {where}: {missing}, nor a directory that has them; name the "
        "directory of a checkpoint, or of its steps"
    )


async def _looked_up(
    directory: Directory, names: frozenset[str], item: str | None, handlers: object
) -> Node | None:
    """What is there; of an item that has a directory only that one is looked at."""
    if item is not None and not is_tree(names):
        inner = directory.below(item)
        of_it = handlers.get(item) if isinstance(handlers, dict) else None
        node = await found_tree(inner, await inner.names(), of_it)
        if node is not None:
            return {item: node}
    return await found_tree(directory, names, handlers)


async def _chosen(directory: Directory, names: frozenset[str], step: int | None) -> Step | None:
    """The step to open; None: the directory is no CheckpointManager's.

    Raises NotFoundError: there is no such step, or none that is complete.
    """
    marked = is_tree(names) or documents.CHECKPOINT_METADATA in names
    found = [] if marked else await find_steps(directory, names)
    if not found:
        if step is not None:
            raise NotFoundError(f"{directory.describe()} has no steps; leave out step={step}")
        return None
    if step is None:
        found = [each for each in found if each.complete]
        if not found:
            raise NotFoundError(f"no step in {directory.describe()} was written to its end")
        return found[-1]
    right = [each for each in found if each.number == step]
    if not right:
        there = ", ".join(str(each.number) for each in found)
        raise NotFoundError(f"{directory.describe()} has no step {step}; it has {there}")
    if not any(each.complete for each in right):
        raise FailedPreconditionError(
            f"step {step} in {directory.describe()} was not written to its end; open the directory "
            f'"{right[0].name}" itself, or another step'
        )
    return next(each for each in right if each.complete)


def _item(whole: Node, item: str | None, directory: Directory, composite: bool, v1: bool) -> Node:
    """One item, or all of them.

    Raises:
        NotFoundError: there is no such item.
        DataLossError, UnsupportedError: it is damaged.
    """
    if item is None:
        trees = [name for name, node in branches(whole) if not _is_value(node)]
        alone = composite and (trees == [_DEFAULT] or (v1 and len(trees) == 1))
        if not alone:
            return whole
        item = str(trees[0])
    if not isinstance(whole, dict) or item not in whole:
        there = ", ".join(str(name) for name, _ in branches(whole))
        raise NotFoundError(f'{directory.describe()} has no item "{item}"; it has {there}')
    found = whole[item]
    if not isinstance(found, Leaf):
        return found
    if found.kind == "damaged":
        raise_damaged(found)
    return {item: found}


def _is_value(node: Node) -> bool:
    """Whether an item is JSON, or a single array; what is damaged may have been a tree."""
    return isinstance(node, Leaf) and node.kind != "damaged"
