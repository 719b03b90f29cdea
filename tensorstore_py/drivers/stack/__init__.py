"""The `stack` driver: arrays laid over each other, seen as one.

`spec` is what is asked, `driver` the open array: which layer has what, and the layers, which are
opened when they are needed.
"""

from tensorstore_py.drivers.stack.driver import Stack
from tensorstore_py.drivers.stack.spec import StackSpec

__all__ = ["Stack", "StackSpec"]
