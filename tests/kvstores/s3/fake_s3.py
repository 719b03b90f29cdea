"""A bucket in memory: the handler that the S3 store's tests are served by.

It answers as AWS does; what other servers do differently can be switched on.
"""

import hashlib
import re
import time
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote
from xml.sax.saxutils import escape, unescape

from tensorstore_py.plugin.kvstore import crc32c
from tensorstore_py.testing import Reply, Request

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
_LISTED = re.compile(rb"<Key>(.*?)</Key>", re.DOTALL)
_PART = re.compile(rb"<PartNumber>(\d+)</PartNumber>")


def error(status, code, more=""):
    """An error as S3 words it."""
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
        f"<Message>Something about {code}.</Message>{more}<RequestId>tx1</RequestId></Error>"
    )
    return Reply(status, body.encode(), {"Content-Type": "application/xml"})


@dataclass
class Stored:
    """A value in a bucket."""

    body: bytes
    etag: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeS3:
    """One bucket.

    Attributes:
        bucket: its name; the first part of every path.
        conditions: what it does about conditions of writes: `"heeded"`, `"unquoted"` (an ETag in
            quotes never matches), `"ignored"` or `"refused"` (status 501).
        checksums: whether values have one beside their ETag.
        batches: whether many keys can be deleted by one request.
        page: how many keys a page of a listing has.
        values: by key.
    """

    bucket: str = "bucket"
    conditions: str = "heeded"
    checksums: bool = False
    batches: bool = True
    page: int = 1000
    values: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    upload_headers: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, key, body, **headers):
        """Store a value behind the server's back."""
        stored = Stored(bytes(body), f'"{hashlib.md5(body).hexdigest()}"', headers)
        self.values[key] = stored
        return stored

    def handle(self, request: Request) -> Reply:
        """The reply to a request."""
        path, _, text = request.target.partition("?")
        query = {name: found[0] for name, found in parse_qs(text, True).items()}
        parts = unquote(path, errors="surrogateescape").removeprefix("/").split("/", 1)
        if parts[0] != self.bucket:
            return error(404, "NoSuchBucket")
        key = parts[1] if len(parts) > 1 else ""
        if not key:
            if request.method == "POST" and "delete" in query:
                return self._delete_many(request)
            return self._list(query) if request.method == "GET" else error(405, "MethodNotAllowed")
        if "uploads" in query or "uploadId" in query:
            return self._multipart(request, key, query)
        if request.method in ("GET", "HEAD"):
            return self._get(request, key)
        refusal = self._refusal(request, key)
        if refusal is not None:
            return refusal
        if request.method == "DELETE":
            self.values.pop(key, None)
            return Reply(204)
        if "x-amz-copy-source" in request.headers:
            return self._copy(request, key)
        return self._put(key, request.body, request.headers)

    def _put(self, key, body, headers, etag=None):
        kept = {name: value for name, value in headers.items() if name.startswith("x-amz-meta-")}
        stored = self.put(key, body, **kept)
        stored.etag = etag or stored.etag
        return Reply(200, headers={"ETag": stored.etag})

    def _refusal(self, request, key):
        match, none = request.headers.get("if-match"), request.headers.get("if-none-match")
        if (match is None and none is None) or self.conditions == "ignored":
            return None
        if self.conditions == "refused":
            return error(501, "NotImplemented")
        found = self.values.get(key)
        if none is not None:
            return None if found is None else error(412, "PreconditionFailed")
        if found is None:
            return error(404, "NoSuchKey")
        etag = found.etag.strip('"') if self.conditions == "unquoted" else found.etag
        return None if match == etag else error(412, "PreconditionFailed")

    def _get(self, request, key):
        found = self.values.get(key)
        if found is None:
            return error(404, "NoSuchKey") if request.method == "GET" else Reply(404)
        headers = {"ETag": found.etag, **found.headers}
        if request.headers.get("if-match", found.etag) != found.etag:
            return error(412, "PreconditionFailed")
        if request.headers.get("if-none-match") == found.etag:
            return Reply(304, headers=headers)
        if self.checksums and "x-amz-checksum-mode" in request.headers:
            text = b64encode(crc32c(found.body).to_bytes(4, "big")).decode()
            headers["x-amz-checksum-crc32c"] = text
        asked = _RANGE.match(request.headers.get("range", ""))
        if asked is None:
            return Reply(200, found.body, headers)
        size = len(found.body)
        if asked[1]:
            start, stop = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
        else:
            start, stop = max(0, size - int(asked[2])), size
        if start >= stop:
            return error(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        return Reply(206, found.body[start:stop], headers)

    def _list(self, query):
        prefix = query.get("prefix", "")
        after = query.get("continuation-token", query.get("start-after", ""))
        keys = [
            key for key in sorted(self.values, key=str.encode) if key.startswith(prefix)
            and key.encode() > after.encode()
        ]  # fmt: skip
        delimiter = query.get("delimiter", "")
        groups: dict[str, list[str]] = {}
        for key in keys:  # by what an answer shows of them
            first, found, _ = key[len(prefix) :].partition(delimiter or "\n")
            is_group = bool(delimiter and found)
            groups.setdefault(prefix + first + found if is_group else key, []).append(key)
        pages, is_cut = list(groups)[: self.page], len(groups) > self.page
        shown = [name for name in pages if groups[name] == [name]]
        is_encoded = query.get("encoding-type") == "url"
        word = (lambda text: quote(text, safe="/")) if is_encoded else escape
        items = "".join(
            f"<Contents><Key>{word(key)}</Key><Size>{len(self.values[key].body)}</Size>"
            f"<ETag>{escape(self.values[key].etag)}</ETag>"
            "<LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in shown
        )
        items += "".join(
            f"<CommonPrefixes><Prefix>{word(name)}</Prefix></CommonPrefixes>"
            for name in pages
            if name not in shown
        )
        last = escape(groups[pages[-1]][-1]) if is_cut else ""
        token = f"<NextContinuationToken>{last}</NextContinuationToken>" * is_cut
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult '
            'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"{'<EncodingType>url</EncodingType>' * is_encoded}"
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}{items}</ListBucketResult>"
        )
        return Reply(200, body.encode())

    def _delete_many(self, request):
        if not self.batches:
            return error(501, "NotImplemented")
        digest = b64encode(hashlib.md5(request.body).digest()).decode()
        if request.headers.get("content-md5") != digest:
            return error(400, "InvalidDigest")
        answers = ""
        quiet = b"<Quiet>true</Quiet>" in request.body
        for raw in _LISTED.findall(request.body):
            key = unescape(raw.decode())
            if key.endswith("locked"):
                answers += f"<Error><Key>{escape(key)}</Key><Code>AccessDenied</Code></Error>"
            else:
                self.values.pop(key, None)
                answers += "" if quiet else f"<Deleted><Key>{escape(key)}</Key></Deleted>"
        return Reply(200, f"<DeleteResult>{answers}</DeleteResult>".encode())

    def _copy(self, request, key):
        source = unquote(request.headers["x-amz-copy-source"]).removeprefix("/")
        found = self.values.get(source.removeprefix(f"{self.bucket}/"))
        if found is None:
            return error(404, "NoSuchKey")
        self.values[key] = found
        return Reply(
            200, f"<CopyObjectResult><ETag>{found.etag}</ETag></CopyObjectResult>".encode()
        )

    def _multipart(self, request, key, query):
        if "uploads" in query:
            name = f"upload-{len(self.uploads)}-{time.time_ns()}"
            self.uploads[name] = {}
            self.upload_headers[name] = dict(request.headers)
            tag = "InitiateMultipartUploadResult"
            return Reply(200, f"<{tag}><UploadId>{name}</UploadId></{tag}>".encode())
        name = query["uploadId"]
        if name not in self.uploads:
            return error(404, "NoSuchUpload")
        if request.method == "PUT":
            self.uploads[name][int(query["partNumber"])] = request.body
            return Reply(200, headers={"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})
        if request.method == "DELETE":
            del self.uploads[name]
            return Reply(204)
        refusal = self._refusal(request, key)
        if refusal is not None:
            return refusal
        numbers = [int(number) for number in _PART.findall(request.body)]
        parts = self.uploads.pop(name)
        whole = b"".join(parts[number] for number in numbers)
        etag = f'"{hashlib.md5(whole).hexdigest()}-{len(numbers)}"'
        self._put(key, whole, self.upload_headers[name], etag)
        tag = "CompleteMultipartUploadResult"
        return Reply(200, f"<{tag}><ETag>{escape(etag)}</ETag></{tag}>".encode())
