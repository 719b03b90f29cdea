"""What an argument of the command line leads to: an array, a group, or a directory of keys.

A `Target` is what was typed; `Found` is what is open. What is in a group or a directory is opened
entry by entry, so that one that is damaged hides no other, and many at a time, level by level: over
a network a level costs a few round trips, however many entries it has.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from tensorstore_py._api.begin import begin
from tensorstore_py._api.group import Group
from tensorstore_py._api.group_spec import group_model
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec, load_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.store_abilities import list_directory
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py.cli.places import ARCHIVES, MANIFEST, add_trust, place, trust
from tensorstore_py.cli.selection import Selection, parse_selection, split_selection
from tensorstore_py.errors import (
    MismatchError,
    NotFoundError,
    SpecError,
    TensorStoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.context import Context

__all__ = [
    "Entry",
    "Found",
    "Target",
    "add_target",
    "add_trusted_target",
    "arrays",
    "entries",
    "find",
    "kind_of",
    "levels",
    "one_array",
    "sizes_below",
    "some_arrays",
    "target",
    "together",
    "trusted",
]

Found: TypeAlias = TensorStore | Group | KvStore

#: So many operations are begun before the first of them has to be done.
_AT_A_TIME: Final = 64

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

    @property
    def nbytes(self) -> int:
        """Of the elements of an array as they are in memory; 0: it is none."""
        array = self.found
        return (
            array.size * array.dtype.numpy_dtype.itemsize if isinstance(array, TensorStore) else 0
        )


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


def add_trusted_target(
    parser: argparse.ArgumentParser, about: str = "", *, several: bool = False, selects: bool = True
) -> None:
    """Declare the same, and what it may name if somebody else named it: see `trusted`."""
    add_target(parser, about, several=several, selects=selects)
    add_trust(parser)


def trusted(asked: Target, options: argparse.Namespace) -> Target:
    """An argument, if what it names may be used.

    Raises SpecError: it may not; has the JSON path.
    """
    may = trust(options)
    if may is None:
        return asked
    where = asked.where
    if not isinstance(where, Path):
        is_json = isinstance(where, str) and where.lstrip()[:1] == "{"
        json = parse_json_text(where) if isinstance(where, str) and is_json else where
        return asked._replace(where=Spec(json, trust=may))
    KvStore.Spec(where, trust=may)
    if where.suffix == ".json" and where.is_file():
        return asked._replace(where=load_spec(where, trust=may))
    return asked


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
    """A local path; one in an archive, a safetensors file or a database of OCDBT as its URL."""
    for parent in (path, *path.parents):
        kind = parent.suffix.lower()[1:]
        if kind in ARCHIVES and parent.is_file():
            inner = path.relative_to(parent).as_posix()
            below = "" if inner == "." else f"{inner}/"
            return f"{parent.absolute().as_uri()}|{kind}:{below}"
        if parent is not path and (parent / MANIFEST).is_file() and not path.exists():
            inner = path.relative_to(parent).as_posix()
            return f"{parent.absolute().as_uri()}/|ocdbt:{inner}/"
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
        missing: TensorStoreError = error
    except SpecError as error:
        if not isinstance(where, Path) or where.suffix == ".json":
            raise
        missing = error  # a file that is no spec may be known by its content
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
        return found if _begin_names(found).result() else None
    except (SpecError, UnsupportedError, NotFoundError):
        return None


def one_array(asked: Target, command: str) -> TensorStore:
    """The array that is there.

    Raises MismatchError: something else is; errors of `find`.
    """
    found = find(asked)
    if isinstance(found, TensorStore):
        return found
    names = [each.name for each in arrays(found, enough=5) if each.kind == "array"][:5]
    inside = "tspy tree shows what is in it"
    if names:
        inside = f"name one of its arrays: {', '.join(names)}"
    raise MismatchError(f"{command} takes an array, and a {kind_of(found)} is there; {inside}")


def entries(found: Group | KvStore, *, sizes: bool = False) -> list[Entry]:
    """What is right below a group or a directory, sorted by name; `sizes`: ask for those of keys.

    Raises UnsupportedError: the store cannot list its keys.
    """
    below = levels(found, 1)[""]
    if not sizes or isinstance(found, Group):
        return below
    keys = [each.name for each in below if each.kind == "key"]
    asked = together(partial(_size, found, name) for name in keys)
    known = dict(zip(keys, asked, strict=True))
    return [
        each._replace(size=size) if isinstance(size := known.get(each.name), int) else each
        for each in below
    ]


def levels(
    found: Group | KvStore, depth: int | None = None, *, enough: int | None = None
) -> dict[str, list[Entry]]:
    """What is below a group or a directory: the entries of each, sorted, by its path; `""` is it.

    Args:
        found: it.
        depth: so many levels at most.
        enough: no further level is looked at when so many arrays are found.

    Raises UnsupportedError: the store cannot list its keys.
    """
    inside: dict[str, list[Entry]] = {}
    waiting: dict[str, Group | KvStore] = {"": found}
    arrays_ = 0
    while waiting and depth != 0 and (enough is None or arrays_ < enough):
        listed = _listed(waiting)
        asked = [
            (path, name, above)
            for path, (above, names) in listed.items()
            for name in sorted(_names(names, path))
        ]
        opened = _opened([(name, above) for _, name, above in asked])
        waiting = {}
        for path, (_, names) in listed.items():
            failed = isinstance(names, TensorStoreError)
            inside[path] = [Entry(".", "unreadable", problem=str(names))] if failed else []
        for (path, _, _), each in zip(asked, opened, strict=True):
            inside[path].append(each)
            arrays_ += each.kind == "array"
            if isinstance(each.found, Group | KvStore):
                waiting[f"{path}/{each.name}" if path else each.name] = each.found
        depth = None if depth is None else depth - 1
    return inside


def _listed(
    waiting: Mapping[str, Group | KvStore],
) -> dict[str, tuple[Group | KvStore, list[str] | TensorStoreError]]:
    """What to look into, and the names right below it; of a database of OCDBT what it holds."""
    named = together(partial(_begin_names, each) for each in waiting.values())
    found = dict(zip(waiting, zip(waiting.values(), named, strict=True), strict=True))
    for path, (above, names) in found.items():
        if isinstance(above, KvStore) and isinstance(names, list) and MANIFEST in names:
            try:
                database = import_module("tensorstore_py.ocdbt").open(above).result()
                found[path] = database, _begin_names(database).result()
            except TensorStoreError as error:
                found[path] = above, error
    return found


def together(starts: Iterable[Callable[[], Future[Any]]], at_a_time: int = _AT_A_TIME) -> list[Any]:
    """What operations give, or why they failed, in order; so many are under way at a time."""
    found: list[Any] = []  # Any: what they give, each its own kind
    waiting: deque[Future[Any]] = deque()

    def take() -> None:
        try:
            found.append(waiting.popleft().result())
        except TensorStoreError as error:
            found.append(error)

    for start in starts:
        try:
            waiting.append(start())
        except TensorStoreError as error:
            while waiting:
                take()
            found.append(error)
        if len(waiting) >= at_a_time:
            take()
    while waiting:
        take()
    return found


def _names(found: list[str] | TensorStoreError, path: str) -> list[str]:
    """The names that a listing gave; none if that of a place below the first failed."""
    if not isinstance(found, TensorStoreError):
        return found
    if path:
        return []
    raise found


def _opened(asked: Sequence[tuple[str, Group | KvStore]]) -> list[Entry]:
    """Names right below groups and directories, open."""
    found: dict[int, Entry] = {}
    places: dict[int, KvStore] = {}
    starts: dict[int, Callable[[], Future[Any]]] = {}
    for number, (name, above) in enumerate(asked):
        if isinstance(above, Group):
            starts[number] = partial(above.open, name)
        elif name.endswith("/"):
            places[number] = above + name
            starts[number] = partial(open_array, places[number], read=True)
        else:
            found[number] = Entry(name, "key")

    def take(done: Mapping[int, Found | TensorStoreError]) -> dict[int, KvStore]:
        """Note what was opened; what is no array may be something else."""
        left = {}
        for number, each in done.items():
            name = asked[number][0].rstrip("/")
            if not isinstance(each, TensorStoreError):
                found[number] = Entry(name, kind_of(each), each)
            elif number in places and isinstance(each, MismatchError | NotFoundError):
                left[number] = places[number]
            else:
                found[number] = Entry(name, "unreadable", problem=str(each))
        return left

    left = take(dict(zip(starts, together(starts.values()), strict=True)))
    groups = together(partial(Group.open, place) for place in left.values())
    for number, each in zip(left, groups, strict=True):
        if isinstance(each, NotFoundError | SpecError | UnsupportedError):
            take({number: left[number]})  # a directory
        else:
            take({number: each})
    return [found[number] for number in range(len(asked))]


def some_arrays(asked: Target, found: Found) -> list[Entry]:
    """The same; at least one.

    Raises NotFoundError: there is no array, nor anything that is unreadable.
    """
    entries_ = list(arrays(found))
    if not entries_:
        raise NotFoundError(
            f"there is no array in {asked.text}; tspy tree --keys shows what is in it"
        )
    return entries_


def arrays(found: Found, *, enough: int | None = None) -> Iterator[Entry]:
    """All arrays at and below something, and what is unreadable, by path; `""` is that itself.

    `enough`: no further level is looked at when so many arrays are found.
    """
    if isinstance(found, TensorStore):
        yield Entry("", "array", found)
        return
    yield from _in_order(levels(found, enough=enough), "")


def _in_order(inside: Mapping[str, list[Entry]], path: str) -> Iterator[Entry]:
    for each in inside.get(path, ()):
        name = f"{path}/{each.name}" if path else each.name
        if each.kind in ("array", "unreadable"):
            yield each._replace(name=name)
        elif each.found is not None:
            yield from _in_order(inside, name)


def _begin_names(found: Group | KvStore) -> Future[list[str]]:
    """The names right below; in directories those of directories end in "/"."""
    if isinstance(found, Group):
        return found.names()
    store, path = found.store, found.path

    async def body() -> list[str]:
        return [name async for name in list_directory(store, path) if name != "/"]

    return begin(store.inline, body, None)


def _size(directory: KvStore, name: str) -> Future[int | None]:
    """The size of a value right below a place; None: the store does not say."""
    store, key = directory.store, directory.path + name

    async def body() -> int | None:
        async for entry in store.list(KeyRange(encode_key(key), encode_key(key) + b"\0")):
            return entry.size if entry.size >= 0 else None
        return None

    return begin(store.inline, body, None)


def sizes_below(place: KvStore, take: Callable[[str, int], None]) -> Future[None]:
    """Call `take` with each key below a place, whole, and the size of its value, -1 if unknown.

    Raises UnsupportedError: (by the Future) the store cannot list its keys.
    """
    store, path = place.store, place.path

    async def body() -> None:
        async for entry in store.list(KeyRange.prefix(path)):
            take(entry.key, entry.size)

    return begin(store.inline, body, None)
