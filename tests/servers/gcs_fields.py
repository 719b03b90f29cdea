"""Partial responses: the `fields` of Google's JSON APIs, `items(name,size),nextPageToken`.

A client that forgets to ask for a member that it needs must fail here as it does there.
"""

from __future__ import annotations

from typing import Any

from tests.servers.gcs_objects import RefusedError

Mask = dict[str, "Mask"]


def parse_fields(text: str) -> Mask:
    """The members that are asked for; an empty mask asks for all that is below."""
    mask, rest = _members(text)
    if rest:
        raise RefusedError(400, "invalidParameter", f"Invalid field selection {text}")
    return mask


def _members(text: str) -> tuple[Mask, str]:
    mask: Mask = {}
    while True:
        end = next((at for at, sign in enumerate(text) if sign in ",()/"), len(text))
        name, text = text[:end].strip(), text[end:]
        inner: Mask = {}
        if not name:
            raise RefusedError(400, "invalidParameter", "Invalid field selection")
        if text.startswith("("):
            inner, text = _members(text[1:])
            if not text.startswith(")"):
                raise RefusedError(400, "invalidParameter", f"Invalid field selection {name}")
            text = text[1:]
        elif text.startswith("/"):
            # only the member that follows is below this one
            end = next((at for at, sign in enumerate(text) if sign in ",)"), len(text))
            inner, _ = _members(text[1:end])
            text = text[end:]
        mask[name] = inner
        if not text.startswith(","):
            return mask, text
        text = text[1:]


def masked(value: Any, mask: Mask) -> Any:
    """What is asked for of a value."""
    if not mask or "*" in mask:
        return value
    if isinstance(value, list):
        return [masked(item, mask) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: masked(value[name], inner) for name, inner in mask.items() if name in value}
