"""A database as the tools of this room see it: found from whatever names one.

A store, a spec or a URL of the driver `ocdbt` names it, or the directory that its manifest is in.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import Spec, place
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import Context, bind
from tensorstore_py.errors import FailedPreconditionError, NotFoundError
from tensorstore_py.kvstores.ocdbt.data_files import DataFilePrefixes
from tensorstore_py.kvstores.ocdbt.database import Database, Snapshot
from tensorstore_py.kvstores.ocdbt.manifest import Manifest
from tensorstore_py.kvstores.ocdbt.names import generation_named
from tensorstore_py.kvstores.ocdbt.spec import OcdbtSpec, parse_version
from tensorstore_py.kvstores.ocdbt.store import OcdbtStore, VersionSpec
from tensorstore_py.kvstores.ocdbt.versions import Version
from tensorstore_py.plugin.kvstore import KeyRange

__all__ = ["FoundDatabase", "found_database"]

T = TypeVar("T")


class FoundDatabase(NamedTuple):
    """A database, whether it is there or not.

    Attributes:
        model: the bound spec.
        database: what is stored.
    """

    model: OcdbtSpec
    database: Database

    @property
    def title(self) -> str:
        """How to name it to a person."""
        return place(self.model.replace(path="", version=None))

    @property
    def prefixes(self) -> DataFilePrefixes:
        """What the paths of new data files begin with."""
        model = self.model
        return DataFilePrefixes(
            model.value_data_prefix.encode(),
            model.btree_node_data_prefix.encode(),
            model.version_tree_node_data_prefix.encode(),
        )

    @property
    def spec(self) -> Spec:
        """The spec of its latest version, all keys."""
        return Spec.of(self.model.replace(path="", version=None))

    def begin(self, body: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin an operation."""
        return start(self.database.inline, body)

    async def snapshot(self) -> Snapshot:
        """What is stored now.

        Raises:
            NotFoundError: there is no database.
            DataLossError: its manifest is damaged.
        """
        snapshot = await self.database.since(time.time())
        if snapshot.manifest is None:
            raise NotFoundError(
                f"{self.database.describe()}: there is no manifest; name the directory of an OCDBT "
                "database, which has one"
            )
        return snapshot

    async def manifest(self) -> Manifest:
        """The manifest that is stored now; errors as for `snapshot`."""
        snapshot = await self.snapshot()
        assert snapshot.manifest is not None
        return snapshot.manifest

    async def version(self, wanted: VersionSpec | None = None) -> Version:
        """The version that is meant; the latest one by default.

        Raises:
            NotFoundError: there is none.
        """
        meant = self.model.version if wanted is None else wanted
        if meant is None:
            latest = (await self.manifest()).latest
            if latest is None:
                raise NotFoundError(f"{self.database.describe()}: there is no version yet")
            return latest
        generation, time_ns, text, named = meant
        if named:
            generation = await generation_named(self.database.manifests, text)
        return await self.database.sought(generation, time_ns, text)

    def at(self, version: object) -> KvStore:
        """The store of a version; None: of the one that the spec says."""
        wanted = self.model.version if version is None else parse_version(version)
        model = self.model.replace(version=wanted)
        return KvStore.of(model, model.open())

    async def files(self) -> AsyncIterator[tuple[str, int]]:
        """The files in the directory of the database, from there, and their sizes."""
        store, root = self.database.data
        async for entry in store.list(KeyRange.prefix(root) if root else KeyRange()):
            yield entry.key[len(root) :], entry.size


def found_database(where: object, context: Context | None = None) -> FoundDatabase:
    """The database that something names.

    Args:
        where: a `KvStore`, a spec, a URL or a local path, of the database or its directory.
        context: shared resources; a fresh default `Context` if not given.

    Raises:
        SpecError: it is wrong; names the JSON path.
        FailedPreconditionError: a store that is seen through a transaction.
    """
    if isinstance(where, KvStore):
        if where.transaction is not None:
            raise FailedPreconditionError(
                "this store is seen through a transaction; give the store itself: "
                "store.with_transaction(None)"
            )
        model = where.model
    elif isinstance(where, os.PathLike):
        model = Spec(f"{Path(where).absolute().as_uri()}/").model
    else:
        model = Spec(where).model
    if not isinstance(model, OcdbtSpec):
        model = OcdbtSpec.parse_frozen({"base": model})
    bound = bind(model, as_context(context))
    assert isinstance(bound, OcdbtSpec)
    store = bound.open()
    assert isinstance(store, OcdbtStore)
    return FoundDatabase(bound, store.database)
