"""`Forms`: the metadata document of a new array, made by `ts.zarr` from zarr-python's words.

Variables of a Dataset are mostly alike but for their names, shapes and attributes. So a document is
made once for each kind of array, in memory, and a shape put into it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_documents import Form, Json

__all__ = ["Forms"]

Shape = tuple[int, ...]


class Forms:
    """Documents of new arrays.

    Args:
        form: the version of the format.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self._group: ts.zarr.Group | None = None
        self._known: dict[str, Json] = {}

    def metadata(self, shape: Shape, arguments: Mapping[str, Any]) -> Json:
        """The document of an array, without attributes and names of dimensions.

        Args:
            shape: of the array.
            arguments: those of `ts.zarr.create`, but for these.

        Raises:
            TypeError, ValueError: an argument is wrong; says what is right.
        """
        # A chunk shape that the engine chooses depends on the array's.
        chosen = shape if arguments.get("chunks") is None else len(shape)
        dtype = arguments["dtype"]
        kind = repr((chosen, sorted(arguments.items()), getattr(dtype, "metadata", None)))
        if kind not in self._known:
            self._known[kind] = self._made(shape, arguments)
        return {**self._known[kind], "shape": [*shape]}

    def _made(self, shape: Shape, arguments: Mapping[str, Any]) -> Json:
        if self._group is None:
            store = ts.zarr.MemoryStore()
            self._group = ts.zarr.group(store=store, zarr_format=self._form.zarr_format)
        name = f"a{len(self._known)}"
        self._group.create(name, shape, **arguments)
        return json.loads(self._group.store[f"{name}/{self._form.array_key}"])
