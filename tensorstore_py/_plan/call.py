"""`Call`: what was asked for, as an object: what is done before, between and after the tasks.

`ts.copy` and the like make one and run it (`running`); `ts.plan` makes one and asks for its stages.
Each kind of call is registered by its name, so that a document can ask for it, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorstore_py._plan.homes import CALLS, load
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._plan.steps import Stage
    from tensorstore_py._plan.tasks import StageOutcome

__all__ = ["Call", "FoundCall", "call_named", "call_of", "register_call", "registered_functions"]

R = TypeVar("R")
S = TypeVar("S")


class Call(ABC, Generic[R]):
    """What was asked for."""

    operation: str

    @abstractmethod
    def request(self) -> JsonObject:
        """The arguments, as JSON that another process understands (see `call_named`).

        Raises:
            UnsupportedError: they are things that only this process has.
        """

    @abstractmethod
    def identity(self) -> JsonObject:
        """What must be the same for a second call to go on with what a first one began."""

    def resume(self, forms: Mapping[str, str]) -> None:
        """An earlier call with the same identity has begun: what it made is part of this one."""

    @abstractmethod
    async def stages(self) -> tuple[Stage, ...]:
        """What there is to do, found out from the library's loop; nothing is changed.

        Stages run one after the other, and the tasks within one in any order.
        """

    async def begin(self, again: bool) -> None:
        """Make what tasks write to. May run again where it was cut short.

        Args:
            again: an earlier call with the same identity did this, in part.
        """

    async def check_begun(self) -> None:
        """See that what an earlier call made is there.

        Raises:
            FailedPreconditionError: some of it was deleted meanwhile.
        """

    async def end(self) -> None:
        """What has to be done when all tasks are. May run again where it was cut short."""

    @abstractmethod
    def result(self, outcomes: list[StageOutcome]) -> R:
        """What the call gives.

        Args:
            outcomes: of each stage; empty for what was done by others.
        """


class FoundCall(Call[R], Generic[R, S]):
    """A call whose tasks and result follow from what there is, which is found out once."""

    _found: S | None = None

    @abstractmethod
    async def _find(self) -> S:
        """What there is, found out from the library's loop; nothing is changed."""

    async def found(self) -> S:
        """What there is."""
        if self._found is None:
            self._found = await self._find()
        return self._found

    @property
    def known(self) -> S:
        """The same, once `found` was awaited."""
        assert self._found is not None
        return self._found

    async def begin(self, again: bool) -> None:
        """Find out what there is: the result depends on it, even if others do all tasks."""
        del again
        await self.found()


#: Arguments that say how a call is run, which makes no difference to its plan.
_HOW_IT_IS_RUN = frozenset(("manifest", "executor", "dry_run", "progress"))

_builders: dict[str, tuple[Callable[..., object], Callable[..., Call[Any]]]] = {}


def register_call(function: Callable[..., object], builder: Callable[..., Call[Any]]) -> None:
    """Say what makes the `Call` of a public function, from those of its arguments that matter."""
    _builders[function.__name__] = (function, builder)


def registered_functions() -> dict[str, Callable[..., object]]:
    """The public functions whose calls can be planned, by their names."""
    load(CALLS, *CALLS)
    return {name: function for name, (function, _) in sorted(_builders.items())}


def call_of(
    function: Callable[..., object], arguments: tuple[object, ...], options: Mapping[str, object]
) -> Call[Any]:
    """The call of a public function with some arguments.

    Raises SpecError: it is no function whose calls can be planned; or whatever is wrong with them.
    """
    for known, _ in _builders.values():
        if known is function:
            return _built(known.__name__, arguments, options)
    names = ", ".join(f"ts.{name}" for name in sorted(CALLS))
    raise SpecError(f"expected one of {names}, but found {function!r}", ("operation",))


def call_named(name: str, options: Mapping[str, object]) -> Call[Any]:
    """The call that a document asks for.

    Raises SpecError: there is no such function; or whatever is wrong with its arguments.
    """
    if name not in _builders:
        load(CALLS, name)
    if name not in _builders:
        hint = did_you_mean(name, sorted(CALLS))
        raise SpecError(f"there is no operation {name!r}{hint}", ("operation",))
    return _built(name, (), options)


def _built(name: str, arguments: tuple[object, ...], options: Mapping[str, object]) -> Call[Any]:
    function, builder = _builders[name]
    ignored = _HOW_IT_IS_RUN & signature(function).parameters.keys()
    return builder(*arguments, **{each: options[each] for each in options if each not in ignored})
