"""A signal reaches the main thread wherever it waits, and what it waited for goes on or fails."""

import pytest

from tests.runtime.processes import run_script

BEGIN = """
import os, signal, subprocess, sys, threading
import tensorstore_py as ts

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

signal.signal(signal.SIGUSR1, stop)

def signal_when_in(*names):
    "A thread sends the signal when the main thread has come to one of these functions."
    entered = threading.Event()

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_name in names:
            sys.setprofile(None)
            entered.set()

    def send():
        entered.wait()
        # What a handler raises within `profile` may be lost, so the main thread is to be out of it.
        main = threading.main_thread().ident
        while sys._current_frames()[main].f_code is profile.__code__:
            threading.Event().wait(0.001)
        threading.Event().wait(0.1)  # it is to wait by now, but this may also come before
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=send, daemon=True).start()
    sys.setprofile(profile)

def array(folder, **resources):
    context = ts.Context({"file_io_sync": False, **resources})
    return ts.open(
        {"driver": "zarr3", "kvstore": f"file://{folder}/"}, create=True, dtype="uint16",
        shape=[64], chunk_layout=ts.ChunkLayout(chunk_shape=[32]), context=context,
    ).result()
"""


def test_for_a_lock_that_another_process_holds(tmp_path):
    out = run_script(
        BEGIN
        + f"""
locking = {{"mode": "os", "acquire_timeout": "60s"}}
store = array("{tmp_path}", file_io_locking=locking)
store.write(1).result()
holder = subprocess.Popen(
    [sys.executable, "-c",
     "import sys; from tensorstore_py.kvstores.file import locking; "
     "held = locking.acquire(sys.argv[1], 5); print(flush=True); sys.stdin.read()",
     "{tmp_path}/c/0.__lock"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
)
holder.stdout.readline()
descriptors = len(os.listdir("/proc/self/fd"))
signal_when_in("pause")
try:
    store[3:5].write(2).result()
except Stop:
    print("stopped")
holder.communicate()
store[5:7].write(3).result()
values = store[3:7].read().result().tolist()
print(values in ([1, 1, 3, 3], [2, 2, 3, 3]), len(os.listdir("/proc/self/fd")) <= descriptors)
"""
    )

    assert out == "stopped\nTrue True\n"


def test_for_a_chunk_that_another_thread_is_writing():
    out = run_script(
        BEGIN
        + """
go_on, within = threading.Event(), threading.Event()

def write(domain, array, parameters):
    within.set()
    go_on.wait()

def read(domain, array, parameters):
    array[...] = 0

store = ts.virtual_chunked(
    read, write, shape=[64], dtype="uint16", chunk_layout=ts.ChunkLayout(chunk_shape=[32])
)
other = threading.Thread(target=lambda: store[3:5].write(1).result())
other.start()
within.wait()
signal_when_in("acquire")
try:
    store[4:6].write(2).result()
except Stop:
    print("stopped")
go_on.set()
other.join()
store.close()
print("closed")
"""
    )

    assert out == "stopped\nclosed\n"


def test_for_an_answer_from_the_network():
    out = run_script(
        BEGIN
        + """
import socket
deaf = socket.create_server(("127.0.0.1", 0))
store = ts.KvStore.open(f"http://127.0.0.1:{deaf.getsockname()[1]}/").result()
for _ in range(3):
    signal_when_in("_block", "drive")
    try:
        store.read("k").result()
    except Stop:
        print("stopped")
print(ts.KvStore.open("memory://").result().read("k").result().state)
"""
    )

    assert out == "stopped\nstopped\nstopped\nmissing\n"


@pytest.mark.parametrize("many", [1, 8])
def test_a_write_that_was_left_is_done_to_its_end(many, tmp_path):
    """The rest goes on in another thread, and `close` waits for it."""
    out = run_script(
        BEGIN
        + f"""
store = array("{tmp_path}")[: 8 * {many}]
store.write(1).result()
signal_when_in("run_inline")
for value in range(2, 60_000):
    try:
        store.write(value).result()
    except Stop:
        break
store.close()
found = ts.open(store.spec(), read=True, write=True).result().read().result()
print(bool((found == value).all()))
"""
    )

    assert out == "True\n"


def test_the_end_does_not_wait_for_a_read_that_was_left():
    out = run_script(
        """
import atexit
calls = []
atexit.register(lambda: print(len(calls) < 100_000))  # runs after what the package registers
"""
        + BEGIN
        + """
from tensorstore_py.plugin import kvstore as p

@p.kvstore("empty")
class EmptySpec(p.KvStoreSpec):
    def open(self):
        return EmptyStore()

class EmptyStore(p.KvStore):
    inline = True

    async def read(self, key, byte_range=p.WHOLE, **conditions):
        calls.append(key)
        if len(calls) == 100:
            os.kill(os.getpid(), signal.SIGUSR1)
        return p.ReadResult.of(None, p.NO_VALUE, byte_range, **conditions)

metadata = {
    "shape": [100_000],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
}
spec = {"driver": "zarr3", "kvstore": {"driver": "empty"}, "metadata": metadata}
store = ts.open(spec, open=True, assume_metadata=True).result()
try:
    store.read().result()
except Stop:
    print("stopped")
"""
    )

    assert out == "stopped\nTrue\n"


def test_a_copy_of_many_blocks_stops_and_can_be_continued(tmp_path):
    out = run_script(
        BEGIN
        + f"""
store = array("{tmp_path}/a", memory_limit={{"limit_bytes": 1000}})
store = store.resize(exclusive_max=[32_000]).result()
store.write(1).result()
seen = []

def progress(told):
    seen.append(told)
    if len(seen) == 1:
        os.kill(os.getpid(), signal.SIGUSR1)

from pathlib import Path
target = {{"driver": "file", "path": "{tmp_path}/b/"}}
manifest = Path("{tmp_path}/manifest.json")
copying = ts.copy(store, target, manifest=manifest, progress=progress)
try:
    copying.result()
except Stop:
    print("stopped", copying.cancelled())
ts.copy(store, target, manifest=manifest).result()
copied = ts.open({{"driver": "auto", "kvstore": target}}).result()
print(bool((copied.read().result() == 1).all()))
"""
    )

    assert out == "stopped True\nTrue\n"


def test_a_handler_that_does_not_raise_does_not_disturb():
    out = run_script(
        BEGIN
        + """
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(threading.current_thread().name))
store = ts.open(
    {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="uint8", shape=[200],
    chunk_layout=ts.ChunkLayout(chunk_shape=[2]),
).result()
signal_when_in("run_inline")
while not told:
    store[::3].write(7).result()
print(store[::3].read().result().tolist() == [7] * 67, set(told))
"""
    )

    assert out == "True {'MainThread'}\n"
