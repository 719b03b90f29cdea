"""`ts.ocdbt`: what can be done with OCDBT databases beside reading and writing keys."""

from tensorstore_py.ocdbt.check import check
from tensorstore_py.ocdbt.history import (
    Version,
    Versions,
    name,
    names,
    open,  # it opens
    unname,
    versions,
)
from tensorstore_py.ocdbt.report import CheckReport, Problem, UnreachedFile

__all__ = [
    "CheckReport",
    "Problem",
    "UnreachedFile",
    "Version",
    "Versions",
    "check",
    "name",
    "names",
    "open",
    "unname",
    "versions",
]
