"""URL pipelines: `file:///a/b.zip|zip:inner/|zarr3:`, as JSON specs.

The first part is a root store (`scheme://...`); each further part wraps what stands before it:
stores that have a `base` member, then a driver over a `kvstore`, then drivers that have a `base`.
What follows a part's scheme is the class's own matter (`from_url`); here parts are only told apart
and nested. The schemes come from the registries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._spec.json_value import check_text
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import drivers, kvstores
from tensorstore_py._spec.url_path import decode_path, encode_path, root_url_rest, show_url
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._spec.registry import Registry

__all__ = [
    "decode_path",
    "driver_from_url",
    "driver_scheme",
    "encode_path",
    "kvstore_from_url",
    "root_url_rest",
]

Json = dict[str, object]


def kvstore_from_url(url: str) -> Json:
    """The JSON of a store's URL.

    Raises:
        SpecError: an unknown scheme, a driver's scheme, or a part that its store refuses.
    """
    parts = _parts(url)
    spec = _root(parts[0], url)
    for part in parts[1:]:
        cls = _adapter_store(part)
        if cls is None:
            raise _not_a_store(part, url)
        spec = _wrap_store(cls, part, spec)
    return spec


def driver_from_url(url: str) -> Json:
    """The JSON of an array's URL; driver `"auto"` if the URL names only a store.

    Raises:
        SpecError: an unknown scheme, parts in an order that makes no sense, or a part that its
            store or driver refuses.
    """
    parts = _parts(url)
    if "://" not in parts[0] and drivers.find_scheme(_scheme(parts[0])) is not None:
        raise SpecError(f'"{url}" starts with a driver; put the URL of its store in front')
    store: Json | None = _root(parts[0], url)
    spec: Json = {}
    for part in parts[1:]:
        cls = _adapter_store(part)
        if cls is not None and store is not None:
            store = _wrap_store(cls, part, store)
            continue
        driver = drivers.find_scheme(_scheme(part))
        if driver is None:
            raise _unknown(part, url, drivers)
        assert issubclass(driver, Model)
        if "kvstore" not in driver.model_fields:
            base = spec if store is None else {"driver": "auto", "kvstore": store}
            spec = _members(driver, part) | {"base": base}
        elif store is None:
            raise SpecError(f'"{part}" in "{url}" needs a store in front of it, not another driver')
        else:
            spec = _over_store(driver, part, store)
        store = None
    return spec if store is None else {"driver": "auto", "kvstore": store}


def driver_scheme(driver: str) -> str:
    """The scheme that a driver has in URLs; its own name if it registered none."""
    cls = drivers.get(driver)
    for scheme in drivers.schemes():
        if drivers.find_scheme(scheme) is cls:
            return scheme
    return driver


def _parts(url: str) -> list[str]:
    parts = check_text(url).split("|")
    if not all(parts):
        raise SpecError("URL must be non-empty" if not url else f'"{url}" has an empty part')
    return parts


def _scheme(part: str) -> str:
    return part.partition(":")[0]


def _root(part: str, url: str) -> Json:
    if ":" not in part:
        absolute = part if part.startswith("/") else f"/absolute/path/{part}"
        raise SpecError(
            f'URL scheme must be specified in "{url}", such as "file://{absolute}"; '
            f"a local path may be a pathlib.Path, too"
        )
    cls = kvstores.find_scheme(_scheme(part))
    if cls is None:
        raise _unknown(part, url, kvstores)
    if _is_adapter(cls):
        raise SpecError(f'"{part}" needs a store in front of it, such as "file:///path|{part}"')
    return _members(cls, part)


def _adapter_store(part: str) -> type[object] | None:
    cls = kvstores.find_scheme(_scheme(part))
    return cls if cls is not None and _is_adapter(cls) else None


def _is_adapter(cls: type[object]) -> bool:
    return issubclass(cls, Model) and "base" in cls.model_fields


def _wrap_store(cls: type[object], part: str, base: Json) -> Json:
    return _members(cls, part if ":" in part else f"{part}:") | {"base": base}


def _members(cls: type[object], part: str) -> Json:
    """The JSON that a class makes of its part of the URL."""
    from_url = getattr(cls, "from_url", None)
    if from_url is None:
        raise SpecError(f'"{_scheme(part)}" has no URL form; write it as JSON')
    try:
        json = from_url(part)
    except SpecError as error:
        raise SpecError(f'URL "{show_url(part)}": {error}') from None
    assert isinstance(json, dict)
    return json


def _over_store(cls: type[Model], part: str, store: Json) -> Json:
    if getattr(cls, "from_url", None) is not None:
        return _members(cls, part) | {"kvstore": store}
    rest = part.partition(":")[2]
    for mark, name in (("?", "Query string"), ("#", "Fragment identifier")):
        if mark in rest:
            raise SpecError(f'{name} not supported in "{part}"')
    # `zarr3:b`, `zarr3://b`: a path inside the store
    path = decode_path(rest.removeprefix("//"))
    if path:
        above = str(store.get("path", ""))
        joined = path if not above or above.endswith("/") else f"/{path}"
        store = {**store, "path": above + joined}
    return {"driver": getattr(cls, "driver", ""), "kvstore": store}


def _unknown(part: str, url: str, registry: Registry[object]) -> SpecError:
    scheme = _scheme(part)
    hint = did_you_mean(scheme, registry.schemes())
    return SpecError(f'unsupported URL scheme "{scheme}" in "{url}"{hint}')


def _not_a_store(part: str, url: str) -> SpecError:
    scheme = _scheme(part)
    if kvstores.find_scheme(scheme) is not None:
        return SpecError(f'"{scheme}" in "{url}" is a root store; it can only stand first')
    if drivers.find_scheme(scheme) is not None:
        return SpecError(f'"{scheme}" in "{url}" is an array driver; here a store is expected')
    return _unknown(part, url, kvstores)
