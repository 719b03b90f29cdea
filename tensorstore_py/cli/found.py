"""What an argument of the command line leads to: an array, a group, or a directory of keys.

A `Target` is what was typed; `Found` is what is open. What is in a group or a directory is found
entry by entry, so that one that is damaged hides no other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tensorstore_py._api.begin import begin
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import group_model
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py.cli.places import place
from tensorstore_py.cli.selection import Selection, parse_selection, split_selection
from tensorstore_py.errors import (
    MismatchError,
    NotFoundError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._spec.context import Context

__all__ = [
    "Entry",
    "Found",
    "Target",
    "add_target",
    "arrays",
    "entries",
    "find",
    "kind_of",
    "one_array",
    "sizes_below",
    "target",
]

Found: TypeAlias = TensorStore | Group | KvStore

_PLACE = "URL, local path, spec file or JSON"


class Target(NamedTuple):
    """What an argument says.

    Attributes:
        text: as it was given.
        where: what `ts.open` takes.
        selection: of an array; None: all of it.
    """

    text: str
    where: object
    selection: Selection | None = None


class Entry(NamedTuple):
    """Something below a place.

    Attributes:
        name: its path from there.
        kind: `"array"`, `"group"`, `"directory"`, `"key"` or `"unreadable"`.
        found: it, open; None: a key, or unreadable.
        problem: why it could not be opened.
        size: of a key's value, in bytes; None: the store does not say.
    """

    name: str
    kind: str
    found: Found | None = None
    problem: str = ""
    size: int | None = None


def add_target(
    parser: argparse.ArgumentParser, about: str = "", *, several: bool = False, selects: bool = True
) -> None:
    """Declare the argument `target`, or `targets` if there may be several."""
    words = f"{_PLACE}; with a selection: 'a.zarr[0, :, 5:9]', 'a.zarr[x=0:10]'"
    help_ = about or (words if selects else _PLACE)
    if several:
        parser.add_argument("targets", type=target, nargs="+", metavar="PLACE", help=help_)
    else:
        parser.add_argument("target", type=target, metavar="PLACE", help=help_)


def target(text: str) -> Target:
    """What an argument says.

    Raises ArgumentTypeError: the selection is none.

    Example:
        >>> found = target("memory://a/[0, 2:4]")
        >>> found.where, found.selection.terms
        ('memory://a/', (0, slice(2, 4, None)))
    """
    if "://" not in text and Path(text).exists():
        return Target(text, _in_archive(Path(text)))
    where, selection = split_selection(text)
    given = place(where)
    found = _in_archive(given) if isinstance(given, Path) else given
    return Target(text, found, parse_selection(selection) if selection else None)


def _in_archive(path: Path) -> object:
    """A local path; one in a zip archive as its URL."""
    for parent in (path, *path.parents):
        if parent.suffix.lower() == ".zip" and parent.is_file():
            inner = path.relative_to(parent).as_posix()
            below = "" if inner == "." else f"{inner}/"
            return f"{parent.absolute().as_uri()}|zip:{below}"
    return path


def find(asked: Target, context: Context | None = None) -> Found:
    """What is there; opened in a context of its own if none is given.

    Raises:
        NotFoundError: nothing.
        SpecError: the place is wrong.
        MismatchError: a selection of what is no array.
        IndexingError: a selection of what the array has not.
        TensorStoreError: why the store could not be asked, or metadata not read.
    """
    found = _at(asked.where, context)
    if asked.selection is None:
        return found
    if isinstance(found, TensorStore):
        return asked.selection.of(found)
    raise MismatchError(
        f"{asked.text}: a selection is of an array, and a {kind_of(found)} is there; "
        "name one of its arrays"
    )


def kind_of(found: Found) -> str:
    """What it is, in a word."""
    if isinstance(found, TensorStore):
        return "array"
    return "group" if isinstance(found, Group) else "directory"


def _at(where: object, context: Context | None = None) -> Found:
    try:
        return open_array(where, read=True, context=context).result()
    except (MismatchError, NotFoundError) as error:
        missing = error
    with suppress(NotFoundError, SpecError, UnsupportedError):
        return Group.open(where, context=context).result()
    directory = _directory(where, context)
    if directory is None:
        raise missing
    return directory


def _directory(where: object, context: Context | None) -> KvStore | None:
    """The keys below a place; None if there are none."""
    if isinstance(where, Path) and not where.is_dir():
        return None
    try:
        model = group_model(where)
        store = getattr(model, "kvstore", None)
        if store is None or model.driver != "auto":
            return None
        found = KvStore.open(KvStore.Spec.of(store), context=context).result()
        if found.path and not found.path.endswith("/"):
            found = found + "/"
        return found if _names(found) else None
    except (SpecError, UnsupportedError, NotFoundError):
        return None


def one_array(asked: Target, command: str) -> TensorStore:
    """The array that is there.

    Raises MismatchError: something else is; errors of `find`.
    """
    found = find(asked)
    if isinstance(found, TensorStore):
        return found
    inner = (each.name for each in arrays(found) if each.kind == "array")
    names = list(islice(inner, 5))
    inside = "tspy tree shows what is in it"
    if names:
        inside = f"name one of its arrays: {', '.join(names)}"
    raise MismatchError(f"{command} takes an array, and a {kind_of(found)} is there; {inside}")


def entries(found: Group | KvStore, *, sizes: bool = False) -> list[Entry]:
    """What is right below a group or a directory, sorted by name; `sizes`: ask for those of keys.

    Raises UnsupportedError: the store cannot list its keys.
    """
    if isinstance(found, Group):
        return [_opened(name, found) for name in sorted(found.names().result())]
    return [
        _opened(name[:-1], found)
        if name.endswith("/")
        else Entry(name, "key", size=_size(found, name) if sizes else None)
        for name in _names(found)
        if name != "/"
    ]


def _opened(name: str, above: Group | KvStore) -> Entry:
    try:
        if isinstance(above, Group):
            found: Found = above.open(name).result()
        else:
            below = above + f"{name}/"
            try:
                found = _at(below)
            except NotFoundError:
                found = below
    except TensorStoreError as error:
        return Entry(name, "unreadable", problem=str(error))
    return Entry(name, kind_of(found), found)


def arrays(found: Found) -> Iterator[Entry]:
    """All arrays at and below something, and what is unreadable, by path; `""` is that itself."""
    if isinstance(found, TensorStore):
        yield Entry("", "array", found)
        return
    for each in entries(found):
        if each.kind == "unreadable":
            yield each
        elif each.found is not None:
            for inner in arrays(each.found):
                yield inner._replace(name="/".join(filter(None, (each.name, inner.name))))


def _names(directory: KvStore) -> list[str]:
    """The names right below a place, sorted; those of directories end in "/"."""
    store, path = directory.store, directory.path

    async def body() -> list[str]:
        return sorted([name async for name in list_directory(store, path)])

    return begin(store.inline, body, None).result()


def _size(directory: KvStore, name: str) -> int | None:
    """The size of a value right below a place; None: the store does not say."""
    store, key = directory.store, directory.path + name

    async def body() -> int | None:
        async for entry in store.list(KeyRange(encode_key(key), encode_key(key) + b"\0")):
            return entry.size if entry.size >= 0 else None
        return None

    return begin(store.inline, body, None).result()


def sizes_below(place: KvStore, take: Callable[[str, int], None]) -> None:
    """Call `take` with each key below a place, whole, and the size of its value, -1 if unknown.

    Raises UnsupportedError: the store cannot list its keys.
    """
    store, path = place.store, place.path

    async def body() -> None:
        async for entry in store.list(KeyRange.prefix(path)):
            take(entry.key, entry.size)

    begin(store.inline, body, None).result()
