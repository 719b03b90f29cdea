"""A Google Cloud Storage of real sockets: the JSON API's handlers, and a server that runs them.

`GcsApi.handle` is a plain function from a request to a reply, so that a fault server can stand in
front of it; `GcsServer` is that, on a loop and a thread of its own:

    with GcsServer() as server:
        server.make_bucket("b")
        server.plan = [status(429), applied_then(RESET)]  # what goes wrong with the next requests
        ...  # a client with server.url
        assert server.objects("b") == {"key": b"value"}

As a program it serves until it is stopped, and prints where: `python -m tests.servers.gcs_server`.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable
from concurrent.futures import Future
from email import message_from_bytes
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, unquote

from tensorstore_py.testing.fault_server import FaultServer, Plan, Reply, Request
from tests.servers.gcs_fields import masked, parse_fields
from tests.servers.gcs_objects import Buckets, Parameters, RefusedError, Resource, StoredObject
from tests.servers.gcs_uploads import Uploads, parse_json

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
_PATH = re.compile(
    r"/(?:(upload|download|resumable/upload)/)?storage/v1/b(?:/([^/]+)(/o(?:/(.+))?)?)?\Z"
)
_REWRITE = re.compile(r"([^/]+)/(rewriteTo|copyTo)/b/([^/]+)/o/([^/]+)\Z")


class GcsApi:
    """The API over buckets in memory.

    Args:
        tokens: the bearer tokens that are let in; None lets everybody in.
        pace_s: how soon after a write of an object the next one is refused with 429; 0 for never.

    Attributes:
        buckets: what is stored.
        tokens: as given; may be changed at any time.
    """

    def __init__(self, tokens: set[str] | None = None, pace_s: float = 0.0) -> None:
        self.buckets = Buckets(pace_s=pace_s)
        self.uploads = Uploads(self.buckets)
        self.tokens = tokens

    def handle(self, request: Request) -> Reply:
        """The reply to a request."""
        path, _, query = request.target.partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True, errors="surrogateescape"))
        try:
            return self._routed(path, parameters, request)
        except RefusedError as refused:
            return _refusal(refused, as_text=parameters.get("alt") == "media")

    def _routed(self, path: str, parameters: Parameters, request: Request) -> Reply:
        if self.tokens is not None:
            kind, _, token = request.headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or token not in self.tokens:
                raise RefusedError(401, "authError", "Invalid Credentials")
        if path == "/batch/storage/v1":
            return self._batch(request)
        found = _PATH.match(path)
        if found is None:
            raise RefusedError(404, "notFound", f"Not Found: {path}")
        way, bucket, is_object, name = found.groups()
        if bucket is None:
            return self._buckets(parameters, request)
        bucket = unquote(bucket)
        if not is_object:
            return self._bucket(bucket, parameters, request)
        if self.buckets.bucket(bucket).requester_pays and not parameters.get("userProject"):
            message = "Bucket is a requester pays bucket but no user project provided."
            raise RefusedError(400, "required", message)
        if way in ("upload", "resumable/upload"):
            return self._upload(bucket, parameters, request)
        if name is None:
            if request.method != "GET":
                raise RefusedError(405, "methodNotAllowed", f"No {request.method} here")
            return _json(self.buckets.list(bucket, parameters), parameters)
        return self._object(bucket, name, parameters, request)

    def _buckets(self, parameters: Parameters, request: Request) -> Reply:
        if request.method == "GET":
            items = [bucket.resource for bucket in self.buckets.buckets.values()]
            return _json({"kind": "storage#buckets", "items": items}, parameters)
        if request.method != "POST":
            raise RefusedError(405, "methodNotAllowed", f"No {request.method} here")
        described = parse_json(request.body)
        pays = bool(described.get("billing", {}).get("requesterPays", False))
        bucket = self.buckets.create(described.get("name", ""), requester_pays=pays)
        return _json(bucket.resource, parameters)

    def _bucket(self, bucket: str, parameters: Parameters, request: Request) -> Reply:
        if request.method == "GET":
            return _json(self.buckets.bucket(bucket).resource, parameters)
        if request.method != "DELETE":
            raise RefusedError(405, "methodNotAllowed", f"No {request.method} here")
        self.buckets.remove(bucket)
        return Reply(204)

    def _upload(self, bucket: str, parameters: Parameters, request: Request) -> Reply:
        kind = parameters.get("uploadType", "")
        number = parameters.get("upload_id")
        if number is not None:
            if request.method == "DELETE":
                return self.uploads.cancel(number)
            result = self.uploads.go_on(number, request)
            return result if isinstance(result, Reply) else _json(result.resource, parameters)
        if request.method != "POST":
            raise RefusedError(405, "methodNotAllowed", f"No {request.method} here")
        if kind == "resumable":
            return self.uploads.begin(bucket, request, parameters)
        ways: dict[str, Callable[[str, Request, Parameters], StoredObject]]
        ways = {"media": self.uploads.media, "multipart": self.uploads.multipart}
        if kind not in ways:
            raise RefusedError(400, "badRequest", f"Invalid uploadType {kind!r}")
        return _json(ways[kind](bucket, request, parameters).resource, parameters)

    def _object(self, bucket: str, name: str, parameters: Parameters, request: Request) -> Reply:
        copied = _REWRITE.match(name)
        if copied is None and "/" in name:
            raise RefusedError(404, "notFound", "A slash in a name is written as %2F")
        if copied is not None and request.method == "POST":
            source, way, other, target = (unquote(part) for part in copied.groups())
            return self._copied(bucket, source, way, other, target, parameters, request)
        name = unquote(name, errors="surrogateescape")
        if request.method in ("GET", "HEAD"):
            found = self.buckets.get(bucket, name, parameters)
            if parameters.get("alt") == "media":
                return _media(found, request)
            return _json(found.resource, parameters)
        if request.method == "DELETE":
            self.buckets.delete(bucket, name, parameters)
            return Reply(204)
        if request.method == "PATCH":
            described = parse_json(request.body)
            changed = self.buckets.patch(bucket, name, described, parameters)
            return _json(changed.resource, parameters)
        raise RefusedError(405, "methodNotAllowed", f"No {request.method} here")

    def _copied(
        self,
        bucket: str,
        name: str,
        way: str,
        other: str,
        target: str,
        parameters: Parameters,
        request: Request,
    ) -> Reply:
        asked = {
            member.replace("ifSource", "if"): value
            for member, value in parameters.items()
            if member.startswith("ifSource")
        }
        if "sourceGeneration" in parameters:
            asked["generation"] = parameters["sourceGeneration"]
        source = self.buckets.get(bucket, name, asked)
        described = source.resource | parse_json(request.body)
        made = self.buckets.put(other, target, source.data, described, parameters)
        if way == "copyTo":
            return _json(made.resource, parameters)
        size = str(len(made.data))
        told = {"done": True, "objectSize": size, "totalBytesRewritten": size}
        return _json(
            {"kind": "storage#rewriteResponse", **told, "resource": made.resource}, parameters
        )

    def _batch(self, request: Request) -> Reply:
        kind = request.headers.get("content-type", "")
        whole = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + request.body)
        parts = [part for part in whole.walk() if part is not whole]
        if not whole.is_multipart():
            raise RefusedError(400, "badContent", "A batch is a multipart body")
        if len(parts) > 100:
            raise RefusedError(413, "uploadTooLarge", "A batch has no more than 100 requests")
        answers = []
        for part in parts:
            data = part.get_payload(decode=True)
            assert isinstance(data, bytes)
            reply = self.handle(_inner(data, request))
            known = part.get("Content-ID", "")
            number = f"<response-{known[1:]}" if known.startswith("<") else known
            said = f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            answers.append(said.encode() + reply.head() + reply.body + b"\r\n")
        body = b"".join(answers) + b"--batch--\r\n"
        return Reply(200, body, {"Content-Type": "multipart/mixed; boundary=batch"})


def _inner(data: bytes, outer: Request) -> Request:
    """One request of a batch."""
    head, _, body = data.replace(b"\r\n", b"\n").lstrip().partition(b"\n\n")
    first, *lines = head.decode().split("\n")
    method, target, _ = first.split(" ", 2)
    if "://" in target:
        target = "/" + target.split("/", 3)[3]
    pairs = [line.partition(":") for line in lines if line]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    shared = {
        name: outer.headers[name] for name in ("authorization", "host") if name in outer.headers
    }
    return Request(method, target, shared | headers, body.rstrip(), outer.connection)


def _json(resource: Resource, parameters: Parameters) -> Reply:
    if "fields" in parameters:
        resource = masked(resource, parse_fields(parameters["fields"]))
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return Reply(200, json.dumps(resource).encode(), headers)


def _refusal(refused: RefusedError, *, as_text: bool) -> Reply:
    if refused.status == 304:
        return Reply(304)
    if as_text:
        return Reply(refused.status, refused.message.encode(), {"Content-Type": "text/html"})
    one = {"message": refused.message, "domain": "global", "reason": refused.reason}
    error = {"code": refused.status, "message": refused.message, "errors": [one]}
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="https://accounts.google.com/"'
    return Reply(refused.status, json.dumps({"error": error}).encode(), headers)


def _media(found: StoredObject, request: Request) -> Reply:
    """The bytes of an object, or a range of them."""
    resource, data = found.resource, found.data
    encoding = resource.get("contentEncoding", "")
    headers = {
        "Content-Type": resource["contentType"],
        "ETag": found.etag,
        "X-Goog-Generation": resource["generation"],
        "X-Goog-Metageneration": resource["metageneration"],
        "X-Goog-Hash": f"crc32c={resource['crc32c']},md5={resource['md5Hash']}",
        "X-Goog-Storage-Class": resource["storageClass"],
        "X-Goog-Stored-Content-Length": str(len(data)),
        "X-Goog-Stored-Content-Encoding": encoding or "identity",
    }
    if encoding == "gzip" and "gzip" not in request.headers.get("accept-encoding", ""):
        # unpacked on the way, whole: ranges of it are not to be had
        return Reply(200, gzip.decompress(data), headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    asked = _RANGE.match(request.headers.get("range", ""))
    if asked is None or not (asked[1] or asked[2]):
        return Reply(200, data, headers)
    size = len(data)
    if asked[1]:
        start, stop = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
    else:
        start, stop = max(0, size - int(asked[2])), size
    if start >= stop:
        message = "The requested range cannot be satisfied."
        return Reply(416, message.encode(), {"Content-Range": f"bytes */{size}"})
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Reply(206, data[start:stop], headers)


class GcsServer:
    """The API on a free port of the loopback, in a thread of its own.

    Args:
        tokens: the bearer tokens that are let in; None lets everybody in.
        pace_s: how soon after a write of an object the next one is refused with 429; 0 for never.
        plan: what goes wrong, as a `FaultServer` takes it.

    Attributes:
        api: what answers.
        url: where it listens, such as `http://127.0.0.1:40001`.
    """

    def __init__(
        self, tokens: set[str] | None = None, pace_s: float = 0.0, plan: Plan = ()
    ) -> None:
        self.api = GcsApi(tokens, pace_s)
        self.url = ""
        self._server = FaultServer(self.api.handle, plan)
        self._stop: Callable[[], object] = bool
        self._thread: threading.Thread | None = None

    @property
    def plan(self) -> Plan:
        """What goes wrong with the requests to come."""
        return self._server.plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._server.plan = plan

    @property
    def requests(self) -> list[Request]:
        """What came, in order."""
        return self._server.requests

    def make_bucket(self, name: str = "bucket", *, requester_pays: bool = False) -> str:
        """Make a bucket, and return its name."""
        return self.api.buckets.create(name, requester_pays=requester_pays).name

    def objects(self, bucket: str = "bucket") -> dict[str, bytes]:
        """What a bucket holds."""
        found = self.api.buckets.bucket(bucket).objects
        return {name: stored.data for name, stored in found.items()}

    def put(self, name: str, data: bytes, bucket: str = "bucket") -> int:
        """Store an object behind the clients' backs, and return its generation."""
        return self.api.buckets.put(bucket, name, data, {}, {}).generation

    def __enter__(self) -> Self:
        listening: Future[str] = Future()

        async def serve() -> None:
            try:
                async with self._server as server:
                    leave = asyncio.Event()
                    loop = asyncio.get_running_loop()
                    self._stop = lambda: loop.call_soon_threadsafe(leave.set)
                    listening.set_result(server.url)
                    await leave.wait()
            except BaseException as error:
                if not listening.done():
                    listening.set_exception(error)
                raise

        self._thread = threading.Thread(
            target=lambda: asyncio.run(serve()), name="gcs", daemon=True
        )
        self._thread.start()
        self.url = listening.result(timeout=30)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        assert self._thread is not None
        self._thread.join(timeout=30)


def main() -> None:
    """Serve until stopped."""
    parser = ArgumentParser(description="Serve Google Cloud Storage's JSON API on the loopback.")
    parser.add_argument("--port", type=int, default=0, help="a free one by default")
    parser.add_argument("--bucket", action="append", default=[], help="a bucket to begin with")
    options = parser.parse_args()

    async def serve() -> None:
        api = GcsApi()
        for name in options.bucket:
            api.buckets.create(name)
        async with FaultServer(api.handle, port=options.port) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
