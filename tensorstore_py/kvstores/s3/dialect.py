"""What the answers of S3 mean: error codes in XML, checksums in headers, ETags.

Codes say more than statuses, and are looked at first. An answer to `HEAD` has no code. Of the text
of an error only code and message are repeated, since the rest may hold what was signed.

XML is taken as a whole, closed by its last tag, or refused: what is missing of a cut document would
look like nothing. So is one that declares types or entities, which services never do. Names are
compared without their namespace, which servers leave out or change.

A generation has the reference's layout: a zero byte, and the ETag with its quotes.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final
from xml.etree import ElementTree as ET

from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.plugin.http import HttpDialect, HttpRequest, HttpResponse, HttpVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py.plugin.kvstore import Buffer


__all__ = [
    "DAMAGED_CODES",
    "S3Dialect",
    "XmlElement",
    "error_code",
    "etag_of",
    "first_text",
    "generation_of",
    "local_name",
    "named",
    "parse_xml",
    "quoted",
    "stated_region",
]

XmlElement = ET.Element

_DECLARATIONS: Final = ("<!DOCTYPE", "<!ENTITY")


def parse_xml(body: Buffer, *roots: str) -> XmlElement:
    """The root of a document.

    Args:
        body: all of it. Long operations send blanks before it.
        roots: what the root may be called; any name by default.

    Raises:
        DataLossError: it is not whole, no XML in UTF-8, has declarations, or another root.

    Example:
        >>> local_name(parse_xml(b'<A xmlns="urn:x"><B>1</B></A>'))
        'A'
        >>> parse_xml(b"<A><B>1</B>")
        Traceback (most recent call last):
        ...
        tensorstore_py.errors.DataLossError: the server's answer is no whole XML document (...)
    """
    try:
        # Text and not bytes: a parser would try other encodings, in which the words look different.
        text = bytes(body).decode().strip()
        if any(word in text for word in _DECLARATIONS):
            raise DataLossError("the server's answer is XML that declares types or entities")
        root = ET.fromstring(text)  # noqa: S314 - as above
    except (ET.ParseError, ValueError) as error:
        raise DataLossError(f"the server's answer is no whole XML document ({error})") from None
    if roots and local_name(root) not in roots:
        raise DataLossError(
            f"the server's answer is about <{local_name(root)[:40]}> instead of <{roots[0]}>"
        )
    return root


def local_name(element: XmlElement) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def named(root: XmlElement, name: str) -> str:
    """The tag of what is called `name` in the document of a root: with the root's namespace."""
    space, brace, _ = root.tag.rpartition("}")
    return f"{space}{brace}{name}"


def first_text(root: XmlElement, name: str) -> str | None:
    """The text of the first element of that name, wherever it is; None if there is none."""
    found: Iterator[XmlElement] = (each for each in root.iter() if local_name(each) == name)
    first = next(found, None)
    return None if first is None else (first.text or "")


_ETAG: Final = re.compile(rb'\x00("[\x20\x21\x23-\x7e\x80-\xff]*")\Z')


def quoted(etag: str) -> str:
    """The ETag as HTTP has it.

    Example:
        >>> quoted("5f-2"), quoted('"5f-2"')
        ('"5f-2"', '"5f-2"')
    """
    etag = etag.strip()
    return etag if etag.startswith('"') else f'"{etag}"'


def generation_of(etag: str) -> bytes:
    r"""The generation of a value with an ETag.

    Example:
        >>> generation_of('"5f-2"')
        b'\x00"5f-2"'
    """
    return b"\0" + quoted(etag).encode("utf-8", "surrogateescape")


def etag_of(generation: bytes) -> str | None:
    r"""The ETag, with its quotes; None if no value can have that generation.

    Example:
        >>> etag_of(b'\x00"5f-2"'), etag_of(b"other")
        ('"5f-2"', None)
    """
    found = _ETAG.match(generation)
    return None if found is None else found[1].decode("utf-8", "surrogateescape")


#: What an error is called, and errors of services for credentials.
_ERRORS_IN: Final = ("Error", "ErrorResponse")
#: How it begins; whatever else comes with an error is no answer of S3's.
_BEGINNING: Final = re.compile(rb"\s*(?:<\?xml[^>]*(?:\?>\s*|\Z))?(?:<Error(?:Response)?\b|\Z)")

_PASSING: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConditionalRequestConflict",
        "EC2ThrottledException",
        "InternalError",
        "InternalFailure",
        "LimitExceededException",
        "OperationAborted",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequests",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_SKEWED: Final = frozenset({"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"})
_OUTDATED: Final = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "ExpiredTokenException",
        "TokenRefreshRequired",
    }
)
#: What was received is not what was sent.
DAMAGED_CODES: Final = frozenset({"BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"})

_ERRORS: Final[dict[str, type[TensorStoreError]]] = {
    **dict.fromkeys(_PASSING, UnavailableError),
    **dict.fromkeys(DAMAGED_CODES, DataLossError),
    **dict.fromkeys(
        (
            *_SKEWED,
            *_OUTDATED,
            "AccessDenied",
            "AllAccessDisabled",
            "InvalidAccessKeyId",
            "InvalidToken",
            "SignatureDoesNotMatch",
        ),
        PermissionDeniedError,
    ),
    "MethodNotAllowed": UnsupportedError,
    "NoSuchBucket": NotFoundError,
    "NoSuchKey": NotFoundError,
    "NotImplemented": UnsupportedError,
    "XNotImplemented": UnsupportedError,
    "EntityTooLarge": UnsupportedError,
    "InvalidObjectState": FailedPreconditionError,
}

#: By header, which checksum it has; `SHA-1` and others that AWS knows are dearer or not at hand.
_CHECKSUMS: Final = {
    "x-amz-checksum-crc32c": "crc32c",
    "x-amz-checksum-crc32": "crc32",
    "x-amz-checksum-sha256": "sha-256",
    "x-amz-checksum-sha1": "sha-1",
}
_CHECKSUM_HEADERS: Final = frozenset(_CHECKSUMS)
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")
_REGION: Final = re.compile(r"[a-z0-9-]+\Z")
_LONGEST_MESSAGE: Final = 1000
_MD5_ETAG: Final = re.compile(r'"?([0-9a-fA-F]{32})"?\Z')


def error_code(response: HttpResponse) -> str:
    """S3's name of what went wrong; `""` if there is none."""
    root = _error_in(response)
    code = None if root is None else first_text(root, "Code")
    if code and _CODE.match(code.strip()):
        return code.strip()
    return response.headers.get("x-amzn-errortype", "").partition(":")[0]


def _error_in(response: HttpResponse) -> XmlElement | None:
    """The error that an answer is about; None if it is about another thing, or not whole."""
    if isinstance(response.parsed, XmlElement):
        return response.parsed
    if not response.body:
        return None
    try:
        response.parsed = root = parse_xml(response.body, *_ERRORS_IN)
    except DataLossError:
        return None
    return root


def stated_region(response: HttpResponse) -> str | None:
    """The region that an answer names as the right one."""
    region = response.headers.get("x-amz-bucket-region")
    if region:
        return region
    root = _error_in(response)
    found = None if root is None else first_text(root, "Region")
    return found if found and _REGION.match(found) else None


class S3Dialect(HttpDialect):
    """S3's answers.

    Args:
        trusts_line: whether what comes over the line is proven to be what was sent, as TLS does:
            then the MD5 that most ETags are is not computed, which costs as much as all else.
    """

    name: ClassVar[str] = "s3"
    retried: ClassVar[frozenset[int]] = frozenset(
        {408, 419, 425, 429, 440, 500, 502, 503, 504, 509, 598, 599}
    )

    def __init__(self, *, trusts_line: bool = False) -> None:
        self._trusts_line = trusts_line

    def verdict(self, response: HttpResponse) -> HttpVerdict:
        code = error_code(response)
        if code in _PASSING or "Throttl" in code:
            return HttpVerdict.RETRY
        if code in _SKEWED:
            return HttpVerdict.SKEWED
        if code in _OUTDATED or code in DAMAGED_CODES:
            return HttpVerdict.REFRESH
        if not code and response.status == 400 and not response.body:
            return HttpVerdict.REFRESH  # HEAD: what it is about cannot be said
        return super().verdict(response)

    def error(self, response: HttpResponse) -> type[TensorStoreError]:
        found = _ERRORS.get(error_code(response))
        return super().error(response) if found is None else found

    def belies(self, request: HttpRequest, response: HttpResponse) -> bool:
        """Long operations begin to answer before they are done, with status 200."""
        if request.method == "GET" or response.status >= 300 or not response.body:
            return False
        return _error_in(response) is not None

    def is_cut(self, response: HttpResponse) -> bool:
        body = bytes(response.body)
        return bool(body) and _BEGINNING.match(body) is not None and _error_in(response) is None

    def digests(self, headers: Mapping[str, str]) -> Mapping[str, bytes]:
        stated = {}
        given = _CHECKSUM_HEADERS.intersection(headers)
        if given and headers.get("x-amz-checksum-type", "FULL_OBJECT") == "FULL_OBJECT":
            for header in given:
                text = headers[header]
                if "-" not in text:
                    try:
                        stated[_CHECKSUMS[header]] = b64decode(text, validate=True)
                    except BadBase64:
                        continue
        if not stated and not self._trusts_line:
            etag = _MD5_ETAG.match(headers.get("ETag", ""))
            if etag is not None and _is_of_the_value(headers):
                stated["md5"] = bytes.fromhex(etag[1])
        return stated

    def words(self, response: HttpResponse) -> str:
        code = error_code(response)
        root = _error_in(response)
        text = None if root is None else first_text(root, "Message")
        message = " ".join((text or "").split())[:_LONGEST_MESSAGE].rstrip(".")
        if not message:
            return code or super().words(response)
        return f"{code}: {message}" if code else message


def _is_of_the_value(headers: Mapping[str, str]) -> bool:
    """Whether an ETag that looks like an MD5 is one of what is sent."""
    encryption = headers.get("x-amz-server-side-encryption", "AES256")
    return (
        encryption == "AES256" and "x-amz-server-side-encryption-customer-algorithm" not in headers
    )
