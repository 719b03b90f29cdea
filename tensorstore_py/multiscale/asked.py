"""`Asked`: what callers say of a pyramid, and what the source says besides.

Both together become a `NewImage`. Nothing is read or stored here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from tensorstore_py._api.copy import check_types
from tensorstore_py._api.downsample import DownsampleMethod
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.drivers.downsample.methods import check_method
from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.multiscale.axes import Axis, as_axes, by_axis, full_unit
from tensorstore_py.multiscale.forms import level_forms
from tensorstore_py.multiscale.making import NewImage
from tensorstore_py.multiscale.metadata import Dataset, ImageMetadata
from tensorstore_py.multiscale.omero import omero_of
from tensorstore_py.multiscale.versions import VERSIONS

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py.multiscale.forms import Forms
    from tensorstore_py.multiscale.sources import PyramidSource

__all__ = ["Asked"]


class Asked(NamedTuple):
    """What a caller asks for; see `ts.pyramid`."""

    axes: object = None
    levels: int | None = None
    scale: object = 2
    method: str = "mean"
    version: str = "0.5"
    pixel_size: object = None
    units: object = None
    translation: object = None
    chunks: object = None
    shards: object = None
    codec: object = None
    dtype: DTypeLike | None = None
    name: str | None = None
    omero: object = None

    def check(self) -> None:
        """Refuse what is wrong whatever the source is.

        Raises:
            SpecError: names the argument.
        """
        if self.version not in VERSIONS:
            raise SpecError(f'expected "0.4" or "0.5", not {self.version!r}', ("version",))
        if self.method not in get_args(DownsampleMethod):
            hint = did_you_mean(str(self.method), get_args(DownsampleMethod))
            raise SpecError(f"there is no method {self.method!r}{hint}", ("method",))
        if self.shards is not None and self.version == "0.4":
            raise SpecError('version 0.4 has no shards; leave it out, or say version="0.5"',
                            ("shards",))  # fmt: skip

    def to_json(self) -> JsonObject:
        """The arguments as JSON; those that say nothing are left out."""
        said = {name: _json(value) for name, value in self._asdict().items()}
        if self.dtype is not None:
            said["dtype"] = DType(self.dtype).name
        return {name: value for name, value in said.items() if value is not None}

    def image(self, source: PyramidSource) -> NewImage:
        """The image that is to be made of a source."""
        store, present = source
        data_type = store.dtype if self.dtype is None else DType(self.dtype)
        check_types(store.dtype, data_type)
        check_method(self.method, data_type)
        axes, size, moved = self._placed(source)
        forms = level_forms(
            tuple(store.shape), axes, data_type.array_dtype.itemsize,
            store.chunk_layout.read_chunk.shape,
            levels=self.levels, scale=self.scale, chunks=self.chunks, shards=self.shards,
        )  # fmt: skip
        omero = None if present is None else present.omero
        if self.omero is not None and self.omero is not False:
            omero = omero_of(self.omero, axes, tuple(store.shape))
        name = self.name if self.name is not None or present is None else present.name
        metadata = ImageMetadata(
            self.version, axes, _datasets(forms, size, moved, self.method), name,
            self.method, omero,
        )  # fmt: skip
        more: dict[str, object] = {"metadata": _described(self.method, forms)}
        return NewImage(metadata, more, forms, data_type, store.fill_value, self.codec)

    def _placed(
        self, source: PyramidSource
    ) -> tuple[tuple[Axis, ...], tuple[float, ...], tuple[float, ...]]:
        """The axes, the size of a pixel, and where the first one is."""
        store, present = source
        rank, labels = store.rank, store.domain.labels
        if self.axes is not None:
            axes = as_axes(self.axes, rank)
        elif present is not None:
            axes = present.axes
        else:
            axes = as_axes(labels if all(labels) else "tczyx"[-rank:], rank)
        size = (1.0,) * rank
        moved: tuple[float, ...] = (0.0,) * rank
        if present is not None:
            size, moved = present.datasets[0].scale, present.datasets[0].translation
        else:
            stored = [None if unit is None else unit for unit in store.dimension_units]
            size = tuple(1.0 if unit is None else unit.multiplier for unit in stored)
            axes = tuple(
                axis if axis.unit or unit is None or not unit.base_unit
                else axis._replace(unit=full_unit(unit.base_unit))
                for axis, unit in zip(axes, stored, strict=True)
            )  # fmt: skip
        names = by_axis(self.units, axes, "units", tuple(axis.unit for axis in axes))
        for unit in names:
            if unit is not None and not isinstance(unit, str):
                raise SpecError(f"expected names of units, but found {unit!r:.60}", ("units",))
        axes = tuple(
            axis._replace(unit=full_unit(unit))  # type: ignore[arg-type]  # it is a text
            for axis, unit in zip(axes, names, strict=True)
        )
        size = _numbers(by_axis(self.pixel_size, axes, "pixel_size", size), "pixel_size")
        if not all(each > 0 for each in size):
            raise SpecError("expected positive numbers", ("pixel_size",))
        origin = store.domain.inclusive_min
        moved = tuple(a + low * each for a, low, each in zip(moved, origin, size, strict=True))
        given = by_axis(self.translation, axes, "translation", moved)
        return axes, size, _numbers(given, "translation")


def _numbers(given: tuple[object, ...], name: str) -> tuple[float, ...]:
    for each in given:
        if not isinstance(each, int | float | np.integer | np.floating) or isinstance(each, bool):
            raise SpecError(f"expected numbers, but found {each!r:.60}", (name,))
    return tuple(float(each) for each in given)  # type: ignore[arg-type]  # they are numbers


def _datasets(
    forms: Forms, size: tuple[float, ...], moved: tuple[float, ...], method: str
) -> tuple[Dataset, ...]:
    """The levels, with where their pixels are.

    A pixel that stands for several lies in the middle of them, but for the method "stride", where
    it is the first of them.
    """
    return tuple(
        Dataset(
            str(number),
            tuple(each * factor for each, factor in zip(size, factors, strict=True)),
            tuple(
                at + (0.0 if method == "stride" else (factor - 1) / 2 * each)
                for at, each, factor in zip(moved, size, factors, strict=True)
            ),
        )
        for number, factors in enumerate(forms.factors)
    )


def _described(method: str, forms: Forms) -> dict[str, Any]:
    """How levels were made, for people."""
    return {
        "description": f"each level is the {method} of blocks of the level above it",
        "method": "tensorstore_py.pyramid",
        "kwargs": {"method": method, "scale": [list(form.factors) for form in forms.levels[1:]]},
    }


def _json(value: object) -> object:
    if isinstance(value, Axis):
        return value.to_json()
    if isinstance(value, CodecSpec):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _json(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
