"""When the interpreter ends, an operation has a result or a clear error, and never hangs."""

import subprocess
import sys
import textwrap

import pytest

from tests.runtime.processes import ROOT

BEGIN = """
import atexit, os, sys, threading, types
try:
    sys.stdout.reconfigure(line_buffering=True)
    late = []
    atexit.register(lambda: [each() for each in late])  # runs after what the package registers
finally:
    import tensorstore_py as ts

context = ts.Context()

import numpy as np

(np.zeros(1) == 0).all(), np.zeros(1).sum()  # has NumPy import what it imports late

def array(kvstore="memory://", context=context):
    layout = ts.ChunkLayout(read_chunk_shape=[8, 8], write_chunk_shape=[32, 32])
    return ts.open(
        {"driver": "zarr3", "kvstore": kvstore}, create=True, dtype="uint32", shape=[256, 256],
        chunk_layout=layout, context=context
    ).result()

class AtTheEnd:
    def __init__(self, *calls):
        self.calls = calls

    def __del__(self):
        for call in self.calls:
            try:
                print("result", call())
            except Exception as error:
                print(type(error).__name__, error)
"""


def ended(code):
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(code)],
        cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


OPERATIONS = {
    "read": "int(store[3:200].read().result().sum())",
    "write": "store[3:200].write(7).result() or int(store[100, 100].read().result())",
    "small read": "int(store[3, 4].read().result())",
    "open": "ts.open(store.spec(), context=context).result().shape",
    "transaction": "commit(store)",
    "poll": "poll(store)",
    "iterate keys": "len(store.kvstore.list().result()) > 0",
}

OUTCOMES = {
    "read": "0",
    "write": "7",
    "small read": "0",
    "open": "(256, 256)",
    "transaction": "5",
    "poll": "True",
    "iterate keys": "True",
}

USED = """
def commit(store):
    with ts.Transaction() as transaction:
        store.with_transaction(transaction)[3, 3].write(5).result()
    return int(store[3, 3].read().result())

def poll(store):
    future = store[3, 3].read()
    future.force()
    return future.done() or future.result(timeout=60) == 0
"""


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_of_the_last_finalizer_has_a_result(name, where, tmp_path):
    kvstore = "memory://" if where == "memory" else f"file://{tmp_path}/"
    out = ended(f"""
{USED}
store = array({kvstore!r})
last = AtTheEnd(lambda: {OPERATIONS[name]})
""")

    assert out == f"result {OUTCOMES[name]}\n"


@pytest.mark.parametrize("name", ["read", "write", "transaction"])
def test_an_operation_after_the_package_was_ended_has_a_result(name):
    out = ended(f"""
{USED}
store = array()
store[5].write(0).result()
late.append(lambda: print("result", {OPERATIONS[name]}))
""")

    assert out == f"result {OUTCOMES[name]}\n"


def test_through_a_cache_pool():
    out = ended("""
        store = array(context=ts.Context({"cache_pool": {"total_bytes_limit": 10**7}}))
        last = AtTheEnd(lambda: int(store.read().result().sum()))
    """)

    assert out == "result 0\n"


def test_a_store_of_the_network_says_that_it_is_too_late():
    out = ended("""
        store = ts.KvStore.open("http://127.0.0.1:9/").result()
        try:
            store.read("begin the loop").result(timeout=0.01)
        except TimeoutError:
            pass
        last = AtTheEnd(lambda: store.read("k").result())
        late.append(lambda: AtTheEnd(lambda: store.read("k").result()).__del__())
    """)

    assert out.count("FailedPreconditionError the interpreter is ending") >= 2


def test_a_result_that_no_thread_will_bring_any_more():
    out = ended("""
        promise, future = ts.Promise.new()
        last = AtTheEnd(future.result)
    """)

    assert out.startswith("result") is False
    assert "Error" in out


def test_threads_that_the_end_stops_in_the_middle_hold_nothing_up():
    """A daemon thread may stop for ever anywhere, holding any lock."""
    out = ended("""
        store = array(context=ts.Context({
            "cache_pool": {"total_bytes_limit": 10**5},
            "data_copy_concurrency": {"limit": 1},
            "file_io_concurrency": {"limit": 1},
        }))
        running = threading.Barrier(5)

        def work(number):
            store[number].write(1).result()
            running.wait()
            while True:
                store[number : number + 9].write(1).result()
                store[number : number + 40].read().result()

        for number in range(4):
            threading.Thread(target=work, args=[number], daemon=True).start()
        running.wait()
        # What the threads refer to lives on, this module included: so the object is in another one.
        module = sys.modules["to_end"] = types.ModuleType("to_end")
        module.last = AtTheEnd(
            lambda: store[100:].read().result().sum() == 0,
            lambda: store[200:].write(3).result(),
            lambda: bool((store[200:].read().result() == 3).all()),
        )
        del module
    """)

    assert out == "result True\nresult None\nresult True\n"
