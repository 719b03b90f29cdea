"""Signals at random moments of tight loops, hundreds of them: everything goes on."""

import pytest

from tests.runtime.processes import run_script

PROGRAM = """
import os, random, signal, threading, time
import tensorstore_py as ts

context = ts.Context({{
    "file_io_locking": {{"mode": "os", "acquire_timeout": "60s"}},
    "file_io_sync": False,
    "file_io_concurrency": {{"limit": 2}},
    "data_copy_concurrency": {{"limit": 2}},
    "cache_pool": {{"total_bytes_limit": {pool}}},
}})
store = ts.open(
    {{"driver": "zarr3", "kvstore": "file://{folder}/"}}, create=True, dtype="uint16",
    shape=[64, 64], context=context,
    chunk_layout=ts.ChunkLayout(read_chunk_shape=[8, 8], write_chunk_shape=[32, 32]),
).result()
store.write(1).result()
kvstore = store.kvstore
kvstore["k"] = b"x" * 1000

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

def descriptors():
    return len(os.listdir("/proc/self/fd"))

def used():
    store[3:40, 5].read().result()
    store[3:40, 5].write(2).result()
    return kvstore.read("k").result()

used()
before = descriptors()
random.seed(7)

def attempt(operation):
    signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.002 * random.random())
    until = time.monotonic() + 1  # what is raised as Python drops a weak reference is lost
    while time.monotonic() < until:
        operation()

def interrupted(operation):
    "Whether what three hundred signals left behind has settled."
    signal.signal(signal.SIGALRM, stop)
    for _ in range(300):
        try:
            attempt(operation)
        except Stop:
            pass
    signal.signal(signal.SIGALRM, signal.SIG_IGN)

    other = threading.Thread(target=used)
    other.start()
    other.join(60)
    until = time.monotonic() + 90
    while not (settled := descriptors() <= before) and time.monotonic() < until:
        used()  # thousands of reads whose results were dropped may still be under way
    return settled and not other.is_alive()

for name, operation in {operations}.items():
    print(name, interrupted(operation))
store.close()
"""

OPERATIONS = {
    "read": "store[3:40, 5:9].read().result()",
    "small read": "store[3, 5].read().result()",
    "partial write": "store[3:20, 5:9].write(3).result()",
    "whole write": "store.write(4).result()",
    "value": 'kvstore.read("k").result()',
    "value write": 'kvstore.write("k", b"y" * 200000).result()',
    "asked for together": "[each.result() for each in [store[i].read() for i in range(9)]]",
}


@pytest.mark.parametrize("pool", [0, 10**6])
def test_three_hundred_signals(pool, tmp_path):
    named = ", ".join(f"{name!r}: lambda: {code}" for name, code in OPERATIONS.items())
    code = PROGRAM.format(folder=tmp_path, operations=f"{{{named}}}", pool=pool)

    assert run_script(code, timeout=280) == "".join(f"{name} True\n" for name in OPERATIONS)
