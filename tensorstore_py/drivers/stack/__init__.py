"""The `stack` driver: arrays laid over each other, seen as one.

`cells` finds which layer has what, `layer` opens the layers when they are needed, `spec` is what is
asked, `driver` the open array.
"""

from tensorstore_py.drivers.stack.driver import Stack
from tensorstore_py.drivers.stack.spec import StackSpec

__all__ = ["Stack", "StackSpec"]
