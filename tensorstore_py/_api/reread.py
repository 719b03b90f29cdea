"""Reading again what could not be decoded, past every cache, before it counts as damaged.

What is stored may be right although what came was not: a fault on the way, or in what a cache
keeps. So whoever goes through a whole array, and would have to give up on a block, asks once more
for what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py.errors import DataLossError

if TYPE_CHECKING:
    from tensorstore_py._api.array import Array
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver

__all__ = ["read_anew", "read_surely"]


async def read_surely(driver: Driver, transform: IndexTransform, order: str = "C") -> Array:
    """As `Driver.read`; what cannot be decoded is read again past every cache, once.

    Raises:
        DataLossError: it cannot be decoded then, either; names the key.
    """
    try:
        return await driver.read(transform, order)
    except DataLossError:
        return await read_anew(driver, transform, order)


async def read_anew(driver: Driver, transform: IndexTransform, order: str = "C") -> Array:
    """As `Driver.read`, of what is stored: nothing that a cache keeps is used."""
    driver.forget_cached(transform)
    return await driver.read(transform, order)
