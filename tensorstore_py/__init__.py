"""tensorstore_py: asynchronous, chunked, labelled arrays over any store, in pure Python.

Door 1, for users: every public name leaves by here, and TensorStore's names are kept. A name is
imported when it is asked for, so that a program waits for nothing that it does not use.

The floors of the house, each importing only from those below (see docs/design.md):

    cli | testing                          the command line; door 3, for test authors
    _jobs                                  job files: their schema, plans and runs
    _viewer                                the page that shows arrays
    _serving                               HTTP servers of this process
    multiscale | ocdbt | orbax             OME-Zarr images; databases; checkpoints
    zarr | typing                          zarr-python's names; specs' types
    _compute | _conversion                 reductions, pyramids; copies, migrations of hierarchies
    _plan                                  work as tasks: plans, manifests, engines
    _api | codecs | kvstores | drivers     the face; formats and stores, strangers to each other
    plugin                                 door 2, for plug-in authors
    _chunked | _hierarchy                  the engine: plans, reads, writes; groups, attributes
    _interface                             promises: store, codec, driver
    _spec                                  what was asked: JSON models, contexts, schemas
    _index | _runtime                      where (pure algebra); how work runs
    _display                               how things look to people
    errors                                 one class per remedy
"""

import sys as _sys
import typing as _typing

from tensorstore_py._runtime.loading import load as _load
from tensorstore_py.errors import (
    AbortedError,
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    IndexingError,
    MismatchError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.errors import did_you_mean as _did_you_mean

if _typing.TYPE_CHECKING:
    from tensorstore_py import multiscale, ocdbt, orbax, zarr
    from tensorstore_py._api.array import array, virtual_chunked
    from tensorstore_py._api.attributes import Attributes
    from tensorstore_py._api.group import Group
    from tensorstore_py._api.kvstore import KvStore
    from tensorstore_py._api.metrics import (
        experimental_collect_matching_metrics,
        experimental_collect_prometheus_format_metrics,
        experimental_push_metrics_to_prometheus,
        experimental_update_verbose_logging,
        parse_tensorstore_flags,
    )
    from tensorstore_py._api.open import open  # the reference's name
    from tensorstore_py._api.spec import Spec, load_spec
    from tensorstore_py._api.tensorstore import NumpyView, TensorStore
    from tensorstore_py._api.transfer import download, upload
    from tensorstore_py._api.view import View
    from tensorstore_py._api.views import DownsampleMethod, cast, concat, downsample, overlay, stack
    from tensorstore_py._chunked.format import RecheckCacheOption
    from tensorstore_py._chunked.virtual import (
        VirtualChunkedReadParameters,
        VirtualChunkedWriteParameters,
    )
    from tensorstore_py._compute.diff import diff
    from tensorstore_py._compute.difference import Difference, DifferingBlock, DifferingMember
    from tensorstore_py._compute.digest import Digest, digest
    from tensorstore_py._compute.distribution import Histogram
    from tensorstore_py._compute.map_blocks import map_blocks
    from tensorstore_py._compute.reduce import reduce
    from tensorstore_py._conversion.copy import copy, rechunk
    from tensorstore_py._conversion.migrate import migrate
    from tensorstore_py._conversion.summary import (
        CopiedMember,
        CopySummary,
        Migration,
        MigrationStep,
    )
    from tensorstore_py._index import (
        Dim,
        DimExpression,
        DimSelection,
        DimSelectionLike,
        Indexable,
        IndexDomain,
        IndexTransform,
        NumpyIndexingSpec,
        NumpyIndexTerm,
        OutputIndexMap,
        OutputIndexMaps,
        OutputIndexMethod,
        d,
        inf,
        newaxis,
    )
    from tensorstore_py._interface.batch import Batch
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._jobs.json_schema import json_schema
    from tensorstore_py._plan.plan import Plan, plan
    from tensorstore_py._runtime.future import Future, FutureLike, Promise, WriteFutures
    from tensorstore_py._runtime.progress import Progress, ProgressStream
    from tensorstore_py._serving.serve import serve
    from tensorstore_py._spec.chunk_layout import ChunkLayout
    from tensorstore_py._spec.codec_spec import CodecSpec
    from tensorstore_py._spec.context import Context
    from tensorstore_py._spec.data_types import (
        bfloat16,
        bool,  # the reference's names
        byte,
        char,
        complex64,
        complex128,
        float4_e2m1fn,
        float8_e3m4,
        float8_e4m3b11fnuz,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2,
        float8_e5m2fnuz,
        float8_e8m0fnu,
        float16,
        float32,
        float64,
        int2,
        int4,
        int8,
        int16,
        int32,
        int64,
        json,
        string,
        uint8,
        uint16,
        uint32,
        uint64,
        ustring,
    )
    from tensorstore_py._spec.dtype import DTypeLike, dtype
    from tensorstore_py._spec.open_mode import OpenMode
    from tensorstore_py._spec.schema import Schema
    from tensorstore_py._spec.trust import Trust
    from tensorstore_py._spec.units import Unit
    from tensorstore_py.multiscale.pyramid import pyramid

#: Where what is public is written: by module, its names. Each module is imported when one of its
#: names is asked for.
_WRITTEN_IN = {
    "_api.array": "array virtual_chunked",
    "_api.attributes": "Attributes",
    "_api.group": "Group",
    "_api.kvstore": "KvStore",
    "_api.metrics": """
        experimental_collect_matching_metrics experimental_collect_prometheus_format_metrics
        experimental_push_metrics_to_prometheus experimental_update_verbose_logging
        parse_tensorstore_flags
    """,
    "_api.open": "open",
    "_api.spec": "Spec load_spec",
    "_api.tensorstore": "NumpyView TensorStore",
    "_api.transfer": "download upload",
    "_api.view": "View",
    "_api.views": "DownsampleMethod cast concat downsample overlay stack",
    "_chunked.format": "RecheckCacheOption",
    "_chunked.virtual": "VirtualChunkedReadParameters VirtualChunkedWriteParameters",
    "_compute.diff": "diff",
    "_compute.difference": "Difference DifferingBlock DifferingMember",
    "_compute.digest": "Digest digest",
    "_compute.distribution": "Histogram",
    "_compute.map_blocks": "map_blocks",
    "_compute.reduce": "reduce",
    "_conversion.copy": "copy rechunk",
    "_conversion.migrate": "migrate",
    "_conversion.summary": "CopiedMember CopySummary Migration MigrationStep",
    "_index": """
        Dim DimExpression DimSelection DimSelectionLike Indexable IndexDomain IndexTransform
        NumpyIndexingSpec NumpyIndexTerm OutputIndexMap OutputIndexMaps OutputIndexMethod d inf
        newaxis
    """,
    "_interface.batch": "Batch",
    "_interface.transaction": "Transaction",
    "_jobs.json_schema": "json_schema",
    "_plan.plan": "Plan plan",
    "_runtime.future": "Future FutureLike Promise WriteFutures",
    "_runtime.progress": "Progress ProgressStream",
    "_serving.serve": "serve",
    "_spec.chunk_layout": "ChunkLayout",
    "_spec.codec_spec": "CodecSpec",
    "_spec.context": "Context",
    "_spec.data_types": """
        bfloat16 bool byte char complex64 complex128 float4_e2m1fn float8_e3m4
        float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
        float8_e8m0fnu float16 float32 float64 int2 int4 int8 int16 int32 int64 json string
        uint8 uint16 uint32 uint64 ustring
    """,
    "_spec.dtype": "DTypeLike dtype",
    "_spec.open_mode": "OpenMode",
    "_spec.schema": "Schema",
    "_spec.trust": "Trust",
    "_spec.units": "Unit",
    "multiscale.pyramid": "pyramid",
}

_HOMES = {name: module for module, names in _WRITTEN_IN.items() for name in names.split()}

#: Modules that are public, too.
_ROOMS = ("errors", "multiscale", "ocdbt", "orbax", "plugin", "testing", "typing", "zarr")

#: Functions of zarr and xarray, and where they are here.
_ELSEWHERE = {
    **dict.fromkeys(("open_array", "open_zarr", "create", "create_array"), "say ts.open"),
    **dict.fromkeys(("open_group", "group", "create_group"), "say ts.Group.open"),
    **dict.fromkeys(
        ("zeros", "ones", "full", "empty", "save", "load", "open_like", "zeros_like"),
        "it is in ts.zarr, with the names of zarr-python",
    ),
    "consolidate_metadata": "say group.consolidate()",
    "asarray": "say ts.array",
    "concatenate": "say ts.concat",
}

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return _load(f"{__name__}.{name}")
        home = _HOMES.get(name)
        if home is None:
            hint = _did_you_mean(name, __all__, _ELSEWHERE)
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
        found = getattr(_load(f"{__name__}.{home}"), name)
        # Others that have come with it, too: nothing can be imported when the interpreter ends.
        for other, module in _HOMES.items():
            loaded = _sys.modules.get(f"{__name__}.{module}")
            if hasattr(loaded, other):
                globals().setdefault(other, getattr(loaded, other))
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_ROOMS})


__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "Attributes",
    "Batch",
    "ChunkLayout",
    "CodecSpec",
    "Context",
    "CopiedMember",
    "CopySummary",
    "DTypeLike",
    "DataLossError",
    "Difference",
    "DifferingBlock",
    "DifferingMember",
    "Digest",
    "Dim",
    "DimExpression",
    "DimSelection",
    "DimSelectionLike",
    "DownsampleMethod",
    "FailedPreconditionError",
    "Future",
    "FutureLike",
    "Group",
    "Histogram",
    "IndexDomain",
    "IndexTransform",
    "Indexable",
    "IndexingError",
    "KvStore",
    "Migration",
    "MigrationStep",
    "MismatchError",
    "NotFoundError",
    "NumpyIndexTerm",
    "NumpyIndexingSpec",
    "NumpyView",
    "OpenMode",
    "OutOfRangeError",
    "OutputIndexMap",
    "OutputIndexMaps",
    "OutputIndexMethod",
    "PermissionDeniedError",
    "Plan",
    "Progress",
    "ProgressStream",
    "Promise",
    "RecheckCacheOption",
    "ResourceExhaustedError",
    "Schema",
    "Spec",
    "SpecError",
    "TensorStore",
    "TensorStoreError",
    "Transaction",
    "Trust",
    "UnavailableError",
    "Unit",
    "UnsupportedError",
    "View",
    "VirtualChunkedReadParameters",
    "VirtualChunkedWriteParameters",
    "WriteFutures",
    "array",
    "bfloat16",
    "bool",
    "byte",
    "cast",
    "char",
    "complex64",
    "complex128",
    "concat",
    "copy",
    "d",
    "diff",
    "digest",
    "download",
    "downsample",
    "dtype",
    "experimental_collect_matching_metrics",
    "experimental_collect_prometheus_format_metrics",
    "experimental_push_metrics_to_prometheus",
    "experimental_update_verbose_logging",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "inf",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "json",
    "json_schema",
    "load_spec",
    "map_blocks",
    "migrate",
    "multiscale",
    "newaxis",
    "ocdbt",
    "open",
    "orbax",
    "overlay",
    "parse_tensorstore_flags",
    "plan",
    "pyramid",
    "rechunk",
    "reduce",
    "serve",
    "stack",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "upload",
    "ustring",
    "virtual_chunked",
    "zarr",
]
