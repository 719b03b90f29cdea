"""The element types that codecs name in their own members, such as delta's `"dtype": "<i4"`.

They are written in NumPy's notation, with or without a byte order, and describe bytes: which of
TensorStore's data types correspond is not asked here. Only plain types of a fixed size pass, since
NumPy reads much more into a string than metadata should say.
"""

from __future__ import annotations

import re
from typing import Annotated

import numpy as np

from tensorstore_py._spec.dtype import LARGEST_ELEMENT
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import BeforeValidator, JsonForm
from tensorstore_py.errors import SpecError

__all__ = ["ElementType", "element_type"]

_PLAIN = re.compile(
    r"[<>|=]?(\?|[biufcSUV]\d{1,9}|[mM]8\[\d{0,9}[a-zA-Zμ]{1,2}\])|(bool|u?int|float|complex)\d{0,3}",
    re.ASCII,
)


def element_type(json: object) -> str:
    """The type in NumPy's shortest notation, byte order included.

    Raises:
        SpecError: not a plain type of a fixed size.

    Example:
        >>> element_type("int16"), element_type(">f4"), element_type("u1")
        ('<i2', '>f4', '|u1')
    """
    if isinstance(json, str) and _PLAIN.fullmatch(json):
        try:
            found = np.dtype(json)
        except TypeError:
            found = np.dtype("V0")
        if 0 < found.itemsize <= LARGEST_ELEMENT:
            return found.str
    raise SpecError(f'expected an element type such as "<i4", but found {describe(json)}')


#: A member that names an element type; its value is what `element_type` returns.
ElementType = Annotated[
    str,
    BeforeValidator(element_type),
    JsonForm({"type": "string", "examples": ["<i4", "<f8", "|u1"]}),
]
