"""The `zarr3` driver's spec: JSON members, and the format's rules for the chunked engine.

Everything here is a short call into the modules that hold the rules; opening, reading, writing
and resizing are the engine's.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from tensorstore_py.drivers.zarr3.chain import is_plain
from tensorstore_py.drivers.zarr3.chunk_grid import bound_chains
from tensorstore_py.drivers.zarr3.create import new_document
from tensorstore_py.drivers.zarr3.data_type import StoredType
from tensorstore_py.drivers.zarr3.element_chain import element_chain
from tensorstore_py.drivers.zarr3.json_form import METADATA_FORM
from tensorstore_py.drivers.zarr3.metadata import Zarr3Constraints, Zarr3Metadata
from tensorstore_py.plugin.codec import CodecChain, JsonForm
from tensorstore_py.plugin.driver import (
    ArrayInfo,
    ArrayLayout,
    ElementView,
    FieldSpec,
    ParsedOnce,
    Schema,
    driver,
)
from tensorstore_py.plugin.kvstore import PlainValidator

__all__ = ["Zarr3Spec"]

_NOTHING = Zarr3Constraints()


@driver("zarr3", schemes=["zarr3"])
class Zarr3Spec(FieldSpec[Zarr3Metadata]):
    """An array in Zarr version 3 format.

    Attributes:
        metadata: constraints on the `zarr.json` document: what a new array gets, and what an
            existing one must have.

    Example:
        >>> spec = Zarr3Spec.parse(
        ...     {
        ...         "driver": "zarr3",
        ...         "kvstore": "memory://a/",
        ...         "metadata": {"shape": [1000, 2000], "data_type": "uint16"},
        ...     }
        ... )
        >>> spec.new_metadata().chunk_grid.shape
        (1000, 1048)
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"metadata"})
    detected_by: ClassVar[tuple[str, ...]] = ("zarr.json",)
    metadata_type = Zarr3Metadata

    metadata: (
        Annotated[
            Zarr3Constraints,
            PlainValidator(ParsedOnce(Zarr3Constraints.parse)),
            JsonForm(METADATA_FORM),
        ]
        | None
    ) = None

    def checked(self) -> Self:
        spec = super().checked()
        stated = (self.metadata, self.schema_, self.dtype, self.rank)
        if any(part is not None for part in stated):
            self.check_asked()
        return spec

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        data_type = self.known_schema().dtype
        if data_type is not None:
            json["dtype"] = data_type.to_json()
        if include_defaults and self.metadata is None:
            json["metadata"] = _NOTHING.to_json(include_defaults=True)
        super().add_json(json, include_defaults)
        if not self.open_as_void:
            json.pop("open_as_void", None)

    @property
    def metadata_key(self) -> str:
        return "zarr.json"

    @property
    def _stated(self) -> Zarr3Constraints:
        return _NOTHING if self.metadata is None else self.metadata

    def info(self, asked: Schema) -> ArrayInfo:
        return self._stated.info(self._known_view(asked), asked.rank)

    def new_document(self, asked: Schema) -> Zarr3Metadata:
        stored = self._stated.data_type
        if stored is None:
            self.require_no_view("data_type")
            stored = StoredType.of(ArrayInfo().chosen_type(asked))
        view = stored.view(self.field, asked=asked.dtype, as_void=self.open_as_void)
        schema = self.known_schema()
        if self._known_view(asked) is None:  # nor which dimensions are inside an element
            schema = self._stated.info(view, asked.rank).constrain(asked)
        return new_document(asked, schema, self._stated, stored, view)

    def may_contradict(self, asked: Schema, metadata: Zarr3Metadata) -> bool:
        if self.schema_ is None:
            return False  # the metadata alone speaks of more than data type and rank
        stated = self._stated
        if stated.chunk_grid is not None:
            return True
        # A layout may take codecs that move dimensions or cut chunks, beside those that were named.
        named = asked.codec is not None or stated.codecs is not None
        return named and not is_plain(metadata.codecs)

    def info_of(self, metadata: Zarr3Metadata) -> ArrayInfo:
        return metadata.info(self.view_of(metadata))

    def layout(self, metadata: Zarr3Metadata) -> ArrayLayout:
        view, grid, rank = self.view_of(metadata), metadata.chunk_grid, len(metadata.shape)

        def bind(shape: tuple[int, ...]) -> CodecChain:
            stored, fill_value = metadata.data_type, metadata.fill_value
            return element_chain(metadata.codecs, shape[:rank], stored, fill_value, view)

        chain = bind(grid.largest)  # which finds what is wrong with the codecs
        return ArrayLayout.of(
            metadata.form(view),
            chain,
            metadata.chunk_key_encoding.bind(rank),
            grid=grid.axes(metadata.shape),
            chains=bound_chains(grid, bind),
            describe=lambda: metadata.info(view).schema(),
        )

    def stored_view(self, metadata: Zarr3Metadata) -> ElementView:
        asked = self.asked_type
        return metadata.data_type.view(self.field, asked=asked, as_void=self.open_as_void)

    def _known_view(self, asked: Schema) -> ElementView | None:
        """What is opened of each element, as far as the constraints tell."""
        stored = None if self.metadata is None else self.metadata.data_type
        if stored is not None:
            return stored.view(self.field, asked=asked.dtype, as_void=self.open_as_void)
        if asked.dtype is None or self.field is not None or self.open_as_void:
            return None
        if asked.dtype.name in ("char", "byte"):
            # Bytes of a fixed number add a dimension whose extent only the metadata can say.
            return None
        return StoredType.of(asked.dtype).view(asked=asked.dtype)
