"""What a copy is going to do: member by member, found out before anything is stored.

Everything that can be refused is refused here. What an earlier copy has begun is known here, too.

Members are chosen by glob patterns (`MemberPaths`) that match the whole path: `*` and `?` stay
within a name, `**` stands for any number of names. The one invariant: a pattern that means a group
means everything in it, and what one pattern leaves out is left out whatever other patterns say.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from tensorstore_py._api.blockwise import check_types
from tensorstore_py._api.options import updated
from tensorstore_py._conversion.array_copy import form_digest
from tensorstore_py._conversion.endpoints import SourceArray, node_attributes, open_source
from tensorstore_py._conversion.target_metadata import TargetMetadata, target_metadata
from tensorstore_py._hierarchy.node import Node, read_node
from tensorstore_py._hierarchy.path import check_new, join, parents
from tensorstore_py._hierarchy.walk import Walk
from tensorstore_py._plan.document import changed
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812  # a class, lower-case by fame
from tensorstore_py.errors import AlreadyExistsError, MismatchError, NotFoundError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorstore_py._conversion.endpoints import (
        DestinationEndpoint,
        FoundEndpoint,
        SourceEndpoint,
    )
    from tensorstore_py._conversion.summary import Action
    from tensorstore_py._conversion.target_metadata import RequestedMetadata
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject

__all__ = ["IfExists", "MemberPaths", "Planned", "PlannedArray", "PlannedGroup", "Request"]


_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", re.DOTALL)


class MemberPaths(NamedTuple):
    """Members of which a pattern of `includes` matches, if there are any, and none of `excludes`.

    Example:
        >>> paths = MemberPaths.of(["raw", "**/mask"], "raw/old")
        >>> [paths.means(path) for path in ("raw/image", "raw/old/image", "a/b/mask", "other")]
        [True, False, True, False]
    """

    includes: tuple[str, ...]
    excludes: tuple[str, ...]

    @staticmethod
    def of(
        includes: str | Iterable[str] | None, excludes: str | Iterable[str] | None
    ) -> MemberPaths:
        """What a caller said: one pattern or several.

        Raises:
            TypeError: a pattern is no text.
            SpecError: it is empty.
        """
        return MemberPaths(_patterns("includes", includes), _patterns("excludes", excludes))

    def means(self, path: str) -> bool:
        """Whether the member at a path is meant; the outermost group, `""`, always is."""
        if not path:
            return True
        above = [*parents(path, ""), path]
        if any(_matches(pattern, each) for pattern in self.excludes for each in above):
            return False
        return not self.includes or any(
            _matches(pattern, each) for pattern in self.includes for each in above
        )

    def among(self, paths: Iterable[str]) -> set[str]:
        """Those that are meant, and the groups above them.

        Raises NotFoundError: a pattern of `includes` matches none; names it.
        """
        known = list(paths)
        for pattern in self.includes:
            if not any(_matches(pattern, path) for path in known):
                raise NotFoundError(
                    f"includes: nothing matches {pattern!r}; patterns are matched with whole "
                    f"paths, as in 'a/b', 'a/*' or '**/b'"
                )
        meant = {path for path in known if self.means(path)}
        return meant.union(*(parents(path) for path in meant))


def _patterns(name: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    listed = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for pattern in listed:
        if not isinstance(pattern, str):
            raise TypeError(f"{name} are patterns (str), not {type(pattern).__name__}")
        if not pattern.strip("/"):
            raise SpecError("a pattern is empty; leave it out to mean everything", (name,))
    return tuple(pattern.strip("/") for pattern in listed)


def _matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).fullmatch(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = []
    for part in _TOKEN.findall(pattern):
        if part == "**/":
            parts.append("(?:[^/]+/)*")
        elif part == "**":
            parts.append(".*")
        elif part in "*?":
            parts.append("[^/]*" if part == "*" else "[^/]")
        elif len(part) > 2 and part[0] == "[":
            parts.append(fnmatch.translate(part).removesuffix(r"\Z").removesuffix(r"\z"))
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts), re.DOTALL)


IfExists = Literal["raise", "skip", "replace"]


class PlannedGroup(NamedTuple):
    """What becomes of a group."""

    path: str
    attributes: JsonObject
    consolidated: bool
    action: Action


class PlannedArray(NamedTuple):
    """What becomes of an array; see `CopiedMember` for `action`.

    `size_bytes` is of the elements, as the copy has them in memory; 0 if it is skipped.
    """

    source: SourceArray
    form: TargetMetadata
    action: Action
    size_bytes: int

    @property
    def path(self) -> str:
        """Below what is copied."""
        return self.source.path


Planned = PlannedGroup | PlannedArray


class Request(NamedTuple):
    """What is asked for.

    Attributes:
        if_exists: what to do about arrays that are there.
        wanted: how copies differ from their sources.
        begun: of arrays that an earlier copy has begun, their forms; None: there was none.
        identity: what must be the same for a later copy to go on with this one.
    """

    source: SourceEndpoint
    destination: DestinationEndpoint
    inline: bool
    paths: MemberPaths
    if_exists: IfExists
    wanted: RequestedMetadata
    begun: Mapping[str, str] | None = None
    identity: Mapping[str, object] = MappingProxyType({})
    verify: bool = False

    async def plan(self, from_: FoundEndpoint, to: FoundEndpoint) -> list[Planned]:
        """What becomes of each member that is meant, in the order of their paths.

        Raises:
            NotFoundError: a pattern matches nothing.
            AlreadyExistsError: something is there, and may not be.
            MismatchError: the endpoints do not fit together, or an array cannot be converted.
            SpecError: one end lies in the other, or a chunk shape does not fit.
            FailedPreconditionError: an array is not as it was when the copy began.
        """
        groups, sources = await self._members(from_)
        self._check_endpoints(from_, to, groups)
        labels = {label for each in sources for label in each.array.domain.labels if label}
        if sources:
            self.wanted.check_names(labels)
        paths = [group.path for group in groups] + [array.path for array in sources]
        present = await self._present(to, paths)
        plan: list[Planned] = []
        for group in groups:
            there = present.get(group.path)
            if there is not None and there.kind == "array":
                self._refuse(to, group.path, there)
                plan.append(group._replace(action="replace"))
            else:
                plan.append(group if there is None else group._replace(action="keep"))
        plan += [self._planned(to, each, present.get(each.path)) for each in sources]
        return sorted(plan, key=_path)

    async def _members(self, from_: FoundEndpoint) -> tuple[list[PlannedGroup], list[SourceArray]]:
        """The groups and arrays that are meant, in the order of their paths."""
        if from_.tree is None or from_.node is None or from_.node.kind == "array":
            if self.paths != ((), ()):
                raise SpecError("the source is an array, which has no members", ("includes",))
            return [], [await within(self.inline, self.source.inline, lambda: _single(from_))]
        nodes = await within(self.inline, self.source.inline, lambda: _walk(from_))
        base = len(from_.path)
        by_path = {node.path[base:].lstrip("/"): node for node in nodes}
        meant = self.paths.among(by_path)
        groups: dict[str, PlannedGroup] = {}
        arrays: dict[str, SourceArray] = {}
        tree = from_.tree

        async def look(path: str) -> None:
            node = by_path[path]
            if node.kind == "array":
                arrays[path] = await open_source(from_, node, path)
            else:
                known = node.consolidated is not None if not path else _has_copy(tree.form, node)
                attributes = await node_attributes(tree, node)
                groups[path] = PlannedGroup(path, attributes, known, "create")

        wanted = sorted(meant)
        store = tree.store
        await within(
            self.inline,
            store.inline,
            lambda: fan_out(store.inline, wanted, look, count=len(wanted), width=store.width),
        )
        return [groups[path] for path in sorted(groups)], [arrays[path] for path in sorted(arrays)]

    def _check_endpoints(
        self, from_: FoundEndpoint, to: FoundEndpoint, groups: list[PlannedGroup]
    ) -> None:
        """Refuse what cannot go together.

        Raises:
            MismatchError: a group, and a destination that can only be an array.
            SpecError: one end lies in the other.
        """
        if groups and to.tree is None:
            raise MismatchError(
                f"the source is a group, and {self.destination.described} can only be an array"
            )
        if groups and to.place is None:
            raise MismatchError("the source is a group, and the destination is an open array")
        if from_.tree is None or to.tree is None or from_.tree.store is not to.tree.store:
            return
        here, there = from_.tree.below(from_.path), to.tree.below(to.path)
        if here == there or (groups and there.startswith(here)):
            raise SpecError(
                f"cannot copy {self.source.described} into itself; name another destination"
            )

    async def _present(self, to: FoundEndpoint, paths: Sequence[str]) -> dict[str, Node]:
        """What is at the destination."""
        tree = to.tree
        if self.destination.array is not None:
            there = await within(self.inline, self.destination.inline, self._is_there)
            return {"": Node("", "array", {}, {}, None)} if there else {}
        if tree is None or to.place is None:
            return {}  # an open array is there to be written
        found: dict[str, Node] = {}

        async def look(path: str) -> None:
            node = await read_node(tree, join(to.path, path))
            if node is not None:
                found[path] = node

        store = tree.store
        await within(
            self.inline,
            store.inline,
            lambda: fan_out(store.inline, paths, look, count=len(paths), width=store.width),
        )
        return found

    def _planned(self, to: FoundEndpoint, source: SourceArray, there: Node | None) -> PlannedArray:
        """What becomes of one array."""
        form = None if to.tree is None else to.tree.form
        if form is not None and to.place is not None:
            check_new(form, join(to.path, source.path))
        if to.place is None and to.array is not None:
            if self.wanted.changes:
                name = self.wanted.changes[0]
                raise SpecError("the destination is an open array, which is as it is", (name,))
            new = TargetMetadata({}, {}, False, "into what is there")
        else:
            new = target_metadata(source, form, self.wanted)
        asked = self.wanted.dtype
        data_type = source.array.dtype if asked is None else DType(asked)  # type: ignore[arg-type]
        if to.place is None and to.array is not None:
            data_type = to.array.dtype
        check_types(source.array.dtype, data_type)
        size = source.size * data_type.array_dtype.itemsize
        begun = None if self.begun is None else self.begun.get(source.path)
        if begun is not None:
            if begun != form_digest(source, new):
                raise changed(source.path)
            return PlannedArray(source, new, "create" if there is None else "resume", size)
        if there is None:
            return PlannedArray(source, new, "create", size)
        if self.if_exists == "skip" and there.kind == "array":
            return PlannedArray(source, new._replace(how="it is there"), "skip", 0)
        self._refuse(to, source.path, there)
        return PlannedArray(source, new, "replace", size)

    def _refuse(self, to: FoundEndpoint, path: str, there: Node) -> None:
        """Raises AlreadyExistsError unless what is there may be replaced."""
        if self.if_exists != "replace":
            where = self.destination.described
            if to.tree is not None:
                key = to.tree.form.array_key if there.kind == "array" else to.tree.form.group_key
                where = to.tree.store.describe_key(to.tree.below(join(to.path, path)) + key)
            what = "an array" if there.kind == "array" else "a group"
            raise AlreadyExistsError(
                f'"/{path}" exists already at the destination, {what} at {where}; pass '
                'if_exists="skip" to leave it, or if_exists="replace" to replace it'
            )

    async def _is_there(self) -> bool:
        """Whether the array of a driver without hierarchies is there."""
        model = self.destination.array
        assert model is not None
        present = updated(model, {"open": True, "create": False})
        try:
            await present.open()
        except NotFoundError:
            return False
        return True


def _has_copy(form: HierarchyFormat, node: Node) -> bool:
    """Whether an inner group's own document holds those of what is below it."""
    document = node.documents.get(form.consolidated_key or "")
    return document is not None and form.consolidated(document) is not None


def _path(each: Planned) -> str:
    return each.path


async def _walk(from_: FoundEndpoint) -> list[Node]:
    """All nodes of the source, itself first."""
    assert from_.tree is not None
    assert from_.node is not None
    nodes = [from_.node]
    walk = Walk(from_.tree, from_.path, from_.node.consolidated, None)
    while (found := await walk.step()) is not None:
        nodes += found
    return nodes


async def _single(from_: FoundEndpoint) -> SourceArray:
    """The only array of the source."""
    if from_.node is not None:
        return await open_source(from_, from_.node, "")
    assert from_.array is not None
    return SourceArray("", from_.array, None, None, {})
