"""Opening datasets: one survey of a source, all arrays opened together, coordinates read together.

xarray reads index coordinates one after the other while it builds a dataset. Here their reads are
begun before, for all groups of a tree, so that they cost one round trip and not one each.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from xarray.backends import StoreBackendEntrypoint

from tensorstore_py.integrations.xarray.source import Source
from tensorstore_py.integrations.xarray.stored_group import StoredGroup

if TYPE_CHECKING:
    import xarray as xr

    import tensorstore_py as ts

__all__ = ["OPTIONS", "open_groups", "stored_groups"]

_DECODERS = (
    "mask_and_scale", "decode_times", "concat_characters", "decode_coords", "use_cftime",
    "decode_timedelta",
)  # fmt: skip
#: The keywords of `open_groups`.
OPTIONS = (
    *_DECODERS, "drop_variables", "group", "consolidated", "zarr_format", "context", "cache_pool",
    "use_zarr_fill_value_as_mask", "prefetch",
)  # fmt: skip


def open_groups(
    given: object,
    *,
    tree: bool,
    drop_variables: str | Iterable[str] | None = None,
    group: str | None = None,
    consolidated: bool | None = None,
    zarr_format: Literal[2, 3] | None = None,
    context: ts.Context | Mapping[str, Any] | None = None,
    cache_pool: int | None = None,
    use_zarr_fill_value_as_mask: bool | None = None,
    prefetch: bool = True,
    decode_times: Any = True,  # noqa: ANN401 - a flag, a coder, or one for each variable
    **decoders: Any,
) -> dict[str, xr.Dataset]:
    """The datasets of a group, at `"/"`, and of those below it.

    Args:
        given: a path, a URL, a spec, a `ts.Group`, a `ts.KvStore`.
        tree: whether those below it, too.
        drop_variables: names of variables that are not opened, nor looked at.
        group: the path of the group within.
        consolidated: use consolidated metadata: by default if it is there; True: it must be.
        zarr_format: 2 or 3; by default whichever is there.
        context: a `ts.Context` that all variables share, or its JSON.
        cache_pool: bytes to keep of decoded chunks, for all variables together.
        use_zarr_fill_value_as_mask: whether Zarr's fill value says which elements are missing; by
            default so it does in version 2.
        prefetch: read index coordinates, and what decides the types of times, all together.
        decode_times: as `xr.open_dataset` takes it.
        **decoders: what else `xr.open_dataset` takes of decoding.

    Raises:
        TypeError: an argument that does not exist.
        NotFoundError: nothing is there; says what was looked for.
        MismatchError: an array is there; or a dimension has two sizes.
        UnsupportedError: a variable cannot be represented; names it.
    """
    unknown = [name for name in decoders if name not in _DECODERS]
    if unknown:
        raise TypeError(
            f'engine "tensorstore" takes no {unknown[0]!r}; it takes {", ".join(OPTIONS)}'
        )
    source = Source(
        given,
        group=group,
        consolidated=consolidated,
        zarr_format=zarr_format,
        context=context,
        cache_pool=cache_pool,
        max_depth=None if tree else 0,
    )
    dropped = {drop_variables} if isinstance(drop_variables, str) else {*(drop_variables or ())}
    entry = StoreBackendEntrypoint()
    try:
        groups = stored_groups(source, tree, dropped, use_zarr_fill_value_as_mask)
        for group_ in groups.values():
            group_.ready()
        if prefetch:
            for group_ in groups.values():
                group_.fetch(times=bool(decode_times))
        found = {
            path: entry.open_dataset(group_, decode_times=decode_times, **decoders)
            for path, group_ in groups.items()
        }
    except BaseException:
        source.close()
        raise
    if source.url is not None and not isinstance(given, str | os.PathLike):
        # Of paths and URLs xarray says so itself.
        for path, dataset in found.items():
            dataset.encoding["source"] = source.url + path.lstrip("/")
    return found


def stored_groups(
    source: Source, tree: bool, dropped: Collection[str], fills: bool | None
) -> dict[str, StoredGroup]:
    """The groups, by path, with the arrays in them; whoever closes the first closes the source.

    Args:
        source: the source.
        tree: whether the groups below the first, too.
        dropped: names of arrays to leave out.
        fills: as `StoredVariable.variable` takes it.
    """
    arrays: dict[str, dict[str, Any]] = {
        path: {}
        for path, node in source.nodes.items()
        if node.kind == "group" and (tree or not path)
    }
    for path, node in source.nodes.items():
        parent, name = posixpath.split(path)
        if node.kind == "array" and parent in arrays and name not in dropped:
            arrays[parent][name] = node
    return {
        f"/{path}": StoredGroup(
            f"{source.url or ''}{path}/" if path else source.url or "",
            source.nodes[path],
            inner,
            fills,
            (lambda: None) if path else source.close,
        )
        for path, inner in arrays.items()
    }
