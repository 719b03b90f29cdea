"""Make an empty array or a group: in any format, as it is described or like another one.

The format is what the place says (a suffix, a URL, JSON), what `--format` says, or that of the
group above it; these must not contradict each other. What is there stays unless
`--delete-existing`.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.group_spec import NewArray
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._conversion.endpoints import (
    by_suffix,
    described,
    destination,
    node_attributes,
    source,
)
from tensorstore_py._hierarchy.changes import create_group
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py._hierarchy.node import read_node
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.lifetime import Lifetime
from tensorstore_py._spec.context import Context, bind
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py.cli.confirm import add_confirmation, refusal
from tensorstore_py.cli.described import (
    Known,
    add_description,
    described_group,
    like_array,
    new_array,
)
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.facts import extents
from tensorstore_py.cli.found import find, target
from tensorstore_py.cli.keys import Keys, Tally, check_spares, tell_consolidated, tried
from tensorstore_py.cli.output import add_json, examples, printable, to_json
from tensorstore_py.cli.places import lasting_place
from tensorstore_py.errors import AlreadyExistsError, MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tensorstore_py._conversion.endpoints import DestinationEndpoint, FoundEndpoint
    from tensorstore_py._hierarchy.node import Hierarchy, Node
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject
    from tensorstore_py._interface.kvstore import KvStoreSpec

__all__ = ["add", "run"]

_DRIVERS: Final = {"zarr3": "zarr3", "zarr2": "zarr", "n5": "n5"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = "Make an empty array or a group, from scratch or like another one."
    parser.add_argument("place", metavar="PLACE", type=lasting_place,
                        help="URL, local path or JSON; .n5 and .zip say the format")  # fmt: skip
    parser.add_argument("--group", action="store_true", help="make a group")
    parser.add_argument("--like", metavar="PLACE", type=target,
                        help="an array or a group; what is not said is as there")  # fmt: skip
    parser.add_argument("--format", choices=tuple(_DRIVERS),
                        help="by default that of the group above, or zarr3")  # fmt: skip
    add_description(parser)
    parser.add_argument("--delete-existing", action="store_true",
                        help="delete what is there first")  # fmt: skip
    parser.add_argument("-n", "--dry-run", action="store_true",
                        help="only print the spec of what would be made")  # fmt: skip
    add_confirmation(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy create image.zarr --shape y=4000,x=6000 --dtype uint16 --chunks 512\n"
        '  tspy create s3://bucket/run.zarr --group --attributes \'{"title": "Run 7"}\'\n'
        "  tspy create s3://bucket/run.zarr/mask --like image.zarr --dtype bool\n"
        "  tspy create a.zarr --shape 100,100 --dtype float32 --codec zstd --dry-run\n",
    )


def run(options: argparse.Namespace) -> int:
    """Make it, and print what was made."""
    return tried(lambda: _create(options))


def _create(options: argparse.Namespace) -> int:
    context = Context()
    end = destination(_named(options.place, options.format), context, None)
    name = str(options.place) if isinstance(options.place, Path) else end.described
    like = None if options.like is None else source(find(options.like), context)
    found = None if like is None else _run(like.inline, like.find)
    to, above = _found(end, name, None if found is None or found.tree is None else found.tree.form)
    form = None if to.tree is None else to.tree.form
    if above is not None and form is not above:
        raise MismatchError(
            f"{name} is inside a group of format {_format(above)}, and would be {_format(form)}; "
            f"say --format {_format(above)}, or name another place"
        )
    made: _NewArray | _NewGroup
    if options.group or (found is not None and found.node is not None
                         and found.node.kind == "group"):  # fmt: skip
        made = _new_group(options, to, found)
    else:
        known = Known()
        if like is not None and found is not None:
            known = _run(like.inline, partial(like_array, options, found, form))
        made = _new_array(options, end, to, known)
    if options.dry_run:
        sys.stdout.write(f"{to_json(made.spec())}\n")
        return DONE
    code = _may_delete(options, name, made)
    if code == DONE:
        facts, text = made.make(deletes=options.delete_existing)
        told = to_json(facts) if options.json else printable(f"created {text}: {name}")
        sys.stdout.write(f"{told}\n")
        tell_consolidated([KvStore.of(made.where, made.where.open())])
    return code


def _may_delete(options: argparse.Namespace, name: str, made: _NewArray | _NewGroup) -> int:
    """0 if nothing is there, or it may be deleted; else the exit code to end with.

    Raises AlreadyExistsError: it may not be.
    """
    if made.node is not None and not options.delete_existing:
        raise AlreadyExistsError(
            f"{name} is there already, a{'n' * (made.node.kind == 'array')} {made.node.kind}; "
            "--delete-existing replaces it"
        )
    if not options.delete_existing:
        return DONE
    there = Keys(name, KvStore.of(made.where, made.where.open()), tree=True)
    check_spares(there, "deleted")
    tally = Tally.of(there)
    return refusal(options, f"delete what is at {name}, {tally}") if tally.keys else DONE


class _NewGroup(NamedTuple):
    """A group that is to be made."""

    tree: Hierarchy
    where: KvStoreSpec
    node: Node | None
    attributes: JsonObject

    def spec(self) -> dict[str, object]:
        """Where it would be, and its documents."""
        place_ = Spec.of(updated(self._at(), {"strip_context": True})).to_json()
        return {**place_, "documents": self.tree.form.new_group(self.attributes)}

    def _at(self) -> DriverSpec:
        return parse_spec({"driver": self.tree.form.driver, "kvstore": KvStore.Spec.of(self.where)})

    def make(self, *, deletes: bool) -> tuple[dict[str, Any], str]:
        """Make it; what it is, as JSON and as a text."""
        made = partial(create_group, self.tree, "", self.attributes, delete_existing=deletes)
        _run(self.tree.store.inline, made)
        facts = {"kind": "group", "driver": self.tree.form.driver, "place": described(self.where),
                 "attributes": self.attributes}  # fmt: skip
        return facts, f"a group of {_format(self.tree.form)}"


def _new_group(
    options: argparse.Namespace, to: FoundEndpoint, like: FoundEndpoint | None
) -> _NewGroup:
    if to.tree is None or to.place is None:
        raise SpecError("this format has no groups; name another one: --format zarr3")
    known: JsonObject = {}
    if like is not None:
        if like.node is None or like.tree is None or like.node.kind == "array":
            raise SpecError("--like names an array; leave out --group, or name a group")
        known = _run(like.tree.store.inline, partial(node_attributes, like.tree, like.node))
    attributes = described_group(options, like, known)
    return _NewGroup(to.tree, to.place.where, to.node, attributes)


class _NewArray(NamedTuple):
    """An array that is to be made; `new`: in a hierarchy, which `tree` is."""

    model: DriverSpec
    where: KvStoreSpec
    new: NewArray | None = None
    tree: Hierarchy | None = None
    node: Node | None = None

    def spec(self) -> dict[str, object]:
        """What opens and creates it, with all that the format chooses: that is tried in memory."""
        empty = bind(KvStore.Spec("memory://").model, Context())
        driver = _run(True, self.model.replace(kvstore=empty).open)
        there = driver.spec().replace(kvstore=self.where)
        return Spec.of(updated(there, {"strip_context": True, "create": True})).to_json()

    def make(self, *, deletes: bool) -> tuple[dict[str, Any], str]:
        """Make it; what it is, as JSON and as a text."""
        if self.new is not None and self.tree is not None:
            new = self.new._replace(
                spec=updated(self.new.spec, {"delete_existing": deletes}), deletes=deletes
            )
            life = Lifetime("TensorStore")
            array = _run(self.tree.store.inline, partial(new.make, self.tree, "", None, life))
        else:
            model = updated(self.model, {"delete_existing": deletes})
            driver = _run(model.inline, model.open)
            array = opened(driver, model, readable=True, writable=True)
        facts = array_facts(array)
        more = [
            f"{name} {extents(facts[name])}" for name in ("chunks", "shards") if facts.get(name)
        ]
        driver_ = facts["driver"]
        form = next((name for name, each in _DRIVERS.items() if each == driver_), driver_)
        text = ", ".join([f"{extents(facts['shape'])} {facts['dtype']}", *more])
        return facts, f"an array of {form}, {text}"


def _new_array(
    options: argparse.Namespace, end: DestinationEndpoint, to: FoundEndpoint, known: Known
) -> _NewArray:
    if to.tree is not None and to.place is not None:
        described_ = new_array(options, known, to.tree.form.driver)
        new = NewArray.of(
            to.place, "", described_.attributes, described_.options, may_exist=False, deletes=False
        )
        where = to.place.where
        return _NewArray(new.spec, where, new, to.tree, to.node)
    if options.attributes:
        raise SpecError("--attributes: arrays of this format have none; leave it out")
    where_ = None if end.array is None else getattr(end.array, "kvstore", None)
    if end.array is None or where_ is None:
        raise SpecError("this is no place where an array is made; name a directory")
    described_ = new_array(options, known, end.array.driver)
    model = updated(end.array, {**described_.options, "create": True, "open": False})
    return _NewArray(model, where_)


def _named(given: object, format_: str | None) -> object:
    """The place, with the format that was asked for."""
    found = by_suffix(given, None)
    if format_ is None:
        return found
    driver = _DRIVERS[format_]
    if isinstance(found, dict) and found is not given:  # its suffix said one
        if found["driver"] != driver:
            raise SpecError(f"{given} is named as an array of {found['driver']}, not of {format_}")
        return found
    if isinstance(found, str) and found.lstrip()[:1] == "{":
        found = parse_json_text(found)
    try:
        stated = Spec(found if not isinstance(found, Path) else found.absolute().as_uri()).model
    except SpecError:
        return {"driver": driver, "kvstore": found}  # the JSON of a store
    if stated.driver not in ("auto", driver):
        raise SpecError(f"{given} says that it is of {stated.driver}, not of {format_}")
    kept = stated.kvstore  # type: ignore[attr-defined]  # all these drivers have one
    return (
        {"driver": driver, "kvstore": KvStore.Spec.of(kept)} if stated.driver == "auto" else found
    )


def _format(form: HierarchyFormat | None) -> str:
    """The name of a format, as `--format` takes it."""
    driver = "another" if form is None else form.driver
    return next((name for name, each in _DRIVERS.items() if each == driver), driver)


def _found(
    end: DestinationEndpoint, name: str, wanted: HierarchyFormat | None
) -> tuple[FoundEndpoint, HierarchyFormat | None]:
    """What is at the place, and the format of the group above it; None: there is none.

    Raises MismatchError: an array is above it.
    """
    to = _run(end.inline, lambda: end.find(wanted))
    if to.tree is None:
        return to, None
    tree = to.tree
    above = _run(tree.store.inline, partial(_above, tree, name))
    if above is not None and wanted is None and to.node is None:
        to = _run(end.inline, lambda: end.find(above))
    return to, above


async def _above(tree: Hierarchy, name: str) -> HierarchyFormat | None:
    path = tree.below("").rstrip("/")
    if not path:
        return None
    above, slash, _ = path.rpartition("/")
    for form in formats():
        group = tree._replace(prefix=above + slash, form=form)
        node = await read_node(group, "", likely="group")
        if node is not None and node.kind == "array":
            raise MismatchError(f"{name} would be inside an array; name another place")
        if node is not None:
            return form
    return None


def _run(inline: bool, body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401 - as it gives
    return start(inline, body).result()
