"""What errors of file systems and of other libraries mean, as far as they are builtin classes.

What is not known here may pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from tensorstore_py.errors import (
    FailedPreconditionError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ForeignErrors"]

_CLASSES: Final[Mapping[str, type[TensorStoreError]]] = {
    "PermissionError": PermissionDeniedError,
    "FileExistsError": FailedPreconditionError,
    "IsADirectoryError": FailedPreconditionError,
    "NotADirectoryError": FailedPreconditionError,
    "NotImplementedError": UnsupportedError,
    "ImportError": UnsupportedError,
    "OutOfRangeError": OutOfRangeError,
    "TypeError": SpecError,
}


class ForeignErrors:
    r"""What a store makes of the errors of the library underneath.

    Args:
        more: what classes of the library mean, by their names, since it may not be there.
        hidden: takes secrets out of what it says.

    Example:
        >>> errors = ForeignErrors({"Overload": UnavailableError})
        >>> errors.typed(PermissionError("not yours\n  at line 5"), "read", '"there/a"')
        PermissionDeniedError('cannot read "there/a": not yours')
    """

    def __init__(
        self,
        more: Mapping[str, type[TensorStoreError]] | None = None,
        hidden: Callable[[str], str] = str,
    ) -> None:
        self._classes = {**_CLASSES, **(more or {})}
        self._hidden = hidden

    def typed(self, error: Exception, action: str, where: str) -> TensorStoreError:
        """The error of ours for one of the library's; one of ours stays what it is.

        Args:
            error: as it was raised.
            action: what was tried, as a verb.
            where: on what, see `KvStore.describe_key`.
        """
        if isinstance(error, TensorStoreError) and not isinstance(error, OutOfRangeError):
            return error
        names = [each.__name__ for each in type(error).__mro__]
        kind = next((self._classes[name] for name in names if name in self._classes), None)
        problem = self._hidden(str(error).strip().partition("\n")[0].strip())
        problem = problem or type(error).__name__
        return (kind or UnavailableError)(f"cannot {action} {where}: {problem}")

    def raise_for(self, error: Exception, action: str, where: str) -> NoReturn:
        """Raise the error of ours for one of the library's, see `typed`."""
        raise self.typed(error, action, where) from self.cause(error)

    def cause(self, error: BaseException) -> BaseException | None:
        """What to raise it from: None if a traceback would print secrets with it."""
        each: BaseException | None = error
        seen: set[int] = set()
        while each is not None and id(each) not in seen:
            if self._hidden(text := f"{each} {each!r}") != text:
                return None
            seen.add(id(each))
            each = each.__cause__ or each.__context__
        return error
