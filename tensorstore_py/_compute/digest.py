"""`ts.digest`: a hash of what an array or a tree holds, and not of how it is stored.

A tree's digest is made of those of its arrays, and of paths and attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._compute.array_digest import DigestArray, digest_of
from tensorstore_py._compute.arrays import contents, end_of
from tensorstore_py._compute.run import merged
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.progress import Told, ToldOfPart
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.work import WhenLeft

if TYPE_CHECKING:
    from tensorstore_py._compute.array_digest import Digest
    from tensorstore_py._compute.arrays import Contents
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.progress import ProgressLike
    from tensorstore_py._spec.context import Context

__all__ = ["digest", "tree_digest"]

_TOGETHER = 4


def digest(
    source: object, *, progress: ProgressLike = None, context: Context | None = None
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
        progress: called with a `Progress`; True: draws a bar.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `Digest`, a text that begins with the version of the algorithm.

    Raises:
        NotFoundError: (by the Future) nothing is there.
        UnsupportedError: (by the Future) elements are Python objects of any kind.
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
    end = end_of(source, as_context(context))
    told = Told(progress, "digest")

    async def body() -> Digest:
        found = await contents(end.inline, end)
        digests = await _digests(end.inline, found, told)
        return tree_digest(found, digests) if found.is_tree else digests[""]

    return told.until(start(end.inline, body, when_left=WhenLeft.STOPS))


async def _digests(inline: bool, found: Contents, told: Told) -> dict[str, Digest]:
    """Those of the arrays, by path."""
    made: dict[str, Digest] = {}
    operations = {
        path: DigestArray(each.driver, each.array._transform) for path, each in found.arrays.items()
    }
    size = sum(each.regions.size * each.told_bytes for each in operations.values())
    told.begin(size, 0, len(operations))

    async def make(path: str) -> None:
        operation, part = operations[path], ToldOfPart(told)
        lanes = await within(inline, operation.inline, lambda: merged(operation, part))
        made[path] = operation.result(lanes)
        told.advance(0, 0, 1)

    await fan_out(inline, operations, make, count=len(operations), width=_TOGETHER)
    return made


def tree_digest(found: Contents, arrays: dict[str, Digest]) -> Digest:
    """The digest of a tree.

    Args:
        found: what is in it.
        arrays: the digests of its arrays, by path.
    """
    members = [
        [path, found.attributes(path), arrays.get(path)]
        for path in sorted([*found.groups, *found.arrays])
    ]
    return digest_of({"members": members})
