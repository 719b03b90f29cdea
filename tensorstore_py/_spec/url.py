"""URL pipelines: `file:///a/b.zip|zip:inner/|zarr3:`, as JSON specs.

The first part is a root store (`scheme://...`); each further part wraps what stands before it:
stores that have a `base` member, then a driver over a `kvstore`, then drivers that have a `base`.
What follows a part's scheme is the class's own matter (`from_url`); here parts are only kept apart
and nested. The schemes come from the registries.

A key is a `str` with undecodable bytes as surrogate escapes; in a URL every byte outside the
unreserved and sub-delimiter characters, `:` and `/`, is `%XX`. Encoding and decoding are inverse
for every key that is valid UTF-8.
"""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from tensorstore_py._spec.json_value import check_text
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import drivers, kvstores
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._spec.registry import Registry

__all__ = [
    "adapter_url_rest",
    "check_authority",
    "decode_path",
    "driver_from_url",
    "encode_path",
    "kvstore_from_url",
    "local_url",
    "root_url_rest",
    "show_url",
]

_KEPT = "!$&'()*+,;=:/~"
#: What most keys are made of.
_PLAIN = re.compile(r"[A-Za-z0-9._~/-]*\Z", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def encode_path(key: str, also_kept: str = "") -> str:
    """A key as the path of a URL.

    Args:
        key: with undecodable bytes as surrogate escapes.
        also_kept: further characters that the scheme leaves as they are.

    Example:
        >>> encode_path("a b/é")
        'a%20b/%C3%A9'
    """
    if _PLAIN.match(key):
        return key
    return quote_from_bytes(key.encode("utf-8", "surrogateescape"), safe=_KEPT + also_kept)


def decode_path(path: str) -> str:
    """The key that the path of a URL stands for.

    Raises:
        SpecError: a `%` without two hexadecimal digits, or bytes that are not UTF-8.

    Example:
        >>> decode_path("a%20b")
        'a b'
    """
    bad = _BAD_ESCAPE.search(path)
    if bad is not None:
        raise SpecError(
            f'Invalid percent-encoding at position {bad.start()} of "{path}"; '
            f'write a literal percent sign as "%25"'
        )
    try:
        return unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError(f'Invalid UTF-8 percent-encoding sequence: "{path}"') from None


def root_url_rest(url: str, scheme: str) -> str:
    """What follows `scheme://`, still percent-encoded.

    Args:
        url: the whole URL.
        scheme: without the `://`.

    Raises:
        SpecError: another scheme, a query or a fragment.

    Example:
        >>> root_url_rest("memory://a/b", "memory")
        'a/b'
    """
    head = f"{scheme}://"
    if url[: len(head)].lower() != head:
        raise SpecError(f'Scheme "{head}" not present in url "{url}"')
    rest = url[len(head) :]
    for mark, name in (("?", "Query string"), ("#", "Fragment identifier")):
        if mark in rest:
            escape = f"%{ord(mark):02X}"
            raise SpecError(
                f'{name} not supported in "{url}"; write a literal "{mark}" as "{escape}"'
            )
    return rest


def adapter_url_rest(part: str, scheme: str) -> str:
    """The path in a part such as `zip:inner/`, decoded.

    Raises:
        SpecError: a query, a fragment, or the `//` of a root store.

    Example:
        >>> adapter_url_rest("zip:a%20b/", "zip")
        'a b/'
    """
    rest = part[len(scheme) + 1 :]
    if rest.startswith("//"):
        raise SpecError(f'Scheme "{scheme}:" not present in url "{part}"; leave "//" out')
    for mark, name in (("?", "Query string"), ("#", "Fragment identifier")):
        if mark in rest:
            raise SpecError(f'{name} not supported in "{show_url(part)}"')
    return decode_path(rest)


def local_url(path: PathLike[str]) -> str:
    """The URL of a local path: a directory, unless there is a file of that name.

    Example:
        >>> from pathlib import PurePosixPath
        >>> local_url(PurePosixPath("/data/a b"))
        'file:///data/a%20b/'
    """
    absolute = Path(os.path.abspath(os.fspath(path)))  # noqa: PTH100 - links are kept as they are
    url = absolute.as_uri()
    return url if absolute.is_file() or url.endswith("/") else f"{url}/"


def show_url(url: str) -> str:
    """A URL for people: without what may be secret in it.

    User names and passwords go, and of the query only the names stay.

    Example:
        >>> show_url("https://me:secret@host/a%20b?X-Signature=123&part#x")
        'https://host/a%20b?X-Signature=...&part'
    """
    head, mark, query = url.partition("#")[0].partition("?")
    scheme, colon, rest = head.partition("://")
    authority, slash, path = rest.partition("/")
    shown = scheme + colon + authority.rpartition("@")[2] + slash + path
    if not mark:
        return shown
    names = [
        name + ("=..." if equals else "")
        for name, equals, _ in (part.partition("=") for part in query.split("&"))
    ]
    return f"{shown}?{'&'.join(names)}"


def check_authority(url: str) -> None:
    """Whether a URL names a host, and a port that there can be.

    Raises:
        ValueError: it does not; the message shows nothing of a password.

    Example:
        >>> check_authority("http://[::1]:8080/")
        >>> check_authority("http://host:99999/")
        Traceback (most recent call last):
            ...
        ValueError: its port is no number from 0 to 65535
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise ValueError("its host is no name and no address; write IPv6 like [::1]") from None
    try:
        parts.port  # noqa: B018 - raises
    except ValueError:
        raise ValueError("its port is no number from 0 to 65535") from None
    if not host:
        raise ValueError("it names no host")


Json = dict[str, object]


def kvstore_from_url(url: str) -> Json:
    """The JSON of a store's URL.

    Raises SpecError: an unknown scheme, a driver's scheme, or a part that its store refuses.
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

    Raises SpecError: an unknown scheme, parts in an order that makes no sense, or a part that its
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
    scheme = _scheme(part)
    if drivers.has_scheme(scheme):
        return None  # so that no store has to be imported to know
    cls = kvstores.find_scheme(scheme)
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
