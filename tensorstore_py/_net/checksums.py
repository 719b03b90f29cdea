"""Checksums that servers send along with a value, verified over what was received.

Which one is looked for depends on the service; here are the ones that say in a header what they
are. The invariant: bytes that fail a check are never handed on.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import crc32
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tensorstore_py._interface.crc32c import crc32c
from tensorstore_py._net.failures import damaged
from tensorstore_py._net.message import HeaderFields

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["check_digests", "stated_digests"]

_ITEM: Final = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=\s*:?([A-Za-z0-9+/_-]+={0,2}):?\s*(?:;[^,]*)?")
#: From the cheapest to the dearest: one is enough.
_BY_COST: Final = ("crc32c", "crc32", "sha-256", "sha-1", "sha-512", "md5")
#: Headers of the form `name=base64`; the first two cover exactly what was sent.
_LISTS: Final = ("Repr-Digest", "Content-Digest", "Digest", "x-goog-hash")
_STATING: Final = frozenset({name.lower() for name in _LISTS} | {"content-md5"})

_FUNCTIONS: Final[dict[str, Callable[[Buffer], bytes]]] = {
    "crc32c": lambda data: crc32c(data).to_bytes(4, "big"),
    "crc32": lambda data: crc32(data).to_bytes(4, "big"),
    "sha-1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha-256": lambda data: hashlib.sha256(data).digest(),
    "sha-512": lambda data: hashlib.sha512(data).digest(),
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).digest(),
}


def stated_digests(headers: Mapping[str, str]) -> dict[str, bytes]:
    """What an answer says of the whole value, by the name of the algorithm.

    Example:
        >>> stated_digests({"x-goog-hash": "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="}).keys()
        dict_keys(['crc32c', 'md5'])
    """
    stated: dict[str, bytes] = {}
    if isinstance(headers, HeaderFields) and not headers.has_any(_STATING):
        return stated
    if headers.get("x-goog-stored-content-encoding", "identity") != "identity":
        return stated  # these are of the packed value, and it may have been unpacked on its way
    for header in _LISTS:
        text = headers.get(header)
        if text is not None:
            stated.update(_parsed(text))
    text = headers.get("Content-MD5")
    if text is not None:
        stated.update(_parsed(f"md5={text}"))
    return stated


def check_digests(stated: Mapping[str, bytes], body: Buffer) -> None:
    """Verify a whole value against the cheapest checksum that came with it, if any did.

    Args:
        stated: by the name of the algorithm: `crc32c`, `crc32`, `md5`, `sha-1`, `sha-256` or
            `sha-512`; others are passed over.
        body: what was received.

    Raises:
        Failure: they differ.
    """
    for name in _BY_COST:
        if name in stated:
            computed = _FUNCTIONS[name](body)
            if computed != stated[name]:
                raise damaged(
                    f"the {name} of the {len(body)} bytes received is {_text(computed)}, and "
                    f"should be {_text(stated[name])}"
                )
            return


def _text(digest: bytes) -> str:
    return b64encode(digest).decode()


def _parsed(text: str) -> dict[str, bytes]:
    stated = {}
    for name, value in _ITEM.findall(text):
        algorithm = name.lower()
        if algorithm in _FUNCTIONS:
            try:
                stated[algorithm] = b64decode(value, validate=True)
            except ValueError:
                continue
    return stated
