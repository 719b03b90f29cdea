"""Neuroglancer's precomputed format of what is served: volumes of one level or several.

A volume has the dimensions x, y, z and channel, in this order, and raw chunks in Fortran order. The
dimensions of an array are told apart by their names; without names, the last ones are z, y and x,
and one in front of them is the channels. A group that is an OME-Zarr image is a volume of all of
its levels, any other array one of a single level. Positions count from zero.

Source: https://github.com/google/neuroglancer/tree/master/src/datasource/precomputed
"""

from __future__ import annotations

import json
import re
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from aiohttp import web

from tensorstore_py._hierarchy.path import join
from tensorstore_py._serving.answers import JSON, Head, respond, tag, tagged
from tensorstore_py._serving.tree import MOST_BYTES
from tensorstore_py.errors import NotFoundError, SpecError, TensorStoreError, UnsupportedError
from tensorstore_py.multiscale.metadata import ImageMetadata, is_ome, parse_image

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._interface.kvstore import Buffer
    from tensorstore_py._serving.admission import Admission
    from tensorstore_py._serving.tree import ServedArray, ServedTree
    from tensorstore_py._spec.units import Unit

__all__ = ["Precomputed"]

_INFO: Final = "info"
_TYPES: Final = frozenset(
    ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "float32")
)
#: Integers of that many bits are labels more often than intensities.
_LABELS: Final = frozenset(("uint32", "uint64"))
_CHUNK_NAME: Final = re.compile(
    r"(\d{1,18})-(\d{1,18})_(\d{1,18})-(\d{1,18})_(\d{1,18})-(\d{1,18})\Z"
)
_AXES: Final = ("x", "y", "z", "c")
_NAMES: Final = {"channel": "c", "channels": "c", "c^": "c"}

_NANOMETRES: Final = {
    "pm": 1e-3, "picometer": 1e-3, "A": 0.1, "angstrom": 0.1, "nm": 1.0, "nanometer": 1.0,
    "um": 1e3, "µm": 1e3, "μm": 1e3, "micrometer": 1e3, "micron": 1e3, "mm": 1e6,
    "millimeter": 1e6, "cm": 1e7, "centimeter": 1e7, "m": 1e9, "meter": 1e9,
    "km": 1e12, "kilometer": 1e12,
}  # fmt: skip


class _Scale(NamedTuple):
    """One level.

    Attributes:
        array: its elements, with the dimensions x, y, z, c, each there or not.
        present: which of these there are, in the array's order.
    """

    key: str
    served: ServedArray
    present: tuple[str, ...]
    size: tuple[int, int, int]
    chunks: tuple[int, int, int]
    resolution: tuple[float, float, float]

    def to_json(self) -> dict[str, object]:
        return {
            "key": self.key,
            "size": list(self.size),
            "resolution": list(self.resolution),
            "voxel_offset": [0, 0, 0],
            "chunk_sizes": [list(self.chunks)],
            "encoding": "raw",
        }

    def where(self, name: str) -> dict[str, slice] | None:
        """The positions that a chunk's name says, by dimension; None: there is no such chunk."""
        found = _CHUNK_NAME.match(name)
        if found is None:
            return None
        bounds = [int(each) for each in found.groups()]
        where: dict[str, slice] = {}
        for axis, start, stop, size, chunk in zip(
            "xyz", bounds[::2], bounds[1::2], self.size, self.chunks, strict=True
        ):
            if start % chunk or start >= size or stop != min(start + chunk, size):
                return None
            where[axis] = slice(start, stop)
        return where

    def view(self, where: Mapping[str, slice]) -> TensorStore:
        """What is read for a chunk."""
        index = tuple(where.get(axis, slice(None)) for axis in self.present)
        return self.served.array[index]

    def encode(self, elements: np.ndarray[Any, Any]) -> Buffer:
        """The raw chunk of some elements."""
        order = [self.present.index(axis) for axis in _AXES if axis in self.present]
        if elements.dtype.kind == "b":
            elements = elements.view(np.uint8)
        little = elements.dtype.newbyteorder("<")
        return elements.transpose(order).astype(little, copy=False).tobytes(order="F")


class Precomputed(NamedTuple):
    """What is served in the format.

    Attributes:
        documents: `info` of each volume, by key.
        scales: by the path of the volume and the key of the scale.
        left_out: what the format cannot express, by path, and why.
    """

    documents: dict[str, bytes]
    scales: dict[str, _Scale]
    left_out: dict[str, str]

    @classmethod
    def of(cls, tree: ServedTree) -> Self:
        """That of a tree."""
        made = cls({}, {}, {})
        for path, attributes in tree.groups.items():
            if is_ome(attributes):
                made._add(path, partial(_image_scales, tree, path, attributes))
        for path, array in tree.arrays.items():
            made._add(path, partial(_array_scales, array))
        return made

    def _add(self, path: str, make: partial[list[_Scale]]) -> None:
        try:
            scales = make()
        except TensorStoreError as error:
            self.left_out[path] = str(error)
            return
        array = scales[0].served.array
        data_type = _data_type(array)
        channels = array.shape[scales[0].present.index("c")] if "c" in scales[0].present else 1
        info = {
            "@type": "neuroglancer_multiscale_volume",
            "type": "segmentation" if data_type in _LABELS and channels == 1 else "image",
            "data_type": data_type,
            "num_channels": channels,
            "scales": [scale.to_json() for scale in scales],
        }
        self.documents[join(path, _INFO)] = json.dumps(info, indent=1).encode()
        self.scales.update({join(path, scale.key): scale for scale in scales})

    async def answer(
        self, request: web.Request, key: str, admission: Admission
    ) -> web.StreamResponse:
        """Answer a request for a key.

        Raises:
            NotFoundError: there is no such volume or chunk.
        """
        document = self.documents.get(key)
        if document is not None:
            return await respond(request, document, Head(tag(document), JSON))
        above, _, name = key.rpartition("/")
        scale = self.scales.get(above)
        where = None if scale is None else scale.where(name)
        if scale is None or where is None:
            raise NotFoundError("there is no such chunk")
        view = scale.view(where)
        async with admission.holding(3 * view.size * view.dtype.array_dtype.itemsize):
            async with admission.making:
                elements = await view.read()
                made = await tagged(partial(scale.encode, elements))
            assert made is not None  # each chunk is there
            return await respond(request, *made)


def _data_type(array: TensorStore) -> str:
    """The format's name of an array's data type.

    Raises UnsupportedError: it has none.
    """
    name = "uint8" if array.dtype.name == "bool" else array.dtype.name
    if name not in _TYPES:
        is_number = array.dtype.numpy_dtype.kind in "iuf"
        cast = '; serve it as float32 ({"driver": "cast", "dtype": "float32", "base": …}), or'
        raise UnsupportedError(
            f"precomputed volumes have no {name}{cast if is_number else '; serve it'} as zarr"
        )
    return name


def _array_scales(served: ServedArray) -> list[_Scale]:
    labels = _labels(served.array.domain.labels)
    units = served.array.dimension_units
    return [_scale("full", served, labels, [_nanometres(unit) for unit in units])]


def _image_scales(tree: ServedTree, path: str, attributes: Mapping[str, object]) -> list[_Scale]:
    """The levels of an OME-Zarr image.

    Raises TensorStoreError: its metadata is wrong, a level was left out, or has other dimensions.
    """
    image: ImageMetadata = parse_image(attributes, f'"/{path}"')
    labels = _labels([axis.name for axis in image.axes])
    found = []
    for number, dataset in enumerate(image.datasets):
        served = tree.arrays.get(join(path, dataset.path))
        if served is None or served.array.rank != len(labels):
            raise SpecError(f'level "{dataset.path}" is not there, or has other axes')
        sizes = [
            size * _NANOMETRES.get(axis.unit or "nm", 1.0)
            for axis, size in zip(image.axes, dataset.scale, strict=True)
        ]
        found.append(_scale(f"s{number}", served, labels, sizes))
    return found


def _labels(names: Sequence[str]) -> tuple[str, ...]:
    """Which of x, y, z, c each dimension is; the others as they are named.

    Example:
        >>> _labels(["", "", ""]), _labels(["Channel", "Y", "X"]), _labels(["time", "y", "x"])
        (('z', 'y', 'x'), ('c', 'y', 'x'), ('time', 'y', 'x'))
    """
    rank = len(names)
    if not any(names):
        return ("c", "z", "y", "x")[4 - rank :] if rank <= 4 else tuple(names)
    lowered = [name.lower() for name in names]
    return tuple(_NAMES.get(name, name) for name in lowered)


def _nanometres(unit: Unit | None) -> float:
    if unit is None:
        return 1.0
    return unit.multiplier * _NANOMETRES.get(unit.base_unit, 1.0)


def _scale(
    key: str, served: ServedArray, labels: tuple[str, ...], sizes: Sequence[float]
) -> _Scale:
    """One level.

    Raises UnsupportedError: its elements or its dimensions cannot be expressed.
    """
    array = served.array
    _data_type(array)
    present = tuple(labels)
    dropped = []
    for axis, name in enumerate(labels):
        if name in _AXES:
            continue
        if array.shape[axis] != 1:
            raise UnsupportedError(
                f"precomputed volumes have the dimensions x, y, z and channel; "
                f'"{name}" (of {array.shape[axis]}) is none: select one position along it, or '
                "name dimensions so"
            )
        dropped.append(axis)
    if len(set(present)) != len(present) or not array.rank or not array.size:
        raise UnsupportedError("precomputed volumes have one to four dimensions, and elements")
    if dropped:
        index = tuple(0 if axis in dropped else slice(None) for axis in range(array.rank))
        served = served._replace(source=served.source._replace(array=array[index]))
        present = tuple(name for axis, name in enumerate(labels) if axis not in dropped)
        sizes = [each for axis, each in enumerate(sizes) if axis not in dropped]
    chunks = _with_all_channels(
        present,
        [each for axis, each in enumerate(served.chunks) if axis not in dropped],
        served.array,
    )
    extents = dict(zip(present, served.array.shape, strict=True))
    by_name = dict(zip(present, chunks, strict=True))
    steps = dict(zip(present, sizes, strict=True))
    x, y, z = ((extents.get(a, 1), by_name.get(a, 1), steps.get(a, 1.0)) for a in "xyz")
    return _Scale(key, served, present, (x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2]))


def _with_all_channels(
    present: Sequence[str], chunks: Sequence[int], array: TensorStore
) -> list[int]:
    """The extents of chunks, which have all channels, so that they are not too large."""
    found = [
        extent if name == "c" else size
        for name, size, extent in zip(present, chunks, array.shape, strict=True)
    ]
    space = [axis for axis, name in enumerate(present) if name != "c"]
    item = array.dtype.array_dtype.itemsize
    while prod(found) * item > MOST_BYTES and any(found[axis] > 1 for axis in space):
        largest = max(space, key=found.__getitem__)
        found[largest] = -(-found[largest] // 2)
    return found
