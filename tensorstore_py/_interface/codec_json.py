"""Codecs as metadata writes them: a name and a configuration, or an id among the members.

Here is the envelope only. What is inside a codec's configuration is the codec's own matter,
and which codecs stand in which order is `bind_chain`'s. The form depends on the family:
`"zarr3"` writes `{"name", "configuration"}` and accepts a bare name, `"zarr"` writes
`{"id", ...members}`, and `"n5"` `{"type", ...members}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensorstore_py._interface.codec import CodecModel
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.registry import codecs
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["codec_to_json", "codecs_to_json", "parse_codec_json", "parse_codec_list"]

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
