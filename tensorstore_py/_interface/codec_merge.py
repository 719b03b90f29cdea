"""Two partial lists of codecs, both to hold: what a schema and a spec ask for together.

Nothing is bound here. Each list says what it cares about; what only one says is taken over,
what both say must agree. A list without the sharding codec constrains the chunks inside the
shards where the other list shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tensorstore_py._interface.bind_chain import Stages, split_chain
from tensorstore_py._interface.sharded import ShardedSpec
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._interface.codec import CodecModel

__all__ = ["merge_chains", "merge_codecs"]

C = TypeVar("C", bound="CodecModel")


def merge_chains(
    mine: Sequence[CodecModel], theirs: Sequence[CodecModel]
) -> tuple[CodecModel, ...]:
    """The list that satisfies both.

    Raises:
        MismatchError: different codecs, different members, or different numbers of them.
        SpecError: a codec stands where its kind cannot.

    Example:
        >>> from tensorstore_py._interface.codec_json import codecs_to_json, parse_codec_list
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
    if not isinstance(theirs, type(mine)):
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
