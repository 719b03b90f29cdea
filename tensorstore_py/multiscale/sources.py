"""What a pyramid is made of: an array of any kind, or the largest level of an image.

Arrays of other libraries are read where they are, chunk by chunk, by their own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._api.array import array, virtual_chunked
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._conversion.endpoints import source as source_end
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py.errors import NotFoundError, SpecError, UnsupportedError
from tensorstore_py.multiscale.image import Multiscale, found_image

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tensorstore_py._index import IndexDomain
    from tensorstore_py._spec.context import Context
    from tensorstore_py.multiscale.metadata import ImageMetadata

__all__ = ["PyramidEndpoint", "PyramidSource", "pyramid_source"]


class PyramidSource(NamedTuple):
    """What is read.

    Attributes:
        store: the array.
        image: what is said of the image that it is the largest level of; None: it is none.
    """

    store: TensorStore
    image: ImageMetadata | None = None


class PyramidEndpoint(NamedTuple):
    """What is to be read, before it is found.

    Attributes:
        inline: the execution mode of finding it.
        find: finds it.
        described: how to name it to a person.
        to_json: makes what another process takes for it.
        held: whether it is an array that only this process has.
    """

    inline: bool
    find: Callable[[], Coroutine[Any, Any, PyramidSource]]
    described: str
    to_json: Callable[[], object]
    held: bool = False


def pyramid_source(given: object, context: Context) -> PyramidEndpoint:
    """What a caller names as the source, to be found.

    Args:
        given: whatever `ts.open` takes, an open array, an image, or an array of NumPy, dask and
            whoever else has a shape, a type and slices.
        context: what specs are bound to.

    Raises:
        SpecError: something is wrong with it.
    """
    if isinstance(given, Multiscale):
        given = given.group
    if _is_array(given):
        store = array(given) if isinstance(given, np.ndarray) else _foreign(given, context)

        async def held() -> PyramidSource:
            return PyramidSource(store)

        return PyramidEndpoint(
            store._driver.inline, held, "an array in memory", _not_json, held=True
        )
    end = source_end(given, context)

    async def find() -> PyramidSource:
        try:
            found = await end.find()
        except NotFoundError as error:
            raise NotFoundError(str(error).replace("to copy", "to make a pyramid of")) from None
        if found.array is not None:
            return PyramidSource(found.array)
        image = await found_image(found)
        return PyramidSource(await image._kept(0), image.metadata)

    return PyramidEndpoint(end.inline, find, end.described, end.to_json)


def _not_json() -> object:
    raise UnsupportedError(
        "the source is an array in this process, which other ones do not see; store it first"
    )


def _is_array(given: object) -> bool:
    if isinstance(given, TensorStore | Group | KvStore):
        return False
    return all(hasattr(given, name) for name in ("shape", "dtype", "__getitem__"))


def _foreign(given: Any, context: Context) -> TensorStore:  # noqa: ANN401 - of any library
    """An array that is read by slices, as far as it is wanted."""
    shape = tuple(int(extent) for extent in given.shape)
    if not shape:
        raise SpecError("an array without dimensions is no image", ("source",))

    def read(domain: IndexDomain, chunk: np.ndarray[Any, np.dtype[Any]], _: object) -> None:
        wanted = tuple(
            slice(low, high)
            for low, high in zip(domain.inclusive_min, domain.exclusive_max, strict=True)
        )
        chunk[...] = np.asarray(given[wanted])

    sizes = _chunks(given, len(shape))
    layout = None if sizes is None else ChunkLayout(read_chunk_shape=sizes)
    return virtual_chunked(
        read,
        dtype=np.dtype(given.dtype),
        shape=shape,
        chunk_layout=layout,
        context=context,
    )


def _chunks(given: Any, rank: int) -> list[int] | None:  # noqa: ANN401 - as above
    """Extents of an array's chunks, as dask, zarr and h5py tell them."""
    for name in ("chunksize", "chunks"):
        found = getattr(given, name, None)
        sizes = found if isinstance(found, Sequence) else ()
        whole = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
        if whole and len(sizes) == rank:
            return [int(size) for size in sizes]
    return None
