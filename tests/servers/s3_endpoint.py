"""An S3 server as tests see it, and what they do to it behind their stores' backs.

The signatures are botocore's, so that these calls do not depend on what they help to test.
"""

from __future__ import annotations

import http.client
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

_SPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


@dataclass(frozen=True)
class Answer:
    """What a server answered; headers by name in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class S3Endpoint:
    """Where a server is, and the account that may use it.

    Attributes:
        endpoint: its URL.
        access_key: the key's id.
        secret_key: the key.
        region: the one that signatures are made for.
        name: which server it is: `"moto"`, `"rgw"`, `"swift"`.
    """

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)
    region: str
    name: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables that give AWS's clients these keys, and keep them from looking further."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def call(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One signed request; `target` is path and query, quoted."""
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        request = AWSRequest(method, f"{self.endpoint}{target}", dict(headers or {}), body)
        S3SigV4Auth(Credentials(self.access_key, self.secret_key), "s3", self.region).add_auth(
            request
        )
        where = urlsplit(self.endpoint)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
        try:
            connection.request(method, target, body, dict(request.headers.items()))
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            return Answer(reply.status, found, reply.read())
        finally:
            connection.close()

    def make_bucket(self, name: str | None = None) -> str:
        """Make a bucket, of a fresh name unless it is given, and return its name."""
        bucket = name or f"test-{uuid.uuid4().hex[:20]}"
        self._done(self.call("PUT", f"/{bucket}"), f"make {bucket}")
        return bucket

    def put(self, bucket: str, key: str, value: bytes) -> None:
        """Store an object."""
        self._done(self.call("PUT", self._target(bucket, key), value), f"put {key!r}")

    def get(self, bucket: str, key: str) -> bytes | None:
        """An object's bytes; None if there is none."""
        answer = self.call("GET", self._target(bucket, key))
        if answer.status == 404:
            return None
        self._done(answer, f"get {key!r}")
        return answer.body

    def delete(self, bucket: str, key: str) -> None:
        """Remove an object."""
        self._done(self.call("DELETE", self._target(bucket, key)), f"delete {key!r}")

    def keys(self, bucket: str) -> list[str]:
        """The keys of a bucket."""
        found: list[str] = []
        token = ""
        while True:
            more = f"continuation-token={quote(token, safe='')}&" if token else ""
            answer = self.call("GET", f"/{bucket}?{more}list-type=2")
            self._done(answer, f"list {bucket}")
            page = ET.fromstring(answer.body)
            found += [key.text or "" for key in page.iterfind(f"{_SPACE}Contents/{_SPACE}Key")]
            token = page.findtext(f"{_SPACE}NextContinuationToken") or ""
            if not token:
                return found

    def _target(self, bucket: str, key: str) -> str:
        return f"/{bucket}/{quote(key, safe='/-_.~')}"

    def _done(self, answer: Answer, action: str) -> None:
        if answer.status >= 300:
            said = answer.body.decode("utf-8", "replace")[:300]
            raise OSError(f"{self.name} did not {action}: {answer.status} {said}")
