"""`Handle`: what an open array is, as seen through a view.

A driver, a transform, and whether it may be read and written. Nothing here reads or writes data, or
waits for anything: what is known of the array is the driver's. `TensorStore` adds what can be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack

import numpy as np

from tensorstore_py._api.attributes import Attributes, attributes_of
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.options import SpecOptions, spec_given, updated
from tensorstore_py._api.spec import Spec
from tensorstore_py._index import Indexable
from tensorstore_py._runtime.lifetime import Closable, Lifetime
from tensorstore_py._spec.arguments import spelled_out
from tensorstore_py._spec.context import spec_json, unbind
from tensorstore_py._spec.pretty import pretty
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver, DriverSpec
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.chunk_layout import ChunkLayout
    from tensorstore_py._spec.codec_spec import CodecSpec
    from tensorstore_py._spec.dtype import dtype
    from tensorstore_py._spec.schema import Schema
    from tensorstore_py._spec.units import Unit

__all__ = ["Handle"]


class Handle(Closable, Indexable):
    """See the head of this file."""

    __slots__ = ("__weakref__", "_driver", "_life", "_readable", "_transform", "_writable")

    def __init__(
        self,
        driver: Driver,
        transform: IndexTransform,
        readable: bool,
        writable: bool,
        life: Lifetime | None = None,
    ) -> None:
        self._driver = driver
        self._life = Lifetime("TensorStore") if life is None else life
        self._transform = transform
        self._readable = readable
        self._writable = writable

    @property
    def dtype(self) -> dtype:
        """Element type."""
        return self._driver.data_type

    @property
    def __numpy_dtype__(self) -> np.dtype[np.generic]:
        # NumPy looks for the type of an array (`numpy.result_type`) at its `dtype`, which here is
        # none of NumPy's.
        return self.dtype.array_dtype

    def _numpy_dtype(self) -> np.dtype[np.generic]:
        return self.dtype.array_dtype

    @property
    def schema(self) -> Schema:
        """Everything known of the array's form, as seen through this view."""
        return self._driver.schema[self._transform]

    @property
    def chunk_layout(self) -> ChunkLayout:
        """How the array is cut and ordered, as seen through this view."""
        return self.schema.chunk_layout

    @property
    def codec(self) -> CodecSpec | None:
        """How chunks are encoded."""
        return self._driver.schema.codec

    @property
    def fill_value(self) -> NDArray[np.generic] | None:
        """What missing chunks read as; None if the format leaves it open."""
        return self.schema.fill_value

    @property
    def dimension_units(self) -> tuple[Unit | None, ...]:
        """Unit of each dimension of this view."""
        units = self.schema.dimension_units
        return (None,) * self.rank if units is None else units

    @property
    def mode(self) -> str:
        """`"r"`, `"w"` or `"rw"`."""
        return "r" * self._readable + "w" * self._writable

    @property
    def readable(self) -> bool:
        """Whether it may be read."""
        return self._readable

    @property
    def writable(self) -> bool:
        """Whether it may be written."""
        return self._writable

    @property
    def kvstore(self) -> KvStore | None:
        """The store underneath, if the driver has one. It is closed with this array.

        Raises:
            FailedPreconditionError: this array was closed.
        """
        found = self._driver.kvstore
        if found is None:
            return None
        store = KvStore.of(*found, self.transaction)
        self._life.include(store._life)
        return store

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that it is seen through, and writes into; None: there is none."""
        return self._driver.transaction

    @property
    def url(self) -> str:
        """The URL form of the whole array.

        Raises:
            UnsupportedError: the driver or its store has no URL form.
        """
        return self._driver.spec().to_url()

    @property
    def attrs(self) -> Attributes:
        """The array's attributes; UnsupportedError if its format has none."""
        return attributes_of(self._driver, self._life)

    @spelled_out(SpecOptions)
    def spec(self, **options: Unpack[SpecOptions]) -> Spec:
        """The Spec that opens this view again, with the array's metadata as constraints.

        Takes the options of `Spec.update`. The context is left out unless
        `retain_context=True`; `unbind_context=True` turns it into JSON.
        """
        found = spec_given(**options)
        model = self._bound_spec()
        if found["unbind_context"]:
            model = unbind(model)
        elif not found["retain_context"] and found["strip_context"] is None:
            found["strip_context"] = True
        return Spec.of(updated(model, found))

    def _bound_spec(self) -> DriverSpec:
        return self._driver.view_spec(self._transform)

    def _get_transform(self) -> IndexTransform:
        return self._transform

    def _with_transform(self, transform: IndexTransform) -> Self:
        return type(self)(self._driver, transform, self._readable, self._writable, self._life)

    def __repr__(self) -> str:
        try:
            return pretty("TensorStore", spec_json(unbind(self._bound_spec())))
        except (SpecError, UnsupportedError):
            # elements in memory, or functions, that have no JSON form
            return "TensorStore(...)"
