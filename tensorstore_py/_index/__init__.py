"""WHERE: domains, transforms, and everything that can stand between index brackets.

Pure: no I/O, no threads, no event loop; numpy is used for index arrays only. The public names of
the reference (`Dim`, `IndexDomain`, `IndexTransform`, …) are re-exported by the package; the
engine also uses `apply_index`, `array_domain`, `bounds_of`, `compose`, `domain_of`, `identity` and
`propagate_bounds`.

Inside, from the bottom: interval, dim, selection, maps, frame; then functions from frames to frames
(compose, numpy_terms, operations, numpy_style, build); then the classes that users hold (indexable,
domain, transform, dim_expression). `positions` translates NumPy's own way of counting.
"""

from __future__ import annotations

from tensorstore_py._index.dim import Dim
from tensorstore_py._index.dim_expression import DimExpression, DimSelection, d
from tensorstore_py._index.domain import IndexDomain, array_domain, bounds_of, domain_of
from tensorstore_py._index.indexable import Indexable, apply_index
from tensorstore_py._index.interval import INF as inf  # noqa: N811 - the public name
from tensorstore_py._index.maps import OutputIndexMap, OutputIndexMaps, OutputIndexMethod
from tensorstore_py._index.numpy_terms import IndexMode, NumpyIndexingSpec, NumpyIndexTerm
from tensorstore_py._index.selection import DimSelectionLike
from tensorstore_py._index.transform import IndexTransform, compose, identity, propagate_bounds

__all__ = [
    "Dim",
    "DimExpression",
    "DimSelection",
    "DimSelectionLike",
    "IndexDomain",
    "IndexMode",
    "IndexTransform",
    "Indexable",
    "NumpyIndexTerm",
    "NumpyIndexingSpec",
    "OutputIndexMap",
    "OutputIndexMaps",
    "OutputIndexMethod",
    "apply_index",
    "array_domain",
    "bounds_of",
    "compose",
    "d",
    "domain_of",
    "identity",
    "inf",
    "newaxis",
    "propagate_bounds",
]

newaxis = None
"""In an index expression: a new dimension of size 1."""
