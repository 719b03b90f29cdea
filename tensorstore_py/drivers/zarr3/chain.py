"""Lists of codecs: what one means for the layout of chunks, and what a layout means for the list.

A list may be a schema's, of which any part is left open.

Both directions walk the list from the outside in: a transpose renames the dimensions for what
comes behind it, a sharding codec has another list inside, and the innermost serializer stores
elements in the order of the dimensions as they arrive there. Nothing is bound.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple, Self

from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import (
    BeforeValidator,
    BytesToBytesSpec,
    CodecModel,
    JsonForm,
    ShardedSpec,
)
from tensorstore_py.plugin.driver import (
    CodecSpecModel,
    codec_spec,
    codecs_to_json,
    merge_chains,
    merge_codecs,
    parse_codec_json,
    parse_codec_list,
    split_chain,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py.plugin.codec import ArrayToArraySpec

__all__ = [
    "ChainLayout",
    "Zarr3CodecSpec",
    "chain_layout",
    "check_codecs",
    "completed",
    "inner_shape",
    "inside_shards",
    "is_plain",
    "is_sharded",
    "moves_elements_only",
    "parse_codecs",
    "require_complete",
    "stored_endian",
]

_FAMILY = "zarr3"


class ChainLayout(NamedTuple):
    """What codecs say of a chunk's layout; None where they leave it open.

    Attributes:
        inner_order: dimensions from outermost to innermost in storage.
        read_chunk: shape of the innermost chunk, if smaller ones than the whole are stored.
    """

    inner_order: tuple[int, ...] | None
    read_chunk: tuple[int, ...] | None


def parse_codecs(json: object) -> tuple[CodecModel, ...]:
    """The codecs of a `codecs` member; array to bytes and their members may be left open.

    Raises:
        SpecError: one of them is wrong, or stands where its kind cannot.
    """
    codecs = parse_codec_list(_FAMILY, json)
    try:
        split_chain(codecs)
    except SpecError as error:
        raise SpecError(error.problem, error.path[1:]) from None
    return codecs


@codec_spec("zarr3")
class Zarr3CodecSpec(CodecSpecModel):
    """The `codec` member of a schema.

    Attributes:
        codecs: as in metadata; None if nothing is said. Without a sharding codec they are the
            codecs inside the shards of an array that has any.

    Example:
        >>> Zarr3CodecSpec.parse({"driver": "zarr3", "codecs": ["gzip"]}).to_json()
        {'codecs': [{'name': 'gzip'}], 'driver': 'zarr3'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"codecs"})

    codecs: (
        Annotated[
            tuple[CodecModel, ...],
            BeforeValidator(parse_codecs),
            JsonForm({"type": "array", "items": {"x-def": "Codec.zarr3"}}),
        ]
        | None
    ) = None

    @classmethod
    def of_codec(cls, codec: object) -> dict[str, object]:
        return {"codecs": codec if isinstance(codec, tuple) else (codec,)}

    def merged(self, other: Self) -> Self:
        if self.codecs is None or other.codecs is None:
            return self if other.codecs is None else other
        return self.replace(codecs=merge_chains(self.codecs, other.codecs))

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        if self.codecs is not None:
            json["codecs"] = codecs_to_json(_FAMILY, self.codecs)


def require_complete(
    codecs: Sequence[CodecModel], *, has_byte_order: bool, member: str = "codecs"
) -> None:
    """Refuse the codecs of a stored document if they leave open how to read it.

    Args:
        codecs: in encoding order.
        has_byte_order: whether the array's elements are numbers or text of more than a byte.
        member: the JSON member that holds the list, for error paths.

    Raises:
        SpecError: there is none from array to bytes, it does not say in which order bytes are, or a
            shard does not say what is inside.
    """
    stages = split_chain(codecs, member)
    to_bytes = stages.to_bytes
    if to_bytes is None:
        raise SpecError('an array to bytes codec is required, such as "bytes"', (member,))
    # What other codecs make of the elements, only binding tells.
    has_byte_order = has_byte_order and all(
        codec.codec_id in ("transpose", "reshape") for codec in stages.to_array
    )
    inside = (member, list(codecs).index(to_bytes), "configuration")
    if to_bytes.codec_id == "bytes" and has_byte_order and not getattr(to_bytes, "endian", None):
        raise SpecError(
            "this member is required where elements have more than one byte", (*inside, "endian")
        )
    if not isinstance(to_bytes, ShardedSpec):
        return
    if to_bytes.chunk_shape is None:
        raise SpecError("this member is required", (*inside, "chunk_shape"))
    if to_bytes.codecs is None:
        raise SpecError("this member is required", (*inside, "codecs"))
    try:
        require_complete(to_bytes.codecs, has_byte_order=has_byte_order)
        index_codecs = getattr(to_bytes, "index_codecs", None)
        if index_codecs is not None:
            require_complete(index_codecs, has_byte_order=True, member="index_codecs")
    except SpecError as error:
        raise error.inside(*inside) from None


def chain_layout(codecs: Sequence[CodecModel], rank: int) -> ChainLayout:
    """The layout of chunks of a rank.

    Raises:
        SpecError: a codec stands in the wrong place, or is for another rank.

    Example:
        >>> from tensorstore_py.plugin.driver import parse_codec_list
        >>> transpose = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}
        >>> chain_layout(parse_codec_list("zarr3", [transpose, "bytes"]), 3).inner_order
        (2, 0, 1)
    """
    stages = split_chain(codecs)
    order: tuple[int, ...] | None = None
    read: tuple[int, ...] | None = None
    seen = _with_dimensions(stages.to_array)
    if len(seen) < len(stages.to_array):
        # The first codec that changes the shape takes the elements in the order of dimensions.
        if len(seen) + 1 == len(stages.to_array) and not isinstance(stages.to_bytes, ShardedSpec):
            order = tuple(range(rank))
    elif isinstance(stages.to_bytes, ShardedSpec):
        shard = stages.to_bytes
        inner = split_chain(shard.codecs or ()).to_bytes
        order, read = chain_layout(shard.codecs or (), rank)
        if not isinstance(inner, ShardedSpec):
            read = shard.chunk_shape
        elif inner.codecs is None:
            read = None  # shards inside shards may go on inside
    elif stages.to_bytes is not None:
        order = tuple(range(rank))
    for transpose in reversed(seen):
        permutation = transpose.permutation(rank)
        if order is not None:
            order = tuple(permutation[dim] for dim in order)
        if read is not None and len(read) == rank:
            read = tuple(read[permutation.index(dim)] for dim in range(rank))
    return ChainLayout(order, read)


def inner_shape(codecs: Sequence[CodecModel], rank: int) -> tuple[int, ...] | None:
    """Sizes that must divide those of every chunk, 1 without shards; None if they are not known.

    Example:
        >>> from tensorstore_py.plugin.driver import parse_codec_list
        >>> shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 5]}}
        >>> inner_shape(parse_codec_list("zarr3", [shards]), 2)
        (4, 5)
    """
    shape = (1,) * rank
    stages = split_chain(codecs)
    if isinstance(stages.to_bytes, ShardedSpec):
        shape = stages.to_bytes.chunk_shape or shape
    seen = _with_dimensions(stages.to_array)
    if len(seen) < len(stages.to_array):
        return None
    for transpose in reversed(seen):
        permutation = transpose.permutation(rank)
        shape = tuple(shape[permutation.index(dim)] for dim in range(rank))
    return shape


def check_codecs(found: Sequence[CodecModel], asked: Sequence[CodecModel]) -> None:
    """Whether a stored list is what metadata constraints ask for.

    Unlike in a schema, what is left open may be a codec's member or the array to bytes codec, but
    no codec that stands before or behind it.

    Raises:
        MismatchError: it is not.
    """
    mine, theirs = split_chain(found), split_chain(asked)
    pairs: list[tuple[CodecModel, CodecModel]] = []
    for kind, stored, wanted in (
        ("array to array", mine.to_array, theirs.to_array),
        ("bytes to bytes", mine.compressors, theirs.compressors),
    ):
        if len(stored) != len(wanted):
            raise MismatchError(f"{len(stored)} {kind} codecs are stored, not {len(wanted)}")
        pairs.extend(zip(stored, wanted, strict=True))
    if mine.to_bytes is not None and theirs.to_bytes is not None:
        shard, wanted_shard = mine.to_bytes, theirs.to_bytes
        if isinstance(shard, ShardedSpec) and isinstance(wanted_shard, ShardedSpec):
            if wanted_shard.codecs is not None:
                check_codecs(shard.codecs or (), wanted_shard.codecs)
            wanted_shard = wanted_shard.replace(codecs=None)
        pairs.append((shard, wanted_shard))
    for stored_codec, wanted_codec in pairs:
        merge_codecs(stored_codec, wanted_codec)


def is_sharded(codecs: Sequence[CodecModel]) -> bool:
    """Whether a chunk holds smaller ones, of the array's dimensions."""
    stages = split_chain(codecs)
    if len(_with_dimensions(stages.to_array)) < len(stages.to_array):
        return False
    return isinstance(stages.to_bytes, ShardedSpec)


def is_plain(codecs: Sequence[CodecModel]) -> bool:
    """Whether chunks are stored element after element, which says nothing of their layout."""
    return all(isinstance(codec, BytesToBytesSpec) or codec.codec_id == "bytes" for codec in codecs)


def inside_shards(codecs: Sequence[CodecModel]) -> tuple[CodecModel, ...]:
    """A list that shards, with `codecs` for the chunks in the shards."""
    sharding = parse_codec_json(_FAMILY, "sharding_indexed")
    return (sharding.replace(codecs=tuple(codecs)),)


def completed(
    codecs: Sequence[CodecModel],
    read_chunk: tuple[int, ...],
    inner_order: tuple[int, ...] | None,
) -> tuple[CodecModel, ...]:
    """The list with what the layout demands and the list leaves open.

    Args:
        codecs: in encoding order.
        read_chunk: shape of the innermost chunks; said by each sharding codec that says none.
        inner_order: dimensions from outermost to innermost in storage; a transpose is put in
            front of the innermost serializer if they come there in another order. None: as is.
    """
    stages = split_chain(codecs)
    rank = len(read_chunk)
    seen = _with_dimensions(stages.to_array)
    to_array: list[CodecModel] = list(seen)
    for transpose in seen:
        permutation = transpose.permutation(rank)
        read_chunk = tuple(read_chunk[dim] for dim in permutation)
        if inner_order is not None:
            inner_order = tuple(permutation.index(dim) for dim in inner_order)
    to_bytes: list[CodecModel] = [] if stages.to_bytes is None else [stages.to_bytes]
    others = stages.to_array[len(seen) :]
    if isinstance(stages.to_bytes, ShardedSpec) and not others:
        shard = stages.to_bytes
        inner = completed(shard.codecs or (), read_chunk, inner_order)
        to_bytes = [shard.replace(chunk_shape=shard.chunk_shape or read_chunk, codecs=inner)]
    elif inner_order is not None and inner_order != tuple(range(rank)):
        json = {"name": "transpose", "configuration": {"order": list(inner_order)}}
        to_array.append(parse_codec_json(_FAMILY, json))
    return (*to_array, *others, *to_bytes, *stages.compressors)


def _with_dimensions(codecs: Sequence[ArrayToArraySpec]) -> list[ArrayToArraySpec]:
    """The codecs in front of the first one that gives other dimensions than it takes."""
    return list(takewhile(lambda codec: codec.keeps_dimensions, codecs))


def moves_elements_only(codecs: Sequence[CodecModel]) -> bool:
    """Whether elements are stored as they are, wherever they are put in a chunk."""
    stages = split_chain(codecs)
    if any(codec.codec_id != "transpose" for codec in stages.to_array):
        return False
    if isinstance(stages.to_bytes, ShardedSpec):
        return moves_elements_only(stages.to_bytes.codecs or ())
    return stages.to_bytes is None or stages.to_bytes.codec_id == "bytes"


def stored_endian(codecs: Sequence[CodecModel]) -> str:
    """The byte order of stored elements; little where none is said."""
    to_bytes = split_chain(codecs).to_bytes
    if isinstance(to_bytes, ShardedSpec):
        return stored_endian(to_bytes.codecs or ())
    return getattr(to_bytes, "endian", None) or "little"
