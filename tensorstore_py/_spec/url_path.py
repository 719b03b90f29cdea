"""The path part of a URL, to and from a key: percent coding, and what a root URL may hold.

Pure text in, text out; nothing here knows a store. Keys are `str` with undecodable bytes as
surrogate escapes; in a URL every byte outside the unreserved and sub-delimiter characters,
`:` and `/`, is `%XX`. Encoding and decoding are inverse for every key that is valid UTF-8.
"""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from tensorstore_py.errors import SpecError

__all__ = [
    "adapter_url_rest",
    "check_authority",
    "decode_path",
    "encode_path",
    "local_url",
    "root_url_rest",
    "show_url",
    "split_bucket",
]

_KEPT = "!$&'()*+,;=:/~"
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


def split_bucket(rest: str) -> tuple[str, str]:
    """Bucket and decoded path of what follows `s3://` or the like.

    Example:
        >>> split_bucket("bucket/a%20b")
        ('bucket', 'a b')
    """
    bucket, _, path = rest.partition("/")
    return bucket, decode_path(path)


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
