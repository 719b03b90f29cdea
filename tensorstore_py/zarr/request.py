"""What a new array is to be: keyword arguments of zarr-python, 2 and 3, as the members of a spec.

What is wrong with an argument is said here, with the argument that is right. What the engine
can choose by itself, chunks for instance, is left to it. h5py's names, which zarr-python's
`create_dataset` takes, are here, too, and the synchronizers, which nothing needs: a chunk that is
written in part is stored on the condition that it is still the one that was read, and else changed
again. So writers in any number of threads and processes lose nothing.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import numpy as np

from tensorstore_py._hierarchy.document import as_attributes
from tensorstore_py.errors import did_you_mean
from tensorstore_py.zarr import storage
from tensorstore_py.zarr.codecs import Codec, VLenUTF8, as_codec
from tensorstore_py.zarr.element import Element, as_element

if TYPE_CHECKING:
    from tensorstore_py.zarr.form import Form


__all__ = [
    "ArrayArguments",
    "ProcessSynchronizer",
    "Request",
    "ThreadSynchronizer",
    "arguments_of",
    "as_shape",
    "check_names",
    "from_h5py",
    "named",
    "request_for",
]


class ArrayArguments(TypedDict, total=False):
    """The keyword arguments of whatever creates an array; `create` explains them."""

    chunks: object
    shards: object
    dtype: object
    compressor: object
    compressors: object
    filters: object
    serializer: object
    codecs: object
    object_codec: object
    fill_value: object
    order: object
    zarr_format: object
    dimension_separator: object
    chunk_key_encoding: object
    dimension_names: Sequence[str | None] | None
    attributes: Mapping[str, object] | None
    # Other names of these, and what is accepted without effect because nothing here needs it.
    chunk_shape: object
    zarr_version: object
    synchronizer: object
    cache_attrs: object
    write_empty_chunks: object
    meta_array: object
    config: object


def named(
    *,
    chunks: object = ...,
    shards: object = ...,
    dtype: object = ...,
    compressor: object = ...,
    compressors: object = ...,
    filters: object = ...,
    serializer: object = ...,
    codecs: object = ...,
    object_codec: object = ...,
    fill_value: object = ...,
    order: object = ...,
    zarr_format: object = ...,
    dimension_separator: object = ...,
    chunk_key_encoding: object = ...,
    dimension_names: object = ...,
    attributes: object = ...,
    chunk_shape: object = ...,
    zarr_version: object = ...,
    synchronizer: object = ...,
    cache_attrs: object = ...,
    write_empty_chunks: object = ...,
    meta_array: object = ...,
    config: object = ...,
    **unknown: object,
) -> ArrayArguments:
    """Those arguments that were given, named one by one for editors (see `_spec.spelled`)."""
    found = locals()
    given = {**found.pop("unknown"), **found}
    return cast("ArrayArguments", {name: given[name] for name in given if given[name] is not ...})


Json = dict[str, object]
Shape = tuple[int, ...]

_AUTO = ("auto", "default")
_DEFAULT_V2 = Codec({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0})
_DEFAULT_V3 = Codec({"id": "zstd", "level": 0, "checksum": False})
_DEFAULT_FILL = object()


_INSTEAD = {
    "compression": "pass compressors=, such as ts.zarr.GZip(level=5)",
    "compression_opts": "pass compressors=, such as ts.zarr.GZip(level=5)",
    "chunk_store": "metadata and chunks are in one store here: pass store=",
    "storage_options": "they are members of the store's spec: store={'driver': 's3', …}",
    "kvstore": "pass store=",
    "name": "pass path=",
}


def check_names(given: Iterable[str], also: Iterable[str] = ()) -> None:
    """Refuse keyword arguments that there are not.

    Raises:
        TypeError: names one, and what to write instead.
    """
    known = {*ArrayArguments.__annotations__, *also}
    for name in given:
        if name not in known:
            instead = _INSTEAD.get(name)
            hint = f"; {instead}" if instead else did_you_mean(name, known)
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")


def as_shape(shape: object, what: str = "shape") -> Shape:
    """A shape from a number or a sequence of numbers.

    Raises:
        TypeError: it is neither.
        ValueError: an extent is negative.
    """
    if isinstance(shape, str | bytes | Mapping) or shape is None:
        raise TypeError(f"{what} must be a number or a sequence of numbers, not {shape!r}")
    parts: Iterable[Any] = shape if isinstance(shape, Iterable) else (shape,)
    found = tuple(index(part) for part in parts)
    if any(extent < 0 for extent in found):
        raise ValueError(f"{what} must not be negative, but is {found}")
    return found


@dataclass(frozen=True, slots=True)
class Request:
    """A new array, wherever it will be.

    Attributes:
        zarr_format: 2 or 3.
        members: of the spec, without the kvstore.
        options: keyword arguments of `ts.open`.
        attributes: of the array.
    """

    zarr_format: Literal[2, 3]
    members: Json
    options: dict[str, Any]
    attributes: Json


def request_for(shape: object, arguments: ArrayArguments, *, separator: str = ".") -> Request:
    """What a new array is to be; `separator` is the store's usual one.

    Raises:
        TypeError: an argument is of another type, or there is no such argument.
        ValueError: arguments contradict each other, or a value does not exist.
    """
    check_names(arguments)
    extents = as_shape(shape)
    form = _format(arguments)
    dtype = arguments.get("dtype")
    element = as_element("f8" if dtype is None else dtype, arguments.get("object_codec"))
    order = arguments.get("order") or "C"
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}")
    attributes = as_attributes(arguments.get("attributes") or {})
    chunks = _chunks(arguments, extents)
    options: dict[str, Any] = {"dtype": element.data_type}
    reverse = order == "F"
    if form == 2:
        metadata = _metadata2(arguments, element, extents, chunks, reverse, separator)
    else:
        metadata = _metadata3(arguments, element, extents, chunks, reverse)
    names = arguments.get("dimension_names")
    if names is not None and form == 3:
        metadata["dimension_names"] = list(names)
    elif names is not None:
        attributes["_ARRAY_DIMENSIONS"] = list(names)
    fill = element.fill_value(arguments.get("fill_value", _DEFAULT_FILL), _DEFAULT_FILL, form)
    if fill is not None and element.data_type is None:
        metadata["fill_value"] = base64.b64encode(bytes(np.asarray(fill))).decode()
    elif fill is not None:
        options["fill_value"] = fill
    driver = "zarr" if form == 2 else "zarr3"
    return Request(form, {"driver": driver, "metadata": metadata}, options, attributes)


def _format(arguments: ArrayArguments) -> Literal[2, 3]:
    """The version that was asked for, or the one whose words were used."""
    asked = arguments.get("zarr_format")
    asked = arguments.get("zarr_version") if asked is None else asked
    if asked is not None:
        if asked not in (2, 3):
            raise ValueError(f"zarr_format must be 2 or 3, not {asked!r}")
        return 2 if asked == 2 else 3
    if arguments.get("compressor", "auto") not in _AUTO or arguments.get("object_codec"):
        return 2
    if arguments.get("dimension_separator") or arguments.get("shards"):
        return 2 if arguments.get("dimension_separator") else 3
    filters = arguments.get("filters")
    if isinstance(filters, Sequence) and not isinstance(filters, str):
        return 2 if any(_is_of_v2(each) for each in filters) else 3
    return 3


def _is_of_v2(codec: object) -> bool:
    if isinstance(codec, Mapping):
        return "id" in codec
    return hasattr(codec, "get_config")


def _chunks(arguments: ArrayArguments, shape: Shape) -> Shape | None:
    """The shape of a chunk; None: the engine may choose."""
    given = arguments.get("chunks", arguments.get("chunk_shape"))
    if given is None or given is True or given == "auto":
        return None
    return _filled(given, shape, "chunks")


def _filled(given: object, shape: Shape, what: str) -> Shape:
    """A shape of which parts may be left open, which then are the array's."""
    if given is False:
        given = shape
    if isinstance(given, str | bytes | Mapping):
        raise TypeError(f"{what} must be a number or a sequence of numbers, not {given!r}")
    parts: list[Any] = list(given) if isinstance(given, Iterable) else [given] * len(shape)
    if len(parts) > len(shape):
        raise ValueError(f"{what} has {len(parts)} dimensions, {parts}, but shape {len(shape)}")
    parts += [None] * (len(shape) - len(parts))
    whole = [max(1, extent) for extent in shape]
    found = tuple(
        extent if part is None or index(part) == -1 else index(part)
        for part, extent in zip(parts, whole, strict=True)
    )
    if any(size < 1 for size in found):
        raise ValueError(f"{what} must be positive, but is {found}")
    return found


def _codecs_of(given: object, what: str) -> list[Codec]:
    """Codecs from one, several or none."""
    if given is None or given == ():
        return []
    if isinstance(given, str) and given in _AUTO:
        return []
    several = isinstance(given, Iterable) and not isinstance(given, Mapping | str)
    codecs: Iterable[Any] = given if several else (given,)  # type: ignore[assignment]
    try:
        return [as_codec(each) for each in codecs]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def _compressors(arguments: ArrayArguments, default: Codec) -> list[Codec]:
    """What compresses, by either of its names."""
    one, several = arguments.get("compressor", "auto"), arguments.get("compressors", "auto")
    if isinstance(one, str) and one in _AUTO:
        if isinstance(several, str) and several in _AUTO:
            usual = storage.default_compressor
            if isinstance(usual, str) and usual in _AUTO:
                return [default]
            return _codecs_of(usual, "default_compressor")
        return _codecs_of(several, "compressors")
    if not (isinstance(several, str) and several in _AUTO):
        raise ValueError("compressor and compressors are two names of one thing; pass one of them")
    return _codecs_of(one, "compressor")


def _metadata2(
    arguments: ArrayArguments,
    element: Element,
    shape: Shape,
    chunks: Shape | None,
    reverse: bool,
    separator: str,
) -> Json:
    for name in ("shards", "serializer", "codecs"):
        if arguments.get(name, "auto") not in (None, "auto"):
            raise ValueError(f"arrays of version 2 have no {name}; pass zarr_format=3")
    compressors = _compressors(arguments, _DEFAULT_V2)
    if len(compressors) > 1:
        raise ValueError(
            f"arrays of version 2 have one compressor, but {len(compressors)} are given; pass the "
            "others as filters, or zarr_format=3"
        )
    filters = [codec.get_config() for codec in _codecs_of(arguments.get("filters"), "filters")]
    given = arguments.get("object_codec")
    if element.kind == "O" and not filters:
        filters = [(VLenUTF8() if given is None else as_codec(given)).get_config()]
        if element.object_codec is not None:
            filters = [element.object_codec.get_config()]
    encoding = arguments.get("chunk_key_encoding")
    if encoding is not None:
        separator = str(_key_encoding(encoding)["configuration"]["separator"])
    metadata: Json = {
        "shape": list(shape),
        "compressor": compressors[0].get_config() if compressors else None,
        "filters": filters or None,
        "order": "F" if reverse else "C",
        "dimension_separator": arguments.get("dimension_separator") or separator,
    }
    if chunks is not None:
        metadata["chunks"] = list(chunks)
    if element.stored is not None:
        metadata["dtype"] = element.stored
    return metadata


def _metadata3(
    arguments: ArrayArguments,
    element: Element,
    shape: Shape,
    chunks: Shape | None,
    reverse: bool,
) -> Json:
    metadata: Json = {"shape": list(shape)}
    if element.data_type is None:
        metadata["data_type"] = _bytes_type(element)
    shards = arguments.get("shards")
    codecs = _chain(arguments, element, len(shape), reverse)
    if shards is not None and shards is not False:
        outer = _filled(shards, shape, "shards")
        inner = outer if chunks is None else chunks
        for dim, (whole, part) in enumerate(zip(outer, inner, strict=True)):
            if whole % part:
                raise ValueError(
                    f"shards must be divisible by chunks, but dimension {dim} has {whole} and "
                    f"{part}"
                )
        configuration: Json = {"chunk_shape": list(inner)}
        if codecs is not None:
            configuration["codecs"] = codecs
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
        chunks = outer
    if codecs is not None:
        metadata["codecs"] = codecs
    if chunks is not None:
        grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
        metadata["chunk_grid"] = grid
    encoding = arguments.get("chunk_key_encoding")
    asked = arguments.get("dimension_separator")
    if encoding is not None:
        metadata["chunk_key_encoding"] = _key_encoding(encoding)
    elif asked is not None:
        metadata["chunk_key_encoding"] = _key_encoding(("default", asked))
    return metadata


def _bytes_type(element: Element) -> object:
    """The name of a data type of one byte."""
    if element.kind == "O":
        raise ValueError("object_codec is of version 2; pass dtype=str or dtype=bytes")
    name = "null_terminated_bytes" if element.kind == "S" else "raw_bytes"
    return {"name": name, "configuration": {"length_bytes": 1}}


def _chain(
    arguments: ArrayArguments, element: Element, rank: int, reverse: bool
) -> list[Json | str]:
    """The codecs of a chunk."""
    itemsize = element.itemsize
    given = arguments.get("codecs")
    if given is not None and given != "auto":
        return [codec.to_v3(itemsize) for codec in _codecs_of(given, "codecs")]
    found = [
        codec.to_v3(itemsize) for codec in _codecs_of(arguments.get("filters", "auto"), "filters")
    ]
    if reverse and rank > 1:
        found.append({"name": "transpose", "configuration": {"order": [*range(rank)][::-1]}})
    serializer = arguments.get("serializer")
    if serializer is not None and serializer != "auto":
        found += [codec.to_v3(itemsize) for codec in _codecs_of(serializer, "serializer")]
    elif element.big_endian:
        found.append({"name": "bytes", "configuration": {"endian": "big"}})
    found += [codec.to_v3(itemsize) for codec in _compressors(arguments, _DEFAULT_V3)]
    return [*found]


def _key_encoding(given: object) -> dict[str, Any]:
    """A chunk key encoding from one of its forms: JSON, zarr-python's short JSON, a pair."""
    if hasattr(given, "to_dict"):
        given = given.to_dict()
    if isinstance(given, str):
        given = {"name": given}
    if isinstance(given, tuple | list) and len(given) == 2:
        given = {"name": given[0], "separator": given[1]}
    if not isinstance(given, Mapping) or "name" not in given:
        raise TypeError(
            "chunk_key_encoding must be like {'name': 'default', 'separator': '/'}, not "
            f"{given!r}"
        )
    usual = "." if given["name"] == "v2" else "/"
    members = {"separator": given.get("separator", usual), **(given.get("configuration") or {})}
    return {"name": given["name"], "configuration": members}


def arguments_of(form: Form, fill_value: object) -> dict[str, Any]:
    """What would create an array of a form."""
    found: dict[str, Any] = {
        "chunks": form.chunks,
        "dtype": form.element,
        "filters": form.filters,
        "compressors": form.compressors,
        "order": form.order,
        "fill_value": fill_value,
        "zarr_format": form.zarr_format,
    }
    if form.zarr_format == 2:
        found["dimension_separator"] = form.metadata["dimension_separator"]
        return found
    found["serializer"] = form.serializer
    found["shards"] = form.shards
    found["chunk_key_encoding"] = form.metadata["chunk_key_encoding"]
    found["dimension_names"] = form.metadata.get("dimension_names")
    return found


#: Compressors by name, each with the member that a number stands for.
_LEVELS = {
    "blosc": "clevel",
    "bz2": "level",
    "gzip": "level",
    "lz4": "acceleration",
    "lzma": "preset",
    "zlib": "level",
    "zstd": "level",
}


def from_h5py(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `create` for arguments that may have h5py's names.

    `compression` is a name, a codec or None, `compression_opts` a level or a mapping of members.

    Raises:
        ValueError: no compressor has that name.

    Example:
        >>> from_h5py({"compression": "gzip", "compression_opts": 1, "fillvalue": 7})
        {'fill_value': 7, 'compressors': GZip(level=1)}
    """
    found = dict(arguments)
    compression = found.pop("compression", "default")
    options = found.pop("compression_opts", None)
    if "fillvalue" in found:
        found["fill_value"] = found.pop("fillvalue")
    if compression in (None, "none"):
        found["compressors"] = None
    elif isinstance(compression, str) and compression != "default":
        found["compressors"] = _named(compression, options)
    elif not isinstance(compression, str):
        found["compressors"] = compression
    return found


def _named(name: str, options: object) -> Codec:
    if name not in _LEVELS:
        raise ValueError(
            f"compression {name!r} is not known{did_you_mean(name, _LEVELS)}; pass compressors= "
            "with a codec"
        )
    if options is None:
        return Codec({"id": name, **({"level": 1} if _LEVELS[name] == "level" else {})})
    if isinstance(options, Mapping):
        return Codec({"id": name, **cast("Mapping[str, object]", options)})
    return Codec({"id": name, _LEVELS[name]: options})


class ThreadSynchronizer:
    """Accepted as `synchronizer=`, and not needed: writes are safe without.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.zarr.zeros(60, chunks=20, synchronizer=ts.zarr.ThreadSynchronizer()).chunks
        (20,)
    """


class ProcessSynchronizer:
    """Accepted as `synchronizer=`, and not needed: writes are safe without, and it locks no files.

    Args:
        path: where zarr-python would keep its locks; nothing is stored there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
