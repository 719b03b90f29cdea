"""What is at a place where an array was expected and not found: another format, a group, an array.

Only a failed `open` comes here, so that nothing else pays for the look. Whatever the store answers
to it, the error of the `open` remains.
"""

from __future__ import annotations

from tensorstore_py._chunked.spec import ChunkedSpec
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py._interface.adapter import AdapterSpec
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.registry import drivers
from tensorstore_py.errors import NotFoundError, TensorStoreError

__all__ = ["found_instead"]


async def found_instead(model: DriverSpec, error: NotFoundError) -> NotFoundError:
    """The error of an `open`, with what is there instead, if there is something.

    Args:
        model: the bound spec that was to be opened.
        error: what opening it raised.
    """
    while isinstance(model, AdapterSpec):
        model = model.base
    if not isinstance(model, ChunkedSpec) and model.driver != "auto":
        return error
    where = getattr(model, "kvstore", None)
    if not isinstance(where, KvStoreSpec):
        return error
    if where.path[-1:] not in ("", "/"):
        where = where.replace(path=f"{where.path}/")
    store = where.open()
    for key, what in _documents(model.driver):
        try:
            result = await store.read(where.path + key)
        except (TensorStoreError, OSError):
            return error
        if result.state == "value":
            problem = str(error).partition("; to create")[0]
            return NotFoundError(f"{problem}, but {key} is there: {what}")
    return error


def _documents(driver: str) -> list[tuple[str, str]]:
    """The keys of other formats below an array's path, and what to do where one is there."""
    found = []
    for name in reversed(drivers.names()):
        cls = drivers.get(name)
        assert issubclass(cls, DriverSpec)
        if name != driver:
            found += [(key, f'name the driver "{name}", or "auto"') for key in cls.detected_by]
    arrays = {key for key, _ in found}
    for form in formats():
        key = form.group_key
        if key not in arrays and key != form.array_key:
            found.append((key, "it is a group; open it with ts.Group.open"))
    return found
