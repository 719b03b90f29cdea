"""The one error of index expressions that are wrong in themselves.

`OutOfRangeError` says that a position or a bound lies outside a domain; `IndexingError` says that
the expression does not fit the domain at all (unknown label, wrong rank, unsupported index type).
Both are `IndexError` *and* `ValueError`: the same operation is reached by subscription, where
Python users expect the former, and by a method call, where they expect the latter.
"""

from __future__ import annotations

from tensorstore_py.errors import TensorStoreError

__all__ = ["IndexingError"]


class IndexingError(TensorStoreError, IndexError, ValueError):
    """An index expression does not fit the domain. Remedy: correct the expression."""
