"""What every open array must keep, whatever its driver is, as a test class to inherit.

A test class makes the array; the suite compares it with a NumPy array that is changed in the same
way. All of it goes by the public calls of the package:

    class TestMyView(ArraySuite):
        def create(self, context, **options):
            return ts.open({"driver": "my-view", ...}, context=context, **options).result()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec
from tensorstore_py._interface.transaction import Transaction
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.dtype import dtype as DataType  # noqa: N812 - a class
from tensorstore_py.errors import OutOfRangeError, SpecError, TensorStoreError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore

__all__ = ["ArraySuite"]


class ArraySuite:
    """The promises of an open array; inherit it in a class whose name starts with `Test`.

    Attributes:
        dtype: element type.
        shape: of the arrays; any number of dimensions, none as well.
        fill_value: what a new array holds; None where that is 0.
        writable: whether elements can be written; else they are those of `blank`.
        resizable: whether upper bounds can be changed.
        transactional: whether it can be used in a transaction.
        shared: whether other arrays that are opened by the same spec see what is written.

    Example:
        >>> class TestCast(ArraySuite):
        ...     dtype = "float32"
        ...
        ...     def create(self, context, **options):
        ...         base = {"driver": "zarr", "kvstore": "memory://suite/"}
        ...         spec = {"driver": "cast", "base": base, "dtype": self.dtype}
        ...         return open_array(spec, context=context, create=True, shape=self.shape).result()
    """

    dtype: ClassVar[str] = "uint16"
    shape: ClassVar[tuple[int, ...]] = (7, 10)
    fill_value: ClassVar[int | None] = None
    writable: ClassVar[bool] = True
    resizable: ClassVar[bool] = True
    transactional: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    @pytest.fixture
    def context(self) -> Context:
        """What the arrays of one test share: a store in memory."""
        return Context()

    def create(self, context: Context, **options: Any) -> TensorStore:
        """A new array, which holds `blank`."""
        raise UnsupportedError("a test class says in `create` how its arrays are made")

    def again(self, context: Context, store: TensorStore) -> TensorStore:
        """The same array, opened once more."""
        return open_array(store.spec().to_json(), context=context).result()

    def blank(self, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """The elements of a new array."""
        return np.full(self.shape, self.fill_value or 0, DataType(dtype or self.dtype).array_dtype)

    def values(self, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """Elements of which no two neighbours are equal."""
        found = np.arange(np.prod(self.shape, dtype=int)) % 251 + 1
        return found.astype(DataType(dtype or self.dtype).array_dtype).reshape(self.shape)

    # Specs

    def test_a_spec_opens_the_same_array_again(self, context: Context) -> None:
        store, values = self.create(context), self.blank()
        if self.writable:
            store[...] = values = self.values()
        for spec in (store.spec(), store.spec(minimal_spec=True)):
            again = Spec(spec.to_json())

            assert again == spec
            found = open_array(again, context=context).result()
            assert (found.dtype, found.domain) == (store.dtype, store.domain)
            assert np.array_equal(found.read().result(), values)

    def test_a_member_that_does_not_exist_is_named(self, context: Context) -> None:
        json = self.create(context).spec().to_json()
        with pytest.raises(SpecError, match="no such member") as raised:
            Spec({**json, "no_such_member": 1})
        assert raised.value.path == ("no_such_member",)

    # Reading and writing

    def test_any_part_is_read_and_written_as_of_a_numpy_array(self, context: Context) -> None:
        store, model = self.create(context), self.blank()
        random = np.random.default_rng(1)
        for number in range(40):
            where = self.places_of_a_part(random, number)
            if self.writable:
                value = random.integers(1, 250, np.shape(model[where]))
                model[where] = np.asarray(value).astype(model.dtype)
                store[where] = model[where]

            seen: Any = tuple(self.part(random, extent) for extent in self.shape)
            assert np.array_equal(store[seen].read().result(), model[seen])
        assert np.array_equal(store.read(order="F").result(), model)
        if self.shared:
            assert np.array_equal(self.again(context, store).read().result(), model)

    def places_of_a_part(self, random: np.random.Generator, number: int) -> tuple[Any, ...]:
        """A part of all dimensions, by an array of positions now and then."""
        where = [self.part(random, extent) for extent in self.shape]
        if where and number % 8 == 7:
            return (random.integers(0, self.shape[0], 3), *where[1:])
        return tuple(where)

    def part(self, random: np.random.Generator, extent: int) -> slice | int:
        """A part of one dimension, which is not empty."""
        low, high = sorted(random.choice(extent + 1, 2, replace=False).tolist())
        if random.random() < 0.2:
            return int(low)
        return slice(low, high, int(random.integers(1, 4)))

    def test_what_lies_outside_is_refused(self, context: Context) -> None:
        store = self.create(context)
        for position in (self.shape[0], 10**9) if self.shape else ():
            with pytest.raises(OutOfRangeError):
                store[position].read().result()

    def test_what_cannot_be_written_says_so(self, context: Context) -> None:
        store = self.create(context)
        assert store.writable is self.writable
        if not self.writable:
            with pytest.raises(TensorStoreError):
                store[...] = 1
            assert np.array_equal(store.read().result(), self.blank())

    def test_what_was_read_is_the_readers_own(self, context: Context) -> None:
        store = self.create(context)
        for order in "CF":
            found = store.read(order=order).result()
            found[...] = 99
            assert np.array_equal(store.read(order=order).result(), self.blank())

    def test_other_handles_see_what_was_written(self, context: Context) -> None:
        if not (self.writable and self.shared):
            return
        store = self.create(context)
        other = self.again(context, store)
        for value in (1, 2):
            store[...] = value
            assert np.all(other.read().result() == value)

    def test_a_transaction_is_stored_together(self, context: Context) -> None:
        store, transaction = self.create(context), Transaction()
        if not self.transactional:
            with pytest.raises(TensorStoreError):
                store.with_transaction(transaction)
            return
        inside = store.with_transaction(transaction)
        assert np.array_equal(inside.read().result(), self.blank())
        if not self.writable:
            return
        inside[...] = self.values()

        assert np.array_equal(inside.read().result(), self.values())
        assert np.array_equal(store.read().result(), self.blank())
        transaction.commit_async().result()
        assert np.array_equal(store.read().result(), self.values())

    def test_it_is_copied_from_and_to_other_drivers(self, context: Context) -> None:
        store = self.create(context)
        other = open_array(
            {"driver": "zarr", "kvstore": "memory://other/"},
            create=True,
            context=context,
            dtype=store.dtype,
            shape=self.shape,
        ).result()
        if self.writable:
            other[...] = self.values()
            store[...] = other
            assert np.array_equal(store.read().result(), self.values())
        other[...] = 0
        other[...] = store
        assert np.array_equal(other.read().result(), store.read().result())

    # Bounds

    def test_bounds_are_changed_and_seen(self, context: Context) -> None:
        store = self.create(context)
        larger = tuple(extent + 5 for extent in self.shape)
        if not self.resizable:
            with pytest.raises(TensorStoreError):
                store.resize(exclusive_max=larger).result()
            assert store.resolve().result().domain == store.domain
            return
        store[...] = self.values()
        grown = store.resize(exclusive_max=larger).result()
        assert grown.shape == larger == self.again(context, store).shape
        expected = np.full(larger, self.fill_value or 0, self.blank().dtype)
        expected[tuple(map(slice, self.shape))] = self.values()
        assert np.array_equal(grown.read().result(), expected)

        smaller = tuple(max(extent - 4, 1) for extent in self.shape)
        shrunk = grown.resize(exclusive_max=smaller).result()
        assert shrunk.shape == smaller
        again = shrunk.resize(exclusive_max=self.shape).result()
        expected = self.blank()
        kept = tuple(map(slice, smaller))
        expected[kept] = self.values()[kept]
        assert np.array_equal(again[kept].read().result(), expected[kept])
