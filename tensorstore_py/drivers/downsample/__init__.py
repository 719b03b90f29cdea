"""The `downsample` driver: a smaller view of an array, one element for each block of elements.

`methods` makes one element of many, `blocks` says which make which, `spec` is what is asked,
`driver` the open array.
"""

from tensorstore_py.drivers.downsample.driver import Downsample
from tensorstore_py.drivers.downsample.spec import DownsampleSpec

__all__ = ["Downsample", "DownsampleSpec"]
