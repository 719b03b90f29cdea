"""Links that open what is served in viewers that run in a browser.

The state of Neuroglancer is in the fragment of its link, which browsers keep to themselves; vizarr
takes the address of an image as a query, which its host can see.

Source: https://github.com/google/neuroglancer, https://github.com/hms-dbmi/vizarr
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["neuroglancer_link", "neuroglancer_state", "vizarr_link"]

_NEUROGLANCER: Final = "https://neuroglancer-demo.appspot.com/"
_VIZARR: Final = "https://hms-dbmi.github.io/vizarr/"
_ORDINARY: Final = "~!*()'/:,;@"


def neuroglancer_state(layers: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """What Neuroglancer shows: `layers` are the kind and the source of each, by name.

    Example:
        >>> neuroglancer_state({"cells": ("image", "zarr3://http://localhost:80/")})
        {'layers': [{'type': 'image', 'source': 'zarr3://http://localhost:80/', 'name': 'cells'}]}
    """
    return {
        "layers": [
            {"type": kind, "source": source, "name": name}
            for name, (kind, source) in layers.items()
        ]
    }


def neuroglancer_link(state: Mapping[str, object]) -> str:
    """The link that opens a state."""
    return f"{_NEUROGLANCER}#!{quote(json.dumps(state, separators=(',', ':')), safe=_ORDINARY)}"


def vizarr_link(url: str) -> str:
    """The link that opens an image.

    Example:
        >>> vizarr_link("http://127.0.0.1:80/zarr3/")
        'https://hms-dbmi.github.io/vizarr/?source=http%3A%2F%2F127.0.0.1%3A80%2Fzarr3%2F'
    """
    return f"{_VIZARR}?source={quote(url, safe='')}"
