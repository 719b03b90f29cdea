"""`ts.multiscale.open`: an image, found in a group, a plate or a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._conversion.ends import source as source_end
from tensorstore_py._conversion.member import node_attributes
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._hierarchy.path import join, normalised
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import MismatchError, NotFoundError
from tensorstore_py.multiscale.image import Multiscale, image_of

if TYPE_CHECKING:
    from tensorstore_py._conversion.ends import Found
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context

__all__ = ["found_image", "open"]


def open(  # it opens
    source: object, *, path: str = "", context: Context | None = None
) -> Future[Multiscale]:
    """Open an OME-Zarr image: what it is, and its levels, which are opened when they are used.

    Costs what it costs to open a group, and nothing for its levels; nothing more if metadata is
    consolidated. Versions 0.1 to 0.5 are read.

    Args:
        source: a URL, a local path (`os.PathLike`), a spec, a `KvStore`, a `Group`, or a
            `Multiscale`.
        path: of the image below that, such as `"labels/cells"`, or `"A/1/0"` in a plate.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: (at once) the source is wrong; (by the Future) metadata is; has the JSON path.
        NotFoundError: (by the Future) there is no image, and what there is instead.
        UnsupportedError: (by the Future) a version that is not known here.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> store = ts.KvStore.open("memory://").result()
        >>> _ = ts.pyramid(np.ones((40, 600, 600), "uint8"), store, axes="zyx").result()
        >>> image = ts.multiscale.open(store).result()
        >>> image.version, len(image.levels), image.levels[1].domain.labels
        ('0.5', 3, ('z', 'y', 'x'))
    """
    inner = normalised(path)
    if isinstance(source, Multiscale):
        source = source.group
    end = source_end(source, as_context(context))

    async def body() -> Multiscale:
        try:
            found = await end.find()
        except NotFoundError as error:
            problem = str(error).replace("nothing to copy", "there is no image")
            raise NotFoundError(problem) from None
        return await found_image(found, inner)

    return start(end.inline, body)


async def found_image(found: Found, path: str = "") -> Multiscale:
    """The image at a place that was found, or below it.

    Raises:
        MismatchError: an array is there.
        NotFoundError, SpecError, UnsupportedError: as `open`.
    """
    tree, place, node = found.tree, found.place, found.node
    if tree is None or node is None or place is None:
        raise MismatchError("an array is no image; open the group that it is in")
    known = node.consolidated
    if path:
        where = join(found.path, path)
        inner = await read_node(tree, where, known)
        if inner is None:
            raise NotFoundError(f'no image is at "/{path}", at {tree.describe(where)}')
        node = inner
    if node.kind == "array":
        raise MismatchError(
            f"an array, which is no image by itself, is at {tree.describe(node.path)}; open the "
            "group that it is in"
        )
    group = Group._of(place, node.path, found.transaction, known, tree)
    return await _with_scales(image_of(group, await node_attributes(tree, node)))


async def _with_scales(image: Multiscale) -> Multiscale:
    """Images before version 0.4 do not say their scales: extents do."""
    metadata = image.metadata
    if metadata.known_scales:
        return image
    shapes = [(await image._kept(number)).shape for number in range(len(metadata.datasets))]
    datasets = tuple(
        dataset._replace(
            scale=tuple(
                float(round(whole / extent)) if extent else 1.0
                for whole, extent in zip(shapes[0], shape, strict=True)
            )
        )
        for dataset, shape in zip(metadata.datasets, shapes, strict=True)
    )
    image.metadata = metadata._replace(datasets=datasets, known_scales=True)
    return image
