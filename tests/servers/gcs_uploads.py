"""The three ways to write an object by Google's JSON API: media, multipart, resumable."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from email.message import Message
from itertools import count

from tensorstore_py.testing.fault_server import Reply, Request
from tests.servers.gcs_objects import (
    Buckets,
    Parameters,
    RefusedError,
    Resource,
    StoredObject,
    check,
)

#: Every piece of a resumable upload but the last one is a multiple of this.
PIECE = 256 * 1024
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)\Z")


def parse_json(body: bytes) -> Resource:
    """A JSON object; no body at all is an empty one."""
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        raise RefusedError(400, "parseError", "Parse Error") from None
    if not isinstance(found, dict):
        raise RefusedError(400, "parseError", "Parse Error")
    return found


def split_parts(content_type: str, body: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The parts of a multipart body: headers in lower case, and bytes."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str):
        raise RefusedError(400, "badContent", "Multipart body has no boundary")
    mark = b"--" + boundary.encode()
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(pieces) < 3 or not pieces[-1].startswith(b"--"):
        raise RefusedError(400, "badContent", "Multipart body is cut short")
    parts = []
    for piece in pieces[1:-1]:
        head, _, data = piece.partition(b"\r\n\r\n")
        pairs = [line.partition(":") for line in head.decode().split("\r\n") if ":" in line]
        parts.append(({name.lower().strip(): value.strip() for name, _, value in pairs}, data))
    return parts


def stated(headers: dict[str, str] | Request) -> Resource:
    """The checksums that a request states in its headers."""
    found = headers.headers if isinstance(headers, Request) else headers
    pairs = [item.strip().partition("=") for item in found.get("x-goog-hash", "").split(",")]
    names = {"crc32c": "crc32c", "md5": "md5Hash"}
    hashes: Resource = {names[name]: value for name, _, value in pairs if name in names}
    if "content-md5" in found:
        hashes["md5Hash"] = found["content-md5"]
    return hashes


@dataclass
class Session:
    """A resumable upload that goes on."""

    bucket: str
    described: Resource
    parameters: Parameters
    data: bytearray = field(default_factory=bytearray)
    result: StoredObject | None = None


class Uploads:
    """Writes objects into buckets.

    Args:
        buckets: where the objects go.
    """

    def __init__(self, buckets: Buckets) -> None:
        self.sessions: dict[str, Session] = {}
        self._buckets = buckets
        self._numbers = count(1)

    def media(self, bucket: str, request: Request, parameters: Parameters) -> StoredObject:
        """The body is the object."""
        described = stated(request)
        described["contentType"] = request.headers.get("content-type", "application/octet-stream")
        if "contentEncoding" in parameters:
            described["contentEncoding"] = parameters["contentEncoding"]
        return self._put(bucket, request.body, described, parameters)

    def multipart(self, bucket: str, request: Request, parameters: Parameters) -> StoredObject:
        """The body is what is said of the object, and the object."""
        parts = split_parts(request.headers.get("content-type", ""), request.body)
        if len(parts) != 2:
            raise RefusedError(
                400, "badContent", f"A multipart upload has 2 parts, not {len(parts)}"
            )
        (_, first), (headers, data) = parts
        described = {"contentType": headers.get("content-type", "application/octet-stream")}
        described |= stated(request) | parse_json(first)
        return self._put(bucket, data, described, parameters)

    def begin(self, bucket: str, request: Request, parameters: Parameters) -> Reply:
        """Begin a resumable upload: its address is the answer."""
        described = stated(request)
        described["contentType"] = request.headers.get(
            "x-upload-content-type", "application/octet-stream"
        )
        described |= parse_json(request.body)
        name = parameters.get("name", described.get("name", ""))
        check(self._buckets.bucket(bucket).objects.get(name), parameters, reading=False)
        number = f"upload-{next(self._numbers)}"
        self.sessions[number] = Session(bucket, described, parameters)
        origin = f"http://{request.headers.get('host', 'localhost')}"
        where = f"{origin}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={number}"
        return Reply(200, headers={"Location": where, "X-GUploader-UploadID": number})

    def go_on(self, number: str, request: Request) -> Reply | StoredObject:
        """A piece of a resumable upload, or the question how far it is."""
        session = self.sessions.get(number)
        if session is None:
            raise RefusedError(404, "notFound", f"There is no upload {number}")
        if session.result is not None:
            return session.result
        body = request.body
        whole = f"bytes 0-{len(body) - 1}/{len(body)}" if body else "bytes */0"
        found = _RANGE.match(request.headers.get("content-range", whole))
        if found is None:
            raise RefusedError(400, "invalid", "Failed to parse Content-Range header")
        if found[3] == "*" and len(body) % PIECE:
            raise RefusedError(
                400, "invalid", f"A piece of {len(body)} bytes is no multiple of {PIECE}"
            )
        if found[1] is not None:
            self._take(session, int(found[1]), int(found[2]), body)
        if found[3] == "*" or int(found[3]) > len(session.data):
            size = len(session.data)
            return Reply(308, headers={"Range": f"bytes=0-{size - 1}"} if size else {})
        described = session.described | stated(request)
        session.result = self._put(
            session.bucket, bytes(session.data), described, session.parameters
        )
        return session.result

    def cancel(self, number: str) -> Reply:
        """Give a resumable upload up."""
        self.sessions.pop(number, None)
        return Reply(499)

    def _take(self, session: Session, first: int, last: int, body: bytes) -> None:
        if last - first + 1 != len(body):
            raise RefusedError(400, "invalid", "Content-Range does not fit the body")
        if first > len(session.data):
            raise RefusedError(
                503, "backendError", f"Bytes {len(session.data)}-{first - 1} are missing"
            )
        # what is there already stays: a piece that is sent again adds only its end
        session.data += body[len(session.data) - first :]

    def _put(
        self, bucket: str, data: bytes, described: Resource, parameters: Parameters
    ) -> StoredObject:
        name = parameters.get("name", described.get("name", ""))
        if not isinstance(name, str):
            raise RefusedError(400, "invalid", f"A name is a string, not {name!r}")
        return self._buckets.put(bucket, name, data, described, parameters)
