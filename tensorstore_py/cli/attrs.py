"""Print, set or delete attributes of an array or a group.

A new attribute is simply set. To replace or delete one loses what it was: that is asked about.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._spec.json_value import freeze, thaw
from tensorstore_py.cli.confirm import add_confirmation, refusal
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.found import add_trusted_target, find, trusted
from tensorstore_py.cli.output import add_json, examples, printable, to_json, tried
from tensorstore_py.errors import MismatchError, NotFoundError, did_you_mean

if TYPE_CHECKING:
    from tensorstore_py._api.attributes import Attributes
    from tensorstore_py.cli.found import Target

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser, selects=False)
    parser.add_argument("name", nargs="?", metavar="NAME", help="print only this one")
    parser.add_argument("--set", action="append", type=_assignment, default=[],
                        metavar="NAME=VALUE", help="set one: JSON, or else a text")  # fmt: skip
    parser.add_argument("--delete", action="append", default=[], metavar="NAME",
                        help="delete one")  # fmt: skip
    add_confirmation(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy attrs run.zarr\n  tspy attrs run.zarr title\n"
        "  tspy attrs run.zarr --set unit=nm --set 'steps=[1, 2]'\n"
        "  tspy attrs run.zarr --delete title --yes\n",
    )


def run(options: argparse.Namespace) -> int:
    """Change attributes, or print them."""

    def work() -> int:
        attributes = _attributes(trusted(options.target, options))
        known = attributes.read().result()
        if options.set or options.delete:
            return _change(attributes, known, options)
        if options.name is None:
            _print(known, as_json=options.json)
            return DONE
        _check((options.name,), known)
        value = known[options.name]
        told = value if isinstance(value, str) and not options.json else _json(value)
        sys.stdout.write(f"{printable(told, lines=True)}\n")
        return DONE

    return tried(work)


def _assignment(text: str) -> tuple[str, object]:
    """A name and its value.

    Raises ArgumentTypeError: there is no `=`.

    Example:
        >>> _assignment("steps=[1, 2]"), _assignment("title=Run 8")
        (('steps', [1, 2]), ('title', 'Run 8'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _attributes(asked: Target) -> Attributes:
    found = find(asked)
    if isinstance(found, KvStore):
        raise MismatchError(
            f"{asked.text} is neither an array nor a group, and has no attributes; "
            "tspy ls shows what is in it"
        )
    return found.attrs


def _change(attributes: Attributes, known: dict[str, Any], options: argparse.Namespace) -> int:
    new = dict(options.set)
    _check(options.delete, known)
    lost = [f"delete {name}, which is {_short(known[name])}" for name in options.delete]
    lost += [
        f"replace {name}, which is {_short(known[name])}, by {_short(value)}"
        for name, value in new.items()
        if name in known and known[name] != value
    ]
    code = refusal(options, "; ".join(lost)) if lost else DONE
    if code == DONE:
        gone = set(options.delete) - set(new)
        attributes.change(
            lambda found: {
                **{name: value for name, value in found.items() if name not in gone},
                **new,
            }
        ).result()
    return code


def _check(names: object, known: dict[str, Any]) -> None:
    assert isinstance(names, list | tuple)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, tuple(known)) or "; tspy attrs without a name lists them"
            raise NotFoundError(f"there is no attribute {name!r}{hint}")


def _print(known: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(f"{_json(known)}\n")
        return
    width = max(map(len, known), default=0)
    for name, value in known.items():
        told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        sys.stdout.write(printable(f"{name:<{width}}  {told}") + "\n")


def _json(value: object) -> str:
    return to_json(thaw(freeze(value)))


def _short(value: object) -> str:
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else f"{text[:59]}…"
