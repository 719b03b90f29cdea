"""Beginning an operation of the public face, in a transaction or a batch if it is part of one.

The keywords `transaction`, `batch` and `context` are checked here, where the call is, so that one
that is over is refused at once and not by the Future.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tensorstore_py._interface.batch import Batch
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py._spec.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tensorstore_py._runtime.future import Future

__all__ = ["as_batch", "as_context", "as_transaction", "begin"]

T = TypeVar("T")


def begin(
    inline: bool,
    body: Callable[[], Coroutine[Any, Any, T]],
    transaction: Transaction | None,
    *,
    changes: bool = False,
    batch: Batch | None = None,
    life: Lifetime | None = None,
) -> Future[T]:
    """Begin an operation, of a transaction or a batch if one is given.

    An operation that changes something fails its transaction if it fails, and the lifetime of what
    it changes (`life`) does not end before the operation does.

    Raises:
        FailedPreconditionError: the lifetime is over, the transaction is not open, or the batch was
            submitted.
    """
    if life is not None:
        life.check()
    if transaction is None and batch is None and (life is None or not changes):
        # Nothing but `start` knows of it, which a signal in between does not harm.
        left = OnInterrupt.CONTINUE if changes else OnInterrupt.CONTINUE_UNTIL_EXIT
        return start(inline, body, on_interrupt=left)
    return _begin_followed(inline, body, transaction, changes, batch, life)


@uninterrupted
def _begin_followed(
    inline: bool,
    body: Callable[[], Coroutine[Any, Any, T]],
    transaction: Transaction | None,
    changes: bool,
    batch: Batch | None,
    life: Lifetime | None,
) -> Future[T]:
    if transaction is not None:
        transaction.check_open()
    future = start(inline, body) if batch is None else batch.add(inline, body)
    if transaction is not None:
        transaction.follow(future, changes=changes)
    if changes and life is not None:
        life.follow(future)
    return future


def as_transaction(transaction: object) -> Transaction | None:
    """A transaction that can be used, or None.

    Raises:
        TypeError: it is something else.
        FailedPreconditionError: it is not open.
    """
    if transaction is None:
        return None
    if not isinstance(transaction, Transaction):
        raise TypeError(f"transaction must be a Transaction, not {type(transaction).__name__}")
    transaction.check_open()
    return transaction


def as_batch(batch: object) -> Batch:
    """A batch that can be added to.

    Raises:
        TypeError: it is something else.
        FailedPreconditionError: it was submitted.
    """
    if not isinstance(batch, Batch):
        raise TypeError(f"batch must be a Batch, not {type(batch).__name__}")
    batch.check_open()
    return batch


def as_context(context: Context | None) -> Context:
    """`context`, or a fresh one.

    Raises:
        TypeError: it is JSON, for instance, which would share nothing.
        FailedPreconditionError: it was closed.
    """
    if context is None:
        return Context()
    if not isinstance(context, Context):
        raise TypeError(f"context must be a Context, not {type(context).__name__}: use Context(…)")
    context.check()
    return context
