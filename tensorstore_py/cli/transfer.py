"""What `cp` and `mv` have in common: their arguments, what they refuse, and the copying itself.

Everything that can be refused is refused before the first key is written; what is lost at the
target is asked about. After a failure or Ctrl-C it is said how far the copy came and how to go on.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._conversion.endpoints import by_suffix
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py._spec.context import Context
from tensorstore_py.cli.confirm import add_confirmation, refusal
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.key_copy import KeyCopy, delete_keys
from tensorstore_py.cli.keys import (
    Keys,
    Tally,
    check_apart,
    counted_keys,
    find_keys,
    local_path,
    named,
    store_at,
)
from tensorstore_py.cli.output import add_json
from tensorstore_py.cli.places import lasting_place
from tensorstore_py.errors import AlreadyExistsError, MismatchError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py.cli.key_copy import Copied

__all__ = ["Transfer", "add_transfer", "prepared"]

#: Formats that names of directories promise.
_FORMATS: Final = {".n5": ("n5",), ".zarr": ("zarr3", "zarr"), ".zr3": ("zarr3",)}


class Transfer(NamedTuple):
    """A copy that may begin.

    Attributes:
        source: what is copied.
        tally: how much that is.
        target: where to.
        there: what is at the target already.
        replace: whether that is to be replaced.
    """

    source: Keys
    tally: Tally
    target: Keys
    there: Tally
    replace: bool

    def to_json(self) -> dict[str, Any]:
        """What is about to be done."""
        return {"source": self.source.name, "target": self.target.name, **self.tally.to_json()}

    def refusal(self, options: argparse.Namespace) -> int:
        """0 if what is at the target may be lost; else the exit code to end with."""
        if not (self.replace and self.there.keys):
            return DONE
        return refusal(options, f"replace {self.target.name}, which has {self.there}")

    def copy(
        self, options: argparse.Namespace, then: Callable[[KeyCopy], object] = lambda _: None
    ) -> Copied:
        """Copy, and do what comes after it.

        Errors are those of stores; how far it came is said.
        """
        reporter = Reporter(sys.stderr.isatty(), "copy")
        reporter.begin(self.tally.size or 0, self.tally.keys)
        copying = KeyCopy(
            self.source,
            self.target.store,
            reporter,
            skip=options.if_exists == "skip",
            verify=options.verify,
        )
        try:
            try:
                if self.replace and self.target.tree:
                    copying.retract()
                copying.run()
            finally:
                reporter.close()
            if self.replace and self.target.tree:
                for keys in copying.surplus():
                    delete_keys(self.target.store.store, keys)
            then(copying)
        except BaseException:
            done = copying.done.keys
            sys.stderr.write(
                f"{done:,} of {counted_keys(self.tally.keys)} were copied, and all are still at "
                f"{self.source.name}; to go on: --if-exists {'replace' if self.replace else 'skip'}"
                "\n"
            )
            raise
        return copying.done


def add_transfer(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("source", metavar="SOURCE",
                        help="URL, local path or JSON of a key or a tree")  # fmt: skip
    parser.add_argument("target", metavar="TARGET", type=_lasting,
                        help="URL, local path or JSON of what it becomes; a key keeps its name in "
                        "what ends with /")  # fmt: skip
    parser.add_argument("--if-exists", choices=("raise", "skip", "replace"), default="raise",
                        help="what to do if something is there: nothing at all (raise), leave keys "
                        "that are there (skip), or put the source in its place")  # fmt: skip
    parser.add_argument("--verify", action="store_true",
                        help="read each value back, and compare it")  # fmt: skip
    parser.add_argument("-n", "--dry-run", action="store_true",
                        help="only say what would be done")  # fmt: skip
    add_confirmation(parser)
    add_json(parser)


def _lasting(text: str) -> str:
    lasting_place(text)
    return text


def prepared(options: argparse.Namespace) -> Transfer:
    """The copy that is asked for.

    Raises:
        NotFoundError: there is nothing to copy.
        AlreadyExistsError: something is at the target, and it may not be.
        MismatchError: the name of the target is that of another format.
        SpecError: the target is the source or inside it, or one of them is no place of keys.
        UnsupportedError: the target is read-only.
    """
    context = Context()
    source = find_keys(options.source, context)
    target = store_at(_into_archive(options.target, source), context)
    if source.tree:
        if target.path and not target.path.endswith("/"):
            target += "/"
    elif not target.path or target.path.endswith("/"):
        target += source.store.path.rstrip("/").rpartition("/")[2]
    name = named(options.target, target)
    if not source.tree and name.endswith("/"):
        name += target.path.rpartition("/")[2]
    check_apart(source, target, name)
    if not target.store.writable:
        raise UnsupportedError(f"{name}: this store is read-only")
    to = Keys(name, target, tree=source.tree)
    if not source.tree:
        _check_no_directory(to)
    there = _there(options, to)
    tally = Tally.of(source) if source.store.store.listable else _one(source)
    _check_name(options.target, tally)
    return Transfer(source, tally, to, there, options.if_exists == "replace")


def _one(source: Keys) -> Tally:
    """The single key of a store that cannot list."""
    tally = Tally(source)
    tally.keys, tally.size = 1, None
    return tally


def _there(options: argparse.Namespace, target: Keys) -> Tally:
    if options.if_exists == "replace":
        return Tally.of(target)
    there = Tally(target)
    if options.if_exists == "raise" and next(target.pages(), None):
        raise AlreadyExistsError(
            f"something is at {target.name}; name another place, or say --if-exists skip or replace"
        )
    return there


def _check_no_directory(target: Keys) -> None:
    folder = local_path(target.store)
    inside = Keys(target.name, target.store + "/", tree=True)
    is_folder = folder is not None and folder.is_dir()
    if is_folder or next(inside.pages(), None):
        raise AlreadyExistsError(
            f"{target.name} is a directory; end it with / to put the key into it"
        )


def _into_archive(text: str, source: Keys) -> str:
    """A tree is put into the archive that a target's name says."""
    plain = text.lstrip()[:1] != "{" and "|" not in text and not text.endswith("/")
    if not (source.tree and plain and PurePosixPath(text).suffix.lower() == ".zip"):
        return text
    if "://" in text:
        return f"{text}|zip:"
    if Path(text).is_dir():
        return text
    return f"{(Path(text).parent.resolve() / Path(text).name).as_uri()}|zip:"


def _check_name(text: str, tally: Tally) -> None:
    """Refuse an array or a group under the name of another format.

    Raises MismatchError: it would have one.
    """
    form = tally.form
    if form is None or text.lstrip()[:1] == "{":
        return
    suffix = PurePosixPath(text.partition("|")[0].rstrip("/")).suffix.lower()
    remedy = "cp and mv keep bytes as they are, and tspy copy converts"
    if form.driver not in _FORMATS.get(suffix, (form.driver,)):
        raise MismatchError(
            f"{text} is named {suffix}, and the {tally.kind} is of format {form.driver}; {remedy}"
        )
    if suffix and suffix not in _FORMATS and "|" not in text:
        try:
            by_suffix(text if "://" in text else Path(text), None)
        except SpecError as error:
            raise MismatchError(f"{error}; {remedy}") from None
