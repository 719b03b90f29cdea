"""What tells one open array from another, as text: for those that name results by their inputs.

The same array opened alike has the same token, in any process. It says which elements are meant and
not what they are: what is written changes it no more than a path changes with its file.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from tensorstore_py._spec.binding import places, strip_context
from tensorstore_py.errors import SpecError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._api.handle import Handle

__all__ = ["token_of"]


def token_of(store: Handle) -> str:
    """The token of a view of an open array.

    Args:
        store: the view; its bounds and what is known of its metadata are part of the token.

    Returns:
        One of its own for each call if the view can't be told from others: seen through a
        transaction, or made of what has no JSON form, such as functions.
    """
    if store.transaction is not None:
        return uuid4().hex
    model = store._bound_spec()
    values = getattr(model, "values", None)
    if isinstance(values, np.ndarray):
        return _of_memory(values, store)
    try:
        said = json.dumps(strip_context(model).to_json(), sort_keys=True)
    except (SpecError, UnsupportedError, TypeError):
        return uuid4().hex
    return sha256(repr((said, places(model))).encode()).hexdigest()


def _of_memory(values: np.ndarray[Any, Any], store: Handle) -> str:
    """Elements in memory are what they are."""
    view = json.dumps(store._transform.to_json(), sort_keys=True)
    found = sha256(repr((view, store.dtype, values.shape)).encode())
    found.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())
    return found.hexdigest()
