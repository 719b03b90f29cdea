"""Categorize: texts out of a short list, stored as their numbers in it.

Specification: https://numcodecs.readthedocs.io/en/stable/filter/categorize.html
Example: `{"id": "categorize", "labels": ["G1", "S", "M"], "dtype": "|O", "astype": "|u1"}`.
Limits: text of a fixed length (`"<U6"`) or of any (`"|O"`). A text that is not in the list is
stored as 0 and comes back empty.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Array,
    ArrayToArray,
    ArrayToArraySpec,
    BeforeValidator,
    ChunkType,
    ElementType,
    JsonForm,
    codec,
    describe,
    element_type,
)

__all__ = ["Categorize", "CategorizeSpec"]

_OBJECT = "|O"


def _text_type(json: object) -> str:
    if json in (_OBJECT, "O", "object"):
        return _OBJECT
    text = element_type(json)
    if np.dtype(text).kind != "U":
        raise SpecError(f'expected "|O" or a text type such as "<U8", but found {describe(json)}')
    return text


@codec("categorize", family="zarr")
class CategorizeSpec(ArrayToArraySpec):
    """Asked: `categorize`.

    Attributes:
        labels: the texts; the first one is stored as 1.
        dtype: the texts as they are in the array.
        astype: the numbers as they are stored; an integer type.

    Example:
        >>> CategorizeSpec.parse({"labels": ["a", "b"], "dtype": "<U1"}).to_json()
        {'astype': '|u1', 'dtype': '<U1', 'labels': ['a', 'b']}
    """

    labels: tuple[str, ...]
    dtype: Annotated[str, BeforeValidator(_text_type), JsonForm({"type": "string"})]
    astype: ElementType = "|u1"

    @property
    def object_type(self) -> str | None:
        return "ustring" if self.dtype == _OBJECT else None

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json["astype"] = self.astype

    def bind(self, chunk: ChunkType) -> ArrayToArray:
        stored = np.dtype(self.astype)
        if stored.kind not in "iu" or len(self.labels) > np.iinfo(stored).max:
            raise SpecError(
                f"expected an integer type for {len(self.labels)} labels, but found {stored}",
                ("astype",),
            )
        if self.dtype != _OBJECT:
            chunk = chunk.viewed_as(np.dtype(self.dtype))
        elif not chunk.dtype.hasobject:
            raise SpecError(f"the array holds no Python objects, but {chunk.dtype}", ("dtype",))
        return Categorize(chunk, self.labels, stored)


class Categorize(ArrayToArray):
    """The bound codec, of a chunk of texts."""

    def __init__(
        self, decoded: ChunkType, labels: tuple[str, ...], stored: np.dtype[np.generic]
    ) -> None:
        self._decoded = decoded
        self._texts = np.array(["", *labels], decoded.dtype)
        self._numbers = {label: number for number, label in enumerate(self._texts.tolist())}
        # The empty text is a label like any other if it is one, and else not in the list.
        self._numbers.update({label: number for number, label in enumerate(labels, 1)})
        if "" not in labels:
            self._numbers[""] = 0
        self.encoded = ChunkType(decoded.shape, stored, np.zeros((), stored))

    def encode(self, array: Array) -> Array:
        texts = array if array.dtype.hasobject else self._decoded.flat(array)
        known = self._numbers
        numbers = [known.get(text, 0) for text in texts.ravel().tolist()]
        return np.array(numbers, self.encoded.dtype).reshape(self.encoded.shape)

    def decode(self, array: Array) -> Array:
        numbers: NDArray[np.int64] = array.astype(np.int64).reshape(self._decoded.shape)
        outside = (numbers < 0) | (numbers >= len(self._texts))
        return np.asarray(self._texts[np.where(outside, 0, numbers)])
