"""`Asked`: what callers say of a copy, checked where the call is.

It becomes a `Request`, and JSON that says the same to another process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from tensorstore_py._api.kvstore_spec import as_context
from tensorstore_py._conversion.copy_plan import IfExists, Request
from tensorstore_py._conversion.ends import destination, source
from tensorstore_py._conversion.member_paths import MemberPaths
from tensorstore_py._conversion.new_form import Chunks, Wanted
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.context import Context

__all__ = ["Asked"]

Patterns = str | Iterable[str]


class Asked(NamedTuple):
    """What is asked for.

    Attributes:
        request: checked.
        zarr_format: version of a new hierarchy, if it was said.
    """

    request: Request
    zarr_format: int | None

    @staticmethod
    def of(
        from_: object,
        to: object,
        *,
        includes: Patterns | None = None,
        excludes: Patterns | None = None,
        if_exists: IfExists = "raise",
        zarr_format: int | None = None,
        chunks: Chunks | None = None,
        shards: Chunks | None = None,
        chunk_layout: object = None,
        codec: object = None,
        dtype: object = None,
        fill_value: object = None,
        context: Context | None = None,
    ) -> Asked:
        """What the arguments of `ts.copy` say.

        Raises:
            SpecError: one of them is wrong; names it.
            TypeError: chunks are no numbers, or patterns no text.
        """
        shared = as_context(context)
        if if_exists not in get_args(IfExists):
            hint = did_you_mean(str(if_exists), get_args(IfExists))
            raise SpecError(f"expected one of {get_args(IfExists)}, not {if_exists!r}{hint}",
                            ("if_exists",))  # fmt: skip
        if zarr_format not in (None, 2, 3):
            raise SpecError(f"expected 2 or 3, not {zarr_format!r}", ("zarr_format",))
        paths = MemberPaths.of(includes, excludes)
        layout = None if chunk_layout is None else ChunkLayout(chunk_layout)
        wanted = Wanted(as_chunks(chunks), as_chunks(shards), layout, codec, dtype, fill_value)
        here = source(from_, shared)
        there = destination(to, shared, zarr_format)
        identity: JsonObject = {
            "source": here.described,
            "dest": there.described,
            "includes": list(paths.includes),
            "excludes": list(paths.excludes),
            "zarr_format": zarr_format,
            **{name: repr(getattr(wanted, name)) for name in wanted.changes},
        }
        inline = here.inline and there.inline
        request = Request(here, there, inline, paths, if_exists, wanted, None, identity)
        return Asked(request, zarr_format)

    def to_json(self) -> JsonObject:
        """The arguments of `ts.copy` as JSON, for another process.

        Raises:
            UnsupportedError: an end is what only this process has.
        """
        request, wanted = self.request, self.request.wanted
        said: JsonObject = {
            "source": request.source.to_json(),
            "dest": request.destination.to_json(),
            "includes": list(request.paths.includes) or None,
            "excludes": list(request.paths.excludes) or None,
            "if_exists": request.if_exists,
            "zarr_format": self.zarr_format,
            "chunks": _chunks_json(wanted.chunks),
            "shards": _chunks_json(wanted.shards),
            "chunk_layout": None if wanted.chunk_layout is None else wanted.chunk_layout.to_json(),
            "codec": wanted.codec.to_json()
            if isinstance(wanted.codec, CodecSpec)
            else wanted.codec,
            "dtype": None if wanted.dtype is None else DType(wanted.dtype).name,  # type: ignore[arg-type]
            "fill_value": _value_json(wanted.fill_value),
        }
        return {name: value for name, value in said.items() if value is not None}


def as_chunks(given: object) -> Chunks | None:
    """What a caller says of chunks.

    Raises:
        TypeError: it is no extent, nor a list or mapping of such.
    """
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    if isinstance(given, dict):
        return {str(name): int(size) for name, size in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(int(size) for size in given)
    raise TypeError(f"chunks are a number, a tuple or a dict, not {type(given).__name__}")


def _chunks_json(chunks: Chunks | None) -> object:
    return list(chunks) if isinstance(chunks, tuple) else chunks


def _value_json(value: object) -> object:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
