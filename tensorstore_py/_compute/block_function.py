"""`BlockFunction`: the user's function, as it is called here and as it gets to another process.

A function that can be imported travels by its name, `"module:function"`, which a document can say,
too. Any other is pickled, by cloudpickle if that is installed, and never becomes part of a
document: a document holds names and data, not code.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.user_function import UserFunction
from tensorstore_py._spec.registry import admits
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

__all__ = ["BlockFunction", "PickledFunction"]

#: A function with a parameter of this name gets the domain of the block.
_DOMAIN = "domain"


class PickledFunction:
    """A function that has no name that others know, on its way to another process."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data

    @staticmethod
    def of(function: Callable[..., object], name: str) -> PickledFunction:
        """A function pickled.

        Raises UnsupportedError: it can't be.
        """
        try:
            pickler: Any = importlib.import_module("cloudpickle")
        except ImportError:
            pickler = pickle
        try:
            return PickledFunction(name, pickler.dumps(function))
        except Exception as error:
            raise UnsupportedError(
                f"the function {name} cannot be sent to another process ({error}); put it into a "
                'module and pass it as "module:function", or pip install cloudpickle'
            ) from error

    def open(self) -> Callable[..., object]:
        """The function.

        Raises UnsupportedError: this process lacks a module that it needs.
        """
        try:
            function: Callable[..., object] = pickle.loads(self.data)  # noqa: S301 - sent by us
        except (ImportError, AttributeError) as error:
            raise _unknown(self.name, error) from error
        return function


class BlockFunction:
    """See the head of this file.

    Args:
        function: it, or `"module:function"`.
        inputs: how many blocks it takes.
        kwargs: what else it is called with.
        loop: the event loop on which its coroutines run; None: the library's own.

    Raises:
        SpecError: the name is none of a function, or may not be used here (see `Trust`).
        TypeError: it is no function.
    """

    __slots__ = ("_function", "_takes_domain", "_user", "kwargs", "name")

    def __init__(
        self,
        function: Callable[..., object] | str,
        inputs: int,
        kwargs: Mapping[str, object],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.kwargs = dict(kwargs)
        self._function = imported(function) if isinstance(function, str) else function
        if not callable(self._function):
            raise TypeError(f"expected a function, or 'module:function', but found {function!r}")
        self.name = function if isinstance(function, str) else name_of(function)
        self._user = UserFunction(self._call, loop)
        if not UserFunction(self._function, None).inline:
            self._user = UserFunction(self._call_async, loop)
        self._takes_domain = _DOMAIN not in self.kwargs and _takes_domain(self._function, inputs)

    @property
    def inline(self) -> bool:
        """Whether it is called on threads; else it is awaited."""
        return self._user.inline

    def to_json(self) -> str:
        """Its name, for a document.

        Raises UnsupportedError: it has none that others know.
        """
        if not _is_importable(self._function, self.name):
            raise UnsupportedError(
                f"the function {self.name} cannot be part of a document, since nobody can import "
                'it; put it into a module and pass "module:function"'
            )
        return self.name

    def portable(self) -> str | PickledFunction:
        """What goes to another process: its name, or else the function pickled.

        Raises UnsupportedError: it can't go there at all.
        """
        if _is_importable(self._function, self.name):
            return self.name
        return PickledFunction.of(self._function, self.name)

    async def __call__(
        self, inline: bool, *blocks: object, domain: object, quiet: bool = False
    ) -> object:
        """What it gives for one block of each source; `domain` is the part of the target.

        `quiet` leaves out NumPy's warnings of values, such as a division by zero.
        """
        user = self._user
        return await within(inline, user.inline, lambda: user(user.inline, blocks, domain, quiet))

    def _call(self, blocks: tuple[object, ...], domain: object, quiet: bool) -> object:
        given = {_DOMAIN: domain} if self._takes_domain else {}
        if quiet:
            with np.errstate(all="ignore"):
                return self._function(*blocks, **given, **self.kwargs)
        return self._function(*blocks, **given, **self.kwargs)

    async def _call_async(self, blocks: tuple[object, ...], domain: object, quiet: bool) -> object:
        found: Any = self._call(blocks, domain, quiet)
        return await found


def imported(name: str) -> Callable[..., object]:
    """The function that `"module:function"` names.

    Raises:
        SpecError: it is no such name; a document that is not trusted may not use it.
        UnsupportedError: there is no such module or function here.
    """
    module, colon, path = name.partition(":")
    if not (colon and module and path):
        raise SpecError(f'expected a function, or "module:function", but found "{name}"',
                        ("function",))  # fmt: skip
    if not admits(name):
        raise SpecError(
            f'"{name}" is code, which a document that is not trusted may not run; if this may be '
            f'run, pass trust=Trust(plugins=["{name}"])',
            ("function",),
        )
    try:
        found = reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise _unknown(name, error) from error
    if not callable(found):
        raise SpecError(f'"{name}" is a {type(found).__name__}, and no function', ("function",))
    function: Callable[..., object] = found
    return function


def name_of(function: object) -> str:
    """`"module:function"`, whether or not it can be imported by that.

    Example:
        >>> import json
        >>> name_of(json.dumps)
        'json:dumps'
    """
    kind = type(function)
    module = getattr(function, "__module__", None) or kind.__module__
    path = getattr(function, "__qualname__", None) or getattr(function, "__name__", kind.__name__)
    return f"{module}:{path}"


def _unknown(name: str, error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"this process cannot import the function {name} ({error}); install its module wherever "
        "tasks run, or add its folder to PYTHONPATH there"
    )


def _is_importable(function: object, name: str) -> bool:
    """Whether another process finds the very function by its name."""
    module, _, path = name.partition(":")
    if module == "__main__":
        return False
    try:
        return reduce(getattr, path.split("."), sys.modules[module]) is function
    except (KeyError, AttributeError):
        return False


def _takes_domain(function: Callable[..., object], inputs: int) -> bool:
    """Whether a function has a parameter `domain` that is none of its inputs."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    found = parameters.get(_DOMAIN)
    if found is None:
        return False
    if found.kind == inspect.Parameter.KEYWORD_ONLY:
        return True
    return (
        found.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
        and list(parameters).index(_DOMAIN) >= inputs
    )
