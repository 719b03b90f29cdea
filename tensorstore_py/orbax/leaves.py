"""A tree of leaves: dicts and lists, and at their ends what is stored of arrays and other values.

A key is a text in a dict and a number in a list. The flat name of a leaf is its keys with dots in
between, which is also what Orbax calls it in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from tensorstore_py._interface.kvstore import KvStoreSpec

__all__ = ["Keys", "Kind", "Leaf", "Node", "Place", "flat_name", "leaves_of", "mapped", "matching",
           "nest", "selected"]  # fmt: skip

T = TypeVar("T")
Keys: TypeAlias = tuple[str | int, ...]
#: A `value` is known without opening an array; a `scalar` is an array of no dimensions that stands
#: for a number of Python.
Kind: TypeAlias = Literal["array", "scalar", "value"]


class Place(NamedTuple):
    """Where arrays are.

    Attributes:
        store: the bound spec of the store, at the path that all of them are below.
        driver: that opens them.
        held: the open store, so that all arrays share what is known of it.
    """

    store: KvStoreSpec
    driver: str
    held: object = None


class Leaf(NamedTuple):
    """One leaf of a checkpoint.

    Attributes:
        kind: of what it is; see `Kind`.
        place: where its array is.
        param: the array's name there.
        value: of a `value`.
        shape: as the checkpoint's metadata says it; None: it does not.
        note: what the metadata says of it besides, such as of which kind a random key is.
    """

    kind: Kind
    place: Place | None = None
    param: str = ""
    value: object = None
    shape: tuple[int, ...] | None = None
    note: object = None


Node: TypeAlias = Any  # dict[str, Node] | list[Node] | Leaf


def flat_name(keys: Keys) -> str:
    """Keys with dots in between.

    Example:
        >>> flat_name(("layers", 0, "kernel"))
        'layers.0.kernel'
    """
    return ".".join(map(str, keys))


def nest(leaves: Iterable[tuple[Keys, T]]) -> Any:  # noqa: ANN401 - dicts, lists or one leaf
    """Leaves as nested dicts and lists; lists are those whose keys are all the numbers from 0 on.

    Where something is below a leaf, the leaf stood for an empty container, and is left out.

    Example:
        >>> nest([(("a", 0), "x"), (("a", 1), "y"), (("b", "c"), "z")])
        {'a': ['x', 'y'], 'b': {'c': 'z'}}
    """
    root = _Branch()
    for keys, leaf in leaves:
        if not keys:
            return leaf
        branch = root
        for key in keys[:-1]:
            below = branch.get(key)
            if not isinstance(below, _Branch):
                below = branch[key] = _Branch()
            branch = below
        if not isinstance(branch.get(keys[-1]), _Branch):
            branch[keys[-1]] = leaf
    return _finished(root)


class _Branch(dict[str | int, Any]):
    """What is not known to be a dict or a list yet."""


def _finished(node: Any) -> Any:  # noqa: ANN401
    if not isinstance(node, _Branch):
        return node
    if node and set(node) == set(range(len(node))):
        return [_finished(node[number]) for number in range(len(node))]
    return {str(key): _finished(below) for key, below in node.items()}


def leaves_of(node: Node, keys: Keys = ()) -> Iterator[tuple[Keys, Leaf]]:
    """All leaves below a node, with their keys."""
    if isinstance(node, Leaf):
        yield keys, node
        return
    for key, below in node.items() if isinstance(node, dict) else enumerate(node):
        yield from leaves_of(below, (*keys, key))


def mapped(node: Node, change: Callable[[Leaf], object]) -> Any:  # noqa: ANN401
    """The same tree with something else in place of each leaf."""
    if isinstance(node, Leaf):
        return change(node)
    if isinstance(node, dict):
        return {key: mapped(below, change) for key, below in node.items()}
    return [mapped(below, change) for below in node]


def matching(name: str, patterns: Iterable[str] | None) -> bool:
    """Whether a flat name is one of those asked for: a pattern, or below one.

    Example:
        >>> (
        ...     matching("params.a.w", ["params"]),
        ...     matching("params.a.w", ["*.w"]),
        ...     matching("b", ["a"]),
        ... )
        (True, True, False)
    """
    if patterns is None:
        return True
    return any(fnmatchcase(name, each) or name.startswith(f"{each}.") for each in patterns)


def selected(node: Node, patterns: Iterable[str]) -> Node:
    """The part of a tree whose flat names are asked for; branches without any are left out."""
    asked = list(patterns)

    def part(at: Node, keys: Keys) -> Node | None:
        if isinstance(at, Leaf):
            return at if matching(flat_name(keys), asked) else None
        if isinstance(at, dict):
            inner = {key: part(below, (*keys, key)) for key, below in at.items()}
            return {key: below for key, below in inner.items() if below is not None} or None
        several = [part(below, (*keys, number)) for number, below in enumerate(at)]
        return [below for below in several if below is not None] or None

    return part(node, ()) or {}
