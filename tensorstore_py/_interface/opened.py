"""An open array in the place of a spec: what drivers over others are given by `ts.stack` and such.

Opening it is no work. It has no JSON form of its own and is never registered: a driver that has one
inside prints the spec of the open array instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._index import IndexTransform
from tensorstore_py._interface.driver import Driver, DriverSpec
from tensorstore_py._spec.schema import Schema

if TYPE_CHECKING:
    from tensorstore_py._index import IndexDomain

__all__ = ["Opened"]


class Opened(DriverSpec):
    """A view of an open array, as a spec.

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
