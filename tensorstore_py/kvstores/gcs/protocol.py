"""What the service's answers mean: statuses and error codes, generations, pages of listings.

A generation has the reference's layout: a zero byte and the service's number in eight bytes, the
lowest first. The invariant: a generation of another store matches nothing here. In listings the
service compares names as bytes of UTF-8, as we do, but takes bounds as text only. A bound that is
none is replaced by one that lets more in, and what is outside is dropped here.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeGuard

from tensorstore_py.errors import DataLossError, TensorStoreError
from tensorstore_py.plugin.http import HttpDialect, HttpVerdict, Page, whole_number
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, ListEntry

if TYPE_CHECKING:
    from tensorstore_py.kvstores.gcs.credentials import GcsSigner
    from tensorstore_py.plugin.http import HttpResponse
    from tensorstore_py.plugin.kvstore import Buffer, KeyRange


__all__ = [
    "FOREIGN",
    "GcsDialect",
    "directory_parameters",
    "generation_of",
    "is_condition",
    "json_object",
    "listing_parameters",
    "number_of",
    "parse_page",
]

#: What no generation of the service is, to compare with.
FOREIGN: Final = -1
_SIZE: Final = 9


def generation_of(number: object) -> bytes | None:
    r"""The generation for a number as the service writes it; None if that is none.

    Example:
        >>> generation_of("1700000000123456").hex()
        '0040222018240a0600'
    """
    value = whole_number(number) or 0
    return b"\0" + value.to_bytes(8, "little") if 0 < value < 2**64 else None


def is_condition(generation: bytes | None) -> TypeGuard[bytes]:
    """Whether a caller who gave this asks for anything by it."""
    return generation is not None and generation != UNKNOWN


def number_of(generation: bytes) -> int:
    r"""The number to send as a condition; 0 stands for "nothing is there".

    Example:
        >>> number_of(b"\0\5" + bytes(7)), number_of(NO_VALUE), number_of(b"something else")
        (5, 0, -1)
    """
    if generation == NO_VALUE:
        return 0
    if len(generation) != _SIZE or generation[0]:
        return FOREIGN
    return int.from_bytes(generation[1:], "little") or FOREIGN


_PAGE: Final = 1000
_FIELDS: Final = "items(name,size),nextPageToken"


def listing_parameters(key_range: KeyRange) -> dict[str, str]:
    r"""What to ask for; the range must not be empty.

    Example:
        >>> from tensorstore_py.plugin.kvstore import KeyRange
        >>> found = listing_parameters(KeyRange(b"a/1", b"a/7\0"))
        >>> found["prefix"], found["startOffset"], found["endOffset"]
        ('a/', 'a/1', 'a/7!')
    """
    asked = {"maxResults": str(_PAGE), "fields": _FIELDS}
    prefix = _sendable(key_range.common_prefix().encode("utf-8", "surrogateescape"))
    if prefix:
        asked["prefix"] = prefix
    low = _sendable(key_range.inclusive_min)
    if low and low != prefix:
        asked["startOffset"] = low
    high = _sendable(key_range.exclusive_max)
    if high.encode() != key_range.exclusive_max:
        # Names have no control characters, so this lets in all that the rest of the bound may.
        high = f"{high}!" if key_range.exclusive_max[len(high.encode())] < 0x20 else ""
    if high:
        asked["endOffset"] = high
    return asked


def directory_parameters(prefix: str) -> dict[str, str]:
    """What to ask for one level.

    Args:
        prefix: ends in `/`, or is empty; names cannot be sent that are no text.

    Example:
        >>> directory_parameters("a/")["delimiter"]
        '/'
    """
    asked = {"maxResults": str(_PAGE), "fields": f"prefixes,{_FIELDS}", "delimiter": "/"}
    return asked | ({"prefix": prefix} if prefix else {})


def _sendable(bound: bytes) -> str:
    """The longest beginning that is text without control characters."""
    text = bound.decode("utf-8", "surrogateescape")
    for at, character in enumerate(text):
        if not character.isprintable() and (character < " " or "\ud800" <= character <= "\udfff"):
            return text[:at]
    return text


def parse_page(body: Buffer) -> Page:
    """What a page says.

    Raises:
        DataLossError: it is no page, or not all of one.
    """
    page = json_object(body)
    try:
        entries = [
            ListEntry(str(item["name"]), int(item.get("size", -1)))
            for item in page.get("items", ())
        ]
        prefixes = tuple(str(prefix) for prefix in page.get("prefixes", ()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataLossError(f"the service sent no listing ({type(error).__name__})") from None
    return Page(entries, str(page.get("nextPageToken") or ""), prefixes)


def json_object(body: Buffer) -> dict[str, Any]:
    """An answer of the service, of which every one in JSON is an object.

    Raises:
        DataLossError: it is not whole, or something else.
    """
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise DataLossError(
            f"the service's answer is no whole JSON document ({type(error).__name__})"
        ) from None
    if not isinstance(found, dict):
        raise DataLossError("the service's answer is no JSON object")
    return found


#: What it says of a body whose checksum is not the one that was sent along.
_DAMAGED: Final = b"provided crc32c"
_CRC: Final = "crc32c="
_CRC_LENGTH: Final = 8  # of four bytes, as text
_STORED_AS: Final = "x-goog-stored-content-encoding"
_LONGEST_WORDS: Final = 300
_NOBODY: Final = (
    "it was asked without credentials, since none were found: run gcloud auth "
    "application-default login, and have google-auth installed, which tensorstore-py[gcs] brings"
)


class GcsDialect(HttpDialect):
    """Google Cloud Storage's JSON API."""

    name: ClassVar[str] = "gcs"
    retried: ClassVar[frozenset[int]] = frozenset({408, 425, 429, *range(500, 600)})

    def __init__(self, signer: GcsSigner | None = None) -> None:
        self._signer = signer

    def verdict(self, response: HttpResponse) -> HttpVerdict:
        return HttpVerdict.RETRY if _is_damaged(response) else super().verdict(response)

    def is_cut(self, response: HttpResponse) -> bool:
        body = bytes(response.body).strip()
        if not body.startswith(b"{"):
            return False
        try:
            json_object(body)
        except DataLossError:
            return True
        return False

    def error(self, response: HttpResponse) -> type[TensorStoreError]:
        return DataLossError if _is_damaged(response) else super().error(response)

    def digests(self, headers: Mapping[str, str]) -> Mapping[str, bytes]:
        # What every read of a whole value comes by, without looking at all that others may send.
        said = headers.get("x-goog-hash", "")
        at = said.find(_CRC) + len(_CRC)
        if at < len(_CRC) or headers.get(_STORED_AS, "identity") != "identity":
            return super().digests(headers)
        try:
            return {"crc32c": b64decode(said[at : at + _CRC_LENGTH], validate=True)}
        except ValueError:
            return super().digests(headers)

    def words(self, response: HttpResponse) -> str:
        body = bytes(response.body).strip()
        if body.startswith(b"<"):
            body = b""
        found: object = body.decode("utf-8", "replace")
        if body.startswith(b"{"):
            found = _message(body)
        words = " ".join(str(found or "").split())[:_LONGEST_WORDS]
        if response.status in (401, 403) and self._signer is not None and self._signer.anonymous:
            return f"{words}; {_NOBODY}" if words else _NOBODY
        return words


def _is_damaged(response: HttpResponse) -> bool:
    """Whether a value arrived with another checksum than it was sent with."""
    return response.status == 400 and _DAMAGED in bytes(response.body).lower()


def _message(body: bytes) -> object:
    try:
        document = json_object(body)
    except DataLossError:
        return ""
    error = document.get("error")
    return error.get("message") if isinstance(error, dict) else error
