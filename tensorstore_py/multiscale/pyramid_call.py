"""`PyramidCall`: a pyramid as a plan: empty arrays first, then step after step, windows last.

`PyramidArguments` and what the source says besides become a `NewImage`; that reads and stores
nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import check_types, limits
from tensorstore_py._api.views import DownsampleMethod
from tensorstore_py._compute.pyramid import PyramidPart, PyramidStep, pyramid_steps, seen_from_0
from tensorstore_py._index import identity
from tensorstore_py._plan.arrays import array_json
from tensorstore_py._plan.call import Call
from tensorstore_py._plan.steps import Stage, Step
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # as it is called
from tensorstore_py.drivers.downsample.methods import check_method
from tensorstore_py.errors import SpecError, UnsupportedError, did_you_mean
from tensorstore_py.multiscale.axes import Axis, as_axes, by_axis, full_unit
from tensorstore_py.multiscale.image import Multiscale
from tensorstore_py.multiscale.making import IfExists, NewImage, level_forms, store_metadata
from tensorstore_py.multiscale.metadata import (
    VERSIONS,
    Dataset,
    ImageMetadata,
    omero_of,
    with_windows,
)

if TYPE_CHECKING:
    from tensorstore_py._api.group import Group
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.endpoints import DestinationEndpoint, FoundEndpoint
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.tasks import StageOutcome
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py.multiscale.making import LevelForms
    from tensorstore_py.multiscale.sources import PyramidEndpoint, PyramidSource

__all__ = ["PyramidArguments", "PyramidCall"]


class PyramidArguments(NamedTuple):
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
    forms: LevelForms, size: tuple[float, ...], moved: tuple[float, ...], method: str
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


def _described(method: str, forms: LevelForms) -> dict[str, Any]:
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


class _Opened(NamedTuple):
    """What was found out."""

    source: PyramidSource
    to: FoundEndpoint
    new: NewImage
    levels: list[TensorStore]


class PyramidCall(Call[Multiscale]):
    """A pyramid that is asked for.

    Args:
        asked: what the caller says.
        source: what it is made of.
        target: where it is made.
        if_exists: what to do about levels that are there.
        memory: about how many bytes a task may take; None: little.
    """

    operation = "pyramid"

    def __init__(
        self,
        asked: PyramidArguments,
        source: PyramidEndpoint,
        target: DestinationEndpoint,
        if_exists: IfExists,
        memory: int | None,
    ) -> None:
        self._asked = asked
        self._source = source
        self._target = target
        self._if_exists = if_exists
        self._memory = memory
        self._found: _Opened | None = None
        self._group: Group | None = None
        self._begun = False

    def resume(self, forms: Mapping[str, str]) -> None:
        """See `Call`: levels that are there are those that were begun."""
        del forms
        self._begun = True
        self._found = None

    def request(self) -> JsonObject:
        """See `Call`."""
        said = {"source": self._source.to_json(), "target": self._target.to_json()}
        more = {"if_exists": self._if_exists, "memory": self._memory}
        named = {name: value for name, value in more.items() if value is not None}
        return {**said, **self._asked.to_json(), **named}

    def identity(self) -> JsonObject:
        """See `Call`."""
        ends = {"source": self._source.described, "target": self._target.described}
        return {**ends, **self._asked.to_json(), "memory": self._memory}

    async def _look(self) -> _Opened:
        if self._found is None:
            source = await within(False, self._source.inline, self._source.find)
            to = await within(False, self._target.inline, lambda: self._target.find(None))
            new = self._asked.image(source)

            async def look() -> list[TensorStore]:
                await new.check(to, "replace" if self._begun else self._if_exists)
                return [await new.assumed(to, at) for at in range(len(new.forms.levels))]

            levels = await within(False, self._target.inline, look)
            self._found = _Opened(source, to, new, levels)
        return self._found

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        seen = await self._look()
        forms = seen.new.forms.levels
        item_bytes = seen.levels[0].dtype.array_dtype.itemsize
        steps = pyramid_steps(forms, self._leaf(seen, item_bytes), item_bytes)
        return tuple(Stage((self._step(seen, step),)) for step in steps)

    def _leaf(self, seen: _Opened, item_bytes: int) -> tuple[int, ...]:
        """What of the source is read at a time: whole chunks of it, and of the first level."""
        base, first = seen.source.store._driver, seen.levels[0]._driver
        sizes = limits(item_bytes, first.memory)
        most = sizes["most"]
        if self._memory is not None:
            most = max(1, self._memory // 4 // item_bytes)
        view = seen_from_0(seen.source.store)
        whole = identity(first.domain.mark_bounds_implicit[False])
        blocks = Blocks.of_copy(first, whole, base, view, least=1, most=most)
        if not blocks.count:
            return tuple(max(1, extent) for extent in first.domain.shape)
        return tuple(high - low for low, high in blocks[0].bounds)

    def _step(self, seen: _Opened, step: PyramidStep) -> Step:
        forms = seen.new.forms.levels
        base = seen.source.store if step.base < 0 else seen.levels[step.base]
        numbers = range(step.first, step.last + 1)
        made = [(seen.levels[number], forms[number].factors) for number in numbers]
        drivers = [(store._driver, factors) for store, factors in made]
        part = PyramidPart.of(
            step.cells, base._driver, seen_from_0(base), drivers, seen.new.metadata.method or "",
            step.blocks,
        )  # fmt: skip
        held = self._source.held and step.base < 0

        def arguments() -> JsonObject:
            if held:
                raise UnsupportedError(
                    "the source of a pyramid is an array in this process, which other ones do not "
                    "see; store it, or run in this process (executor=None)"
                )
            return {
                "base": array_json(base, "what a pyramid is made of"),
                "levels": [array_json(store, "a level of a pyramid") for store, _ in made],
                "factors": [list(factors) for _, factors in made],
                "cells": [list(cell) for cell in step.cells],
                "method": seen.new.metadata.method,
            }

        name = "levels " + " to ".join(dict.fromkeys((str(step.first), str(step.last))))
        return Step(
            "pyramid", name, arguments, part.blocks, part.item_bytes, part.progress_bytes, part,
            _digest(seen),
        )  # fmt: skip

    async def begin(self, again: bool) -> None:
        """Make the group and empty arrays."""
        seen = await self._look()
        may = "replace" if again else self._if_exists
        self._group = await within(False, self._target.inline, lambda: seen.new.make(seen.to, may))

    async def check_begun(self) -> None:
        """See that all levels are there.

        Raises:
            FailedPreconditionError: one was deleted meanwhile.
        """
        seen = await self._look()
        await within(False, self._target.inline, lambda: seen.new.check_made(seen.to))

    async def end(self) -> None:
        """Find out how to show the values that there are."""
        seen = await self._look()
        metadata = seen.new.metadata
        if metadata.omero is None or all("window" in one for one in metadata.omero["channels"]):
            return
        driver = seen.levels[-1]._driver
        whole = identity(driver.domain.mark_bounds_implicit[False])
        values = await within(False, driver.inline, lambda: driver.read(whole, "C"))
        omero = with_windows(metadata.omero, metadata.axes, values)
        new = seen.new._replace(metadata=metadata._replace(omero=omero))
        self._found = seen._replace(new=new)
        group = new.group(seen.to)
        await within(
            False, self._target.inline, lambda: store_metadata(group, new.metadata, new.more)
        )

    def result(self, outcomes: list[StageOutcome]) -> Multiscale:
        """The image."""
        assert self._found is not None
        new = self._found.new
        return Multiscale(self._group or new.group(self._found.to), new.metadata)


def _digest(seen: _Opened) -> str:
    """A few letters that are others when the source's form is another, or the image's."""
    source, new = seen.source.store, seen.new
    said = [
        [*source.shape], source.dtype.name, source.chunk_layout.to_json(),
        None if source.codec is None else source.codec.to_json(),
        [*new.metadata.datasets], new.metadata.version, new.forms, new.data_type.name,
        repr(new.codec),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=repr).encode()).hexdigest()[:16]
