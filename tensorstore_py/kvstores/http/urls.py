"""URLs of the HTTP store: taken apart into `base_url` and `path`, and put together for a key.

As in the reference, `base_url` keeps the scheme, the host and the query, and of the path what a key
cannot say: everything up to the last part with an encoded slash. The rest is the store's path.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.kvstore import check_authority, decode_path, encode_path

__all__ = ["BaseUrl", "check_key", "join", "split_base"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://?")
_ENCODED_SLASH = re.compile(r"%2[fF][^/]*")
_SLASHES = re.compile(r"[/\\]")
_NO_NAMES = frozenset({".", ".."})
_UNSENDABLE = re.compile(r"[\x00-\x20\x7f]")


class BaseUrl(NamedTuple):
    """A base URL, ready to have keys put in.

    Attributes:
        head: scheme, host and the fixed part of the path.
        query: with its `?`; empty if there is none.
    """

    head: str
    query: str

    @classmethod
    def of(cls, base_url: str) -> BaseUrl:
        """The place for a base URL that `split_base` gave."""
        head, mark, query = base_url.partition("?")
        return cls(head, mark + query)

    def url(self, key: str) -> str:
        """The URL of a whole key, percent-encoded.

        Example:
            >>> BaseUrl.of("https://host?token=5").url("/a b")
            'https://host/a%20b?token=5'
        """
        slash = "" if key.startswith("/") else "/"
        return f"{self.head}{slash}{encode_path(key)}{self.query}"


def check_key(key: str) -> None:
    """Whether a key stays below the base URL for every server and proxy on the way.

    Raises:
        SpecError: it may not.
    """
    if "/." in f"/{key}".replace("\\", "/") and not _NO_NAMES.isdisjoint(_SLASHES.split(key)):
        raise SpecError(
            f'Invalid key: "{key}"; servers read the components "." and ".." as another path, so '
            "that a key has none"
        )


def split_base(base_url: str) -> tuple[str, str]:
    """The base URL without the path that a key can say, and that path, decoded.

    Raises:
        SpecError: another scheme than HTTP, a fragment, or bad percent-encoding.

    Example:
        >>> split_base("https://host/a%20b/c?q=1")
        ('https://host?q=1', '/a b/c')
        >>> split_base("https://host/a%2Fb/c")
        ('https://host/a%2Fb', '/c')
    """
    scheme = _SCHEME.match(base_url)
    if scheme is None or scheme[1] not in ("http", "https"):
        raise SpecError(
            f'expected a URL with the scheme "http" or "https", but found '
            f'"{scheme[1] if scheme else base_url[:40]}"'
        )
    if "#" in base_url:
        raise SpecError('Fragment identifier not supported; write a literal "#" as "%23"')
    rest, mark, query = base_url[len(scheme[1]) + 3 :].partition("?")
    host, slash, path = rest.partition("/")
    if _UNSENDABLE.search(host) or _UNSENDABLE.search(query):
        raise SpecError("a URL has no blanks or control characters in its host and query")
    try:
        check_authority(f"{scheme[1]}://{host}")
    except ValueError as error:
        raise SpecError(f"this is no URL: {error}") from None
    path = slash + path
    fixed = max((found.end() for found in _ENCODED_SLASH.finditer(path)), default=0)
    query = mark + query if query else ""
    return f"{scheme[1]}://{host}{path[:fixed]}{query}", decode_path(path[fixed:])


def join(above: str, path: str) -> str:
    """The path that stood in `base_url` and the member `path`, as one.

    Raises:
        SpecError: both say from the root on.
    """
    if not above or not path:
        return above or path
    if path.startswith("/"):
        raise SpecError(
            f'Cannot specify absolute path "{path}": "base_url" has the path "{above}" already; '
            f"leave out the slash in front, or put both into base_url",
            ("path",),
        )
    return above + path if above.endswith("/") else f"{above}/{path}"
