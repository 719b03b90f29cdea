"""Open arrays as JSON that other processes understand, and back.

The JSON has the array's metadata, so what has changed meanwhile is noticed when it is opened. How
it was opened here, and resources of which nothing is said, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._api.open import opened
from tensorstore_py._api.options import updated
from tensorstore_py._api.prepared import as_model
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._spec.context import bind, spec_json
from tensorstore_py._spec.open_mode import FLAGS
from tensorstore_py.errors import (
    FailedPreconditionError,
    MismatchError,
    NotFoundError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tensorstore_py._api.tensorstore import TensorStore
    from tensorstore_py._interface.driver import DriverSpec
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._interface.kvstore import KvStoreSpec
    from tensorstore_py._spec.context import Context

__all__ = ["array_json", "open_json", "portable_json"]


def array_json(store: TensorStore, what: str) -> JsonObject:
    """The spec of an open array, with its metadata, which it must still have when it is opened.

    Raises UnsupportedError: it is seen through a transaction, or has no spec.
    """
    if store._driver.transaction is not None:
        raise UnsupportedError(
            f"{what} is seen through a transaction, which stays in this process; commit it first"
        )
    json = portable_json(store._bound_spec())
    # How it was opened here is not how it is opened elsewhere.
    return {name: value for name, value in json.items() if name not in FLAGS}


def portable_json(model: DriverSpec | KvStoreSpec) -> JsonObject:
    """The JSON of a bound spec, without resources of which nothing is said."""
    json = spec_json(model.canonical())
    shared = json.pop("context", {})
    assert isinstance(shared, dict)
    said = {name: value for name, value in shared.items() if value != {}}
    plain = {name: _plain(value) for name, value in json.items() if value != {}}
    return {"context": said, **plain} if said else plain


def _plain(json: object) -> object:
    """A store's spec without empty members."""
    if isinstance(json, dict) and "driver" in json:
        return {name: _plain(value) for name, value in json.items() if value != {}}
    return json


async def open_json(json: object, context: Context, what: str) -> TensorStore:
    """Open what `array_json` described, from the library's loop.

    Raises FailedPreconditionError: it is not there any more, or not as it was.
    """
    model = bind(updated(as_model(json), {"open": True}), context)
    try:
        driver = await within(False, model.inline, model.open)
    except NotFoundError as error:
        raise FailedPreconditionError(
            f"{what} is not there any more, so the plan does not fit; plan again: {error}"
        ) from error
    except MismatchError as error:
        raise FailedPreconditionError(
            f"{what} has changed since the plan was made; plan again: {error}"
        ) from error
    return opened(driver, model, readable=True, writable=True)
