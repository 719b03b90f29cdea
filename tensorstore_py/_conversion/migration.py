"""`Migration`: what a migration does, or would do, node by node.

Nothing here reads or stores; it only tells.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Migration", "MigrationStep"]

Action = Literal["metadata", "chunks", "finish", "nothing", "impossible"]

_WORDS: dict[Action, str] = {
    "metadata": "new metadata, chunks stay",
    "chunks": "chunks are copied",
    "finish": "was begun: old metadata goes",
    "nothing": "nothing to do",
    "impossible": "cannot be migrated",
}


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
    action: Action
    why: str = ""

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.kind} /{self.path}: version {self.from_}, {_WORDS[self.action]}{why}"


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
