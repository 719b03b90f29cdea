"""Values in parts: what is too large for one request goes in several, at the same time.

The parts are views of the value, so nothing is copied. The invariant: the value is there whole or
not at all, and parts of a write that failed are not left behind to be paid for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from xml.sax.saxutils import escape

from tensorstore_py.errors import DataLossError, FailedPreconditionError, TensorStoreError
from tensorstore_py.kvstores.s3.address import encode
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.dialect import error_code
from tensorstore_py.kvstores.s3.xml_answer import named, parse_xml
from tensorstore_py.plugin import Buffer, HttpResponse, fan_out

__all__ = ["LARGE_BYTES", "PART_BYTES", "put_parts"]

#: Values of more bytes than this go in parts.
LARGE_BYTES: Final = 2**27
PART_BYTES: Final = 2**25
#: S3's.
_MOST_PARTS: Final = 10_000
_WIDTH: Final = 8
_DONE: Final = frozenset({200})
_DISCARDED: Final = frozenset({200, 204, 404})
_ABORT_S: Final = 10.0


async def put_parts(
    bucket: S3Bucket,
    key: str,
    body: Buffer,
    headers: Mapping[str, str],
    conditions: Mapping[str, str],
    expected: frozenset[int],
    settle: Callable[[], Awaitable[HttpResponse | None]],
    part_bytes: int = PART_BYTES,
) -> HttpResponse:
    """Write a value in parts; the answer is that to putting them together.

    Args:
        bucket: where.
        key: the whole key.
        body: the value, flat.
        headers: of the value.
        conditions: headers of the last request.
        expected: the statuses of the last request that the caller deals with.
        settle: looks whether what is stored now is this write's, after an answer got lost.
        part_bytes: how large a part is.
    """
    size = max(part_bytes, -(-len(body) // _MOST_PARTS))
    response = await bucket.send(
        "POST", key, headers, _DONE, action="write", query="uploads=", parse=_begun
    )
    upload = f"uploadId={encode(str(response.parsed), '')}"
    view = memoryview(body)
    etags = [""] * -(-len(body) // size)

    async def send(number: int) -> None:
        part = view[number * size : (number + 1) * size]
        query = f"partNumber={number + 1}&{upload}"
        sent = await bucket.send(
            "PUT", key, {}, _DONE, action="write", query=query, body=part, parse=_part_etag
        )
        etags[number] = str(sent.parsed)

    try:
        await fan_out(False, range(len(etags)), send, count=len(etags), width=_WIDTH)
        response = await bucket.send(
            "POST",
            key,
            conditions,
            expected | {404},
            action="write",
            query=upload,
            body=_listed(etags),
            settle=settle,
            parse=_whole_etag,
        )
        if error_code(response) == "NoSuchUpload":
            settled = await settle() if response.ambiguous else None
            if settled is None:
                raise FailedPreconditionError(
                    f"cannot write {bucket.describe(key)}: somebody discarded its parts; write "
                    f"again"
                )
            return settled
    except BaseException:
        await _abort(bucket, key, upload)
        raise
    if response.status not in (200, 201):
        await _abort(bucket, key, upload)
    return _with_etag(response)


def _begun(response: HttpResponse) -> str:
    """The name of the upload that an answer says was begun."""
    root = parse_xml(response.body, "InitiateMultipartUploadResult")
    found = root.findtext(named(root, "UploadId"))
    if not found:
        raise DataLossError("the server began no upload")
    return found


def _part_etag(response: HttpResponse) -> str:
    """The ETag of a part, by which it is put together with others."""
    found = response.headers.get("ETag")
    if not found:
        raise DataLossError("the server does not say the ETag of a part")
    return found


def _whole_etag(response: HttpResponse) -> str | None:
    """The ETag of the value that parts were put together to; None if the answer does not say."""
    root = parse_xml(response.body, "CompleteMultipartUploadResult")
    found = root.findtext(named(root, "ETag"))
    return found.strip() if found else None


def _listed(etags: list[str]) -> bytes:
    parts = [
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    ]
    return (
        f'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"{''.join(parts)}</CompleteMultipartUpload>"
    ).encode()


async def _abort(bucket: S3Bucket, key: str, upload: str) -> None:
    """Discard the parts; that this fails changes nothing about what went wrong."""
    try:
        async with asyncio.timeout(_ABORT_S):
            await bucket.send("DELETE", key, {}, _DISCARDED, action="discard", query=upload)
    except (TensorStoreError, TimeoutError):
        return


def _with_etag(response: HttpResponse) -> HttpResponse:
    """The answer, with the ETag that its text has as the header that it is elsewhere."""
    etag = response.parsed
    if not isinstance(etag, str) or "ETag" in response.headers:
        return response
    changed = HttpResponse(response.status, {**response.headers, "ETag": etag}, time=response.time)
    changed.ambiguous = response.ambiguous
    changed.lost = response.lost
    return changed
