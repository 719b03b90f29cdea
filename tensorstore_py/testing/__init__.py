"""Door 3, for test authors: what every plug-in must keep, as test classes to inherit.

The suites are part of the product: the built-in plug-ins pass them, and guests may inherit them.
This package needs pytest, which the rest of the package does not.
"""

from tensorstore_py.testing.array import ArraySuite
from tensorstore_py.testing.codecs import CodecSuite
from tensorstore_py.testing.counted_waits import CountedWaits
from tensorstore_py.testing.driver import DriverSuite
from tensorstore_py.testing.fake_stores import CountingStore, FaultyStore, LoopStore, StoreAround
from tensorstore_py.testing.fault_server import Exchange, Fault, FaultServer, Reply, Request
from tensorstore_py.testing.kvstore import KvStoreSuite
from tensorstore_py.testing.kvstore_reads import KvStoreListSuite, KvStoreReadSuite, drive
from tensorstore_py.testing.web_values import WebValues

__all__ = [
    "ArraySuite",
    "CodecSuite",
    "CountedWaits",
    "CountingStore",
    "DriverSuite",
    "Exchange",
    "Fault",
    "FaultServer",
    "FaultyStore",
    "KvStoreListSuite",
    "KvStoreReadSuite",
    "KvStoreSuite",
    "LoopStore",
    "Reply",
    "Request",
    "StoreAround",
    "WebValues",
    "drive",
]
