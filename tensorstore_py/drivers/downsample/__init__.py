"""The `downsample` driver: a smaller view of an array, one element for each block of elements.

`methods` makes one element of many, `blocks` says which make which, `driver` is what is asked, and
the open array.
"""

from tensorstore_py.drivers.downsample.driver import Downsample, DownsampleSpec

__all__ = ["Downsample", "DownsampleSpec"]
