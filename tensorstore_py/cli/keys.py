"""What an argument names among the keys of a store: one key, or a tree, all keys below a directory.

Formats play no part in which keys these are: an array, a group and a directory of anything are
trees. What ends in `/` is a tree; anything else is the key of that name if there is one, and else
the tree below it. A local path is the file or directory itself, also where that is a spec file or
an archive; what is inside an archive is named by a path through it. `Tally` is what is in a tree.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._api.keys import next_page
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as described
from tensorstore_py._api.spec import Spec
from tensorstore_py._display.info import human_size
from tensorstore_py._hierarchy.document import parse_document
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._spec.context import spec_json, unbind
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py._spec.registry import kvstores
from tensorstore_py.cli import output
from tensorstore_py.cli.exit_codes import CALLED_WRONGLY
from tensorstore_py.cli.output import printable
from tensorstore_py.cli.places import ARCHIVES, MANIFEST
from tensorstore_py.cli.selection import split_selection
from tensorstore_py.errors import NotFoundError, SpecError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tensorstore_py._interface.hierarchy import HierarchyFormat
    from tensorstore_py._interface.kvstore import ListEntry
    from tensorstore_py._spec.context import Context

__all__ = [
    "Keys",
    "Tally",
    "check_apart",
    "check_spares",
    "counted_keys",
    "entries_in",
    "find_keys",
    "is_document",
    "local_path",
    "named",
    "store_at",
    "tell_consolidated",
    "tried",
    "whole_store",
]


class Keys(NamedTuple):
    """Keys of a store.

    Attributes:
        name: how to name them to a person.
        store: its path is the key, or what all keys of the tree begin with.
        tree: whether it is a tree.
    """

    name: str
    store: KvStore
    tree: bool

    @property
    def range(self) -> KeyRange:
        """Their range, of whole keys."""
        path = self.store.path
        if self.tree:
            return KeyRange.prefix(path)
        return KeyRange(encode_key(path), encode_key(path) + b"\0")

    def pages(self) -> Iterator[list[ListEntry]]:
        """Them, and the sizes of their values: as many at a time as a listing gives.

        Raises UnsupportedError: the store cannot list.
        """
        return entries_in(self.store, self.range)


class Tally:
    """What is in a tree, counted while it is listed.

    Attributes:
        keys: how many.
        size: bytes of all values; None: the store does not say.
        form: the format of the array or group that the tree is; None: it is none.
        kind: `"key"`, `"array"`, `"group"` or `"directory"`.
        documents: whole keys that make directories arrays, groups or databases.
    """

    def __init__(self, found: Keys) -> None:
        self.keys = 0
        self.size: int | None = 0
        self.form: HierarchyFormat | None = None
        self.kind = "directory" if found.tree else "key"
        self.documents: list[str] = []

    @classmethod
    def of(cls, found: Keys) -> Tally:
        """What is in there now; errors as for `Keys.pages`."""
        tally = cls(found)
        forms = formats() if found.tree else []
        nodes = {name: form for form in forms for name in form.node_keys}
        path = found.store.path
        for page in found.pages():
            tally.keys += len(page)
            for entry in page:
                if is_document(entry.key):
                    tally.documents.append(entry.key)
                known = tally.size is not None and entry.size >= 0
                tally.size = tally.size + entry.size if known and tally.size is not None else None
                form = nodes.get(entry.key[len(path) :])
                if form is not None:
                    tally.form = form
                    tally.kind = _node_kind(found.store, entry.key[len(path) :], form)
        return tally

    def __str__(self) -> str:
        size = "" if self.size is None else f", {human_size(self.size)}"
        return f"{counted_keys(self.keys)}{size}"

    def to_json(self) -> dict[str, Any]:
        """As commands print it."""
        return {"kind": self.kind, "keys": self.keys, "bytes": self.size}


def _node_kind(store: KvStore, key: str, form: HierarchyFormat) -> str:
    """What a node is; one whose document is damaged can still be copied and removed."""
    with suppress(TensorStoreError):
        found = store.read(key).result()
        return form.kind(key, parse_document(found.value, key))
    return "directory"


def is_document(key: str) -> bool:
    """Whether a key makes the directory that it is in an array, a group or a database."""
    return key.rpartition("/")[2] in _documents()


@cache
def _documents() -> frozenset[str]:
    names = {name for form in formats() for name in (*form.node_keys, form.consolidated_key)}
    return frozenset(filter(None, names)) | {name for _, name in KvStoreSpec.in_directories()}


def counted_keys(count: int) -> str:
    """A number of keys, in words."""
    return f"{count:,} key{'s' * (count != 1)}"


def store_at(text: str, context: Context) -> KvStore:
    """The store that an argument names, at the path that it names; a directory's ends in `/`.

    Raises SpecError: it names none; has the JSON path.
    """
    if text.lstrip()[:1] == "{":
        return _of_json(parse_json_text(text), context)
    if "://" not in text:
        path = Path(text)
        inside = _in_archive(path, directory=text.endswith(("/", os.sep)))
        return KvStore.open(inside or _local_url(text), context=context).result()
    try:
        return KvStore.open(text, context=context).result()
    except SpecError:
        return _of_model(Spec(text).model, context)


def _of_json(json: object, context: Context) -> KvStore:
    driver = json.get("driver") if isinstance(json, dict) else None
    if isinstance(driver, str) and kvstores.find(driver) is not None:
        return KvStore.open(json, context=context).result()
    return _of_model(Spec(json).model, context)


def _of_model(model: object, context: Context) -> KvStore:
    """The store of an array's spec; its path is a directory."""
    kept = getattr(model, "kvstore", None)
    if not isinstance(kept, KvStoreSpec):
        raise SpecError("this names no store of keys; name one, such as s3://bucket/run.zarr/")
    store = KvStore.open(KvStore.Spec.of(kept), context=context).result()
    return store if not store.path or store.path.endswith("/") else store + "/"


def _local_url(text: str) -> str:
    """The URL of a local path: links above it are followed, itself it may be one."""
    path = Path(text)
    whole = path.resolve() if path.name in ("", ".", "..") else path.parent.resolve() / path.name
    slash = text.endswith(("/", os.sep)) or path.name in ("", ".", "..")
    url = whole.as_uri()
    return f"{url}/" if slash and not url.endswith("/") else url


def _in_archive(path: Path, *, directory: bool) -> str | None:
    """The URL of what is inside a local archive or database; None: the path leads into none.

    What is in a database's directory by itself, its files, is named by their paths.
    """
    for parent in (path, *path.parents):
        inner = "" if parent == path else path.relative_to(parent).as_posix() + "/" * directory
        kind = parent.suffix.lower()[1:]
        if kind in ARCHIVES and parent.is_file():
            return f"{parent.resolve().as_uri()}|{kind}:{inner}" if inner or directory else None
        if inner and (parent / MANIFEST).is_file():
            # What is there is one of the database's own files.
            return None if path.exists() else f"{parent.resolve().as_uri()}/|ocdbt:{inner}"
    return None


def find_keys(text: str, context: Context) -> Keys:
    """The keys that an argument names.

    Raises:
        NotFoundError: there are none.
        SpecError: it names no store.
        UnsupportedError: it names a tree, and the store cannot list.
    """
    store = store_at(text, context)
    name = named(text, store)
    if store.path and not store.path.endswith("/"):
        if _is_key(store):
            return Keys(name, store, tree=False)
        if not store.store.listable:
            raise NotFoundError(
                f"there is no key {name}; this store cannot list, so only single keys can be named"
            )
        store += "/"
    found = Keys(name, store, tree=True)
    folder = local_path(store)
    if next(found.pages(), None) is None and not (folder is not None and folder.is_dir()):
        hint = ""
        if split_selection(text)[1]:
            hint = "; whole keys and trees are named here, without a selection"
        raise NotFoundError(f"nothing is at {name}{hint}")
    return found


def _is_key(store: KvStore) -> bool:
    path = local_path(store)
    if path is not None:
        return path.is_file() or (path.is_symlink() and not path.exists())
    return store.read("", byte_range=slice(0, 0)).result().state == "value"


def named(text: str, store: KvStore) -> str:
    """How to name a place to a person: as it was typed if it is local, and without secrets."""
    if "://" not in text and text.lstrip()[:1] != "{":
        return text
    return described(store.spec().model)


def local_path(store: KvStore) -> Path | None:
    """The path in the local file system; None: the store is another one."""
    return Path(store.path or "/") if store.spec().model.driver == "file" else None


def entries_in(store: KvStore, key_range: KeyRange) -> Iterator[list[ListEntry]]:
    """The keys of a range, whole, page by page; errors as for `Keys.pages`."""
    promise = store.store
    listing = promise.list(key_range)
    try:
        while page := _run(promise.inline, lambda: next_page(listing)):
            yield page
    finally:
        close: Callable[[], Coroutine[Any, Any, None]] | None = getattr(listing, "aclose", None)
        if close is not None:
            _run(promise.inline, close)


def tell_consolidated(changed: Iterable[KvStore]) -> None:
    """Say on standard error which consolidated metadata, of groups above, is out of date now.

    Args:
        changed: places where something was put or taken away.
    """
    told = set()
    for store in changed:
        told |= set(_consolidated_above(store))
    if told:
        sys.stderr.write(
            f"out of date now: consolidated metadata in {', '.join(sorted(told))}; "
            "ts.Group.open(place).result().consolidate() writes it again\n"
        )


def _consolidated_above(store: KvStore) -> Iterator[str]:
    parts = store.path.rstrip("/").split("/")
    promise = store.store
    for depth in range(not parts[0], len(parts)):  # paths of files begin with "/"
        above = "".join(f"{part}/" for part in parts[:depth])
        for form in formats():
            if form.consolidated_key is None:
                continue
            key = above + form.consolidated_key
            with suppress(TensorStoreError):  # what cannot be read is no group that is read
                found = _run(promise.inline, partial(promise.read, key))
                if found.state != "value":
                    continue
                if form.consolidated(parse_document(found.value, key)) is not None:
                    yield promise.describe_key(key)


def tried(work: Callable[[], int]) -> int:
    """As `output.tried`; arguments that are wrong have an exit code of their own."""

    def checked() -> int:
        try:
            return work()
        except SpecError as error:
            sys.stderr.write(f"{printable(str(error), lines=True)}\n")
            return CALLED_WRONGLY

    return output.tried(checked)


def _run(inline: bool, body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401 - as it gives
    return start(inline, body, on_interrupt=OnInterrupt.CANCEL).result()


def whole_store(found: Keys) -> bool:
    """Whether they are all keys that the store has: a bucket, an archive, a database."""
    return found.tree and found.store.path in ("", "/")


def check_spares(found: Keys, done: str) -> None:
    """Refuse to take away what is not meant; `done`: `"deleted"` or `"moved"`.

    Raises SpecError: it is the root of the file system, holds the working directory or the user's
        own, or is a link to a directory.
    """
    path = local_path(found.store)
    if path is None or not found.tree:
        return
    real = path.resolve()
    if real == Path(real.anchor):
        raise SpecError(f"{found.name} is the root of the file system, which is never {done}")
    if path.is_symlink() and not found.name.endswith("/"):
        raise SpecError(f"{found.name} is a link to a directory; end it with / for what is in that")
    for spared, what in ((Path.cwd(), "the working directory"), (Path.home(), "your home")):
        if spared == real or real in spared.parents:
            is_ = "is" if spared == real else "holds"
            raise SpecError(f"{found.name} {is_} {what}, which is never {done}")


def check_apart(source: Keys, target: KvStore, target_name: str) -> None:
    """Refuse to copy something to itself, or a tree to a place inside it.

    Raises SpecError: it is so, directly or through an archive that is in one of them.
    """
    mine, its = _chain(source.store), _chain(target)
    for store, path in its:
        if (store, path) == mine[0] or (store, path + "/") == mine[0]:
            if (store, path) == its[0]:
                raise SpecError(f"{source.name} and {target_name} are the same")
            raise SpecError(f"{target_name} is inside {source.name}")
        if source.tree and store == mine[0][0] and path.startswith(mine[0][1]):
            raise SpecError(f"{target_name} is inside {source.name}")
    to_store, to_path = its[0]
    for store, path in mine:
        inside = path == to_path or path.startswith(to_path if source.tree else f"{to_path}/")
        if store == to_store and to_path.strip("/") and inside:
            raise SpecError(f"{source.name} is inside {target_name}")


def _chain(store: KvStore) -> list[tuple[str, str]]:
    """Which store it is and the path in it; then the same of the stores underneath."""
    found = []
    here: KvStore | None = store
    while here is not None:
        model = unbind(here.spec().model)
        found.append((repr(spec_json(model.replace(path=""))), model.path))
        here = here.base
    return found
