"""What may be a path and a key, and paths as `file://` URLs. Pure text: no file is touched.

A key is a path with `/` between its components, whatever the platform. Each function takes the
platform as `windows`, so that both sets of rules are tested everywhere. Keys must name one file
in one way only: whatever the file system would fold away (`a//b`, `./a`) is refused, not folded.
"""

from __future__ import annotations

import posixpath
import re
import sys
from typing import Final

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.plugin.kvstore import decode_path, encode_path, root_url_rest

__all__ = [
    "LOCK_SUFFIX",
    "WINDOWS",
    "check_key",
    "is_valid_path",
    "normal_path",
    "path_from_url",
    "path_to_url",
]

WINDOWS: Final = sys.platform == "win32"
LOCK_SUFFIX: Final = ".__lock"


class RelativePathError(UnsupportedError, ValueError):
    """A relative path has no URL form; the reference's class for that is `ValueError`."""


_DRIVE = re.compile(r"[A-Za-z]:(?=/|$)")
_WINDOWS_ROOT = re.compile(r"[A-Za-z]:(?:/|$)|//[^/]+/[^/]+(?:/|$)|/")
_WINDOWS_RESERVED = re.compile(r'[<>:"|?*\x00-\x1f]|[. ](?=/|$)')


def is_valid_path(path: str, windows: bool = WINDOWS) -> bool:
    """Whether every component names something, in one way only; a trailing `/` is fine.

    A backslash parts components, too: what is a harmless name here would be a path elsewhere.

    Example:
        >>> is_valid_path("/data/a"), is_valid_path("/data//a"), is_valid_path("../a")
        (True, False, False)
    """
    path = path.replace("\\", "/")
    rest = path
    if windows:
        root = _WINDOWS_ROOT.match(path)
        rest = path[root.end() :] if root else path
        if _WINDOWS_RESERVED.search(rest):
            return False
    elif path.startswith("/"):
        rest = path[1:]
    if "\0" in path:
        return False
    components = rest.split("/")
    if components[-1] == "":
        components.pop()
    return not any(
        component in ("", ".", "..") or component.endswith(LOCK_SUFFIX) for component in components
    )


def check_key(key: str, windows: bool = WINDOWS) -> None:
    """Raise unless `key` can name a file.

    Raises:
        SpecError: it cannot; the message says why.
    """
    # Almost every key passes these few searches; only suspects are taken apart.
    if not (
        windows
        or "//" in key
        or "/." in key
        or LOCK_SUFFIX in key
        or "\0" in key
        or "\\" in key
        or key.endswith("/")
        or key.startswith(".")
        or not key
    ):
        return
    if not key or key.endswith(("/", "\\")) or not is_valid_path(key, windows):
        shown = key.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
        raise SpecError(
            f'Invalid key: "{shown}"; a file\'s key is not empty, does not end in "/", has no '
            f'NUL and no component that is empty, ".", ".." or ends in "{LOCK_SUFFIX}"'
        )


def normal_path(path: str, windows: bool = WINDOWS) -> str:
    r"""A spec's path with `/` between its components.

    Raises:
        SpecError: not a valid path.

    Example:
        >>> normal_path("C:\\data\\")
        'C:/data/'
    """
    normal = path.replace("\\", "/")
    if not is_valid_path(normal, windows):
        shown = path.replace("\0", "\\x00")
        raise SpecError(
            f'Invalid file path: "{shown}"; write it without empty, "." and ".." components, '
            f'without NUL, and without names that end in "{LOCK_SUFFIX}"'
        )
    return normal


def path_from_url(url: str, windows: bool = WINDOWS) -> str:
    """The path of a `file://` URL; `.` and `..` are resolved as text.

    Raises:
        SpecError: another host, a relative path, a query or a fragment.

    Example:
        >>> path_from_url("file:///a%20b/../c/", windows=False)
        '/c/'
        >>> path_from_url("file:///C:/x", windows=True)
        'C:/x'
        >>> path_from_url("file://server/share/x", windows=True)
        '//server/share/x'
    """
    host, slash, rest = root_url_rest(url, "file").partition("/")
    path = decode_path(slash + rest).replace("\\", "/")
    if windows and _DRIVE.match(host):
        host, path = "", f"/{host}{path}"
    if host not in ("", "localhost") and not windows:
        shown = host.rpartition("@")[2]
        raise SpecError(
            f'file: URIs do not support authority: "{shown}"; write file:///path for a local path'
        )
    if not path.startswith("/"):
        raise SpecError(
            f'file: URIs do not support relative paths: "{path}"; write file:///absolute/path'
        )
    path = _resolved(path)
    if windows:
        if host not in ("", "localhost"):
            path = f"//{host}{path}"
        elif _DRIVE.match(path, 1):
            path = path[1:]
    return normal_path(path, windows)


def path_to_url(path: str, windows: bool = WINDOWS) -> str:
    """The `file://` URL of an absolute path.

    Raises:
        RelativePathError: the path is relative.

    Example:
        >>> path_to_url("/a b/", windows=False)
        'file:///a%20b/'
        >>> path_to_url("C:/x", windows=True), path_to_url("//server/share/x", windows=True)
        ('file:///C:/x', 'file://server/share/x')
    """
    encoded = encode_path(path, also_kept="@")
    if windows and path.startswith("//"):
        return "file:" + encoded
    if windows and _DRIVE.match(path):
        return "file:///" + encoded
    if not path.startswith("/"):
        raise RelativePathError(
            f'file: URIs do not support relative paths: "{path}"; open it by an absolute path'
        )
    return "file://" + encoded


def _resolved(path: str) -> str:
    """`path`, which is absolute, without `.`, `..` and empty components, keeping a final `/`."""
    directory = path.endswith(("/", "/.", "/.."))
    resolved = "/" + posixpath.normpath(path).lstrip("/")
    return resolved + "/" if directory and resolved != "/" else resolved
