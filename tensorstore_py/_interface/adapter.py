"""The promise of a driver over another one: it changes what the elements are, not where they are.

Its coordinates are its base's, so transforms pass through untouched, and so do the open mode, the
bounds, resizing and the store underneath. A concrete spec adds its members and says in `over` what
it makes of an open base; that is all that `ts.cast` and the like need, too. `Opened` puts an array
that is open already in the place of the base's spec.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from tensorstore_py._index import IndexTransform
from tensorstore_py._interface.array_info import check_schema
from tensorstore_py._interface.driver import Driver, DriverSpec
from tensorstore_py._spec.registered import registered
from tensorstore_py._spec.registry import drivers
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.url import driver_from_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorstore_py._index import IndexDomain
    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.driver import ResizeRequest, StorageStatistics
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.open_mode import OpenMode

__all__ = ["Adapter", "AdapterSpec", "BaseField", "Opened"]

#: A member that holds the spec of another array, or its URL.
BaseField = Annotated[DriverSpec, registered(drivers, from_url=driver_from_url)]


class AdapterSpec(DriverSpec):
    """Members of every driver over another one.

    Attributes:
        base: the array underneath, as a spec or a URL.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"base"})

    base: BaseField

    @property
    def inline(self) -> bool:
        return self.base.inline

    def open_mode(self) -> OpenMode:
        return self.base.open_mode()

    def known_domain(self) -> IndexDomain | None:
        if self.base.transform is not None:
            return self.base.transform.domain
        return self.base.known_domain()

    async def open(self) -> Driver:
        return self.over(await self.base.open())

    async def open_within(self, transaction: Transaction | None) -> Driver:
        return self.over(await self.base.open_within(transaction))

    @abstractmethod
    def over(self, base: Driver) -> Driver:
        """This driver over an open array.

        Raises:
            SpecError, MismatchError: it makes no sense there.
        """

    def check_schema(self, found: Schema) -> None:
        """Compare the schema of what was made with `schema`.

        Raises:
            MismatchError: names the part, what was made and what was asked.
        """
        if self.schema_ is not None:
            check_schema(self.schema_, found)

    @property
    def view_transform(self) -> IndexTransform | None:
        # The open driver has the coordinates of the driver at the bottom.
        inner, outer = self.base.view_transform, self.transform
        if inner is None or outer is None:
            return outer if inner is None else inner
        return inner[outer]


class Adapter(Driver):
    """An open array that passes everything but its elements through to another.

    Args:
        spec: what it was opened with.
        base: the array underneath.
    """

    def __init__(self, spec: AdapterSpec, base: Driver) -> None:
        self._spec = spec
        self._base = base
        self.inline = base.inline
        self.readable = base.readable
        self.writable = base.writable

    @property
    def base(self) -> Driver:
        """The array underneath."""
        return self._base

    @property
    def domain(self) -> IndexDomain:
        return self._base.domain

    async def resolve(self) -> IndexDomain:
        return await self._base.resolve()

    async def resize(self, request: ResizeRequest) -> None:
        await self._base.resize(request)

    async def grow(self, dim: int, by: int, check: Callable[[IndexDomain], None]) -> IndexDomain:
        return await self._base.grow(dim, by, check)

    async def storage_statistics(
        self, transform: IndexTransform, *, not_stored: bool, fully_stored: bool
    ) -> StorageStatistics:
        return await self._base.storage_statistics(
            transform, not_stored=not_stored, fully_stored=fully_stored
        )

    def with_transaction(self, transaction: Transaction | None) -> Driver:
        return self._spec.over(self._base.with_transaction(transaction))

    def with_batch(self, batch: Batch) -> Driver:
        return self._spec.over(self._base.with_batch(batch))

    def spec(self) -> AdapterSpec:
        return self._spec.replace(base=self._base.spec().replace(transform=None))

    def chunk_starts(self, dim: int, low: int, high: int) -> Sequence[int]:
        return self._base.chunk_starts(dim, low, high)


class Opened(DriverSpec):
    """A view of an open array, as a spec: what drivers over others get from `ts.stack` and such.

    Opening it is no work. It has no JSON form of its own and is never registered: a driver that has
    one inside prints the spec of the open array instead.

    Attributes:
        handle: the open array.
        transform: from the view's positions to the array's.
        readable: whether the view may be read.
        writable: whether the view may be written.
    """

    handle: Driver
    readable: bool = True
    writable: bool = True

    @property
    def inline(self) -> bool:
        return self.handle.inline

    async def open(self) -> Driver:
        return self.handle

    def known_schema(self) -> Schema:
        return self.handle.schema

    def known_domain(self) -> IndexDomain:
        return self.handle.domain

    def view_spec(self) -> DriverSpec:
        """The spec that opens the same view anew."""
        transform = self.transform
        if transform is None:
            transform = IndexTransform(self.handle.domain)
        return self.handle.view_spec(transform)
