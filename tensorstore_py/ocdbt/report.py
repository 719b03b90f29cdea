"""What a check found: `CheckReport`. Counts are complete, lists are bounded; nothing reads here."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tensorstore_py._display.info import human_size

__all__ = ["CheckReport", "Problem", "UnreachedFile", "counted"]

_SHOWN = 20


def counted(count: int, what: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "key"), counted(2000, "key")
        ('1 key', '2,000 keys')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


class Problem(NamedTuple):
    """Something that is wrong.

    Attributes:
        kind: of what is damaged: `"manifest"`, `"versions"` (a node of the tree of versions),
            `"node"` (of a tree of keys), `"values"` or `"name"`.
        what: in words; names the file and its bytes.
        file: the path of the file, from the directory of the database.
        begin: the first byte concerned.
        end: one behind the last byte concerned.
        generation: of the latest version that was seen to be concerned; 0: all.
        lost: how many keys of that version cannot be read.
        first_keys: some of them, or the first key that may be lost.

    Example:
        >>> print(Problem("values", "d/1 is missing", "d/1", 0, 9, 3, 2, (b"a", b"b")))
        v3: d/1 is missing; 2 keys lost: "a", "b"
    """

    kind: Literal["manifest", "versions", "node", "values", "name"]
    what: str
    file: str
    begin: int = 0
    end: int = 0
    generation: int = 0
    lost: int = 0
    first_keys: tuple[bytes, ...] = ()

    def to_json(self) -> dict[str, object]:
        """As JSON; keys as text, with what is no UTF-8 escaped."""
        return {**self._asdict(), "first_keys": [_text(key) for key in self.first_keys]}

    def __str__(self) -> str:
        at = f"v{self.generation}: " if self.generation else ""
        lost = ""
        if self.lost and self.kind == "node":
            lost = f'; {counted(self.lost, "key")} lost, from "{_text(self.first_keys[0])}" on'
        elif self.lost:
            shown = ", ".join(f'"{_text(key)}"' for key in self.first_keys)
            more = ", …" if self.lost > len(self.first_keys) else ""
            lost = f"; {counted(self.lost, 'key')} lost: {shown}{more}"
        return f"{at}{self.what}{lost}"


def _text(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")


class UnreachedFile(NamedTuple):
    """A data file of which no checked version needs anything.

    Attributes:
        path: from the directory of the database.
        size: in bytes; -1 if the store does not say.
    """

    path: str
    size: int


class CheckReport(NamedTuple):
    """What a check of a database found.

    Attributes:
        place: of the database.
        latest: the generation of the latest version; 0 if there is none.
        versions: how many versions were checked.
        every_version: whether these are all.
        keys: of the latest version.
        nodes: how many nodes were read, each once.
        node_bytes: of these.
        values: how many values are in files of their own, each version's counted where its leaf
            was read.
        value_bytes: of these, as references say.
        files: how many data files are there.
        file_bytes: of these.
        unreached: data files of which the checked versions need nothing.
        unreached_files: how many.
        unreached_bytes: of these, and of what is not needed within other files.
        problems: what is wrong, the first ones.
        problem_count: how many there are.
        newest_whole: the generation of the newest version of which everything can be read; 0: none.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> report = ts.ocdbt.check(db).result()
        >>> report.ok, report.keys, report.nodes
        (True, 1, 1)
    """

    place: str
    latest: int
    versions: int
    every_version: bool
    keys: int
    nodes: int
    node_bytes: int
    values: int
    value_bytes: int
    files: int
    file_bytes: int
    unreached: tuple[UnreachedFile, ...]
    unreached_files: int
    unreached_bytes: int
    problems: tuple[Problem, ...]
    problem_count: int
    newest_whole: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem_count

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return {
            "ok": self.ok,
            **self._asdict(),
            "unreached": [each._asdict() for each in self.unreached],
            "problems": [each.to_json() for each in self.problems],
        }

    def __str__(self) -> str:
        if not self.latest:
            lines = [f"{self.place} has no manifest that can be read"]
            return "\n".join(lines + [f"  problem    {each}" for each in self.problems])
        which = "all versions" if self.every_version else "the latest version"
        found = f"has {counted(self.problem_count, 'problem')}" if self.problem_count else "is ok"
        within = f"{counted(self.unreached_files, 'whole file')} among it"
        lines = [
            f"{self.place} {found}",
            f"  checked    {which}: v{self.latest}, {counted(self.keys, 'key')}"
            + (f", and {counted(self.versions - 1, 'older one')}" * (self.versions > 1)),
            f"  read       {counted(self.nodes, 'node')}, {human_size(self.node_bytes)}",
            f"  values     {self.values:,} in data files, {human_size(self.value_bytes)}",
            f"  files      {self.files:,}, {human_size(self.file_bytes)}",
            f"  unreached  {human_size(self.unreached_bytes)}, {within}",
        ]
        if not self.every_version:
            lines[-1] += " (older versions may need it)"
        lines += [f"  problem    {problem}" for problem in self.problems[:_SHOWN]]
        if self.problem_count > min(_SHOWN, len(self.problems)):
            more = self.problem_count - min(_SHOWN, len(self.problems))
            lines.append(f"  and {counted(more, 'more problem')}")
        if not self.ok:
            whole = f"v{self.newest_whole}" if self.newest_whole else "none"
            lines.append(f"  newest version that is whole: {whole}")
        return "\n".join(lines)
