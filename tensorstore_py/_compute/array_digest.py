"""`DigestArray`: the digest of one array as an operation on blocks, with results that merge.

`Digest` is what comes of it: the text that is the same for equal arrays. The one invariant: it
depends on the data type, the shape and the elements, and on nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.blockwise import limits, selected
from tensorstore_py._api.reread import read_surely
from tensorstore_py._compute.fingerprint import LANES, PRIME, added, fingerprint
from tensorstore_py._index import propagate_bounds
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._compute.fingerprint import Lanes
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._spec.json_value import Json

__all__ = ["Digest", "DigestArray", "MergeLanes", "digest_of"]

_VERSION: Final = "tsd1"
_FORM: Final = re.compile(r"tsd[1-9][0-9]*:[0-9a-f]{64}")


class Digest(str):
    """What `ts.digest` gives: a text such as `"tsd1:9f2c…"`, equal for what is equal.

    Attributes:
        version: of the algorithm: what comes before the colon.
        hex: the 64 hexadecimal digits behind it.

    Raises:
        SpecError: the text is no digest.

    Example:
        >>> import tensorstore_py as ts
        >>> found = ts.digest(ts.array([1, 2, 3], dtype="int16")).result()
        >>> found == ts.Digest(str(found)), found.version, len(found.hex)
        (True, 'tsd1', 64)
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """The digest that a text tells."""
        if not _FORM.fullmatch(text):
            raise SpecError(f"expected a digest such as tsd1:9f2c… with 64 digits, not {text!r}")
        return super().__new__(cls, text)

    @property
    def version(self) -> str:
        """Of the algorithm."""
        return self.partition(":")[0]

    @property
    def hex(self) -> str:
        """The digits."""
        return self.partition(":")[2]

    def __repr__(self) -> str:
        return f"Digest({str(self)!r})"


def digest_of(document: object) -> Digest:
    """The digest of a JSON document in its canonical form."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return Digest(f"{_VERSION}:{hashlib.sha256(text.encode()).hexdigest()}")


class MergeLanes:
    """How fingerprints are merged."""

    def merge(self, one: object, other: object) -> Lanes:
        """The fingerprint of both parts."""
        assert isinstance(one, tuple)
        assert isinstance(other, tuple)
        return added(one, other)

    def to_json(self, result: object) -> Json:
        """As JSON."""
        assert isinstance(result, tuple)
        return list(result)

    def from_json(self, json: Any) -> Lanes:  # noqa: ANN401 - JSON
        """Of JSON.

        Raises:
            SpecError: it is no fingerprint.
        """
        if (
            not isinstance(json, list)
            or len(json) != LANES
            or not all(isinstance(each, int) and 0 <= each < PRIME for each in json)
        ):
            raise SpecError("a partial result is damaged: it is no fingerprint")
        return tuple(json)


class DigestArray:
    """See the head of this file.

    Args:
        source: what is read.
        view: what of it.

    Attributes:
        inline: the temperament of `run`.
        blocks: what is worked on.
        item_bytes: how much memory an element takes meanwhile.
        memory: the budget that this counts in.
        told_bytes: what an element counts for progress.
    """

    def __init__(self, source: Driver, view: IndexTransform) -> None:
        self._source = source
        self._view = propagate_bounds(source.domain.mark_bounds_implicit[False], view)
        self.inline = source.inline
        self.memory = source.memory
        self.told_bytes = self.item_bytes = source.data_type.array_dtype.itemsize
        self.blocks = Blocks.of_read(source, self._view, **limits(self.item_bytes, self.memory))

    async def run(self, block: Block) -> Lanes:
        """The fingerprint of a block."""
        data = await read_surely(self._source, self._view[selected(block.bounds)])
        origin = [
            low - first
            for (low, _), first in zip(block.bounds, self._view.input_origin, strict=True)
        ]
        make = partial(fingerprint, data, origin, self._source.data_type)
        return await offload(self.inline, make)

    def result(self, found: Lanes | None) -> Digest:
        """The digest.

        Args:
            found: the fingerprint of all blocks; None: there are none.
        """
        return digest_of(
            {
                "dtype": self._source.data_type.name,
                "shape": list(self._view.input_shape),
                "elements": list(found or (0,) * LANES),
            }
        )
