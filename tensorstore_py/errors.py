"""The error tree: one class per remedy.

Each class says what its *catcher* can do; the message says what was tried, on which key,
and what to do instead. All of them are also the builtin class that TensorStore raises
(`ValueError`, `IndexError`, `NotImplementedError`), so code written for it keeps working.
Nothing here imports anything: this is the ground floor.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "DataLossError",
    "FailedPreconditionError",
    "IndexingError",
    "MismatchError",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "SpecError",
    "TensorStoreError",
    "UnavailableError",
    "UnsupportedError",
    "did_you_mean",
    "without_secrets",
]

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>|]+")
_USER: Final = re.compile(r"(://)[^/]*@")
_VALUE: Final = re.compile(r"([?&][^=&#]*)=[^&#]*")


def without_secrets(text: str) -> str:
    """A text whose URLs have no user, no password, and of the query only the names.

    Example:
        >>> without_secrets('no answer from "https://me:pass@host/a?X-Signature=1&part"')
        'no answer from "https://host/a?X-Signature=...&part"'
    """
    if "://" not in text:
        return text
    return _URL.sub(lambda url: _VALUE.sub(r"\1=...", _USER.sub(r"\1", url[0])), text)


class TensorStoreError(Exception):
    """Base of every error that this package raises on purpose.

    Whatever the message quotes, the URLs in it show no secrets.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(
            *(without_secrets(each) if isinstance(each, str) else each for each in args)
        )


class SpecError(TensorStoreError, ValueError):
    """A JSON spec, schema or metadata document is wrong. Remedy: correct the member named.

    Args:
        problem: what was found and what is allowed.
        path: the JSON path from the root to the member, e.g. `("metadata", "chunks", 0)`.

    Example:
        >>> error = SpecError("expected an integer, but found true", ("metadata", "chunks", 0))
        >>> str(error)
        'metadata.chunks[0]: expected an integer, but found true'
        >>> str(error.inside("spec"))
        'spec.metadata.chunks[0]: expected an integer, but found true'
    """

    def __init__(self, problem: str, path: tuple[str | int, ...] = ()) -> None:
        self.problem = without_secrets(problem)
        self.path = tuple(path)
        where = format_json_path(self.path)
        super().__init__(f"{where}: {self.problem}" if where else self.problem)

    def inside(self, *outer: str | int) -> SpecError:
        """The same error as seen from an enclosing document."""
        return SpecError(self.problem, (*outer, *self.path))

    def __reduce__(self) -> tuple[type[SpecError], tuple[str, tuple[str | int, ...]]]:
        return SpecError, (self.problem, self.path)


class NotFoundError(TensorStoreError, ValueError):
    """Nothing is stored at the key. Remedy: create it, or correct the path."""


class AlreadyExistsError(TensorStoreError, ValueError):
    """Something is stored at the key already. Remedy: open it, or delete it first."""


class MismatchError(TensorStoreError, ValueError):
    """What is stored contradicts what was asked. Remedy: drop the constraint or open another."""


class FailedPreconditionError(TensorStoreError, ValueError):
    """The operation does not fit the present state. Remedy: change the state, not the call."""


class AbortedError(TensorStoreError, ValueError):
    """A concurrent change won the race. Remedy: read again and retry.

    Attributes:
        attempts: how often it was tried.
    """

    def __init__(self, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts

    def __reduce__(self) -> tuple[type[AbortedError], tuple[str, int]]:
        return AbortedError, (str(self), self.attempts)


class DataLossError(TensorStoreError, ValueError):
    """Stored bytes are truncated, corrupt or fail their checksum. Remedy: restore the key."""


class PermissionDeniedError(TensorStoreError, ValueError):
    """The store refused the credentials, or the array was opened for less."""


class UnavailableError(TensorStoreError, ValueError):
    """The store did not answer after retries. Remedy: try later.

    Attributes:
        attempts: how often it was tried.
    """

    def __init__(self, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts

    def __reduce__(self) -> tuple[type[UnavailableError], tuple[str, int]]:
        return UnavailableError, (str(self), self.attempts)


class OutOfRangeError(TensorStoreError, IndexError, ValueError):
    """An index or a bound lies outside the domain. Remedy: index inside it, or resize."""


class IndexingError(TensorStoreError, IndexError, ValueError):
    """An index expression does not fit the domain at all. Remedy: correct the expression."""


class ResourceExhaustedError(TensorStoreError, MemoryError, ValueError):
    """There is not the memory that this takes. Remedy: ask for less at a time."""

    def __new__(cls, *args: object) -> Self:
        """Make one; that of MemoryError refuses a class with other bases.

        It is called by name by libraries that bring errors from one process to another.
        """
        return Exception.__new__(cls, *args)


class UnsupportedError(TensorStoreError, NotImplementedError):
    """This store, driver or codec cannot do that at all. Remedy: use one that can."""


def format_json_path(path: tuple[str | int, ...]) -> str:
    """`("a", 0, "b")` as `a[0].b`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def did_you_mean(found: str, allowed: Iterable[str], words: Mapping[str, str] | None = None) -> str:
    """A hint with the nearest allowed name, or the allowed names, or nothing.

    Args:
        found: the name that is not allowed.
        allowed: the names that are.
        words: names that other libraries have for what has another one here, and what to say.

    Example:
        >>> did_you_mean("zar3", ["zarr", "zarr3"])
        ' (did you mean "zarr3"?)'
        >>> did_you_mean("qqq", ["zarr", "zarr3"])
        ' (one of: "zarr", "zarr3")'
        >>> did_you_mean("zarr", ["zarr2", "zarr3"])
        ' (did you mean "zarr2" or "zarr3"?)'
        >>> did_you_mean("chunks", ["chunk_grid"], {"chunks": 'say "chunk_grid"'})
        '; say "chunk_grid"'
    """
    if words is not None and found in words:
        return f"; {words[found]}"
    names = sorted(allowed)
    near = get_close_matches(found, names, n=1, cutoff=0.6)
    if near:
        best = _likeness(found, near[0])
        near = [name for name in names if _likeness(found, name) == best]
        return " (did you mean " + " or ".join(f'"{name}"' for name in near) + "?)"
    if names and len(names) <= 24:
        return " (one of: " + ", ".join(f'"{name}"' for name in names) + ")"
    return ""


def _likeness(found: str, name: str) -> float:
    return SequenceMatcher(a=name, b=found).ratio()
