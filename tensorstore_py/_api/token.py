"""What tells one open array from another, as text: for those that name results by their inputs.

The same array opened alike has the same token, in any process. It says which elements are meant and
not what they are: what is written changes it no more than a path changes with its file.
"""

from __future__ import annotations

import json
import pickle
from hashlib import sha256
from typing import TYPE_CHECKING
from uuid import uuid4

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
        transaction, or made of functions that can't be pickled.
    """
    if store.transaction is not None:
        return uuid4().hex
    model = store._bound_spec()
    try:
        said = json.dumps(strip_context(model).to_json(), sort_keys=True)
        return sha256(repr((said, places(model))).encode()).hexdigest()
    except (SpecError, UnsupportedError, TypeError):
        # Elements in memory have no JSON form: they are what it is.
        try:
            return sha256(pickle.dumps(store)).hexdigest()
        except (pickle.PicklingError, AttributeError, TypeError):
            return uuid4().hex
