"""The attributes of a node as zarr-python's users hold them: a dictionary whose changes are stored.

A view over `ts.Attributes`, whose Futures are waited for here: a change is stored when the call
returns. A node that was opened to be read only refuses changes, as its values do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from tensorstore_py._api.attributes import Attributes as EngineAttributes

__all__ = ["Attributes"]


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group: its `attrs`.

    Nothing is kept: each access asks the store. A change of several attributes is made at once, and
    on what is stored by then, so changes by others are not lost.

    Args:
        attributes: the engine's.
        check_writable: raises if the node is only to be read.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.zeros(4, attributes={"unit": "K"})
        >>> z.attrs.update(author="Ada", runs=1)
        >>> z.attrs["runs"] += 1
        >>> z.attrs
        {'unit': 'K', 'author': 'Ada', 'runs': 2}
        >>> z.attrs.pop("author")
        'Ada'
    """

    __slots__ = ("_check_writable", "_engine")

    def __init__(self, attributes: EngineAttributes, check_writable: Callable[[], None]) -> None:
        self._engine = attributes
        self._check_writable = check_writable

    def asdict(self) -> dict[str, Any]:
        """All of them, as they are stored now."""
        return self._engine.asdict()

    def put(self, attributes: Mapping[str, object]) -> None:
        """Replace all of them by others.

        Raises:
            SpecError: one is no JSON; has the path to it.
            ReadOnlyError: the node is only to be read.
        """
        self._check_writable()
        self._engine.put(attributes).result()

    def update(self, *attributes: Any, **more: object) -> None:
        """Set some at once; the others stay. Raises as `put`.

        Args:
            *attributes: what `dict` takes: a mapping, or pairs of name and value.
            **more: further ones.
        """
        self._check_writable()
        self._engine.update(dict(*attributes, **more)).result()

    def change(self, function: Callable[[dict[str, Any]], Mapping[str, object]]) -> None:
        """Replace all of them by what a function makes of them: `ts.Attributes.change`."""
        self._check_writable()
        self._engine.change(function).result()

    def clear(self) -> None:
        """Remove all of them."""
        self.put({})

    def refresh(self) -> None:
        """Nothing to do: each access asks the store."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - JSON, as json.loads has it
        return self._engine[name]

    def __setitem__(self, name: str, value: object) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        self._check_writable()
        del self._engine[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._engine)

    def __len__(self) -> int:
        return len(self._engine)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Attributes | EngineAttributes):
            other = other.asdict()
        return self.asdict() == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # what it equals changes

    def __repr__(self) -> str:
        return repr(self.asdict())
