"""`StoredGroup`: the variables and attributes of one group, as xarray's data store.

What is wrong with one variable is said by its name, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from xarray.backends import AbstractDataStore

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.stored_variable import StoredVariable

if TYPE_CHECKING:
    import xarray as xr

    from tensorstore_py.integrations.xarray.source import Node

__all__ = ["StoredGroup"]


class StoredGroup(AbstractDataStore):
    """A group with its arrays, open.

    Args:
        where: how to name it to a person.
        node: the group.
        arrays: the arrays in it, by name.
        fills: as `StoredVariable.variable` takes it.
        end: closes what was opened for it.

    Attributes:
        stored: its variables, once it is `ready`.
        fills: as given.
        where: as given.
    """

    def __init__(
        self,
        where: str,
        node: Node,
        arrays: Mapping[str, Node],
        fills: bool | None,
        end: Callable[[], object],
    ) -> None:
        self.where = where
        self._node = node
        self._nodes = arrays
        # Begun here and awaited later, so that those of all groups are opened together.
        self._opening = {name: each.open() for name, each in arrays.items()}
        self.stored: dict[str, StoredVariable] = {}
        self.fills = fills
        self._end = end

    def ready(self) -> None:
        """Wait until all are open.

        Raises:
            UnsupportedError, DataLossError: one cannot be represented; names it.
            MismatchError: a dimension has two sizes; names both variables.
        """
        for name, opening in self._opening.items():
            where = f"{self.where}{name}"
            node = self._nodes[name]
            try:
                store = opening.result()
            except (ts.UnsupportedError, ts.DataLossError) as error:
                raise type(error)(
                    f'variable "{name}" cannot be opened: {error}; to open the others pass '
                    f'drop_variables=["{name}"]'
                ) from error
            except ts.TensorStoreError as error:
                error.add_note(
                    f'This is variable "{name}"; to open the others pass drop_variables=["{name}"].'
                )
                raise
            self.stored[name] = StoredVariable(name, where, node.metadata, node.attributes, store)
        self._check_sizes()

    def _check_sizes(self) -> None:
        found: dict[str, tuple[int, str]] = {}
        for each in self.stored.values():
            for dim, size in zip(each.dims, each.data.shape, strict=True):
                other, name = found.setdefault(dim, (size, each.name))
                if other != size:
                    raise ts.MismatchError(
                        f'dimension "{dim}" has size {other} in variable "{name}", but {size} in '
                        f'variable "{each.name}", in {self.where}; they are no one dataset: pass '
                        "drop_variables with one of them"
                    )

    def fetch(self, *, times: bool) -> None:
        """Begin to read what xarray reads when it opens a dataset."""
        for each in self.stored.values():
            each.fetch(times=times)

    # As xarray asks.

    def load(self) -> tuple[dict[str | None, xr.Variable], dict[str, Any]]:
        """The variables, and the attributes of the group."""
        variables = {_shown(each.name): each.variable(self.fills) for each in self.stored.values()}
        return variables, self.attributes

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the group, without those that netCDF's library hides."""
        found = self._node.attributes
        return {name: found[name] for name in found if not name.lower().startswith("_nc")}

    def __reduce__(self) -> tuple[type[_NothingOpen], tuple[()]]:
        return _NothingOpen, ()

    def close(self) -> None:
        """Close it; what was read stays."""
        for each in self.stored.values():
            each.data.store.close()
        self._end()


def _shown(name: str) -> str | None:
    """The name as xarray's users know it: it stores a variable without one under another."""
    return None if name == "__values__" else name


class _NothingOpen:
    """What a dataset that came from another process closes: arrays are opened there one by one."""

    def close(self) -> None:
        """Do nothing."""
