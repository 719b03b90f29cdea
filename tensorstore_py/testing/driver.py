"""What every driver of a chunked format must keep, as a test class to inherit.

A driver's test class names the driver and what its specs need; the suite brings the promises. All
of it goes by the public calls of the package, against arrays in memory and a NumPy array that is
changed in the same way:

    class TestMyFormat(DriverSuite):
        driver = "my-format"
        metadata_key = "meta.json"
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from tensorstore_py._api.open import open as open_array
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import (
    AlreadyExistsError,
    MismatchError,
    NotFoundError,
    SpecError,
    TensorStoreError,
)
from tensorstore_py.testing.array import ArraySuite

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["DriverSuite"]

#: What a program that knows nothing of the format might put where a member was.
_WRONG: tuple[object, ...] = (None, True, -1, 2**70, 0.5, "wrong", [], [[]], {}, ["wrong"])


class DriverSuite(ArraySuite):
    """The promises of a driver of a chunked format, beside those of every array.

    Inherit it in a class whose name starts with `Test`. Attributes that are not here are those of
    `ArraySuite`.

    Attributes:
        driver: its name.
        metadata_key: the key of its metadata document, which is JSON, below the array's path.
        members: what its specs say in addition.
        dtypes: data types to try.
        chunk: shape of their chunks, which does not divide `shape`.
        fill_value: what is asked for; None where the format has none, and missing chunks read as 0.

    Example:
        >>> class TestZarr(DriverSuite):
        ...     driver = "zarr"
        ...     metadata_key = ".zarray"
    """

    driver: ClassVar[str]
    metadata_key: ClassVar[str]
    members: ClassVar[dict[str, Any]] = {}
    dtypes: ClassVar[tuple[str, ...]] = ("uint8", "uint16", "float32")
    chunk: ClassVar[tuple[int, ...]] = (3, 4)

    def spec(self, **members: object) -> dict[str, Any]:
        """The JSON of a spec."""
        kvstore = "memory://suite/"
        return {"driver": self.driver, "kvstore": kvstore, **self.members, **members}

    def open(self, context: Context, **options: Any) -> TensorStore:
        """What is there."""
        return open_array(self.spec(), context=context, **options).result()

    def again(self, context: Context, store: TensorStore) -> TensorStore:
        return self.open(context)

    def create(self, context: Context, dtype: str | None = None, **options: Any) -> TensorStore:
        """A new array."""
        dtype = dtype or self.dtype
        given = {"dtype": dtype, "shape": self.shape, "fill_value": self.fill_value, **options}
        spec, layout = self.spec(), self.layout()
        return open_array(spec, create=True, context=context, chunk_layout=layout, **given).result()

    def layout(self) -> ChunkLayout:
        """What is asked of the chunks of new arrays."""
        return ChunkLayout(chunk_shape=self.chunk)

    def document(self, store: TensorStore) -> dict[str, Any]:
        """The stored metadata document."""
        assert store.kvstore is not None
        document: dict[str, Any] = json.loads(store.kvstore[self.metadata_key])
        return document

    # Opening

    def test_what_was_created_is_opened(self, context: Context) -> None:
        for dtype in self.dtypes:
            new = self.create(context, dtype, delete_existing=True)
            new[...] = self.values(dtype)
            found = self.open(context)

            assert (found.dtype, found.shape) == (new.dtype, self.shape)
            assert found.domain == new.domain
            assert found.schema == new.schema
            assert np.array_equal(found.read().result(), self.values(dtype))

    def test_open_modes(self, context: Context) -> None:
        with pytest.raises(NotFoundError):
            self.open(context)
        self.create(context)[...] = 1
        with pytest.raises(AlreadyExistsError):
            self.create(context)
        assert np.all(self.create(context, open=True).read().result() == 1)
        new = self.create(context, delete_existing=True)
        assert np.array_equal(new.read().result(), self.blank())

    def test_the_document_may_be_assumed(self, context: Context) -> None:
        store = self.create(context)
        store[...] = 5
        assert store.kvstore is not None
        json = store.spec().to_json()
        del store.kvstore[self.metadata_key]

        with pytest.raises(NotFoundError):
            self.open(context)
        found = open_array(json, context=context, open=True, assume_metadata=True).result()
        assert np.all(found.read().result() == 5)

    def test_its_schema_is_the_constraint_that_it_satisfies(self, context: Context) -> None:
        store = self.create(context)
        assert self.open(context, schema=store.schema).schema == store.schema

    def test_the_same_spec_creates_an_array_of_the_same_form(self, context: Context) -> None:
        store = self.create(context)
        other = Context()

        again = open_array(store.spec(), create=True, open=True, context=other).result()

        assert self.document(again) == self.document(store)
        assert again.schema == store.schema

    def test_what_contradicts_the_document_is_named(self, context: Context) -> None:
        self.create(context)
        wrong = tuple(extent + 1 for extent in self.shape)
        for options, name in (
            ({"dtype": "int64"}, "int64"),
            ({"rank": len(self.shape) + 1}, "rank"),
            ({"shape": wrong}, "domain"),
            ({"chunk_layout": ChunkLayout(chunk_shape=wrong)}, "chunk"),
        ):
            with pytest.raises((MismatchError, SpecError), match=name):
                self.open(context, **options)

    def test_what_a_new_array_needs_is_named(self, context: Context) -> None:
        for given, name in (({"shape": self.shape}, "dtype"), ({"dtype": "uint8"}, "domain")):
            with pytest.raises(SpecError, match=name):
                open_array(self.spec(), create=True, context=context, **given).result()

    # Reading and writing

    def test_missing_chunks_are_filled_or_named(self, context: Context) -> None:
        store = self.create(context)
        assert np.array_equal(store.read().result(), self.blank())
        strict = open_array(self.spec(fill_missing_data_reads=False), context=context).result()
        with pytest.raises(NotFoundError):
            strict.read().result()

    def test_writers_of_one_chunk_lose_nothing_of_each_other(self, context: Context) -> None:
        handles = [self.create(context), self.open(context)]
        values = self.values()
        writes = [
            handles[number % 2][position].write(values[position])
            for number, position in enumerate(np.ndindex(self.shape))
        ]
        for write in writes:
            write.result()

        assert np.array_equal(self.open(context).read().result(), values)

    # Bounds

    def test_a_handle_that_rechecks_sees_a_resize(self, context: Context) -> None:
        if not self.resizable:
            return
        store = self.create(context)
        watchful = self.open(context, recheck_cached_metadata=True)
        larger = tuple(extent + 1 for extent in self.shape)
        store.resize(exclusive_max=larger).result()
        assert watchful.resolve().result().shape == larger

    # Documents of others

    def test_a_document_that_is_none_is_refused(self, context: Context) -> None:
        store = self.create(context)
        assert store.kvstore is not None
        right = bytes(store.kvstore[self.metadata_key])
        for data in (b"", b"{", b"[]", b"null", b"\xff\xfe", right[:-2], right * 2, b"[" * 10**5):
            store.kvstore[self.metadata_key] = data
            with pytest.raises(TensorStoreError, match="suite"):
                open_array(self.spec(), context=self.fresh(store)).result()

    def test_any_member_may_be_wrong(self, context: Context) -> None:
        store = self.create(context)
        right = self.document(store)
        for path in self.places(right):
            for wrong in _WRONG:
                document = json.loads(json.dumps(right))
                self.put(document, path, wrong)
                other = self.fresh(store, json.dumps(document).encode())
                try:
                    found = open_array(self.spec(), context=other).result()
                    if np.prod(found.shape) < 10**6:
                        found.read().result()
                except TensorStoreError:
                    continue

    def places(self, value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The paths of all members of a document, and of the elements of its arrays."""
        inner: Iterable[tuple[Any, object]] = value.items() if isinstance(value, dict) else ()
        if isinstance(value, list):
            inner = enumerate(value)
        found = [path] if path else []
        return found + [place for name, each in inner for place in self.places(each, (*path, name))]

    def put(self, document: dict[str, Any], path: tuple[Any, ...], value: object) -> None:
        """Change what is at a path."""
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    def fresh(self, store: TensorStore, document: bytes | None = None) -> Context:
        """A context in which the same document, or another, is all there is."""
        assert store.kvstore is not None
        data = bytes(store.kvstore[self.metadata_key]) if document is None else document
        context = Context()
        probe = open_array(
            {"driver": "zarr3", "kvstore": "memory://suite/"},
            create=True, dtype="uint8", shape=[1], context=context,
        ).result()  # fmt: skip
        assert probe.kvstore is not None
        if self.metadata_key != "zarr.json":
            del probe.kvstore["zarr.json"]
        probe.kvstore[self.metadata_key] = data
        return context
