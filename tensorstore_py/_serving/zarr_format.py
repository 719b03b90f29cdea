"""Zarr, version 2 or 3, of whatever is served: documents that are made once, chunks on request.

The documents are those of arrays of the same form in memory, which hold no elements: so a format's
driver says what it can express, and how a chunk is encoded. Arrays that are stored in the version
are not made: their keys are passed on as they are.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from aiohttp import web

from tensorstore_py._api.group_spec import NewArray, Place, group_model, places
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._conversion.target_metadata import RequestedMetadata, target_metadata
from tensorstore_py._hierarchy.changes import consolidate, create_group
from tensorstore_py._hierarchy.path import parents
from tensorstore_py._interface.key_range import ALL
from tensorstore_py._runtime.execution import completion_of, start
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._serving.answers import JSON, Head, respond, tag, tagged
from tensorstore_py._spec.context import Context, bind
from tensorstore_py.errors import NotFoundError, TensorStoreError, UnsupportedError
from tensorstore_py.multiscale.metadata import in_version, is_ome

if TYPE_CHECKING:
    from tensorstore_py._hierarchy.node import Hierarchy
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._serving.admission import Admission
    from tensorstore_py._serving.tree import ServedArray, ServedTree

__all__ = ["ZarrFormat", "ZarrWhenAsked"]

_DRIVERS: Final = {2: "zarr", 3: "zarr3"}
_OME: Final = {2: "0.4", 3: "0.5"}
#: Known to all clients, and hardly slower than none.
_CODECS: Final[dict[int, object]] = {
    2: {"driver": "zarr", "compressor": {"id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": 1}},
    3: {
        "driver": "zarr3",
        "codecs": [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1}}],
    },
}


class ZarrFormat(NamedTuple):
    """What is served in one version.

    Attributes:
        version: 2 or 3.
        documents: by key.
        arrays: what is served of arrays, by path.
        forms: the arrays in memory that say how chunks of others are encoded, by path.
        left_out: arrays that the version cannot express, by path, and why.
    """

    version: int
    documents: dict[str, bytes]
    arrays: dict[str, ServedArray]
    forms: dict[str, ChunkedDriver[Any]]
    left_out: dict[str, str]

    @classmethod
    async def of(cls, tree: ServedTree, version: int) -> Self:
        """That of a tree; runs on the library's loop."""
        return await start(True, partial(cls._made, tree, version))

    @classmethod
    async def _made(cls, tree: ServedTree, version: int) -> Self:
        made = cls(version, {}, {}, {}, {})
        context = Context()
        model = bind(group_model({"driver": _DRIVERS[version], "kvstore": "memory://"}), context)
        [place] = places(model, context, version)
        hierarchy = place.tree(None)
        for path in sorted(tree.groups, key=lambda path: (path.count("/"), path)):
            await create_group(hierarchy, path, made._attributes(tree.groups[path]), may_exist=True)
        for path, array in tree.arrays.items():
            if array.zarr_format == version:
                await _keep_documents(hierarchy, array)
                made.arrays[path] = array
                continue
            try:
                made.forms[path] = await made._form(array, place, hierarchy)
                made.arrays[path] = array
            except (TensorStoreError, TypeError, ValueError) as error:
                made.left_out[path] = str(error)
        if tree.groups:
            await consolidate(hierarchy, "")
        async for entry in hierarchy.store.list(ALL):
            made.documents[entry.key] = bytes((await hierarchy.store.read(entry.key)).value)
        return made

    async def _form(
        self, array: ServedArray, place: Place, hierarchy: Hierarchy
    ) -> ChunkedDriver[Any]:
        """An array of the same form in memory.

        Raises TensorStoreError, TypeError, ValueError: the version cannot express it.
        """
        # Some clients do not know what a chunk holds that is not there, if no document says it.
        unsaid = array.array.fill_value is None and array.array.dtype.numpy_dtype.kind in "biufc"
        wanted = RequestedMetadata(
            chunks=array.chunks, codec=_CODECS[self.version], fill_value=0 if unsaid else None
        )
        form = target_metadata(array.source, place.form, wanted)
        options = dict(form.options)
        if self.version == 2:
            options.pop("dimension_units", None)  # it has no place for them
        attributes = self._attributes(form.attributes)
        new = NewArray.of(place, array.path, attributes, options, may_exist=False, deletes=False)
        found = await new.make(hierarchy, "", None, Lifetime("TensorStore"))
        assert isinstance(found._driver, ChunkedDriver)
        return found._driver

    def _attributes(self, attributes: JsonObject) -> JsonObject:
        if not is_ome(attributes):
            return attributes
        try:
            return in_version(attributes, _OME[self.version])
        except UnsupportedError:  # viewers know older versions, too
            return attributes

    async def answer(
        self, request: web.Request, key: str, admission: Admission
    ) -> web.StreamResponse:
        """Answer a request for a key.

        Raises:
            NotFoundError: there is no such document or chunk, or the chunk is not stored.
        """
        path = next((each for each in (*parents(key), key) if each in self.arrays), None)
        if path is None:
            return await self._document(request, key)
        array, rest = self.arrays[path], key[len(path) :].lstrip("/")
        if array.zarr_format == self.version and array.stored is not None:
            most = None if array.sharded else 2 * array.chunk_bytes
            return await array.stored.answer(request, rest, admission, most=most)
        if key in self.documents:
            return await self._document(request, key)
        return await self._chunk(request, array, key, admission)

    async def _document(self, request: web.Request, key: str) -> web.StreamResponse:
        document = self.documents.get(key)
        if document is None:
            raise NotFoundError("there is no such key")
        return await respond(request, document, Head(tag(document), JSON))

    async def _chunk(
        self, request: web.Request, array: ServedArray, key: str, admission: Admission
    ) -> web.StreamResponse:
        form = self.forms[array.path]
        cell = form.cell_of(key)
        where = None if cell is None else form.chunk_domain(cell)
        if cell is None or where is None:
            raise NotFoundError("the array has no such chunk")
        # Elements, what they are encoded from, and what they are encoded to.
        async with admission.holding(3 * array.chunk_bytes):
            async with admission.making:
                elements = await array.array[where].read()
                made = await tagged(partial(form.encode_chunk, cell, elements))
            if made is None:
                raise NotFoundError("all elements of the chunk are the fill value")
            return await respond(request, *made)


async def _keep_documents(hierarchy: Hierarchy, array: ServedArray) -> None:
    """Put the documents of an array that is passed on beside those that are made."""
    source, form = array.source, hierarchy.form
    assert source.document is not None
    documents = {form.array_key: source.document}
    if form.attributes_key != form.array_key and source.attributes:
        documents[form.attributes_key] = source.attributes
    for key, document in documents.items():
        await hierarchy.store.write(
            hierarchy.below(array.path) + key, json.dumps(document).encode()
        )


class ZarrWhenAsked:
    """What is served in one version, made when it is first asked for; arguments as for `of`.

    Attributes:
        left_out: as of `ZarrFormat`, once it is made.
    """

    def __init__(self, tree: ServedTree, version: int) -> None:
        self._make = partial(ZarrFormat.of, tree, version)
        self._making: Future[ZarrFormat] | None = None
        self.left_out: dict[str, str] = {}

    async def answer(
        self, request: web.Request, key: str, admission: Admission
    ) -> web.StreamResponse:
        """As `ZarrFormat`."""
        if self._making is None:
            self._making = start(False, self._make)
        # Others wait for it, too, so it is not cancelled with this request.
        await completion_of(self._making)
        made = self._making.result()
        self.left_out.update(made.left_out)
        return await made.answer(request, key, admission)
