"""`CopySummary` and `Migration`: what a copy or a migration did, or would do, member by member.

Nothing here reads, copies or decides; it only counts and shows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from tensorstore_py._display.public_name import public

__all__ = ["CopiedMember", "CopySummary", "Migration", "MigrationStep"]


_SHOWN = 40

Action = Literal["create", "replace", "keep", "resume", "skip"]


@public
class CopiedMember(NamedTuple):
    """What became of one member.

    Attributes:
        path: below what is copied; `""` is that itself.
        kind: `"array"` or `"group"`.
        action: `"create"`, `"replace"`, `"resume"` (begun by an earlier copy), `"keep"` (a group
            that is there already), or `"skip"`.
        how: in a few words: what of it changes, or why it is skipped.
        bytes: of the elements that are copied, as they are in memory.
        chunks: how many chunks are stored for them; 0 if that is not known yet.

    Example:
        >>> print(CopiedMember("a/b", "array", "skip", "it is there"))
           skip array /a/b: it is there
    """

    path: str
    kind: Literal["array", "group"]
    action: Action
    how: str
    bytes: int = 0
    chunks: int = 0

    def __str__(self) -> str:
        size = f", {self.bytes / 2**20:.1f} MiB" if self.bytes else ""
        how = f": {self.how}" if self.how else ""
        return f"{self.action:>7} {self.kind} /{self.path}{size}{how}"


@public
class CopySummary(NamedTuple):
    """What was copied, or what would be.

    Attributes:
        arrays: how many arrays were copied.
        groups: how many groups were made or changed.
        bytes: of the elements copied, as they are in memory; without what was done before.
        chunks: how many chunks that is in the destination; of a dry run 0.
        skipped: how many arrays were there or done already.
        dry_run: nothing was done.
        members: each of them.
        verified: how many chunks were read again and are as they should be.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.Group.open("memory://old/", create=True).result()
        >>> _ = old.create_array("a/b", dtype="int16", shape=[3]).result()
        >>> print(ts.copy(old, ts.KvStore.open("memory://new/").result(), dry_run=True).result())
        would copy 1 array (0.0 MiB) and 2 groups
         create group /
         create group /a
         create array /a/b, 0.0 MiB: chunks as they are
    """

    arrays: int
    groups: int
    bytes: int
    chunks: int
    skipped: int
    dry_run: bool
    members: tuple[CopiedMember, ...]
    verified: int = 0

    @classmethod
    def of(
        cls, members: list[CopiedMember], *, dry_run: bool, verified: bool = False
    ) -> CopySummary:
        """The sums."""
        arrays = [each for each in members if each.kind == "array"]
        copied = [each for each in arrays if each.action != "skip"]
        groups = [each for each in members if each.kind == "group"]
        return cls(
            arrays=len(copied),
            groups=sum(each.action in ("create", "replace") for each in groups),
            bytes=sum(each.bytes for each in copied),
            chunks=sum(each.chunks for each in copied),
            skipped=len(arrays) - len(copied),
            dry_run=dry_run,
            members=tuple(members),
            verified=sum(each.chunks for each in copied) if verified else 0,
        )

    def __str__(self) -> str:
        lines = [self._headline()]
        lines += [str(member) for member in self.members[:_SHOWN]]
        if len(self.members) > _SHOWN:
            lines.append(f"    and {len(self.members) - _SHOWN} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"CopySummary(arrays={self.arrays}, groups={self.groups}, bytes={self.bytes}, "
            f"chunks={self.chunks}, skipped={self.skipped}{', dry_run=True' * self.dry_run}"
            f"{f', verified={self.verified}' if self.verified else ''})"
        )

    def _headline(self) -> str:
        verb = "would copy" if self.dry_run else "copied"
        chunks = f" in {_counted(self.chunks, 'chunk')}" if self.chunks else ""
        skipped = f"; {self.skipped} skipped" if self.skipped else ""
        verified = f"; {_counted(self.verified, 'chunk')} verified" if self.verified else ""
        return (
            f"{verb} {_counted(self.arrays, 'array')} ({self.bytes / 2**20:.1f} MiB{chunks}) "
            f"and {_counted(self.groups, 'group')}{skipped}{verified}"
        )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


MigrationAction = Literal["metadata", "chunks", "finish", "nothing", "impossible"]

_WORDS: dict[MigrationAction, str] = {
    "metadata": "new metadata, chunks stay",
    "chunks": "chunks are copied",
    "finish": "was begun: old metadata goes",
    "nothing": "nothing to do",
    "impossible": "cannot be migrated",
}


@public
class MigrationStep(NamedTuple):
    """What becomes of one node.

    Attributes:
        path: below what is migrated; `""` is that itself.
        kind: `"array"` or `"group"`.
        from_: the version that it is of.
        action: `"metadata"`: new documents, and chunks stay as they are; `"chunks"`: they have to
            be copied; `"finish"`: an earlier migration was cut short; `"nothing"`; `"impossible"`.
        why: chunks cannot stay, or nothing can be done.

    Example:
        >>> print(MigrationStep("a", "array", 2, "chunks", 'codec "pickle" has no counterpart'))
        array /a: version 2, chunks are copied: codec "pickle" has no counterpart
    """

    path: str
    kind: Literal["array", "group"]
    from_: int
    action: MigrationAction
    why: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.kind} /{self.path}: version {self.from_}, {_WORDS[self.action]}{why}"


@public
class Migration(NamedTuple):
    """What was migrated, or what would be.

    Attributes:
        to: the version of the format.
        where: what is migrated.
        dry_run: nothing was done.
        steps: what becomes of each node, in the order of their paths.
        dest: where to, if that is somewhere else.

    Example:
        >>> import tensorstore_py as ts
        >>> old = ts.Group.open("memory://a/", create=True, zarr_format=2).result()
        >>> print(ts.migrate(old.kvstore, dry_run=True).result())
        would migrate memory://a/ to version 3: 1 of 1 nodes
          group /: version 2, new metadata, chunks stay
    """

    to: int
    where: str
    dry_run: bool
    steps: tuple[MigrationStep, ...]
    dest: str | None = None

    def __str__(self) -> str:
        verb = "would migrate" if self.dry_run else "migrated"
        dest = f" at {self.dest}" if self.dest else ""
        counts = f"{self.changes} of {len(self.steps)} nodes"
        head = f"{verb} {self.where} to version {self.to}{dest}: {counts}"
        return "\n".join([head, *(f"  {step}" for step in self.steps)])

    @property
    def changes(self) -> int:
        """Of how many nodes something changes."""
        return sum(step.action not in ("nothing", "impossible") for step in self.steps)

    @property
    def impossible(self) -> tuple[MigrationStep, ...]:
        """The nodes that cannot be migrated."""
        return tuple(step for step in self.steps if step.action == "impossible")
