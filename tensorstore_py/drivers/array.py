"""The `array` driver: an array in memory, given in the spec or by `ts.array`.

    {"driver": "array", "array": [[1, 2], [3, 4]], "dtype": "int32"}

`ts.array` shares the memory of the NumPy array that it is given; a spec has memory of its own each
time it is opened. Elements of `char`, `byte` and complex types have no JSON form.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Array,
    JsonForm,
    dtype,
)
from tensorstore_py.plugin.driver import (
    ChunkLayout,
    Driver,
    DriverSpec,
    IndexDomain,
    IndexTransform,
    OpenMode,
    OutputIndexMap,
    Schema,
    StorageStatistics,
    Unit,
    array_from_json,
    array_to_json,
    driver,
    freeze,
    propagate_bounds,
    read_array,
    thaw,
    write_array,
)
from tensorstore_py.plugin.kvstore import (
    PlainValidator,
    Resource,
    ResourceField,
    model_validator,
)

__all__ = ["ArrayDriver", "ArraySpec", "Values"]


class Values:
    """The elements in a spec: JSON until the data type is known, then an array.

    Args:
        array: the elements.
        json: the frozen JSON; only without `array`.
        shared: the memory is the user's, and to be opened as it is.
    """

    __slots__ = ("array", "json", "shared")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Array | None, json: object = None, *, shared: bool = False) -> None:
        self.array = array
        self.json = json
        self.shared = shared

    @classmethod
    def parse(cls, json: object) -> Values:
        """The elements for JSON, or for an array."""
        if isinstance(json, Values):
            return json
        if isinstance(json, np.ndarray):
            return cls(json, shared=True)
        return cls(None, freeze(json))

    def of_type(self, data_type: dtype) -> Array:
        """The elements as an array.

        Raises:
            SpecError: nested unevenly, or an element is not of that type; names its place.
        """
        if self.array is None:
            return array_from_json(self.json, data_type)
        return self.array

    def spec_json(self, include_defaults: bool) -> object:
        """Nested lists."""
        return self.json if self.array is None else array_to_json(self.array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Values):
            return NotImplemented
        if self.array is None or other.array is None:
            return self.array is other.array and self.json == other.json
        return self.array.dtype == other.array.dtype and np.array_equal(self.array, other.array)


@driver("array")
class ArraySpec(DriverSpec):
    """An array given in the spec.

    Attributes:
        array: the elements, as nested lists.
        data_copy_concurrency: accepted for the reference's sake; copying is one step.

    Example:
        >>> spec = ArraySpec.parse({"driver": "array", "array": [[1, 2, 3]], "dtype": "uint8"})
        >>> spec.known_domain()
        { [0, 1), [0, 3) }
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"array", "data_copy_concurrency"})

    array: Annotated[Values, PlainValidator(Values.parse), JsonForm({})]
    data_copy_concurrency: Resource[object] = ResourceField("data_copy_concurrency")

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        asked = super().known_schema()
        if asked.dtype is None:
            raise SpecError('the element type is required, for example "int32"', ("dtype",))
        try:
            array = self.array.of_type(asked.dtype)
        except SpecError as error:
            raise error.inside("array") from None
        if asked.rank is not None and asked.rank != array.ndim:
            raise SpecError(
                f"the array has {array.ndim} dimensions, but the spec says {asked.rank}", ("array",)
            )
        return self.replace(
            array=Values(array, shared=self.array.shared), dtype=asked.dtype, rank=None
        )

    @property
    def values(self) -> Array:
        """The elements."""
        assert self.array.array is not None
        return self.array.array

    @property
    def inline(self) -> bool:
        return True

    def open_mode(self) -> OpenMode:
        return OpenMode()

    def known_schema(self) -> Schema:
        asked = super().known_schema()
        return array_form(self.values, dtype(self.dtype or ""), asked.dimension_units)

    async def open(self) -> ArrayDriver:
        self._check_schema()
        return ArrayDriver(self, self.values if self.array.shared else self.values.copy())

    def _check_schema(self) -> None:
        """What an array in memory cannot have.

        Raises:
            SpecError: a constraint of the schema that means nothing here; names it.
        """
        asked = super().known_schema()
        layout = asked.chunk_layout
        for name, stated in (
            ("fill_value", asked.fill_value is not None),
            ("codec", asked.codec is not None),
            ("chunk_layout", _chunks(layout)),
        ):
            if stated:
                raise SpecError(
                    f"an array in memory has no {name.replace('_', ' ')}; leave the member out",
                    ("schema", name),
                )
        domain = IndexDomain(shape=self.values.shape)
        if asked.domain is not None:
            try:
                asked.domain.intersect(domain)
                fits = asked.domain.shape == domain.shape and asked.domain.origin == domain.origin
            except ValueError:
                fits = False
            if not fits:
                raise SpecError(
                    f"the array's domain is {domain}, but the schema says {asked.domain}",
                    ("schema", "domain"),
                )

    def minimal(self) -> Self:
        return self


def _chunks(layout: ChunkLayout) -> bool:
    """Whether anything is said of chunks, not merely wished for."""
    return any(
        grid.shape is not None or grid.elements is not None or grid.aspect_ratio is not None
        for grid in (layout.read_chunk, layout.write_chunk, layout.codec_chunk)
    )


def array_form(
    array: Array, data_type: dtype, units: tuple[Unit | None, ...] | None = None
) -> Schema:
    """The schema of an array in memory: its domain, and its memory order."""
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))
    layout = (
        ChunkLayout(grid_origin=[0] * array.ndim, inner_order=order)
        if array.ndim
        else ChunkLayout(rank=0)
    )
    return Schema(
        dtype=data_type,
        domain=IndexDomain(shape=array.shape),
        chunk_layout=layout,
        dimension_units=units,
    )


class ArrayDriver(Driver):
    """An open array in memory."""

    inline = True

    def __init__(self, spec: ArraySpec, array: Array) -> None:
        assert spec.dtype is not None
        self._spec = spec
        self._array = array
        self._domain = IndexDomain(shape=array.shape)
        self.data_type = spec.dtype
        self.writable = bool(array.flags.writeable)

    @property
    def domain(self) -> IndexDomain:
        return self._domain

    @property
    def schema(self) -> Schema:
        return array_form(self._array, self.data_type, self._spec.known_schema().dimension_units)

    async def resolve(self) -> IndexDomain:
        return self._domain

    async def read(self, transform: IndexTransform, order: str) -> Array:
        found = read_array(self._array, propagate_bounds(self._domain, transform), order)
        if self.data_type.name == "json":
            for place, element in enumerate(found.flat):
                found.flat[place] = thaw(element)  # its lists and objects are the reader's own
        return found

    async def write(self, transform: IndexTransform, source: Array) -> None:
        write_array(self._array, propagate_bounds(self._domain, transform), source)

    async def storage_statistics(
        self, transform: IndexTransform, *, not_stored: bool, fully_stored: bool
    ) -> StorageStatistics:
        size = propagate_bounds(self._domain, transform).domain.size
        return StorageStatistics(
            not_stored=size == 0 if not_stored else None,
            fully_stored=True if fully_stored else None,
        )

    def spec(self) -> ArraySpec:
        return self._spec.replace(array=Values(self._array.copy()))

    def view_spec(self, transform: IndexTransform) -> ArraySpec:
        """Only the view's elements, without dimensions of extent 1: they are broadcast."""
        values = read_array(self._array, propagate_bounds(self._domain, transform), "C")
        domain = transform.domain
        kept = [dim for dim, extent in enumerate(values.shape) if extent != 1]
        output = [OutputIndexMap(input_dimension=dim, offset=-domain.origin[dim]) for dim in kept]
        reduced = values.reshape([values.shape[dim] for dim in kept])
        units = self.schema[transform].dimension_units
        stated = [None if units is None else units[dim] for dim in kept]
        if not values.size:  # then no element is where any map says
            output, reduced, stated = [OutputIndexMap()], values.reshape(0), [None]
        return self._spec.replace(
            array=Values(reduced),
            transform=IndexTransform(domain, output),
            rank=None,
            schema_=Schema(dimension_units=stated) if any(stated) else None,
        )
