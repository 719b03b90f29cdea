"""Lists of codecs: from JSON and back, merged with others, and bound to a chunk.

In metadata, a codec's form depends on the family: `"zarr3"` writes `{"name", "configuration"}` and
accepts a bare name, `"zarr"` writes `{"id", ...members}`, and `"n5"` `{"type", ...members}`. What
is inside is the codec's own matter.

The order of a list is fixed by what goes in and out: array to array codecs, one array to bytes
codec, bytes to bytes codecs. A list without an array to bytes codec gets `bytes`, or the one for
text or byte strings of any length. Each codec is bound to the chunk as it arrives there: a
compressor learns the element size only if it comes directly behind a serializer of plain elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from tensorstore_py._interface.codec import (
    OPAQUE,
    ArrayToArraySpec,
    ArrayToBytes,
    ArrayToBytesSpec,
    BytesToBytes,
    BytesToBytesSpec,
    CodecModel,
)
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import BeforeValidator, JsonForm, PositiveInt
from tensorstore_py._spec.registered import parse_known
from tensorstore_py._spec.registry import codecs
from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._interface.codec import ArrayToArray, ChunkType
    from tensorstore_py._interface.kvstore import Buffer

__all__ = [
    "CodecList",
    "ShardedSpec",
    "bind_chain",
    "codec_to_json",
    "codecs_to_json",
    "merge_chains",
    "merge_codecs",
    "parse_codec_json",
    "parse_codec_list",
    "resolve_chain",
    "split_chain",
]

C = TypeVar("C", bound="CodecModel")
_CONFIGURATION = "configuration"
#: Codecs of version 2 in the dress of version 3. Who else reads these wants a configuration, and
#: some of their defaults are not the same everywhere.
_ALWAYS_EXPLICIT = "numcodecs."
_ENVELOPE = ("name", "configuration", "must_understand")


def parse_codec_json(family: str, json: object) -> CodecModel:
    """The spec of one codec.

    Args:
        family: the metadata format, `"zarr"` (version 2), `"zarr3"` or `"n5"`.
        json: `{"id", ...}` for `"zarr"`, `{"type", ...}` for `"n5"`; a name or
            `{"name", "configuration"}` otherwise.

    Raises:
        SpecError: no such codec, or a member is unknown or not possible.

    Example:
        >>> parse_codec_json("zarr3", {"name": "gzip", "configuration": {"level": 1}}).to_json()
        {'level': 1}
        >>> parse_codec_json("zarr", {"id": "bz2"}).codec_id
        'bz2'
    """
    if isinstance(json, CodecModel):
        return json
    return parse_known(codecs[family], "codec", json, partial(_parse_one, family))


def _parse_one(family: str, json: object) -> CodecModel:
    flat_tag = codecs.flat_tags.get(family)
    if flat_tag is not None:
        name, members = _by_tag(json, flat_tag)
        inside: tuple[str, ...] = ()
    else:
        name, members = _by_name(json)
        inside = ("configuration",)
    try:
        cls = codecs.get(family, name)
    except SpecError as error:
        raise error.inside(flat_tag or "name") from None
    assert issubclass(cls, CodecModel)
    try:
        return _parse_members(cls, members)
    except SpecError as error:
        raise error.inside(*inside) from None


def parse_codec_list(family: str, json: object) -> tuple[CodecModel, ...]:
    """The specs of a list of codecs.

    Raises:
        SpecError: not a list, or one of its codecs is wrong; the path starts at its position.

    Example:
        >>> [codec.codec_id for codec in parse_codec_list("zarr3", ["bytes", "crc32c"])]
        ['bytes', 'crc32c']
    """
    return parse_known(codecs[family], "list", json, partial(_parse_list, family))


def _parse_list(family: str, json: object) -> tuple[CodecModel, ...]:
    if not isinstance(json, list | tuple):
        raise SpecError(f"expected an array of codecs, but found {describe(json)}")
    specs: list[CodecModel] = []
    for position, item in enumerate(json):
        try:
            specs.append(parse_codec_json(family, item))
        except SpecError as error:
            raise error.inside(position) from None
    return tuple(specs)


def codec_to_json(
    family: str, codec: CodecModel, include_defaults: bool = False
) -> dict[str, object]:
    """One codec as its family writes it.

    Args:
        family: the metadata format.
        codec: the spec; a resolved one for metadata, so that every member is explicit.
        include_defaults: write members that equal their default, too. Flat objects always do.

    Example:
        >>> codec_to_json("zarr3", parse_codec_json("zarr3", "gzip"))
        {'name': 'gzip'}
        >>> codec_to_json("zarr", parse_codec_json("zarr", {"id": "gzip"}))
        {'id': 'gzip', 'level': 1}
        >>> codec_to_json("zarr3", parse_codec_json("zarr3", "numcodecs.fletcher32"))
        {'configuration': {}, 'name': 'numcodecs.fletcher32'}
    """
    flat_tag = codecs.flat_tags.get(family)
    if flat_tag is not None:
        members = {flat_tag: codec.codec_id, **codec.to_json(include_defaults=True)}
        return {name: members[name] for name in sorted(members)}
    explicit = codec.codec_id.startswith(_ALWAYS_EXPLICIT)
    configuration = codec.to_json(include_defaults or explicit)
    if not configuration and not explicit:
        return {"name": codec.codec_id}
    return {"configuration": configuration, "name": codec.codec_id}


def codecs_to_json(
    family: str, specs: Sequence[CodecModel], include_defaults: bool = False
) -> list[dict[str, object]]:
    """A list of codecs as its family writes it; arguments as for `codec_to_json`."""
    return [codec_to_json(family, codec, include_defaults) for codec in specs]


def _by_tag(json: object, tag: str) -> tuple[str, Mapping[str, object]]:
    members = _object(json)
    name = _name(members, tag)
    return name, {key: value for key, value in members.items() if key != tag}


def _by_name(json: object) -> tuple[str, Mapping[str, object]]:
    if isinstance(json, str):
        return json, {}
    envelope = _object(json)
    name = _name(envelope, "name")
    for key in sorted(envelope):
        if key not in _ENVELOPE:
            raise SpecError(f"a codec has no such member{did_you_mean(key, _ENVELOPE)}", (key,))
    # Whatever it says: without a codec, nothing can be read.
    if not isinstance(envelope.get("must_understand", True), bool):
        raise SpecError("expected true or false", ("must_understand",))
    members = envelope.get("configuration", {})
    if not isinstance(members, Mapping):
        found = describe(members)
        raise SpecError(f"expected an object, but found {found}", ("configuration",))
    return name, members


def _object(json: object) -> Mapping[str, object]:
    if not isinstance(json, Mapping):
        raise SpecError(f"expected a codec, that is an object, but found {describe(json)}")
    return json


def _name(members: Mapping[str, object], tag: str) -> str:
    name = members.get(tag)
    if not isinstance(name, str):
        if tag not in members:
            raise SpecError("this member is required: it names the codec", (tag,))
        raise SpecError(f"expected the name of a codec, but found {describe(name)}", (tag,))
    return name


def _parse_members(cls: type[CodecModel], members: Mapping[str, object]) -> CodecModel:
    for name in sorted(members):
        # None is how a model says "not stated"; in JSON, an unstated member is left out
        if members[name] is None and name in cls.member_names() and name not in cls.nullable:
            raise SpecError("null is not possible here: leave the member out", (name,))
    return cls.parse(members)


class Stages(NamedTuple):
    """A list of codec specs by kind.

    Attributes:
        to_array: those of arrays.
        to_bytes: the serializer; None where the list has none.
        compressors: those of bytes, and serializers that take any number of bytes, too.
    """

    to_array: tuple[ArrayToArraySpec, ...]
    to_bytes: ArrayToBytesSpec | None
    compressors: tuple[BytesToBytesSpec | ArrayToBytesSpec, ...]


def split_chain(specs: Sequence[CodecModel], member: str = "codecs") -> Stages:
    """The three stages of a list of codecs.

    Args:
        specs: in encoding order.
        member: the JSON member that holds the list, for error paths.

    Raises:
        SpecError: a codec stands where its kind cannot; the path is `(member, position)`.
    """
    to_array: list[ArrayToArraySpec] = []
    to_bytes: ArrayToBytesSpec | None = None
    compressors: list[BytesToBytesSpec | ArrayToBytesSpec] = []
    for position, spec in enumerate(specs):
        if isinstance(spec, BytesToBytesSpec) or (
            to_bytes is not None and isinstance(spec, ArrayToBytesSpec) and spec.any_size
        ):
            compressors.append(spec)
        elif compressors or to_bytes is not None:
            raise SpecError(
                f'codec "{spec.codec_id}" takes an array, but stands behind a codec that gives '
                "bytes; move it forward (there can be only one array to bytes codec)",
                (member, position),
            )
        elif isinstance(spec, ArrayToArraySpec):
            to_array.append(spec)
        elif isinstance(spec, ArrayToBytesSpec):
            to_bytes = spec
        else:
            raise SpecError(f'codec "{spec.codec_id}" is of no known kind', (member, position))
    return Stages(tuple(to_array), to_bytes, tuple(compressors))


def bind_chain(
    specs: Sequence[CodecModel], chunk: ChunkType, *, member: str = "codecs"
) -> CodecChain:
    """Check a list of codecs against a chunk and prepare it to run.

    Args:
        specs: in encoding order; without an array to bytes codec, the usual one is put in.
        chunk: what the chain will encode.
        member: the JSON member that holds the list, for error paths.

    Raises:
        SpecError: a codec stands in the wrong place or does not fit the chunk. The path starts
            with `(member, position)`.

    Example:
        >>> from tensorstore_py._interface.codec import ChunkType
        >>> chunk = ChunkType((2, 3), np.dtype("uint16"), np.zeros((), "uint16"))
        >>> chain = bind_chain(parse_codec_list("zarr3", ["crc32c"]), chunk)
        >>> len(chain.encode(np.ones((2, 3), "uint16")))
        16
    """
    return _bind(specs, chunk, member).chain


def resolve_chain(
    specs: Sequence[CodecModel], chunk: ChunkType, *, member: str = "codecs"
) -> tuple[CodecModel, ...]:
    """The list as new metadata states it: array to bytes put in, every member explicit.

    Args and errors are those of `bind_chain`.
    """
    resolved = []
    for position, spec, seen in _bind(specs, chunk, member).seen:
        with _errors_at(member, position):
            resolved.append(spec.resolved(seen))
    return tuple(resolved)


class _Seen(NamedTuple):
    """A codec that was bound: where it stands, and to which chunk."""

    position: int
    spec: CodecModel
    chunk: ChunkType


class _Bound(NamedTuple):
    """A list of codecs that was bound, and what each of them saw."""

    specs: tuple[CodecModel, ...]
    chain: CodecChain
    seen: Sequence[_Seen]


#: What is bound remembers nothing between calls, so arrays whose chunks are alike share it.
_bound: LruCache[_Bound] = LruCache(256)


def _bind(specs: Sequence[CodecModel], chunk: ChunkType, member: str) -> _Bound:
    """The list bound to a chunk, once for all that say the same (`parse_known`)."""
    if chunk.dtype.hasobject or chunk.is_opaque:
        return _bind_anew(specs, chunk, member)
    fill = chunk.fill_value
    # An entry has the specs, so that no others get their identities.
    key = (*map(id, specs), chunk.shape, chunk.dtype, fill.shape, fill.tobytes())
    return _bound.get(key, lambda: _bind_anew(specs, chunk, member))


def _bind_anew(specs: Sequence[CodecModel], chunk: ChunkType, member: str) -> _Bound:
    stages = split_chain(specs, member)
    seen: list[_Seen] = []
    at = chunk
    to_array: list[ArrayToArray] = []
    for position, to_array_spec in enumerate(stages.to_array):
        seen.append(_Seen(position, to_array_spec, at))
        with _errors_at(member, position):
            to_array.append(to_array_spec.bind(at))
        at = to_array[-1].encoded
    serializer = stages.to_bytes or _default_serializer(at)
    seen.append(_Seen(len(to_array), serializer, at))
    with _errors_at(member, len(to_array)):
        to_bytes = serializer.bind(at)
    # Behind a serializer of another form than elements side by side there are no elements.
    if to_bytes.encoded_size is None:
        at = OPAQUE
    compressors: list[BytesToBytes] = []
    start = len(specs) - len(stages.compressors)
    for position, compressor_spec in enumerate(stages.compressors, start):
        seen.append(_Seen(position, compressor_spec, at))
        with _errors_at(member, position):
            bound = compressor_spec.bind(OPAQUE if compressor_spec.any_size else at)
            compressors.append(_OverBytes(bound) if isinstance(bound, ArrayToBytes) else bound)
        at = OPAQUE
    chain = CodecChain(chunk, tuple(to_array), to_bytes, tuple(compressors))
    return _Bound(tuple(specs), chain, seen)


class _OverBytes(BytesToBytes):
    """A serializer of any number of bytes, where bytes come.

    Args:
        codec: bound to `OPAQUE`.
    """

    exact = False  # it may be one that rounds

    def __init__(self, codec: ArrayToBytes) -> None:
        self._codec = codec

    def encode(self, data: Buffer) -> Buffer:
        return self._codec.encode(np.frombuffer(data, np.uint8))

    def decode(self, data: Buffer, size: int | None = None) -> Buffer:
        decoded = np.ascontiguousarray(self._codec.decode(data)).reshape(-1).view(np.uint8)
        return self.checked(decoded.data, size)


@contextmanager
def _errors_inside() -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise error.inside(_CONFIGURATION) from None


class _errors_at:  # noqa: N801 - reads as an adverb
    """What is wrong with a codec is wrong at its position in a member that holds a list."""

    __slots__ = ("_member", "_position")

    def __init__(self, member: str, position: int) -> None:
        self._member = member
        self._position = position

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SpecError):
            # A codec may serve several families, so it names its members as they are named in all.
            if error.path and error.path[0] != _CONFIGURATION:
                error = error.inside(_CONFIGURATION)
            raise error.inside(self._member, self._position) from None
        if isinstance(error, UnsupportedError):
            raise UnsupportedError(f"{self._member}[{self._position}]: {error}") from None


def _default_serializer(chunk: ChunkType) -> ArrayToBytesSpec:
    name = "bytes"
    if chunk.dtype.hasobject:
        # Objects do not say of which type they are; the one that stands for missing ones does.
        missing = chunk.fill_value.item()
        if isinstance(missing, str):
            name = "vlen-utf8"
        elif isinstance(missing, bytes):
            name = "vlen-bytes"
    return _serializer(name)


@cache
def _serializer(name: str) -> ArrayToBytesSpec:
    serializer = parse_codec_json("zarr3", name)
    assert isinstance(serializer, ArrayToBytesSpec)
    return serializer


def _parse_member(json: object) -> tuple[CodecModel, ...]:
    return parse_codec_list("zarr3", json)


#: A member that is a list of codecs, as version 3 writes them.
CodecList = Annotated[
    tuple[CodecModel, ...],
    BeforeValidator(_parse_member),
    JsonForm({"type": "array", "items": {"x-def": "Codec.zarr3"}}),
]


class ShardedSpec(ArrayToBytesSpec):
    """Asked: a sharding codec.

    Attributes:
        chunk_shape: shape of the inner chunks; the whole chunk's if None.
        codecs: the codecs of one inner chunk; None: nothing is asked of them.
        list_members: the members that are lists of codecs.
    """

    list_members: ClassVar[tuple[str, ...]] = ("codecs",)

    chunk_shape: tuple[PositiveInt, ...] | None = None
    codecs: CodecList | None = None

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        for name, specs in self._lists().items():
            json[name] = codecs_to_json("zarr3", specs, include_defaults)

    def merged(self, other: Self) -> Self:
        mine, theirs = self._lists(), other._lists()
        both = {name: merge_chains(mine[name], theirs[name]) for name in mine if name in theirs}
        return super(ShardedSpec, self.replace(**both)).merged(other.replace(**both))

    def bound_list(self, member: str, specs: Sequence[CodecModel], chunk: ChunkType) -> CodecChain:
        """The chain of a list of codecs that is a member here.

        Args:
            member: its name, for error paths.
            specs: the list.
            chunk: what the chain will encode.

        Raises:
            SpecError: a codec stands in the wrong place or does not fit the chunk.
        """
        with _errors_inside():
            return bind_chain(specs, chunk, member=member)

    def resolved_list(
        self, member: str, specs: Sequence[CodecModel], chunk: ChunkType
    ) -> tuple[CodecModel, ...]:
        """The list as new metadata states it; arguments and errors as of `bound_list`."""
        with _errors_inside():
            return resolve_chain(specs, chunk, member=member)

    def _lists(self) -> dict[str, tuple[CodecModel, ...]]:
        members = ((name, getattr(self, name)) for name in self.list_members)
        return {name: specs for name, specs in members if specs is not None}


def merge_chains(
    mine: Sequence[CodecModel], theirs: Sequence[CodecModel]
) -> tuple[CodecModel, ...]:
    """The list that satisfies both.

    Raises:
        MismatchError: different codecs, different members, or different numbers of them.
        SpecError: a codec stands where its kind cannot.

    Example:
        >>> gzip = parse_codec_list("zarr3", ["gzip"])
        >>> codecs_to_json(
        ...     "zarr3", merge_chains(gzip, parse_codec_list("zarr3", ["bytes", "gzip"]))
        ... )
        [{'name': 'bytes'}, {'name': 'gzip'}]
    """
    left, right = split_chain(mine), split_chain(theirs)
    if _shards_at_once(left) and not _shards(right):
        return _merge_inside(left, theirs)
    if _shards_at_once(right) and not _shards(left):
        return _merge_inside(right, mine)
    if len(left.compressors) != len(right.compressors):
        raise MismatchError(
            f"one list has {len(left.compressors)} bytes to bytes codecs "
            f"({_names(left.compressors)}), the other {len(right.compressors)} "
            f"({_names(right.compressors)})"
        )
    to_bytes = [spec for spec in (left.to_bytes, right.to_bytes) if spec is not None]
    return (
        *_merge_pairs(left.to_array, right.to_array),
        *_merge_pairs(to_bytes[:1], to_bytes[1:]),
        *_merge_pairs(left.compressors, right.compressors),
    )


def merge_codecs(mine: C, theirs: CodecModel) -> C:
    """The one codec that satisfies both.

    Raises:
        MismatchError: they are different codecs, or a member differs.
    """
    if not isinstance(theirs, type(mine)) or theirs.codec_id != mine.codec_id:
        raise MismatchError(
            f'codec "{mine.codec_id}" and codec "{theirs.codec_id}" are asked for in one place'
        )
    return mine.merged(theirs)


def _merge_pairs(
    mine: Sequence[CodecModel], theirs: Sequence[CodecModel]
) -> tuple[CodecModel, ...]:
    """Merged pairwise; what one sequence has more is taken over."""
    merged = [merge_codecs(*pair) for pair in zip(mine, theirs, strict=False)]
    longer = mine if len(mine) > len(theirs) else theirs
    return (*merged, *longer[len(merged) :])


def _shards(stages: Stages) -> bool:
    return isinstance(stages.to_bytes, ShardedSpec)


def _shards_at_once(stages: Stages) -> bool:
    return _shards(stages) and not stages.to_array


def _merge_inside(sharded: Stages, inner: Sequence[CodecModel]) -> tuple[CodecModel, ...]:
    """`inner` was said of the chunks in the shards."""
    spec = sharded.to_bytes
    assert isinstance(spec, ShardedSpec)
    merged = tuple(inner) if spec.codecs is None else merge_chains(spec.codecs, inner)
    return (spec.replace(codecs=merged), *sharded.compressors)


def _names(specs: Sequence[CodecModel]) -> str:
    return ", ".join(spec.codec_id for spec in specs) or "none"
