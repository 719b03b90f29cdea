"""Buckets, objects and conditions as Google Cloud Storage has them, without a word of HTTP.

A refusal is an exception with the status and the reason that the JSON API gives for it.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from typing import Any

from tensorstore_py.plugin import kvstore

Resource = dict[str, Any]
Parameters = Mapping[str, str]

#: What a client may say of an object itself; everything else is the server's to say.
WRITABLE = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "customTime",
    "metadata",
    "storageClass",
)


class RefusedError(Exception):
    """The request is not carried out."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


def crc32c(data: bytes) -> str:
    """The checksum, as the API writes it."""
    return base64.b64encode(kvstore.crc32c(data).to_bytes(4, "big")).decode()


def md5(data: bytes) -> str:
    """The digest, as the API writes it."""
    return base64.b64encode(hashlib.md5(data).digest()).decode()


@dataclass(frozen=True)
class StoredObject:
    """One generation of one object."""

    bucket: str
    name: str
    data: bytes
    generation: int
    metageneration: int = 1
    described: Resource = field(default_factory=dict)
    created: float = 0.0
    updated: float = 0.0

    @property
    def etag(self) -> str:
        tag = f"{self.generation}/{self.metageneration}".encode()
        return base64.b64encode(tag).decode()

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Its checksums, by the API's names."""
        return {"crc32c": crc32c(self.data), "md5Hash": md5(self.data)}

    @property
    def resource(self) -> Resource:
        """What the API tells of it."""
        found: Resource = {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "contentType": "application/octet-stream",
            "storageClass": "STANDARD",
            "size": str(len(self.data)),
            **self.hashes,
            "etag": self.etag,
            "timeCreated": written(self.created),
            "updated": written(self.updated),
        }
        return found | self.described


def written(seconds: float) -> str:
    """A time, as the API writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def check(found: StoredObject | None, parameters: Parameters, *, reading: bool) -> None:
    """Refuse what the conditions of a request forbid."""
    generation = found.generation if found else 0
    metageneration = found.metageneration if found else 0
    for name, actual in (("Generation", generation), ("Metageneration", metageneration)):
        wanted = parameters.get(f"if{name}Match")
        if wanted is not None and number(f"if{name}Match", wanted) != actual:
            raise RefusedError(412, "conditionNotMet", f"if{name}Match={wanted}, it is {actual}")
        unwanted = parameters.get(f"if{name}NotMatch")
        if unwanted is not None and number(f"if{name}NotMatch", unwanted) == actual:
            status = 304 if reading else 412
            raise RefusedError(status, "conditionNotMet", f"if{name}NotMatch={unwanted}, and it is")


def number(name: str, text: str) -> int:
    """A parameter that is an integer."""
    try:
        return int(text)
    except ValueError:
        raise RefusedError(400, "invalidParameter", f"{name} is no integer: {text!r}") from None


def check_name(name: str) -> None:
    """Refuse what cannot be an object's name."""
    size = len(name.encode("utf-8", "surrogateescape"))
    if not 1 <= size <= 1024:
        raise RefusedError(400, "invalid", f"A name has 1 to 1024 bytes, not {size}")
    if name in (".", "..") or "\r" in name or "\n" in name:
        raise RefusedError(400, "invalid", f"No object can be named {name!r}")
    if name.startswith(".well-known/acme-challenge/"):
        raise RefusedError(400, "invalid", f"No object can be named {name!r}")


@dataclass
class Bucket:
    """A bucket.

    Attributes:
        name: its name.
        requester_pays: whether who asks must name the project that pays.
        objects: by name.
    """

    name: str
    requester_pays: bool = False
    objects: dict[str, StoredObject] = field(default_factory=dict)

    @property
    def resource(self) -> Resource:
        """What the API tells of it."""
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "name": self.name,
            "location": "US",
            "storageClass": "STANDARD",
            "metageneration": "1",
            "billing": {"requesterPays": self.requester_pays},
        }


class Buckets:
    """All of them.

    Args:
        clock: tells the time.
        pace_s: how soon after a write of an object the next one is refused with 429, as Google
            does above about one per second; 0 for never.

    Attributes:
        buckets: by name.
    """

    def __init__(self, clock: Callable[[], float] = time.time, pace_s: float = 0.0) -> None:
        self.buckets: dict[str, Bucket] = {}
        self.pace_s = pace_s
        self._clock = clock
        self._generations = count(int(clock() * 1_000_000))
        self._written: dict[tuple[str, str], float] = {}

    def create(self, name: str, *, requester_pays: bool = False) -> Bucket:
        """A new bucket."""
        if not name:
            raise RefusedError(400, "required", "A bucket needs a name")
        if name in self.buckets:
            raise RefusedError(409, "conflict", f"There is a bucket {name} already")
        self.buckets[name] = Bucket(name, requester_pays)
        return self.buckets[name]

    def remove(self, name: str) -> None:
        """Remove an empty bucket."""
        if self.bucket(name).objects:
            raise RefusedError(409, "conflict", "The bucket you tried to delete is not empty.")
        del self.buckets[name]

    def bucket(self, name: str) -> Bucket:
        """A bucket that there is."""
        if name not in self.buckets:
            raise RefusedError(404, "notFound", "The specified bucket does not exist.")
        return self.buckets[name]

    def find(self, bucket: str, name: str, parameters: Parameters) -> StoredObject:
        """An object that there is, if the conditions hold."""
        found = self.bucket(bucket).objects.get(name)
        wanted = parameters.get("generation")
        if found and wanted is not None and number("generation", wanted) != found.generation:
            found = None
        if found is None:
            raise RefusedError(404, "notFound", f"No such object: {bucket}/{name}")
        return found

    def get(self, bucket: str, name: str, parameters: Parameters) -> StoredObject:
        """An object, to be read."""
        found = self.find(bucket, name, parameters)
        check(found, parameters, reading=True)
        return found

    def put(
        self, bucket: str, name: str, data: bytes, described: Resource, parameters: Parameters
    ) -> StoredObject:
        """Write an object, if the conditions hold and the checksums agree."""
        objects = self.bucket(bucket).objects
        check_name(name)
        for member, actual in (("crc32c", crc32c(data)), ("md5Hash", md5(data))):
            if described.get(member, actual) != actual:
                message = f"Provided {member} {described[member]} doesn't match {actual}"
                raise RefusedError(400, "invalid", message)
        check(objects.get(name), parameters, reading=False)
        now = self._pace(bucket, name)
        kept = {member: described[member] for member in WRITABLE if member in described}
        objects[name] = StoredObject(
            bucket, name, data, next(self._generations), 1, kept, created=now, updated=now
        )
        return objects[name]

    def patch(
        self, bucket: str, name: str, described: Resource, parameters: Parameters
    ) -> StoredObject:
        """Change what is said of an object."""
        found = self.find(bucket, name, parameters)
        check(found, parameters, reading=False)
        news = {member: described[member] for member in WRITABLE if member in described}
        kept = {
            name: value for name, value in (found.described | news).items() if value is not None
        }
        changed = replace(
            found,
            metageneration=found.metageneration + 1,
            described=kept,
            updated=self._clock(),
        )
        self.bucket(bucket).objects[name] = changed
        return changed

    def delete(self, bucket: str, name: str, parameters: Parameters) -> None:
        """Remove an object, if the conditions hold."""
        check(self.find(bucket, name, parameters), parameters, reading=False)
        self._pace(bucket, name)
        del self.buckets[bucket].objects[name]

    def _pace(self, bucket: str, name: str) -> float:
        now = self._clock()
        if self.pace_s and now - self._written.get((bucket, name), float("-inf")) < self.pace_s:
            message = f"The object {bucket}/{name} exceeded the rate limit for object mutations"
            raise RefusedError(429, "rateLimitExceeded", message)
        self._written[bucket, name] = now
        return now

    def list(self, bucket: str, parameters: Parameters) -> Resource:
        """One page of a listing."""
        names = self.bucket(bucket).objects
        limit = min(1000, number("maxResults", parameters.get("maxResults", "1000")))
        after = _token(parameters.get("pageToken", ""))
        items: list[Resource] = []
        prefixes: list[str] = []
        page: Resource = {"kind": "storage#objects"}
        shown = ""
        for name, is_prefix in _listed(sorted(names, key=_order), parameters):
            if after is not None and _order(name) <= _order(after):
                continue
            if len(items) + len(prefixes) == limit:
                page["nextPageToken"] = base64.urlsafe_b64encode(_order(shown)).decode()
                break
            if is_prefix:
                prefixes.append(name)
            else:
                items.append(names[name].resource)
            shown = name
        return (
            page
            | ({"items": items} if items else {})
            | ({"prefixes": prefixes} if prefixes else {})
        )


def _order(name: str) -> bytes:
    """Names are ordered by their bytes."""
    return name.encode("utf-8", "surrogateescape")


def _token(text: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(text).decode() if text else None
    except ValueError:
        raise RefusedError(400, "invalid", f"No page token: {text!r}") from None


def _listed(names: list[str], parameters: Parameters) -> Iterator[tuple[str, bool]]:
    """The names and the common prefixes that a listing shows, in order."""
    prefix = parameters.get("prefix", "")
    delimiter = parameters.get("delimiter", "")
    start = _order(parameters.get("startOffset", ""))
    end = _order(parameters.get("endOffset", ""))
    shown = None
    for name in names:
        if not name.startswith(prefix) or _order(name) < start or (end and _order(name) >= end):
            continue
        at = name.find(delimiter, len(prefix)) if delimiter else -1
        if at < 0:
            yield name, False
        elif shown != name[: at + len(delimiter)]:
            shown = name[: at + len(delimiter)]
            yield shown, True
