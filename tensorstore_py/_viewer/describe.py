"""What the page is told of a node, as JSON: what an array is, how to draw it at first, a group.

Numbers that JSON cannot hold are text. Names and attributes are others' text: the page shows them
as text and never as anything else.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.describe_group import group_facts
from tensorstore_py._api.group import Group
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as place_of
from tensorstore_py._display.codec_words import codec_words
from tensorstore_py._display.info import human_size, times
from tensorstore_py._viewer.elements import TileForm, tile_form
from tensorstore_py._viewer.levels import Level, Picture
from tensorstore_py._viewer.nodes import Found
from tensorstore_py._viewer.tiles import TILE

__all__ = ["Facts", "described"]

Facts = dict[str, Any]  # Any: JSON

#: Text of attributes that is sent at most.
_ATTRIBUTES: Final = 200_000


async def described(path: str, found: Picture | Found) -> Facts:
    """What the page is told of a node."""
    if isinstance(found, Picture):
        return _picture(found)
    if isinstance(found, Group):
        facts = group_facts(found)
        return {
            "kind": "group",
            "path": path,
            "facts": _lines(("Place", facts.get("place")), ("Format", facts.get("format"))),
            "attributes": _plain(await found.attrs.read()),
        }
    assert isinstance(found, KvStore)
    return {
        "kind": "directory",
        "path": path,
        "facts": _lines(("Place", place_of(found.model))),
        "attributes": {},
    }


def _picture(picture: Picture) -> Facts:
    store = picture.levels[0].store
    facts = array_facts(store)
    dtype = picture.dtype
    form = tile_form(dtype)
    rows, columns, colour = _drawn(picture, form)
    fields = [_form(name, tile_form(dtype, name)) for name in form.fields]
    return {
        "kind": "image" if picture.image else "array",
        "path": picture.path,
        "tile": TILE,
        "axes": [axis._asdict() for axis in picture.axes],
        "dtype": store.dtype.to_json(),
        "levels": [_level(level) for level in picture.levels],
        "form": _form("", form),
        "fields": fields,
        "display": {"rows": rows, "columns": columns, "colour": colour},
        "facts": _lines(
            ("Place", facts.get("place")),
            ("Image", picture.image),
            ("Driver", facts["driver"]),
            ("Data type", json.dumps(facts["dtype"]).strip('"')),
            ("Shape", times(store.shape)),
            ("Domain", repr(store.domain) if any(store.origin) else None),
            ("Chunks", times(facts["chunks"]) if "chunks" in facts else None),
            ("Shards", times(facts["shards"]) if "shards" in facts else None),
            ("Bytes", human_size(facts["bytes"]) if "bytes" in facts else None),
            ("Codecs", codec_words(facts["codec"]) if "codec" in facts else None),
            ("Fill value", str(facts["fill_value"]) if "fill_value" in facts else None),
        ),
        "attributes": _plain(picture.attributes),
    }


def _form(name: str, form: TileForm) -> Facts:
    return {"name": name, "wire": form.wire, "parts": form.parts, "is_time": form.is_time}


def _level(level: Level) -> Facts:
    rank = level.store.rank
    return {
        "name": level.name,
        "shape": level.store.shape,
        "factors": level.factors,
        "chunks": [level.grid(dim, shards=False) for dim in range(rank)],
        "shards": [level.grid(dim, shards=True) for dim in range(rank)],
        "origin": level.store.origin,
    }


def _drawn(picture: Picture, form: TileForm) -> tuple[int | None, int | None, int | None]:
    """Which dimensions are drawn downwards, to the right, and as colours, at first."""
    rank = picture.rank
    labels = [axis.label.lower() for axis in picture.axes]
    if rank < 2:
        return None, 0 if rank else None, None
    colour = _colours(picture, labels) if form.wire == "u1" else None
    if "x" in labels and "y" in labels:
        rows, columns = labels.index("y"), labels.index("x")
    else:
        rows, columns = [dim for dim in range(rank) if dim != colour][-2:]
    return rows, columns, None if colour in (rows, columns) else colour


def _colours(picture: Picture, labels: list[str]) -> int | None:
    """The dimension that is red, green and blue; None: there is none."""
    if picture.rank < 3 or picture.dtype.kind == "b":
        return None
    for dim, label in enumerate(labels):
        if label in ("c", "channel", "rgb", "rgba", "band") and picture.axes[dim].size in (3, 4):
            return dim
    last = picture.rank - 1
    return last if not labels[last] and picture.axes[last].size in (3, 4) else None


def _lines(*lines: tuple[str, object]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in lines if value not in (None, "")]


def _plain(attributes: object) -> object:
    """Attributes as JSON that every browser reads."""
    text = json.dumps(attributes, default=str)
    if len(text) > _ATTRIBUTES:
        return {"": f"attributes of {human_size(len(text))} are not shown here"}
    try:
        return json.loads(json.dumps(attributes, default=str, allow_nan=False))
    except ValueError:
        return json.loads(text, parse_constant=str)
