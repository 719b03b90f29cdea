"""Keyword arguments of `ts.open`, `Spec` and `Spec.update`: which members of a spec they change.

All callers share these names and meanings. Each function takes a frozen driver spec and returns
another; nothing is changed in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._chunked.format import recheck_bound
from tensorstore_py._index import identity
from tensorstore_py._interface.adapter import AdapterSpec
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.arguments import ARGUMENTS
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py._spec.context import Context, bind, strip_context, unbind
from tensorstore_py._spec.open_mode import FLAGS
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import kvstores
from tensorstore_py._spec.schema import Schema, SchemaArguments
from tensorstore_py._spec.url import kvstore_from_url
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._chunked.format import RecheckCacheOption
    from tensorstore_py._spec.dtype import DTypeLike
    from tensorstore_py._spec.open_mode import OpenMode
    from tensorstore_py._spec.schema import (
        CodecLike,
        DomainLike,
        LayoutLike,
        SchemaLike,
        ShapeLike,
        UnitsLike,
    )

__all__ = ["OPTIONS", "Options", "SpecOptions", "given", "spec_given", "updated"]

_SCHEMA = tuple(SchemaArguments.__annotations__)


class Options(TypedDict, total=False):
    """The keyword arguments; None means "leave it as it is"."""

    open_mode: OpenMode | None
    open: bool | None
    create: bool | None
    delete_existing: bool | None
    assume_metadata: bool | None
    assume_cached_metadata: bool | None
    kvstore: object
    recheck_cached_metadata: RecheckCacheOption | None
    recheck_cached_data: RecheckCacheOption | None
    recheck_cached: RecheckCacheOption | None
    rank: int | None
    dtype: DTypeLike | None
    domain: DomainLike | None
    shape: ShapeLike | None
    chunk_layout: LayoutLike | None
    codec: CodecLike | None
    fill_value: object
    dimension_units: UnitsLike | None
    schema: SchemaLike | None


class SpecOptions(Options, total=False):
    """What `Spec.update` and `TensorStore.spec` take besides."""

    minimal_spec: bool | None
    retain_context: bool | None
    unbind_context: bool | None
    strip_context: bool | None
    context: Context | None


def given(
    *,
    open_mode: OpenMode | None = None,
    open: bool | None = None,
    create: bool | None = None,
    delete_existing: bool | None = None,
    assume_metadata: bool | None = None,
    assume_cached_metadata: bool | None = None,
    kvstore: object = None,
    recheck_cached_metadata: RecheckCacheOption | None = None,
    recheck_cached_data: RecheckCacheOption | None = None,
    recheck_cached: RecheckCacheOption | None = None,
    rank: int | None = None,
    dtype: DTypeLike | None = None,
    domain: DomainLike | None = None,
    shape: ShapeLike | None = None,
    chunk_layout: LayoutLike | None = None,
    codec: CodecLike | None = None,
    fill_value: object = None,
    dimension_units: UnitsLike | None = None,
    schema: SchemaLike | None = None,
    **unknown: object,
) -> dict[str, object]:
    """The keyword arguments of a call, named one by one for editors (see `spelled_out`)."""
    found = locals()
    return {**found.pop("unknown"), **found}


def spec_given(
    *,
    minimal_spec: bool | None = None,
    retain_context: bool | None = None,
    unbind_context: bool | None = None,
    strip_context: bool | None = None,
    context: Context | None = None,
    **options: Unpack[Options],
) -> dict[str, object]:
    """The same for `SpecOptions`."""
    found = locals()
    return {**given(**options), **{name: found[name] for name in found if name != "options"}}


OPTIONS = frozenset({**Options.__annotations__, **SpecOptions.__annotations__})


def updated(model: DriverSpec, options: Mapping[str, Any]) -> DriverSpec:
    """`model` with the options applied, in TensorStore's order: members, then context.

    Raises:
        TypeError: an option that does not exist, or a bound on caching that is none.
        SpecError: a value is wrong, or the driver has no such member.
        MismatchError: a value contradicts what the spec says already.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in FLAGS:
        if name in given and not isinstance(given[name], bool | np.bool_):
            raise TypeError(f"{name} must be True or False, not {given[name]!r}")
    for name in given:
        if name not in OPTIONS:
            hint = did_you_mean(name, OPTIONS, ARGUMENTS)
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")
    model = _with_schema(_with_storage(model, given), given)
    if given.get("minimal_spec"):
        model = _minimal(model)
    return _with_context(model, given)


def _with_storage(model: DriverSpec, given: Mapping[str, Any]) -> DriverSpec:
    """The options that are the business of whichever driver stores the elements."""
    if isinstance(model, AdapterSpec):
        base = _with_storage(model.base, given)
        return model if base is model.base else model.replace(base=base).checked()
    return _with_recheck(_with_mode(_with_kvstore(model, given), given), given)


def _with_members(model: DriverSpec, changes: dict[str, object]) -> DriverSpec:
    """Change members and check the result like one that was parsed."""
    if not changes:
        return model
    known = type(model).model_fields
    for name in changes:
        if name not in known and f"{name}_" not in known:
            raise SpecError(f'driver "{model.driver}" has no such member', (name,))
    renamed = {name if name in known else f"{name}_": value for name, value in changes.items()}
    return model.replace(**renamed).checked()


def _with_kvstore(model: DriverSpec, given: Mapping[str, Any]) -> DriverSpec:
    if "kvstore" not in given:
        return model
    kvstore = given["kvstore"]
    if getattr(model, "kvstore", None) is not None:
        raise SpecError("a kvstore is specified already", ("kvstore",))
    if isinstance(kvstore, (KvStore, KvStore.Spec)):
        found: object = kvstore.model
    else:
        found = parse_registered(kvstores, kvstore, from_url=kvstore_from_url)
    assert isinstance(found, KvStoreSpec)
    return _with_members(model, {"kvstore": found})


def _with_mode(model: DriverSpec, given: Mapping[str, Any]) -> DriverSpec:
    """Flags can only be switched on, but "open" or "create" begin the whole mode anew."""
    if "create" not in type(model).model_fields:
        # nothing to create here, so there is but one way to open it
        return model.with_layers(lambda layer: _with_mode(layer, given))
    mode = given.get("open_mode")
    flags = {name: bool(given.get(name) or getattr(mode, name, False)) for name in FLAGS}
    anew = flags["open"] or flags["create"]
    present = model.open_mode()
    changes: dict[str, object] = {
        name: flag
        for name, flag in flags.items()
        if flag != getattr(present, name) and (flag or anew)
    }
    if flags["create"]:
        # beside "create" there is no "open" by default
        changes["open"] = flags["open"]
    return _with_members(model, changes)


def _with_recheck(model: DriverSpec, given: Mapping[str, Any]) -> DriverSpec:
    both = given.get("recheck_cached")
    changes: dict[str, object] = {}
    for name in ("recheck_cached_metadata", "recheck_cached_data"):
        bound = given.get(name) if both is None else both
        if bound is None:
            continue
        try:
            checked = recheck_bound(bound)
        except SpecError as error:
            raise TypeError(f"{name}: {error}") from None
        if name in type(model).model_fields:  # what is never cached is never stale
            changes[name] = checked
    return _with_members(model, changes)


def _with_schema(model: DriverSpec, given: Mapping[str, Any]) -> DriverSpec:
    constraints = {name: given[name] for name in _SCHEMA if name in given}
    if not constraints:
        return model
    merged = Schema() if model.schema_ is None else model.schema_.copy()
    if model.dtype is not None:
        merged.update(dtype=model.dtype)
    if model.rank is not None:
        merged.update(rank=model.rank)
    if "codec" in constraints:
        constraints["codec"] = _codec(constraints["codec"], model)
    merged.update(**constraints)
    return _with_members(model, {"schema": merged, "dtype": merged.dtype, "rank": merged.rank})


def _codec(codec: object, model: DriverSpec) -> CodecSpec:
    """A codec, or all of them, in the terms of the driver that stores the elements."""
    while isinstance(model, AdapterSpec):
        model = model.base
    try:
        return CodecSpec.like(codec, model.driver)
    except SpecError as error:
        raise error.inside("codec") from None


def _minimal(model: DriverSpec) -> DriverSpec:
    """Without metadata; the element type and the domain that it tells stay."""
    domain = model.known_domain()
    transform = model.transform
    if transform is None and domain is not None:
        transform = identity(domain)
    if isinstance(model, AdapterSpec):
        base = _minimal(model.base).replace(transform=model.base.transform)
        return model.replace(base=base, transform=transform)
    return model.minimal().replace(dtype=model.known_schema().dtype, transform=transform)


def _with_context(model: DriverSpec, given: Mapping[str, Any]) -> DriverSpec:
    if given.get("strip_context"):
        model = strip_context(model)
    elif given.get("unbind_context"):
        model = unbind(model)
    context = given.get("context")
    if context is None:
        return model
    if not isinstance(context, Context):
        context = Context(context)
    return bind(model, context)
