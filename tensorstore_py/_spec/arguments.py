"""Keyword arguments and members: their names in signatures, and hints where a name is wrong.

Arguments that many functions share are declared once, in a `TypedDict`. Type checkers read them off
`**options: Unpack[SomeOptions]`; `inspect.signature`, and so `help` and consoles, off what
`spelled_out` leaves; editors that do neither (jedi) follow `**options` into the function that it is
handed to, which names them all.

A name that does not exist is looked up among those of zarr, xarray, h5py and NumPy before the
nearest known one is offered; each entry says what to write instead.
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tensorstore_py.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["ARGUMENTS", "LAYOUT_MEMBERS", "MEMBERS", "SCHEMA_MEMBERS", "check_names", "spelled_out"]

F = TypeVar("F", bound="Callable[..., Any]")  # Any: functions of every kind


def spelled_out(options: type) -> Callable[[F], F]:
    """Name a function's keyword arguments one by one in its signature (decorator).

    Example:
        >>> from typing import TypedDict, Unpack
        >>> class Options(TypedDict, total=False):
        ...     level: int
        >>> @spelled_out(Options)
        ... def pack(data: bytes, **options: Unpack[Options]) -> None: ...
        >>> list(signature(pack).parameters)
        ['data', 'level']
    """

    def decorate(function: F) -> F:
        found = signature(function)
        parts = [
            each for each in found.parameters.values() if each.kind is not Parameter.VAR_KEYWORD
        ]
        parts += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in options.__annotations__.items()
        ]
        function.__signature__ = found.replace(parameters=parts)  # type: ignore[attr-defined]
        return function

    return decorate


def _each(*entries: tuple[str, str]) -> dict[str, str]:
    return {word: phrase for words, phrase in entries for word in words.split()}


_CHUNKS = "chunks chunk chunk_shape chunk_size chunksize chunksizes"
_SHARDS = "shards shard shard_shape"
_CODECS = "compressor compressors compression filters filter codecs serializer"
_LEVELS = "compression_opts compression_level clevel complevel level"
_NAMES = "dimension_names dims dim_names axes axis_names labels coords"
_PLACES = "store path url filename file location root uri chunk_store name group component"
_FORMATS = "zarr_format zarr_version format engine driver"
_ATTRIBUTES = "attributes attrs user_attributes"
_SEPARATORS = "dimension_separator chunk_key_encoding separator"
_CACHES = "cache cache_bytes cache_size cache_limit"

#: By the name of a keyword argument of `ts.open` and the like.
ARGUMENTS: Final = _each(
    (_CHUNKS, "say chunk_layout=ts.ChunkLayout(chunk_shape=[64, 64])"),
    (
        _SHARDS,
        "say chunk_layout=ts.ChunkLayout(write_chunk_shape=[512, 512], read_chunk_shape=[64, 64])",
    ),
    (_CODECS, 'say codec="zstd", or all of the codecs in the format\'s JSON'),
    (
        _LEVELS,
        (
            'say it with the codec: codec={"name": "zstd", "configuration": {"level": 3}} (zarr3), '
            'or codec={"id": "zstd", "level": 3} (zarr)'
        ),
    ),
    ("object_codec", 'say it in the spec: "metadata": {"filters": [{"id": "vlen-utf8"}]} (zarr)'),
    (
        "mode",
        (
            'say read=True for mode "r", nothing for "r+", open=True, create=True for "a", '
            'create=True, delete_existing=True for "w", create=True for "w-"'
        ),
    ),
    ("read_only readonly", "say read=True"),
    ("writable writeable", "say write=True"),
    ("overwrite clobber", "say create=True, delete_existing=True"),
    ("exist_ok exists_ok", "say open=True, create=True"),
    ("order", "say chunk_layout=ts.ChunkLayout(inner_order=[1, 0])"),
    (_PLACES, "the first argument says where the array is: a URL, a pathlib.Path or a spec"),
    (
        _FORMATS,
        (
            'the first argument names the format, as "driver": "zarr" (version 2), "zarr3" or '
            '"n5", or at the end of a URL: |zarr3:'
        ),
    ),
    (
        _SEPARATORS,
        (
            'say it in the spec: "metadata": {"chunk_key_encoding": {"name": "default", '
            '"configuration": {"separator": "."}}} (zarr3), or {"dimension_separator": "/"} (zarr)'
        ),
    ),
    (_NAMES, 'say domain=ts.IndexDomain(shape=[4, 6], labels=["y", "x"])'),
    (_ATTRIBUTES, "set them when the array is open: store.attrs.update({...}).result()"),
    ("fillvalue fill _FillValue missing_value", "say fill_value="),
    ("units unit", 'say dimension_units=["4nm", None]'),
    ("ndim ndims", "say rank="),
    ("size maxshape", "say shape="),
    ("type data_type datatype", "say dtype="),
    ("data values", "write them when the array is open: store.write(data).result()"),
    ("metadata", 'say it in the spec: {"driver": "zarr3", "kvstore": ..., "metadata": {...}}'),
    (_CACHES, 'say context=ts.Context({"cache_pool": {"total_bytes_limit": 100000000}})'),
    (
        "storage_options credentials client_kwargs",
        'say them in the spec of the store: {"driver": "s3", "bucket": ..., ...}',
    ),
    ("consolidated", "say it when the group is opened: ts.Group.open(url, consolidated=True)"),
    (
        "write_empty_chunks",
        'say it in the spec: "store_data_equal_to_fill_value": true',
    ),
    ("synchronizer lock locks", "leave it out: any number of writers may share an array"),
    ("config cache_attrs cache_metadata meta_array", "leave it out"),
)

#: By the name of a member of a driver's JSON spec.
MEMBERS: Final = _each(
    (_CHUNKS, 'say it in "schema": {"chunk_layout": {"chunk": {"shape": [64, 64]}}}'),
    (
        _SHARDS,
        (
            'say it in "schema": {"chunk_layout": {"write_chunk": {"shape": [512, 512]}, '
            '"read_chunk": {"shape": [64, 64]}}}'
        ),
    ),
    (
        f"{_CODECS} codec",
        (
            'say it in "schema": {"codec": {"driver": "zarr3", "codecs": ["zstd"]}}, '
            "or in the metadata"
        ),
    ),
    (_LEVELS, "it belongs to the codec"),
    ("mode read_only readonly read write", "it is no part of a spec: say it to ts.open"),
    ("overwrite clobber", 'say "create": true, "delete_existing": true'),
    ("exist_ok exists_ok", 'say "open": true, "create": true'),
    ("order", 'say it in "schema": {"chunk_layout": {"inner_order": [1, 0]}}'),
    ("shape size", 'say it in "schema": {"domain": {"shape": [100, 200]}}'),
    ("domain fill_value chunk_layout dimension_units", 'it is a member of "schema"'),
    ("fillvalue fill", 'say "fill_value" in "schema"'),
    ("units", 'say "dimension_units" in "schema"'),
    (_NAMES, 'say it in "schema": {"domain": {"shape": [4, 6], "labels": ["y", "x"]}}'),
    ("store url filename file location root uri", 'say "kvstore": a URL, or the spec of a store'),
    ("bucket endpoint base_url", 'it is a member of "kvstore"'),
    ("zarr_format zarr_version format engine", 'say "driver": "zarr" (version 2) or "zarr3"'),
    (f"{_SEPARATORS} {_ATTRIBUTES}", 'it is a member of "metadata"'),
    ("ndim", 'say "rank"'),
    ("type data_type datatype", 'say "dtype"'),
    (
        f"{_CACHES} total_bytes_limit",
        'say it in "context": {"cache_pool": {"total_bytes_limit": 100000000}}',
    ),
    ("write_empty_chunks", 'say "store_data_equal_to_fill_value": true'),
)

#: By the name of a member of a schema's JSON.
SCHEMA_MEMBERS: Final = _each(
    (_CHUNKS, 'say "chunk_layout": {"chunk": {"shape": [64, 64]}}'),
    (_CODECS, 'say "codec": {"driver": "zarr3", "codecs": ["zstd"]}'),
    ("order", 'say "chunk_layout": {"inner_order": [1, 0]}'),
    ("shape size", 'say "domain": {"shape": [100, 200]}'),
    (_NAMES, 'say "domain": {"shape": [4, 6], "labels": ["y", "x"]}'),
    ("fillvalue fill", 'say "fill_value"'),
    ("units", 'say "dimension_units"'),
    ("ndim", 'say "rank"'),
    ("type data_type datatype", 'say "dtype"'),
)

#: By the name of a member of a chunk layout's JSON.
LAYOUT_MEMBERS: Final = _each(
    ("chunks chunk_shape chunk_size shape size", 'say "chunk": {"shape": [64, 64]}'),
    ("read_chunk_shape", 'say "read_chunk": {"shape": [64, 64]}'),
    ("write_chunk_shape shards", 'say "write_chunk": {"shape": [64, 64]}'),
    ("order", 'say "inner_order": [1, 0]'),
)


def check_names(
    kind: str,
    given: Mapping[str, object],
    allowed: Iterable[str],
    words: Mapping[str, str] | None = None,
) -> None:
    """Refuse keyword arguments that do not exist.

    Raises TypeError: naming the first of them.
    """
    for name in given:
        if name not in allowed:
            hint = did_you_mean(name, allowed, words)
            raise TypeError(f'{kind} has no argument "{name}"{hint}')
