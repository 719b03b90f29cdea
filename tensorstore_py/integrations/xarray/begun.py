"""`read`: begin to read whatever is lazy in a dataset, all at once, before it is waited for.

xarray loads one variable after the other. Here the layers above each array, which index and decode,
are run as far as the array itself; they go on when the values are wanted.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from xarray.core import indexing

from tensorstore_py.integrations.xarray.lazy_array import PARKS, indexed

__all__ = ["Begun", "read"]

T = TypeVar("T", xr.Dataset, xr.DataArray)


def read(xarraydata: T, /) -> T:
    """Begin to read everything that is lazy in a dataset or an array.

    What was opened with dask, or is in memory, stays as it is.

    Args:
        xarraydata: what was opened by the engine, or `open_zarr`, and indexed since.

    Returns:
        The same with values that are on their way: `.compute()` waits for them.

    Raises:
        TypeError: it is neither a Dataset nor a DataArray.

    Example:
        >>> import tensorstore_py as ts
        >>> import xarray as xr
        >>> group = ts.Group.open("memory://", create=True).result()
        >>> domain = ts.IndexDomain(shape=[3], labels=["x"])
        >>> group.create_array("a", dtype="int16", domain=domain).result()[...] = [1, 2, 3]
        >>> begun = read(xr.open_dataset(group, engine="tensorstore").isel(x=slice(0, 2)))
        >>> begun["a"].values
        array([1, 2], dtype=int16)
    """
    if isinstance(xarraydata, xr.Dataset):
        data = {name: _begun(each.variable) for name, each in xarraydata.data_vars.items()}
        return xarraydata.copy(data=data)
    if isinstance(xarraydata, xr.DataArray):
        return xarraydata.copy(data=_begun(xarraydata.variable))
    raise TypeError(f"expected a Dataset or a DataArray, but found {type(xarraydata).__name__}")


def _begun(variable: xr.Variable) -> Any:  # noqa: ANN401 - what xarray holds
    data = variable._data
    if not isinstance(data, indexing.ExplicitlyIndexed):
        return data
    try:
        return Begun(data)
    except NotImplementedError:  # a layer of xarray's that reads when it is asked, and not before
        return data


class Begun(indexing.ExplicitlyIndexedNDArrayMixin):
    """Lazy data whose values are on their way.

    Args:
        data: as xarray holds it: layers that index and decode, above an array.

    Attributes:
        array: as given; its shape and type are known.

    Raises:
        NotImplementedError: a layer cannot wait.
    """

    __slots__ = ("_rest", "_values", "array")

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - layers of xarray's
        self.array = data
        self._values: Any = None
        self._rest: Coroutine[Any, Any, Any] | None = data.async_get_duck_array()
        self._step()

    def _step(self) -> None:
        """Run the layers until they wait for an array, or have the values."""
        assert self._rest is not None
        token = PARKS.set(True)
        try:
            self._rest.send(None)
        except StopIteration as end:
            self._values, self._rest = end.value, None
        finally:
            PARKS.reset(token)

    def get_duck_array(self) -> Any:  # noqa: ANN401 - NumPy's, or like it
        """The values, once they are there."""
        while self._rest is not None:
            self._step()
        return self._values

    async def async_get_duck_array(self) -> Any:  # noqa: ANN401 - as above
        """The same, for callers that wait otherwise."""
        return self.get_duck_array()

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:  # noqa: ANN401 - as above
        return indexed(self.get_duck_array(), key)

    def _oindex_get(self, key: indexing.OuterIndexer) -> Any:  # noqa: ANN401 - as above
        return self[key]

    def _vindex_get(self, key: indexing.VectorizedIndexer) -> Any:  # noqa: ANN401 - as above
        return self[key]

    def transpose(self, order: tuple[int, ...]) -> Any:  # noqa: ANN401 - as above
        """The values with their dimensions in another order."""
        return self.get_duck_array().transpose(order)

    def __copy__(self) -> Begun:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Any:  # noqa: ANN401 - as above
        return np.array(self.get_duck_array())

    def __reduce__(self) -> tuple[object, ...]:
        return np.asarray, (self.get_duck_array(),)
