"""`CopySummary`: what a copy did, or would do, member by member.

Nothing here copies or decides; it only counts and shows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["CopiedMember", "CopySummary"]

_SHOWN = 40

Action = Literal["create", "replace", "keep", "resume", "skip"]


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
