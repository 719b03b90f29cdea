"""Damaged metadata, chunks, archives and answers: right, or an error of this package's classes.

What is stored comes from `tests.fuzz`: its seeds and its mutations. Damaged arrays that still open
without an error are kept in the corpus now and then, and are damaged further by later trials.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import tensorstore_py as ts
from tensorstore_py.testing import fault_server as faults
from tensorstore_py.testing.web_values import WebValues
from tests.fuzz.databases import databases, mutate_database
from tests.fuzz.mutations import is_document, mutate_bytes, mutate_seed, mutate_text
from tests.fuzz.seeds import Seed, keep, kept, seeds
from tests.fuzz.trial import attempt

MOST_KEPT = 300


class Damage:
    """Stored values, damaged.

    Args:
        name: of the kind.
        state: the folder whose `corpus` is added to and whose `findings` hold damaged arrays.
        chosen: whether a key of a seed is one that this kind damages.
    """

    def __init__(self, name: str, state: Path, chosen: Callable[[Seed, str], bool]) -> None:
        self.name = name
        self._corpus = state / "corpus" / name
        self._findings = state / "findings"
        self._chosen = chosen
        self._seeds = [seed for seed in seeds() if self._keys(seed)]
        self._kept = list(kept(self._corpus))

    def _keys(self, seed: Seed) -> list[str]:
        return sorted(key for key in seed.files if self._chosen(seed, key))

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        del folder
        rng = random.Random(f"{self.name} {number}")
        found = {seed.name: seed for seed in kept(self._findings)}
        seed = found.get(f"{self.name}-{number}") or self._damaged(rng)
        try:
            errors = attempt(seed, measure=rng.random() < 0.25)
        except BaseException:
            # what it grew from may be gone from the corpus when this is replayed
            keep(self._findings, replace(seed, name=f"{self.name}-{number}"))
            raise
        if not errors and rng.random() < 0.1 and len(self._kept) < MOST_KEPT:
            fresh = replace(seed, name=f"{self.name}-{number}")
            keep(self._corpus, fresh)
            self._kept.append(fresh)

    def _damaged(self, rng: random.Random) -> Seed:
        grown = bool(self._kept) and rng.random() < 0.3
        seed = rng.choice(self._kept if grown else self._seeds)
        if seed.archive or rng.random() < 0.1:
            return mutate_seed(rng, seed)
        for _ in range(rng.choice((1, 1, 2, 3))):
            key = rng.choice(self._keys(seed))
            value = seed.files[key]
            try:
                damaged = (mutate_text if is_document(key) else mutate_bytes)(rng, value)
            except (ValueError, RecursionError):  # damaged before, so that it is no document
                damaged = mutate_bytes(rng, value)
            seed = seed.changed(key, damaged)
        return seed


class Databases:
    """Manifests and nodes of OCDBT databases that lie, with checksums that are right.

    Args:
        state: the folder whose `findings` hold what was not stood.
    """

    name = "databases"

    def __init__(self, state: Path) -> None:
        self._findings = state / "findings"

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        del folder
        rng = random.Random(f"{self.name} {number}")
        found = {seed.name: seed for seed in kept(self._findings)}
        name = f"{self.name}-{number}"
        seed = found.get(name) or mutate_database(rng, rng.choice(databases()))
        try:
            attempt(seed, measure=rng.random() < 0.1)
        except BaseException:
            # names of data files and times of versions are others each time
            keep(self._findings, replace(seed, name=name))
            raise


_BAD: tuple[Callable[[random.Random], faults.Fault], ...] = (
    lambda _: faults.RESET,
    lambda _: faults.CLOSE,
    lambda _: faults.GARBAGE,
    lambda rng: faults.status(rng.choice((408, 425, 429, 500, 502, 503, 504))),
    lambda rng: faults.reset_within(rng.randrange(200)),
    lambda rng: faults.close_within(rng.randrange(20)),
    lambda rng: faults.with_length(rng.randrange(1, 50)),
    lambda rng: faults.chunked_cut(rng.randrange(20)),
    lambda rng: faults.unframed(rng.randrange(20)),
)


class Answers:
    """A web server whose answers are cut, reset, refused or made up."""

    name = "answers"

    def __init__(self) -> None:
        # what changes on the way is noticed by a checksum
        names = ("gzip", "crc32c", "zstd", "shards", "zarr_blosc", "n5_gzip", "zarr3_attributes")
        self._seeds = [seed for seed in seeds() if seed.name in names]

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        del folder
        rng = random.Random(f"answers {number}")
        seed = rng.choice(self._seeds)
        web = WebValues(dict(seed.files), ranges=rng.random() < 0.8, etags=rng.random() < 0.8)
        wild = rng.random() < 0.4
        share = rng.choice((0.1, 0.3, 0.6))

        def handle(request: faults.Request) -> faults.Reply:
            reply = web.handle(request)
            if wild and reply.status in (200, 206) and rng.random() < share:
                return replace(reply, body=mutate_bytes(rng, reply.body))
            return reply

        def plan(request: faults.Request) -> faults.Fault | None:
            del request
            return rng.choice(_BAD)(rng) if rng.random() < share else None

        server = faults.FaultServer(handle, plan)
        with server.running() as url:
            self._read(seed, url, wild=wild)
            server.plan = ()
            if not wild:
                self._read(seed, url, wild=False, errors=False)

    def _read(self, seed: Seed, url: str, *, wild: bool, errors: bool = True) -> None:
        retries = {"max_retries": 4, "initial_delay": "1ms", "max_delay": "2ms"}
        store = {"driver": "http", "base_url": f"{url}/", "http_request_retries": retries}
        spec = {
            "driver": seed.driver,
            "kvstore": store,
            "context": {"cache_pool": {"total_bytes_limit": 10**6}},
        }
        try:
            array = ts.open(spec, read=True).result()
        except ts.TensorStoreError:
            if not errors:
                raise
            return
        expected = np.arange(24).reshape(4, 6) * 1000
        for _ in range(3):
            try:
                found = array.read().result()
            except ts.TensorStoreError:
                if not errors:
                    raise
                continue
            if not wild and not np.array_equal(found, expected):
                raise AssertionError(f"{seed.name}: {found.tolist()}")


_XML = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult '
    b'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix></Prefix>'
    b"<KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
    b"<Contents><Key>a/0</Key><Size>3</Size></Contents>"
    b"<Contents><Key>a&#x2f;1</Key><Size>5</Size></Contents></ListBucketResult>"
)
_JSON = (
    b'{"kind": "storage#objects", "items": [{"name": "a/0", "size": "3", "generation": "7"}, '
    b'{"name": "a/1", "size": "5", "generation": "8"}]}'
)


class Listings:
    """Listings of buckets, damaged: keys, or an error of this package's classes."""

    name = "listings"

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        del folder
        rng = random.Random(f"listings {number}")
        s3 = rng.random() < 0.5
        body = mutate_bytes(rng, _XML) if s3 or rng.random() < 0.3 else mutate_text(rng, _JSON)
        answers = iter([body, body])

        def handle(request: faults.Request) -> faults.Reply:
            del request
            # pages must end, whatever they say of a next one
            whole = _XML if s3 else _JSON
            return faults.Reply(200, next(answers, whole))

        with faults.FaultServer(handle).running() as url:
            os.environ["STORAGE_EMULATOR_HOST"] = url
            try:
                ts.KvStore.open(_bucket(url, s3=s3)).result().list().result()
            except ts.TensorStoreError:
                pass


def _bucket(url: str, *, s3: bool) -> dict[str, Any]:
    few = {"max_retries": 1, "initial_delay": "1ms", "max_delay": "2ms"}
    if not s3:
        return {"driver": "gcs", "bucket": "bucket", "gcs_request_retries": few}
    return {
        "driver": "s3",
        "bucket": "bucket",
        "endpoint": url,
        "aws_region": "us-east-1",
        "aws_credentials": {"type": "anonymous"},
        "s3_request_retries": few,
    }
