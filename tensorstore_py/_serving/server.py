"""`Server`: arrays, groups and keys over HTTP, in every format that can express them.

    url/               what is served, as JSON
    url/zarr3/...      Zarr version 3
    url/zarr2/...      Zarr version 2
    url/precomputed/   Neuroglancer's precomputed volumes
    url/stored/...     the stored keys as they are

All of it is read-only. What is served is found once, when the server is started; elements are read
when they are asked for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from tensorstore_py._hierarchy.path import join
from tensorstore_py._runtime.execution import start
from tensorstore_py._serving.admission import Admission
from tensorstore_py._serving.answers import JSON, Head, respond, tag
from tensorstore_py._serving.links import neuroglancer_link, neuroglancer_state, vizarr_link
from tensorstore_py._serving.local_server import LocalServer
from tensorstore_py._serving.precomputed import Precomputed
from tensorstore_py._serving.stored import plain_key
from tensorstore_py._serving.tree import find_tree
from tensorstore_py._serving.zarr_format import ZarrFormat, ZarrWhenAsked
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.multiscale.metadata import is_ome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._runtime.future import Future
    from tensorstore_py._serving.local_server import Handler, Route
    from tensorstore_py._serving.tree import ServedTree

__all__ = ["FORMATS", "Server", "start_server"]

FORMATS: Final = ("zarr3", "zarr2", "precomputed", "stored")

#: A viewer that is opened with more layers shows none of them well.
_MOST_LAYERS: Final = 8
#: To make the documents of one array takes some milliseconds; of more, nobody waits for them.
_MOST_AT_ONCE: Final = 100


class _Format(Protocol):
    """What answers requests for the keys of a format."""

    async def answer(
        self, request: web.Request, key: str, admission: Admission
    ) -> web.StreamResponse: ...


class _Contents:
    """What a server has.

    Attributes:
        tree: what was named.
        formats: by name.
        left_out: what a format cannot express, by format and path.
    """

    def __init__(self, tree: ServedTree) -> None:
        self.tree = tree
        self.formats: dict[str, _Format] = {}
        self.left_out: dict[str, dict[str, str]] = {}

    @classmethod
    async def of(cls, tree: ServedTree, wanted: Sequence[str] | None) -> _Contents:
        """Those of a tree, in the formats that are wanted; None: in all that can express some.

        Raises:
            UnsupportedError: a format that is wanted cannot express any of it.
        """
        made = cls(tree)
        for name in FORMATS if wanted is None else wanted:
            problem = await made._add(name)
            if problem and wanted is not None:
                raise UnsupportedError(f"nothing of it can be served as {name}: {problem}")
        if not made.formats:
            problems = [f"as {name}: {why}" for name, found in made.left_out.items()
                        for why in list(found.values())[:1]]  # fmt: skip
            raise UnsupportedError(
                "nothing of it can be served " + ("; ".join(problems) or "by any format")
            )
        return made

    async def _add(self, name: str) -> str:
        """Add a format; why it cannot express any of it, or `""`."""
        if name == "stored":
            if self.tree.stored is None:
                return (
                    "it is not what a store has at one place; leave out a selection, and name one"
                )
            self.formats[name] = self.tree.stored
            return ""
        found: Precomputed | ZarrFormat
        if name == "precomputed":
            found = Precomputed.of(self.tree)
        elif self._is_quick(version := int(name[-1])):
            found = await ZarrFormat.of(self.tree, version)
        else:
            later = ZarrWhenAsked(self.tree, version)
            self.formats[name], self.left_out[name] = later, later.left_out
            return ""
        if found.left_out:
            self.left_out[name] = found.left_out
        if found.documents:
            self.formats[name] = found
            return ""
        return next(iter(found.left_out.values()), "there is no array")

    def _is_quick(self, version: int) -> bool:
        """Whether the documents of a version are made at once."""
        made = sum(each.zarr_format != version for each in self.tree.arrays.values())
        return made <= _MOST_AT_ONCE


class Server(LocalServer):
    """What `ts.serve` starts: arrays, groups and keys over HTTP, until it is closed.

    Attributes:
        url: what all of its URLs begin with, the token included; ends with "/".

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> with ts.serve(ts.array(np.arange(6))).result() as server:
        ...     list(server.urls)
        ...     ts.open(server.urls["zarr3"]).result()[2:4].read().result()
        ['zarr3', 'zarr2']
        array([2, 3])
    """

    _contents: _Contents

    @property
    def urls(self) -> dict[str, str]:
        """The URL of each format: `"zarr3"`, `"zarr2"`, `"precomputed"`, `"stored"`."""
        return {name: f"{self.url}{name}/" for name in self._contents.formats}

    @property
    def arrays(self) -> list[str]:
        """The paths of what is served, below the URL of a format; `""` is that itself."""
        return list(self._contents.tree.arrays)

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """What could not be opened (by the name `""`), or be expressed by a format, and why."""
        found = {"": self._contents.tree.left_out, **self._contents.left_out}
        return {name: problems for name, problems in found.items() if problems}

    def array_url(self, path: str = "", format: str | None = None) -> str:
        """The URL of an array or a group.

        Args:
            path: of it; by default what is served itself.
            format: one of `urls`; by default the first of them.

        Raises:
            SpecError: there is no such format.
        """
        urls = self.urls
        name = next(iter(urls)) if format is None else format
        if name not in urls:
            raise SpecError(f'it is not served as "{name}", but as {", ".join(urls)}')
        return urls[name] + (f"{path}/" if path else "")

    def neuroglancer(self) -> str:
        """A link that opens images, or else the first arrays, in Neuroglancer.

        Raises:
            UnsupportedError: there is nothing that it shows.
        """
        return neuroglancer_link(self.neuroglancer_state())

    def neuroglancer_state(self) -> dict[str, object]:
        """The same as the JSON of Neuroglancer's state.

        Raises:
            UnsupportedError: there is nothing that it shows.
        """
        layers = {}
        for path in self._shown():
            name = path.rpartition("/")[2] or "array"
            volumes = self._contents.formats.get("precomputed")
            info = (
                volumes.documents.get(join(path, "info"))
                if isinstance(volumes, Precomputed)
                else None
            )
            if info is not None:
                kind = json.loads(info)["type"]
                source = f"precomputed://{self.array_url(path, 'precomputed')}"
            elif "zarr3" in self.urls:
                kind, source = "image", f"zarr3://{self.array_url(path, 'zarr3')}"
            elif "zarr2" in self.urls:
                kind, source = "image", f"zarr2://{self.array_url(path, 'zarr2')}"
            else:
                continue
            layers[name if name not in layers else path] = (kind, source)
        if not layers:
            raise UnsupportedError("nothing that is served is an array; Neuroglancer shows arrays")
        return neuroglancer_state(layers)

    def vizarr(self) -> str | None:
        """A link that opens the first OME-Zarr image in vizarr; None: there is none."""
        for path in self._images():
            for name in ("zarr3", "zarr2"):
                if name in self.urls:
                    return vizarr_link(self.array_url(path, name).removesuffix("/"))
        return None

    def _images(self) -> list[str]:
        groups = self._contents.tree.groups
        found = [path for path in groups if "multiscales" in _ome(groups[path])]
        return [path for path in found if "/labels/" not in f"/{path}/"] or found

    def _shown(self) -> list[str]:
        return (self._images() or self.arrays)[:_MOST_LAYERS]


def _ome(attributes: object) -> dict[str, object]:
    if not isinstance(attributes, dict) or not is_ome(attributes):
        return {}
    inner = attributes.get("ome")
    return inner if isinstance(inner, dict) else attributes


def start_server(
    given: object,
    formats: Sequence[str] | None,
    *,
    host: str,
    port: int,
    token: str | bool,
    cors: str | Sequence[str] | None,
    memory: int,
    context: Context | None,
) -> Future[Server]:
    """See `ts.serve`."""
    for name in formats or ():
        if name not in FORMATS:
            raise SpecError(f'there is no format "{name}"; there are {", ".join(FORMATS)}')
    if memory < 1:
        raise SpecError("expected a positive number of bytes", ("memory_limit",))
    # One half is for answers, the other one for chunks from which several answers are made.
    shared = (
        Context({"cache_pool": {"total_bytes_limit": memory // 2}}) if context is None else context
    )
    admission = Admission(max(1, memory // 2))

    async def body() -> Server:
        contents = await _Contents.of(await find_tree(given, shared), formats)
        routes = _routes(contents, admission)
        server = await Server.start(routes, host=host, port=port, token=token, cors=cors)
        server._contents = contents
        return server

    return start(False, body)


def _routes(contents: _Contents, admission: Admission) -> list[Route]:
    index = json.dumps(_index(contents), indent=1).encode()

    async def about(request: web.Request) -> web.StreamResponse:
        return await respond(request, index, Head(tag(index), JSON))

    routes: list[Route] = [("GET", "/", about)]
    for name, form in contents.formats.items():
        routes.append(("GET", f"/{name}/{{key:.*}}", _handler(form, admission)))
    return routes


def _handler(form: _Format, admission: Admission) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        # As it was sent: what is decoded before it is looked at could be another path.
        above = 3 if "token" in request.match_info else 2
        key = request.rel_url.raw_path.split("/", above)[above]
        return await form.answer(request, plain_key(key), admission)

    return answer


def _index(contents: _Contents) -> dict[str, object]:
    """What is served."""
    arrays = {
        path: {
            "shape": list(each.array.shape),
            "dtype": each.array.dtype.name,
            "dimension_names": list(each.array.domain.labels),
        }
        for path, each in contents.tree.arrays.items()
    }
    return {"formats": list(contents.formats), "arrays": arrays, "left_out": contents.left_out}
