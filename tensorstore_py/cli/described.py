"""What a new array is to be like, as arguments of the command line say it, or another array is.

The arguments become options of `ts.open`; what the format makes of them is the format's matter.
Extents and units may be given by the names of dimensions, and each such name has to be one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._conversion.endpoints import SourceArray, open_source
from tensorstore_py._conversion.target_metadata import RequestedMetadata, target_metadata
from tensorstore_py._hierarchy.document import as_attributes
from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.codec_spec import CodecSpec
from tensorstore_py.cli.places import codec, extents
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._conversion.endpoints import FoundEndpoint
    from tensorstore_py._interface.hierarchy import HierarchyFormat, JsonObject

__all__ = ["Known", "New", "add_description", "described_group", "like_array", "new_array"]

Extents = int | tuple[int, ...] | dict[str, int]

#: How formats say that chunks are not compressed.
_PLAIN: Final[Mapping[str, object]] = {
    "zarr3": ["bytes"],
    "zarr": {"compressor": None},
    "n5": {"compression": {"type": "raw"}},
}


class New(NamedTuple):
    """What is to be made.

    Attributes:
        options: as `ts.open` takes them.
        attributes: of it.
    """

    options: dict[str, Any]
    attributes: JsonObject


def add_description(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    form = parser.add_argument_group("what an array is like")
    form.add_argument("--shape", type=extents, metavar="N,...", help="100,200 or y=100,x=200")
    form.add_argument("--dtype", metavar="TYPE", help="data type, such as uint16")
    form.add_argument("--chunks", type=extents, metavar="N,...",
                      help="extents: 64, or 1,64,64, or t=1,x=64; -1: all of it")  # fmt: skip
    form.add_argument("--shards", type=extents, metavar="N,...", help="extents, as --chunks")
    form.add_argument("--codec", "--compression", type=codec, metavar="CODEC",
                      help="name of a codec, or its JSON; none: chunks as they are")  # fmt: skip
    form.add_argument("--fill-value", type=_value, metavar="VALUE",
                      help="what elements are that are not stored")  # fmt: skip
    form.add_argument("--dims", type=_names, metavar="NAME,...", help="names of dimensions")
    form.add_argument("--units", type=_units, metavar="UNIT,...",
                      help="of dimensions: 40s,4nm,4nm or x=4nm")  # fmt: skip
    parser.add_argument("--attributes", type=_attributes, metavar="JSON",
                        help="an object, or @FILE that holds one")  # fmt: skip


def described_group(
    options: argparse.Namespace, like: FoundEndpoint | None, attributes: JsonObject
) -> JsonObject:
    """The attributes of a new group; `attributes`: of what it is to be like.

    Raises SpecError: something is said that only an array has.
    """
    named = ("shape", "dtype", "chunks", "shards", "codec", "fill_value", "dims", "units")
    for name in named:
        if getattr(options, name) is not None:
            which = "--group" if like is None else "--like"
            raise SpecError(
                f"--{name.replace('_', '-')} describes an array, and {which} says a group"
            )
    return attributes if options.attributes is None else options.attributes


def new_array(options: argparse.Namespace, known: Known, driver: str) -> New:
    """What is described, in a format.

    Args:
        options: those of `add_description`.
        known: what another array says; `Known()`: there is none.
        driver: of the format.

    Raises SpecError: the description is not whole, or contradicts itself.
    """
    found, present = dict(known.options), known
    if options.shape is not None or options.dims is not None:
        shape, labels = _reach(options, known)
        if len(shape) != len(known.shape):
            found.pop("chunk_layout", None)
            found.pop("dimension_units", None)
        present = known._replace(shape=shape, labels=labels)
    elif not known.options:
        raise SpecError("say how large it is: --shape 100,200, or --like PLACE")
    shape, labels = present.shape, present.labels
    found["domain"] = IndexDomain(shape=shape, labels=labels)
    if options.dtype is not None:
        found["dtype"] = options.dtype
    if "dtype" not in found:
        raise SpecError("say what an element is: --dtype uint16, or --like PLACE")
    sharded = "chunk_layout" in found and driver != "zarr3"  # which the other one may have been
    if options.chunks is not None or options.shards is not None or sharded:
        found["chunk_layout"] = _layout(options, present, driver)
    if options.codec is not None:
        found["codec"] = CodecSpec.like(_codec(options.codec, driver), driver)
    if options.fill_value is not None:
        found["fill_value"] = options.fill_value
        if driver == "n5" and not options.fill_value:
            del found["fill_value"]  # which it is anyway, and there is no place to say it
    if options.units is not None:
        found["dimension_units"] = _by_dimension("units", options.units, present)
    attributes = known.attributes if options.attributes is None else options.attributes
    return New(found, attributes)


class Known(NamedTuple):
    """What is known of an array.

    Attributes:
        options: as `ts.open` takes them.
        chunks: extents of what is read at a time; None: not known.
    """

    options: Mapping[str, Any] = MappingProxyType({})
    shape: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    attributes: JsonObject = MappingProxyType({})  # type: ignore[assignment]  # it is only read
    chunks: tuple[int, ...] | None = None


async def like_array(
    options: argparse.Namespace, like: FoundEndpoint, form: HierarchyFormat | None
) -> Known:
    """What another array says of a new one in a format; None: one without groups."""
    if like.node is not None:
        found = await open_source(like, like.node, "")
    else:
        assert like.array is not None
        found = SourceArray("", like.array, None, None, {})
    # The other's shards stay what they are, where the format has such.
    same = form is not None and form is found.form
    wanted = RequestedMetadata(dtype=options.dtype, shards={} if same else None)
    told = target_metadata(found, form, wanted)
    taken = dict(told.options)
    if form is not None and form.zarr_format == 2:
        taken.pop("dimension_units", None)  # it has no place for them
    read = found.array.chunk_layout.read_chunk.shape
    chunks = tuple(size or 1 for size in read) if read is not None and any(read) else None
    labels = found.array.domain.labels
    return Known(taken, found.shape, labels, told.attributes, chunks)


def _reach(options: argparse.Namespace, known: Known) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The shape and the names of dimensions."""
    asked = options.shape
    labels: tuple[str, ...] = ()
    if asked is None:
        shape = known.shape
    elif isinstance(asked, dict):
        shape, labels = tuple(asked.values()), tuple(asked)
    else:
        shape = (asked,) if isinstance(asked, int) else asked
    if not labels:
        labels = known.labels if len(known.labels) == len(shape) else ("",) * len(shape)
    if options.dims is not None:
        if len(options.dims) != len(shape):
            raise SpecError(
                f"--dims names {len(options.dims)} dimensions, and there are {len(shape)}"
            )
        labels = tuple(options.dims)
    if any(size < 0 for size in shape):
        raise SpecError("--shape: extents are not negative")
    return shape, labels


def _layout(options: argparse.Namespace, known: Known, driver: str) -> ChunkLayout:
    if options.shards is not None and driver != "zarr3":
        raise SpecError(f"--shards: only arrays of zarr3 have shards, and this is one of {driver}")
    layout: dict[str, object] = {}
    chunks = None
    if options.chunks is not None:
        chunks = _extents("chunks", options.chunks, known)
    elif known.chunks is not None and len(known.chunks) == len(known.shape):
        chunks = list(known.chunks)
    if chunks is not None:
        layout["read_chunk"] = {"shape": chunks}
    if options.shards is not None:
        layout["write_chunk"] = {"shape": _extents("shards", options.shards, known)}
    elif chunks is not None:
        layout["write_chunk"] = {"shape": chunks}
    return ChunkLayout(layout)


def _extents(name: str, given: Extents, known: Known) -> list[int]:
    """The extent along each dimension; -1, and what is not named: all of it."""
    sizes = [given] * len(known.shape) if isinstance(given, int) else given
    found = _by_dimension(name, sizes, known)
    whole = [-1 if size is None else size for size in found]
    if any(size < -1 or size == 0 for size in whole):
        raise SpecError(f"--{name}: extents are positive, or -1 for all of a dimension")
    return [
        max(1, extent) if size == -1 else size
        for size, extent in zip(whole, known.shape, strict=True)
    ]


def _by_dimension(name: str, given: Mapping[str, Any] | Sequence[Any], known: Known) -> list[Any]:
    """One for each dimension, in their order; None: nothing is said of it.

    Raises SpecError: a name is that of no dimension, or there are too few or many.
    """
    if not isinstance(given, Mapping):
        if len(given) != len(known.shape):
            raise SpecError(
                f"--{name} is given for {len(given)} dimensions, and there are {len(known.shape)}"
            )
        return list(given)
    for each in given:
        if not each or each not in known.labels:
            there = ", ".join(label for label in known.labels if label)
            raise SpecError(
                f'--{name}: no dimension is named "{each}"; '
                + (f"there are {there}" if there else "none has a name: --dims gives them some")
            )
    return [given.get(label) for label in known.labels]


def _codec(asked: object, driver: str) -> object:
    return _PLAIN.get(driver, asked) if asked == "none" else asked


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _units(text: str) -> list[str | None] | dict[str, str]:
    """Units of dimensions, in their order or by name; an empty one is none."""
    if "=" not in text:
        return [each or None for each in _names(text)]
    pairs = [each.partition("=") for each in _names(text)]
    return {name.strip(): unit.strip() for name, _, unit in pairs}


def _value(text: str) -> object:
    """A fill value: JSON, what JSON has no numbers for, or a text.

    Example:
        >>> _value("0"), _value("true"), _value("-inf"), _value("none")
        (0, True, -inf, 'none')
    """
    if text.lower() in ("nan", "inf", "-inf"):
        return float(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _attributes(text: str) -> JsonObject:
    """An object, or the file that holds one.

    Raises ArgumentTypeError: it is something else.
    """
    try:
        read = Path(text[1:]).read_text("utf-8") if text.startswith("@") else text
        return as_attributes(json.loads(read))
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(f"expected an object as JSON, or @FILE: {error}") from None
