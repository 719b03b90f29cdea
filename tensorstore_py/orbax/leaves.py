"""A tree of leaves: dicts, lists and tuples, and at their ends what is stored of arrays and values.

A key is a text in a dict, the name of a field in a named tuple, and a number in a list or another
tuple. The flat name of a leaf is its keys with dots in between, which is also what Orbax calls it
in the store.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from tensorstore_py._interface.kvstore import KvStoreSpec

__all__ = ["Keys", "Kind", "Leaf", "Node", "Place", "branches", "fields_of", "flat_name",
           "leaves_of", "mapped", "matching", "named_tuple", "nest", "remade", "selected",
           "shaped"]  # fmt: skip

T = TypeVar("T")
Keys: TypeAlias = tuple[str | int, ...]
#: A `value` is known without opening an array; a `scalar` is an array of no dimensions that stands
#: for a number of Python; of what is `damaged` the value is the error that says why.
Kind: TypeAlias = Literal["array", "scalar", "value", "damaged"]


class Place(NamedTuple):
    """Where arrays are.

    Attributes:
        store: the bound spec of the store, at the path that all of them are below.
        driver: that opens them.
        held: the open store, so that all arrays share what is known of it.
        every_chunk: whether all chunks were stored, so that one that is not there was lost.
    """

    store: KvStoreSpec
    driver: str
    held: object = None
    every_chunk: bool = False


class Leaf(NamedTuple):
    """One leaf of a checkpoint.

    Attributes:
        kind: of what it is; see `Kind`.
        place: where its array is.
        param: the array's name there.
        value: of a `value`; of what is `damaged`, the error.
        shape: as the checkpoint's metadata says it; None: it does not.
        note: what the metadata says of it besides, such as of which kind a random key is.
    """

    kind: Kind
    place: Place | None = None
    param: str = ""
    value: object = None
    shape: tuple[int, ...] | None = None
    note: object = None


Node: TypeAlias = Any  # dict[str, Node] | list[Node] | tuple[Node, ...] | Leaf


def fields_of(node: object) -> tuple[str, ...] | None:
    """The names of the fields of a named tuple; None: it is none."""
    return getattr(node, "_fields", None) if isinstance(node, tuple) else None


def branches(node: Node) -> list[tuple[str | int, Any]]:
    """What a dict, a list or a tuple has, with the key of each.

    Example:
        >>> branches({"a": 1}), branches(["x", "y"])
        ([('a', 1)], [(0, 'x'), (1, 'y')])
    """
    if isinstance(node, dict):
        return list(node.items())
    fields = fields_of(node)
    return list(enumerate(node) if fields is None else zip(fields, node, strict=True))


def remade(node: Node, inside: Sequence[tuple[str | int, Any]]) -> Any:  # noqa: ANN401
    """A container like another one, of these keys and values."""
    if isinstance(node, dict):
        return dict(inside)
    values = [value for _, value in inside]
    if isinstance(node, list):
        return values
    if fields_of(node) is None:
        return tuple(values)
    return named_tuple(type(node).__name__, tuple(str(key) for key, _ in inside))(*values)


@lru_cache(256)
def named_tuple(name: str, fields: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    """The class of named tuples of a name and of fields; its instances can be pickled.

    Raises ValueError: a field cannot be one of Python's.

    Example:
        >>> named_tuple("module.State", ("mu", "nu"))(1, 2)
        State(mu=1, nu=2)
    """
    last = name.rpartition(".")[2]
    make: Callable[[str, tuple[str, ...]], type] = namedtuple  # noqa: PYI024 - names are data
    plain = make(last if last.isidentifier() else "NamedTuple", fields)

    def __reduce__(self: tuple[Any, ...]) -> tuple[Any, ...]:  # noqa: N807 - of the class
        return _named, (name, fields, *self)

    members = {"__slots__": (), "__reduce__": __reduce__}
    made: Callable[..., tuple[Any, ...]] = type(plain.__name__, (plain,), members)
    return made


def _named(name: str, fields: tuple[str, ...], *values: object) -> tuple[Any, ...]:
    return named_tuple(name, fields)(*values)


def shaped(node: Node, pattern: object) -> Node:
    """A tree whose lists and dicts are tuples where a pattern of the same keys has tuples.

    Example:
        >>> shaped({"a": [1, 2], "b": [3]}, {"a": (None, None), "b": [None]})
        {'a': (1, 2), 'b': [3]}
    """
    if isinstance(node, Leaf) or not isinstance(node, dict | list):
        return node
    known = dict(branches(pattern)) if isinstance(pattern, dict | list | tuple) else {}
    inside = [(key, shaped(below, known.get(key))) for key, below in branches(node)]
    if not isinstance(pattern, tuple) or {key for key, _ in inside} != set(known):
        return remade(node, inside)
    found = dict(inside)
    return remade(pattern, [(key, found[key]) for key in known])


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
    for key, below in branches(node):
        yield from leaves_of(below, (*keys, key))


def mapped(node: Node, change: Callable[[Leaf], object]) -> Any:  # noqa: ANN401
    """The same tree with something else in place of each leaf."""
    if isinstance(node, Leaf):
        return change(node)
    return remade(node, [(key, mapped(below, change)) for key, below in branches(node)])


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
    return any(
        name == each or fnmatchcase(name, each) or name.startswith(f"{each}.") for each in patterns
    )


def selected(node: Node, patterns: Iterable[str]) -> Node:
    """The part of a tree whose flat names are asked for; branches without any are left out."""
    asked = list(patterns)

    def part(at: Node, keys: Keys) -> Node | None:
        if isinstance(at, Leaf):
            return at if matching(flat_name(keys), asked) else None
        inner = [(key, part(below, (*keys, key))) for key, below in branches(at)]
        left = [(key, below) for key, below in inner if below is not None]
        return remade(at, left) if left else None

    return part(node, ()) or {}
