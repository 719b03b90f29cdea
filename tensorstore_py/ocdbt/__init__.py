"""`ts.ocdbt`: what can be done with OCDBT databases beside reading and writing keys."""

from tensorstore_py.ocdbt.array_changes import ArrayChange
from tensorstore_py.ocdbt.check import check
from tensorstore_py.ocdbt.compact import CompactReport, compact
from tensorstore_py.ocdbt.diff import KeyChange, VersionDiff, diff
from tensorstore_py.ocdbt.dump import DistributedCoordinatorServer, dump
from tensorstore_py.ocdbt.history import (
    Version,
    Versions,
    name,
    names,
    open,  # it opens
    unname,
    versions,
)
from tensorstore_py.ocdbt.repair import RepairReport, repair
from tensorstore_py.ocdbt.report import CheckReport, Problem, UnreachedFile

__all__ = [
    "ArrayChange",
    "CheckReport",
    "CompactReport",
    "DistributedCoordinatorServer",
    "KeyChange",
    "Problem",
    "RepairReport",
    "UnreachedFile",
    "Version",
    "VersionDiff",
    "Versions",
    "check",
    "compact",
    "diff",
    "dump",
    "name",
    "names",
    "open",
    "repair",
    "unname",
    "versions",
]
