"""`Alignment`: which dimension of which source is which of the target's, found out by one rule.

Dimensions are the same if they have the same label, where both arrays have some, and else counted
from the last one back. All of the sources' dimensions, in order, are the *space*. Those of them
that the target lacks are *dropped*: a block has all of them. Those of the target that are not in
the space are *new*: the function makes all of them for each block.

Users name dimensions by label or by number, one or several, or extents of each. JSON has no numbers
as names of members, so `"0"` is a number wherever nothing is labelled so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tensorstore_py.errors import MismatchError, SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Alignment", "Frame", "listed", "matches", "named", "numbered"]


T = TypeVar("T")


def listed(given: object, argument: str) -> tuple[int | str, ...]:
    """Dimensions that were given: none, one, or several.

    Raises TypeError: they are neither labels nor numbers.
    """
    if given is None:
        return ()
    if isinstance(given, int | str) and not isinstance(given, bool):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        found = tuple(given)
        if all(isinstance(each, int | str) and not isinstance(each, bool) for each in found):
            return found
    raise TypeError(f"{argument} is a label or number of a dimension, or a list of such, "
                    f"not {given!r}")  # fmt: skip


def numbered(given: Iterable[int | str], labels: Sequence[str], argument: str) -> list[int]:
    """The numbers of dimensions that are given by label or number.

    Raises SpecError: there is no such dimension, or one is given twice; names what there is.

    Example:
        >>> numbered(["z", -1], ["z", "y", "x"], "drop")
        [0, 2]
    """
    found: list[int] = []
    for each in given:
        number = _number(each, labels, argument)
        if number in found:
            raise SpecError(f"dimension {each!r} is given twice", (argument,))
        found.append(number)
    return found


def _number(name: int | str, labels: Sequence[str], argument: str) -> int:
    rank = len(labels)
    if isinstance(name, str):
        if name and name in labels:
            return list(labels).index(name)
        if not name.lstrip("-").isdecimal():
            there = [label for label in labels if label]
            hint = did_you_mean(name, there)
            known = ", ".join(f'"{label}"' for label in there)
            raise SpecError(
                f'no dimension is named "{name}"{hint}; '
                + (f"there are {known}" if known else "none has a label: give numbers"),
                (argument,),
            )
    number = int(name)
    if not -rank <= number < rank:
        raise SpecError(f"there are {rank} dimensions, and none of number {number}", (argument,))
    return number % rank


def named(given: Mapping[int | str, T], labels: Sequence[str], argument: str) -> dict[int, T]:
    """Values by the numbers of dimensions; raises as `numbered`."""
    numbers = numbered(given, labels, argument)
    return dict(zip(numbers, given.values(), strict=True))


class Frame(NamedTuple):
    """Labels and extents of dimensions."""

    labels: tuple[str, ...]
    shape: tuple[int, ...]


class Alignment(NamedTuple):
    """See the head of this file.

    Attributes:
        space: all dimensions of the sources.
        sources: for each source, for each of its dimensions, which of the space it is.
        once: for each source, those of the space that it has only one position of, and the space
            more: there it is broadcast.
        output: for each dimension of what the function gives, which of the space it is; None: new.
        made: labels and extents of what the function gives, were it called once for all.
        order: for each dimension of the target, which of `output` it is.
    """

    space: Frame
    sources: tuple[tuple[int, ...], ...]
    once: tuple[tuple[int, ...], ...]
    output: tuple[int | None, ...]
    made: Frame
    order: tuple[int, ...]

    @staticmethod
    def of(
        sources: Sequence[Frame],
        target: Frame | None,
        drop: Sequence[int | str],
        new: Mapping[int | str, int],
    ) -> Alignment:
        """How some sources, at least one, and a target fit together; None: it is not there yet.

        `drop` are dimensions that the target lacks; `new` are extents of new ones: by label at the
        end, by number there.

        Raises MismatchError: extents differ; SpecError: there are no such dimensions.
        """
        space, matched = _space(sources)
        once = tuple(
            tuple(dim for dim, extent in zip(dims, each.shape, strict=True)
                  if extent == 1 != space.shape[dim])
            for dims, each in zip(matched, sources, strict=True)
        )  # fmt: skip
        if target is not None and not drop and not new:
            output = _derived(space, target)
            extents = [target.shape[at] if dim is None else space.shape[dim] for dim, at in output]
            labels = [target.labels[at] if dim is None else space.labels[dim] for dim, at in output]
            places = [at for _, at in output]
            order = tuple(places.index(at) for at in range(len(places)))
            made = Frame(tuple(labels), tuple(extents))
            found = Alignment(space, matched, once, tuple(dim for dim, _ in output), made, order)
        else:
            kept, made = _asked(space, drop, new)
            order = tuple(range(len(kept)))
            if target is not None:
                order = _into(made, target)
            found = Alignment(space, matched, once, kept, made, order)
        if target is not None:
            found._check(target)
        return found

    def _check(self, target: Frame) -> None:
        for at, (dim, extent) in enumerate(zip(self.order, target.shape, strict=True)):
            if self.made.shape[dim] != extent:
                raise MismatchError(
                    f"dimension {_named(at, target.labels)} of the target has extent {extent}, but "
                    f"that of the sources has {self.made.shape[dim]}; name the dimensions that the "
                    "target lacks (drop) and those that the function makes (new)"
                )

    @property
    def dropped(self) -> tuple[int, ...]:
        """The dimensions of the space that the target lacks."""
        return tuple(dim for dim in range(len(self.space.shape)) if dim not in self.output)

    @property
    def target_dims(self) -> tuple[int | None, ...]:
        """For each dimension of the target, which of the space it is; None: it is new."""
        return tuple(self.output[dim] for dim in self.order)


def matches(labels: Sequence[str], others: Sequence[str]) -> list[int | None]:
    """For each dimension of one array, which one of another array is the same; None: none is.

    Example:
        >>> matches(["z", "x"], ["x", "y"]), matches(["", ""], ["x"])
        ([None, 0], [None, 0])
    """
    if not any(labels) or not any(others):
        skipped = len(labels) - len(others)
        return [dim - skipped if dim >= skipped else None for dim in range(len(labels))]
    left = [dim for dim, label in enumerate(others) if not label]
    found: list[int | None] = []
    for label in reversed(labels):
        if label:
            found.append(list(others).index(label) if label in others else None)
        else:
            found.append(left.pop() if left else None)
    return found[::-1]


def _space(sources: Sequence[Frame]) -> tuple[Frame, tuple[tuple[int, ...], ...]]:
    """All dimensions: those of the first source that has the most, then what others have more."""
    base = max(sources, key=lambda each: len(each.shape))
    labels, shape = list(base.labels), list(base.shape)
    whose = [sources.index(base)] * len(shape)
    found = []
    for number, source in enumerate(sources):
        at = []
        for dim, match in enumerate(matches(source.labels, labels)):
            extent = source.shape[dim]
            if match is None:
                labels.append(source.labels[dim])
                shape.append(extent)
                whose.append(number)
            place = len(shape) - 1 if match is None else match
            labels[place] = labels[place] or source.labels[dim]
            if shape[place] == 1 != extent:
                shape[place], whose[place] = extent, number
            elif extent not in (1, shape[place]):
                raise MismatchError(
                    f"dimension {_named(dim, source.labels)} of source {number} has extent "
                    f"{extent}, but that of source {whose[place]} has {shape[place]}; only equal "
                    "extents, or 1, fit together"
                )
            at.append(place)
        found.append(tuple(at))
    return Frame(tuple(labels), tuple(shape)), tuple(found)


def _derived(space: Frame, target: Frame) -> list[tuple[int | None, int]]:
    """The dimensions of the output, as a target that is there tells: of the space, and of that."""
    places = matches(space.labels, target.labels)
    found: list[tuple[int | None, int]] = [
        (dim, place) for dim, place in enumerate(places) if place is not None
    ]
    there = {place for _, place in found}
    new: list[tuple[int | None, int]] = [
        (None, at) for at in range(len(target.shape)) if at not in there
    ]
    labelled = any(space.labels) and any(target.labels)
    return found + new if labelled else new + found


def _asked(
    space: Frame, drop: Sequence[int | str], new: Mapping[int | str, int]
) -> tuple[tuple[int | None, ...], Frame]:
    dropped = numbered(drop, space.labels, "drop")
    kept: list[int | None] = [dim for dim in range(len(space.shape)) if dim not in dropped]
    labels = [space.labels[dim] for dim in kept if dim is not None]
    shape = [space.shape[dim] for dim in kept if dim is not None]
    rank = len(kept) + len(new)
    places = {place % rank: place for place in new if isinstance(place, int)}
    for place in sorted(places):
        kept.insert(place, None)
        labels.insert(place, "")
        shape.insert(place, new[places[place]])
    for label, extent in new.items():
        if isinstance(label, int):
            if not -rank <= label < rank:
                raise SpecError(
                    f"there are {rank} dimensions, and none of number {label}", ("new",)
                )
            continue
        if label in labels:
            raise SpecError(f'a dimension is named "{label}" already; use another name', ("new",))
        kept.append(None)
        labels.append(label)
        shape.append(extent)
    return tuple(kept), Frame(tuple(labels), tuple(shape))


def _into(made: Frame, target: Frame) -> tuple[int, ...]:
    """For each dimension of the target, which one of what is made it is."""
    found = matches(target.labels, made.labels)
    if len(made.shape) != len(target.shape) or None in found:
        raise MismatchError(
            f"the target has the dimensions {_listed(target)}, but what the function gives has "
            f"{_listed(made)}; correct drop and new, or leave them out"
        )
    return tuple(dim for dim in found if dim is not None)


def _listed(frame: Frame) -> str:
    sizes = zip(frame.labels, frame.shape, strict=True)
    return (
        "(" + ", ".join(f"{label}: {size}" if label else str(size) for label, size in sizes) + ")"
    )


def _named(dim: int, labels: Sequence[str]) -> str:
    return f'{dim} ("{labels[dim]}")' if labels[dim] else str(dim)
