"""`KvStore`: an open store as users hold it. A store, its spec, and a path in front of all keys.

Every call that touches the store returns a Future; the dictionary forms block. Keys may be `str`
or `bytes`; listings give `bytes`. Nothing here knows what kind of store it is.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from operator import index
from time import time
from typing import Any, TypeAlias, TypeVar

from tensorstore_py._api import kvstore_arguments, kvstore_spec
from tensorstore_py._api.begin import as_batch, as_context, as_transaction, begin
from tensorstore_py._api.keys import CopyRange, Keys
from tensorstore_py._api.kvstore_arguments import (
    as_byte_range,
    as_generation,
    as_key,
    as_range,
    as_value,
)
from tensorstore_py._api.kvstore_spec import Located, join_path, rebound, store_page
from tensorstore_py._display.public_name import public
from tensorstore_py._interface import generation
from tensorstore_py._interface import kvstore as promise
from tensorstore_py._interface.batch import Batch
from tensorstore_py._interface.key_range import ALL, encode_key
from tensorstore_py._interface.kvstore import Buffer, KvStoreSpec
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._interface.store_abilities import CachedRead, GroupedWrite, read_as_of
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py._runtime.future import Future
from tensorstore_py._runtime.handle import stands_for
from tensorstore_py._runtime.lifetime import Closable, Lifetime
from tensorstore_py._runtime.signals import uninterrupted
from tensorstore_py._spec.context import Context, bind, spec_json
from tensorstore_py._spec.held import kvstore_object
from tensorstore_py._spec.pretty import pretty
from tensorstore_py.errors import FailedPreconditionError, SpecError

__all__ = ["KvStore"]

T = TypeVar("T")

#: Inside the class `list` is a method.
Listed = list[bytes]


@stands_for
@public
class KvStore(Closable, Located):
    """An open key-value store, made by `KvStore.open`.

    Example:
        >>> import tensorstore_py as ts
        >>> store = ts.KvStore.open("memory://").result()
        >>> store["a/x"] = b"1"
        >>> store["a/y"] = b"2"
        >>> (store / "a/").list().result()
        [b'x', b'y']
        >>> store.read("a/x").result().value, "b" in store
        (b'1', False)
    """

    Spec: TypeAlias = kvstore_spec.Spec
    KeyRange: TypeAlias = kvstore_arguments.KeyRange
    ReadResult: TypeAlias = promise.ReadResult
    TimestampedStorageGeneration: TypeAlias = generation.TimestampedStorageGeneration

    __slots__ = ("_life", "_store", "_transaction")
    __iter__ = None
    _store: promise.KvStore
    _transaction: Transaction | None

    def __init__(self) -> None:
        raise TypeError("a KvStore is made by KvStore.open(spec)")

    @classmethod
    def of(
        cls,
        model: KvStoreSpec,
        store: promise.KvStore,
        transaction: Transaction | None = None,
        life: Lifetime | None = None,
    ) -> KvStore:
        """The face of an open store.

        Args:
            model: the bound spec that it was opened from.
            store: what it opened.
            transaction: that it is seen through.
            life: of the face that this is another one of.
        """
        face = cls.__new__(cls)
        face._model = model
        face._store = store if transaction is None else transaction.overlay(model, store)
        face._transaction = transaction
        face._life = Lifetime("KvStore") if life is None else life
        return face

    @staticmethod
    def open(
        spec: object, *, context: Context | None = None, transaction: Transaction | None = None
    ) -> Future[KvStore]:
        """Open a store. No I/O happens: whether anything is there shows when it is used.

        Args:
            spec: a JSON spec, a URL such as `file:///data/` or `memory://`, a `KvStore.Spec`, or
                an object that stands for a store, such as one of zarr-python, obstore or fsspec.
            context: shared resources; a fresh default `Context` if not given.
            transaction: see the store through it, and write into it.

        Raises:
            SpecError: something is wrong with the spec; names the JSON path.
            UnsupportedError: the store cannot be opened in this installation.
            FailedPreconditionError: the transaction is not open.
        """
        staged = as_transaction(transaction)
        model = bind(kvstore_spec.Spec(spec).model, as_context(context))
        store = KvStore.of(model, model.open(), staged)
        if context is not None:
            context.life.include(store._life)
        return Future(store)

    # What it is.

    @property
    def store(self) -> promise.KvStore:
        """The store itself, which takes whole keys."""
        return self._store

    @property
    def base(self) -> KvStore | None:
        """The store underneath, for adapters such as zip; else None."""
        base = getattr(self._model, "base", None)
        if not isinstance(base, KvStoreSpec):
            return None
        return KvStore.of(base, base.open(), self._transaction, self._life)

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that it is seen through, and writes into; None: there is none."""
        return self._transaction

    @transaction.setter
    def transaction(self, transaction: Transaction | None) -> None:
        bound = self.with_transaction(transaction)
        self._store, self._transaction = bound._store, transaction

    def spec(
        self, *, retain_context: bool | None = None, unbind_context: bool | None = None
    ) -> Spec:
        """What would open this store again.

        Args:
            retain_context: keep the very resources that this store uses.
            unbind_context: say in JSON which resources it uses. By default neither is said.
        """
        if retain_context and not unbind_context:
            return kvstore_spec.Spec.of(self._model)
        return kvstore_spec.Spec.of(rebound(self._model, unbind_context, not unbind_context, None))

    def copy(self) -> KvStore:
        """Another face of the same store, whose `path` can be changed on its own."""
        return KvStore.of(self._model, self._store, self._transaction, self._life)

    __copy__ = copy

    def with_transaction(self, transaction: Transaction | None) -> KvStore:
        """The same store, seen through a transaction.

        Args:
            transaction: where writes go; None: straight to the store.

        Raises:
            FailedPreconditionError: the transaction is not open.

        Example:
            >>> import tensorstore_py as ts
            >>> store = ts.KvStore.open("memory://").result()
            >>> with ts.Transaction(atomic=True) as transaction:
            ...     staged = store.with_transaction(transaction)
            ...     staged["a"], staged["b"] = b"1", b"2"
            ...     print(staged["a"], "a" in store)
            b'1' False
            >>> store["a"]
            b'1'
        """
        staged = as_transaction(transaction)
        plain = self._store.base if isinstance(self._store, Overlay) else self._store
        return KvStore.of(self._model, plain, staged, self._life)

    def _stage(self, key: str, value: bytes | None) -> TimestampedStorageGeneration | None:
        """A write that is staged is done; None if it cannot be, which the operation then tells."""
        store, transaction = self._store, self._transaction
        if transaction is None or not isinstance(store, Overlay) or transaction.changing:
            return None
        self._life.check()
        transaction.check_open()
        try:
            return store.stage(key, value)
        except FailedPreconditionError:
            return None

    @uninterrupted
    def _register(
        self, store: GroupedWrite, key: str, value: bytes | None, if_equal: bytes | None
    ) -> Future[TimestampedStorageGeneration]:
        """Begin a write that is made together with all that were asked for by then."""
        self._life.check()
        body = store.register_write(key, value, if_equal)
        alone = partial(store.write, key, value, if_equal=if_equal)
        return self._begin(alone if body is None else body, changes=True)

    def _begin(
        self,
        body: Callable[[], Coroutine[Any, Any, T]],
        *,
        changes: bool = False,
        batch: Batch | None = None,
        inline: bool | None = None,
    ) -> Future[T]:
        inline = self._store.inline if inline is None else inline
        return begin(inline, body, self._transaction, changes=changes, batch=batch, life=self._life)

    def __add__(self, suffix: str | bytes) -> KvStore:
        return self._at(self.path + as_key(suffix, "suffix"))

    def __truediv__(self, component: str | bytes) -> KvStore:
        return self._at(join_path(self.path, as_key(component, "component")))

    def _repr_html_(self) -> str:
        staged = "its writes are staged" if self._transaction is not None else None
        return store_page("KvStore", self._model, [("Transaction", staged)])

    def __repr__(self) -> str:
        return pretty("KvStore", spec_json(self._model))

    def __reduce__(self) -> tuple[Callable[[KvStoreSpec], KvStore], tuple[KvStoreSpec]]:
        return _reopen, (self._model,)

    # What is in it.

    def read(
        self,
        key: str | bytes,
        *,
        if_not_equal: str | bytes | None = None,
        staleness_bound: float | None = None,
        batch: Batch | None = None,
        byte_range: slice | None = None,
    ) -> Future[ReadResult]:
        """Read a value, or a part of it.

        Args:
            key: below `path`.
            if_not_equal: a generation; if it is still the stored one, the result's state is
                `"unspecified"` and nothing is transferred.
            staleness_bound: seconds since the epoch; an answer that was true then or later will
                do, such as a cache on the way to a web server may have. By default none else.
            batch: read together with whatever else is in it, when it is submitted.
            byte_range: `slice(start, stop)` in bytes, or `slice(-n, None)` for the last n.

        Returns:
            A Future of a `KvStore.ReadResult`; `state` is `"missing"` if there is no such key.

        Raises:
            OutOfRangeError: (by the Future) the range reaches outside the value.
            ValueError: the slice has a negative stop, or stops before it starts.
            TypeError: a key, a generation or a slice is of another type.
            FailedPreconditionError: the batch was submitted already.
        """
        whole = self.path + as_key(key)
        wanted = as_byte_range(byte_range)
        unlike = None if if_not_equal is None else as_generation(if_not_equal, "if_not_equal")
        store = self._store if batch is None else as_batch(batch).store(self._store)
        since = staleness_bound
        if since is None and store.inline and isinstance(store, CachedRead):
            # It may begin long after it is asked for: those that wait by then share one look.
            since = time()

        async def body() -> promise.ReadResult:
            if since is None:
                result = await store.read(whole, wanted, if_not_equal=unlike)
            else:
                result = await read_as_of(store, whole, wanted, since, if_not_equal=unlike)
            return promise.ReadResult(result.state, bytes(result.value), result.stamp)

        return self._begin(body, batch=batch)

    def write(
        self,
        key: str | bytes,
        value: str | Buffer | None,
        *,
        if_equal: str | bytes | None = None,
    ) -> Future[TimestampedStorageGeneration]:
        r"""Store a value atomically.

        Args:
            key: below `path`.
            value: the bytes, or a `str` that is encoded as UTF-8; None deletes the key.
            if_equal: a generation; write only if it is the stored one. `b"\x02"` means
                "only if the key does not exist".

        Returns:
            A Future of the new generation; it is `b""` if the condition did not hold.

        Raises:
            TypeError: a key, a value or a generation is of another type.
            UnsupportedError: (by the Future) the store is read-only.
        """
        whole = self._model.path + as_key(key)
        data = as_value(value)
        like = None if if_equal is None else as_generation(if_equal, "if_equal")
        if like is None and (stamp := self._stage(whole, data)) is not None:
            return Future(stamp)
        store = self._store
        if self._transaction is None and isinstance(store, GroupedWrite):
            return self._register(store, whole, data, like)
        return self._begin(lambda: store.write(whole, data, if_equal=like), changes=True)

    def list(self, range: KeyRange | None = None, strip_prefix_length: int = 0) -> Future[Listed]:
        """The keys below `path`, without it, in no promised order.

        Args:
            range: only these; relative to `path`.
            strip_prefix_length: how many bytes to drop from the front of each key.

        Raises:
            TypeError: the range is none, or the length is negative.
            UnsupportedError: (by the Future) the store has no listing.
        """
        return self._begin(self.keys(range, strip_prefix_length).collect)

    def keys(self, range: KeyRange | None = None, strip_prefix_length: int = 0) -> Keys:
        """The keys below `path` while they are listed: for more of them than memory holds.

        Args:
            range: as for `list`.
            strip_prefix_length: as for `list`.

        Returns:
            What `async for` and `for` go through; each loop is a listing, and holds a page of keys.

        Raises:
            TypeError: as for `list`.
            UnsupportedError: (in the loop) the store cannot list its keys.
        """
        wanted = (ALL if range is None else as_range(range)).with_base(self.path)
        strip = index(strip_prefix_length)
        if strip < 0:
            raise TypeError(f"strip_prefix_length must not be negative, but is {strip}")
        dropped = len(encode_key(self.path)) + strip
        return Keys(self._begin, self._store, wanted, dropped)

    def delete_range(self, range: KeyRange) -> Future[None]:
        """Delete the keys of a range; not atomic over keys.

        Args:
            range: relative to `path`; `KvStore.KeyRange()` is everything below it.

        Raises:
            TypeError: the range is none.
            UnsupportedError: (by the Future) the store is read-only or cannot list its keys.
        """
        wanted = as_range(range).with_base(self.path)
        return self._begin(lambda: self._store.delete_range(wanted), changes=True)

    def experimental_copy_range_to(
        self,
        target: KvStore,
        source_range: KeyRange | None = None,
        source_staleness_bound: float | None = None,
    ) -> Future[None]:
        """Copy keys below `path` to another place or store; the last writer of a key wins.

        Args:
            target: where to; keys keep their names relative to the two paths.
            source_range: only these; relative to `path`.
            source_staleness_bound: as for `read`.

        Raises:
            TypeError: the target is no KvStore, or the range is none.
            UnsupportedError: (by the Future) the source cannot list, or the target is read-only.
        """
        if not isinstance(target, KvStore):
            raise TypeError(f"target must be a KvStore, not {type(target).__name__}")
        wanted = (ALL if source_range is None else as_range(source_range)).with_base(self.path)
        stores, paths = (self._store, target._store), (self.path, target.path)
        copying = CopyRange(*stores, wanted, *paths, source_staleness_bound)
        self._life.check()
        if self._transaction is not None:
            self._transaction.check_open()
        return target._begin(copying.run, changes=True, inline=copying.inline)

    # As a dictionary.

    def __getitem__(self, key: str | bytes) -> bytes:
        result = self.read(key).result()
        if result.state == "missing":
            raise KeyError(key)
        return bytes(result.value)

    def __setitem__(self, key: str | bytes, value: str | Buffer | None) -> None:
        self.write(key, value).result()

    def __delitem__(self, key: str | bytes) -> None:
        self.write(key, None).result()

    def __contains__(self, key: str | bytes) -> bool:
        return self.read(key, byte_range=slice(0, 0)).result().state == "value"

    def _at(self, path: str) -> KvStore:
        model = self._model.replace(path=path)
        return KvStore.of(model, self._store, self._transaction, self._life)


def _reopen(model: KvStoreSpec) -> KvStore:
    return KvStore.of(model, model.open())


@kvstore_object("tensorstore_py", "KvStore")
def _of_open_store(store: KvStore) -> KvStoreSpec:
    """An open store stands for itself, with the resources that it shares."""
    if store.transaction is not None:
        raise SpecError(
            "the store is seen through a transaction, which no spec can say; pass "
            "store.with_transaction(None), and transaction= beside it"
        )
    return store.model
