"""`check`: reads all of a checkpoint, and says what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._api.begin import as_context, begin
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.errors import DataLossError, NotFoundError, UnsupportedError
from tensorstore_py.orbax.blocks import block_bytes, blocks_of
from tensorstore_py.orbax.checkpoint import Checkpoint
from tensorstore_py.orbax.opening import directory_at, open

if TYPE_CHECKING:
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context

__all__ = ["check"]


def check(source: object, *, context: Context | None = None) -> Future[dict[str, Exception]]:
    """Read all of a checkpoint, in bounded memory, and say what of it is damaged, and why.

    Args:
        source: a `Checkpoint`, or its directory, as for `open`.
        context: shared resources; its `memory_limit` bounds what is in memory.

    Returns:
        A Future of the errors by flat name, of items and arrays; empty if all can be read.

    Raises as `open`.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context = ts.Context()
        >>> ts.orbax.save({"a": np.ones(3), "b": 1}, "memory://run/", context=context).result()
        >>> ts.orbax.check("memory://run/", context=context).result()
        {}
    """
    shared = as_context(context)
    if not isinstance(source, Checkpoint):
        directory_at(source, shared)  # what is wrong with it is raised at once
    most = block_bytes(shared)

    async def body() -> dict[str, Exception]:
        checkpoint = (
            source if isinstance(source, Checkpoint) else await open(source, context=shared)
        )
        found: dict[str, Exception] = dict(checkpoint.damaged)
        for name, array in (await checkpoint._survey(checkpoint._arrays(None))).items():
            error = await _damage(name, array, most) if isinstance(array, TensorStore) else array
            if error is not None:
                found[name] = error
        return dict(sorted(found.items()))

    return begin(False, body, None)


async def _damage(name: str, array: TensorStore, most: int) -> Exception | None:
    """Why an array cannot be read; None: it can."""
    try:
        for _, region, _ in blocks_of({name: array}, most):
            await array[region].read()
    except (DataLossError, NotFoundError, UnsupportedError) as error:
        return error
    return None
