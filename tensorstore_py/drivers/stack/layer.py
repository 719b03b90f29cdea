"""One layer of a stack: opened when it is first needed, and then kept.

A layer that nobody looks at need not even exist. Errors say which layer they come from, in a note:
their class and message are the layer's own.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tensorstore_py.errors import MismatchError, PermissionDeniedError, TensorStoreError
from tensorstore_py.plugin import Array, Driver, Gate, Opened, within

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from tensorstore_py.drivers.stack.cells import Box
    from tensorstore_py.plugin import Batch, DriverSpec, IndexTransform, Transaction, dtype

__all__ = ["Layer"]

T = TypeVar("T")


class Layer:
    """A layer.

    Args:
        number: its place in the stack.
        spec: its bound spec; `transform` is given.
        data_type: the stack's.
        inline: the stack's temperament.
        transaction: that it is seen through.

    Attributes:
        spec: see above.
        box: its bounds.
        readable: whether it may be read, as far as is known before it is opened.
        writable: whether it may be written, as far as is known before it is opened.
    """

    def __init__(
        self,
        number: int,
        spec: DriverSpec,
        data_type: dtype,
        inline: bool,
        transaction: Transaction | None = None,
    ) -> None:
        assert spec.transform is not None
        transform = spec.view_transform
        self.spec = spec
        self._number = number
        self._data_type = data_type
        self._inline = inline
        self._transform = spec.transform if transform is None else transform
        domain = spec.transform.domain
        self.box: Box = tuple(zip(domain.inclusive_min, domain.exclusive_max, strict=True))
        self._transaction = transaction
        self._driver: Driver | None = None
        if isinstance(spec, Opened):
            self._driver = spec.handle.within(transaction)
        self.readable = not isinstance(spec, Opened) or spec.readable
        self.writable = not isinstance(spec, Opened) or spec.writable
        self._gate = Gate(inline=inline)

    async def read(self, transform: IndexTransform) -> Array:
        """Read what a transform to the stack's coordinates selects.

        Raises:
            PermissionDeniedError: the layer cannot be read.
        """
        driver = await self._open()
        if not (self.readable and driver.readable):
            raise PermissionDeniedError(f"layer {self._number} of the stack cannot be read")
        wanted = self._transform[transform]
        return await self._of_mine(driver.inline, lambda: driver.read(wanted, "C"))

    def forget_cached(self, transform: IndexTransform) -> None:
        """Keep nothing of what a transform to the stack's coordinates selects."""
        if self._driver is not None:
            self._driver.forget_cached(self._transform[transform])

    def batched(self, batch: Batch) -> Layer:
        """The layer, read together with whatever else is in a batch."""
        if self._driver is None:
            return self  # what it takes to open it is nobody else's
        reads = copy(self)
        reads._driver = self._driver.batched(batch)
        return reads

    async def write(self, transform: IndexTransform, source: Array) -> None:
        """Write to what a transform to the stack's coordinates selects.

        Raises:
            PermissionDeniedError: the layer cannot be written.
        """
        driver = await self._open()
        if not (self.writable and driver.writable):
            raise PermissionDeniedError(f"layer {self._number} of the stack cannot be written")
        wanted = self._transform[transform]
        await self._of_mine(driver.inline, lambda: driver.write(wanted, source))

    async def _open(self) -> Driver:
        if self._driver is not None:
            return self._driver
        async with self._gate.hold(self._number):
            if self._driver is None:
                body = partial(self.spec.open_within, self._transaction)
                driver = await self._of_mine(self.spec.inline, body)
                if driver.data_type is not self._data_type:
                    raise MismatchError(
                        f"layer {self._number} of the stack holds {driver.data_type.name}, "
                        f"but the stack {self._data_type.name}"
                    )
                self._driver = driver
            return self._driver

    async def _of_mine(self, inline: bool, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await within(self._inline, inline, body)
        except TensorStoreError as error:
            error.add_note(f"This was layer {self._number} of a stack.")
            raise
