"""`PyramidCall`: a pyramid as a plan: empty arrays first, then step after step, windows last."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import limits
from tensorstore_py._compute.pyramid import PyramidPart, seen_from_0
from tensorstore_py._compute.pyramid_steps import PyramidStep, pyramid_steps
from tensorstore_py._index import identity
from tensorstore_py._plan.arrays import array_json
from tensorstore_py._plan.call import Call
from tensorstore_py._plan.steps import Stage, Step
from tensorstore_py._runtime.fan_out import within
from tensorstore_py.errors import UnsupportedError
from tensorstore_py.multiscale.image import Multiscale
from tensorstore_py.multiscale.making import IfExists, NewImage, store_metadata
from tensorstore_py.multiscale.omero import with_windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.group import Group
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._conversion.ends import Destination, Found
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.tasks import Outcome
    from tensorstore_py.multiscale.asked import Asked
    from tensorstore_py.multiscale.sources import PyramidSource, SourceEnd

__all__ = ["PyramidCall"]


class _Seen(NamedTuple):
    """What was found out."""

    source: PyramidSource
    to: Found
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
        asked: Asked,
        source: SourceEnd,
        target: Destination,
        if_exists: IfExists,
        memory: int | None,
    ) -> None:
        self._asked = asked
        self._source = source
        self._target = target
        self._if_exists = if_exists
        self._memory = memory
        self._found: _Seen | None = None
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

    async def _look(self) -> _Seen:
        if self._found is None:
            source = await within(False, self._source.inline, self._source.find)
            to = await within(False, self._target.inline, lambda: self._target.find(None))
            new = self._asked.image(source)

            async def look() -> list[TensorStore]:
                await new.check(to, "replace" if self._begun else self._if_exists)
                return [await new.assumed(to, at) for at in range(len(new.forms.levels))]

            levels = await within(False, self._target.inline, look)
            self._found = _Seen(source, to, new, levels)
        return self._found

    async def stages(self) -> tuple[Stage, ...]:
        """See `Call`."""
        seen = await self._look()
        forms = seen.new.forms.levels
        item_bytes = seen.levels[0].dtype.array_dtype.itemsize
        steps = pyramid_steps(forms, self._leaf(seen, item_bytes), item_bytes)
        return tuple(Stage((self._step(seen, step),)) for step in steps)

    def _leaf(self, seen: _Seen, item_bytes: int) -> tuple[int, ...]:
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

    def _step(self, seen: _Seen, step: PyramidStep) -> Step:
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
            "pyramid", name, arguments, part.blocks, part.item_bytes, part.told_bytes, part,
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
            FailedPreconditionError: somebody has deleted one.
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

    def result(self, outcomes: list[Outcome]) -> Multiscale:
        """The image."""
        assert self._found is not None
        new = self._found.new
        return Multiscale(self._group or new.group(self._found.to), new.metadata)


def _digest(seen: _Seen) -> str:
    """A few letters that are others when the source's form is another, or the image's."""
    source, new = seen.source.store, seen.new
    said = [
        [*source.shape], source.dtype.name, source.chunk_layout.to_json(),
        None if source.codec is None else source.codec.to_json(),
        [*new.metadata.datasets], new.metadata.version, new.forms, new.data_type.name,
        repr(new.codec),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=repr).encode()).hexdigest()[:16]
