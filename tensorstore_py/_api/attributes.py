"""`Attributes`: the attributes of an array or a group as users hold them.

Calls return Futures; the dictionary forms block. Nothing is kept: every call asks the store, or the
consolidated metadata that the node is from. How a change is made so that no other change is lost is
the hierarchy room's matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorstore_py._api.begin import begin
from tensorstore_py._display.json_view import json_view
from tensorstore_py._display.markup import element
from tensorstore_py._display.page import page
from tensorstore_py._display.public_name import public
from tensorstore_py._hierarchy.document import AttributesFile, as_attributes
from tensorstore_py._hierarchy.formats import format_of
from tensorstore_py._interface.adapter import AdapterSpec
from tensorstore_py.errors import UnsupportedError, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._runtime.lifetime import Lifetime

__all__ = ["Attributes", "attributes_of"]


@public
class Attributes:
    """The attributes of an array or a group: its `attrs`.

    Any number of threads, processes and machines may change them at once: each change is made on
    what is stored by then, where the store has conditional writes. In a transaction it is made at
    the commit.

    Example:
        >>> import tensorstore_py as ts
        >>> group = ts.Group.open("memory://", create=True, attributes={"runs": 1}).result()
        >>> group.attrs.update(author="Ada", units={"x": "nm"}).result()
        >>> group.attrs["author"], len(group.attrs)
        ('Ada', 3)
        >>> group.attrs.change(lambda found: {**found, "runs": found["runs"] + 1}).result()
        >>> group.attrs.delete("units").result()
        >>> group.attrs.read().result()
        {'runs': 2, 'author': 'Ada'}
    """

    __slots__ = ("_file", "_life", "_transaction")

    def __init__(
        self, file: AttributesFile, transaction: Transaction | None, life: Lifetime
    ) -> None:
        self._file = file
        self._transaction = transaction
        self._life = life

    def read(self) -> Future[dict[str, Any]]:
        """All of them, as they are stored.

        Those of a node that was opened from consolidated metadata are as that tells, without a
        request, until something is changed through the group that it is from.

        Raises:
            NotFoundError: (by the Future) the node was deleted; names its key.
            DataLossError: (by the Future) what is stored is corrupt; names its key.
        """
        file = self._file
        return begin(file.store.inline, file.read, self._transaction, life=self._life)

    def update(
        self, attributes: Mapping[str, object] | None = None, /, **more: object
    ) -> Future[None]:
        """Set some; the others stay.

        Args:
            attributes: by name; JSON. Tuples and NumPy's numbers and arrays are stored as lists
                and numbers; NaN and infinities as the ecosystem does, which is not quite JSON.
            **more: further ones.

        Raises:
            SpecError: one is no JSON; has the path to it.
            NotFoundError: (by the Future) the node was deleted; names its key.
        """
        new = as_attributes({**({} if attributes is None else attributes), **more})
        return self.change(lambda found: {**found, **new})

    def set(self, name: str, value: object) -> Future[None]:
        """Set one; the others stay. Raises as `update`."""
        return self.update({name: value})

    def put(self, attributes: Mapping[str, object]) -> Future[None]:
        """Replace all of them by others. Raises as `update`."""
        new = as_attributes(attributes)
        return self.change(lambda _: new)

    def delete(self, *names: str) -> Future[None]:
        """Delete some.

        Args:
            *names: it is no error if one is not there.
        """
        return self.change(
            lambda found: {name: value for name, value in found.items() if name not in names}
        )

    def change(self, function: Callable[[dict[str, Any]], Mapping[str, object]]) -> Future[None]:
        """Replace all of them by what a function makes of them.

        If another writer changes them meanwhile, the function is called again with what is stored
        then. So counting with it loses nothing.

        Args:
            function: given a copy of all of them, returns all of the new ones. It may be called any
                number of times, on another thread.

        Raises:
            SpecError: (by the Future) what it returns is no JSON; has the path to what is not.
            NotFoundError: (by the Future) the node was deleted; names its key.
        """
        file = self._file
        self._life.check()
        if file.known is not None:
            file.known.spoil()
        return begin(
            file.store.inline,
            lambda: file.change(function),
            self._transaction,
            changes=True,
            life=self._life,
        )

    # As a dictionary.

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - JSON, as json.loads has it
        return self.asdict()[name]

    def __setitem__(self, name: str, value: object) -> None:
        self.update({name: value}).result()

    def __delitem__(self, name: str) -> None:
        def without(found: dict[str, object]) -> dict[str, object]:
            del found[name]
            return found

        self.change(without).result()

    def __contains__(self, name: object) -> bool:
        return name in self.asdict()

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def keys(self) -> list[str]:
        """The names."""
        return list(self.asdict())

    def values(self) -> list[Any]:
        """The values."""
        return list(self.asdict().values())

    def items(self) -> list[tuple[str, Any]]:
        """Names and values."""
        return list(self.asdict().items())

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - as above
        """One of them, or `default`."""
        return self.asdict().get(name, default)

    def asdict(self) -> dict[str, Any]:
        """`read().result()`."""
        return self.read().result()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Attributes):
            return self.asdict() == other.asdict()
        return self.asdict() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # what it equals changes

    def _repr_html_(self) -> str:
        file = self._file
        known = file.known_now()
        where = without_secrets(file.store.describe_key(file.key))
        if known is None:
            what: object = element("div", "not read: ", element("code", ".asdict()"), " reads them")
        else:
            what = json_view(known) if known else element("div", "none", class_="tsv-muted")
        return page("Attributes", where, what)

    def __repr__(self) -> str:
        return f"Attributes({self._file.store.describe_key(self._file.key)})"


def attributes_of(driver: Driver, life: Lifetime) -> Attributes:
    """The attributes of an open array, or of the one underneath.

    Raises UnsupportedError: its format has none.
    """
    spec = driver.spec()
    while isinstance(spec, AdapterSpec) and driver.base is not None:
        driver = driver.base
        spec = driver.spec()
    form, where = format_of(spec.driver), driver.kvstore
    if form is None or where is None:
        raise UnsupportedError(f'an array of driver "{spec.driver}" has no attributes')
    model, store = where
    file = AttributesFile(store, model.path, form, driver.known_node)
    return Attributes(file, driver.transaction, life)
