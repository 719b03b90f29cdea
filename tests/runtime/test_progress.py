"""Progress: figures, reporters, bars and streams."""

import asyncio
import io
import subprocess
import sys
import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._runtime.progress import Bar, PlainLine, Progress, Reporter


def test_a_fraction_and_a_line_of_it():
    progress = Progress(2**20, 4 * 2**20, 1, 4)
    assert progress.fraction == 0.25
    assert str(progress) == "25%: 1.0 MiB of 4.0 MiB, 1 of 4 chunks"


def test_nothing_to_do_is_done():
    assert Progress(0, 0, 0, 0).fraction == 1


def test_nothing_is_reported_without_a_receiver():
    told = Reporter(None)
    told.begin(5, 1)
    told.advance(5, 1)


def test_calls_come_one_at_a_time_and_figures_only_grow():
    inside, seen = threading.Lock(), []

    def see(progress):
        assert inside.acquire(blocking=False)
        seen.append(progress)
        inside.release()

    told = Reporter(see)
    told.begin(4000, 400)

    def work():
        for _ in range(100):
            told.advance(10, 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [Progress(10 * each, 4000, each, 400) for each in range(401)]


def test_what_it_raises_is_passed_on_and_the_next_one_goes_on():
    def refuse(progress):
        raise KeyError(progress.chunks_done)

    told = Reporter(refuse)
    with pytest.raises(KeyError, match="0"):
        told.begin(2, 2)
    for done in "12":
        with pytest.raises(KeyError, match=done):
            told.advance(1, 1)


SPEC = {"driver": "zarr3", "kvstore": "memory://"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """Call it within the test: capturing sets standard error anew when that begins."""

    def begin():
        monkeypatch.setattr(sys, "stderr", terminal := Terminal())
        return terminal

    return begin


@pytest.fixture(params=["tqdm", "rich", "plain"])
def library(request, monkeypatch):
    """One of those that draw; what would come before it is not installed."""
    before = ["tqdm", "rich", "plain"]
    for name in before[: before.index(request.param)]:
        for module in [name, *(each for each in sys.modules if each.startswith(f"{name}."))]:
            monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, "tqdm.auto" if name == "tqdm" else "rich.progress", None)
    return request.param


def array(**more):
    grid = ts.ChunkLayout(chunk_shape=[10])
    options = {"create": True, "dtype": "uint8", "shape": [100], "chunk_layout": grid}
    return ts.open(SPEC, **{**options, **more}).result()


def threads():
    return {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("library")
def test_each_library_shows_bytes_chunks_and_all_that_was_read(on_terminal):
    terminal = on_terminal()
    store = array()
    store[...] = 7
    data = store.read(progress=True).result()

    assert data.sum() == 700
    shown = terminal.getvalue()
    assert "read" in shown
    assert "100%" in shown
    assert "10 of 10 chunks" in shown
    assert shown.count("\n") == 1, shown  # one bar, which stays
    assert not [name for name in threads() if "tqdm" in name.lower() or "refresh" in name.lower()]


@pytest.mark.parametrize("silent", [False, None])
def test_nothing_is_printed_unasked(silent, on_terminal, capsys):
    terminal = on_terminal()
    store = array()
    store.write(5, progress=silent).result()
    store.read(progress=silent).result()
    ts.copy(store, ts.KvStore.open("memory://").result(), progress=silent).result()

    assert terminal.getvalue() == capsys.readouterr().out == ""


@pytest.mark.usefixtures("library")
def test_whatever_is_long_has_a_bar(on_terminal, tmp_path):
    terminal = on_terminal()
    root = ts.Group.open("memory://", create=True, zarr_format=2).result()
    image = root.create_array("image", dtype="uint8", shape=[100]).result()
    image.write(7, progress=True).result()
    image.write(image[::-1], progress=True).result()
    ts.copy(root, tmp_path / "copied", progress=True).result()
    ts.rechunk(root, tmp_path / "cut", chunks=50, progress=True).result()
    ts.migrate(root.kvstore, dest=tmp_path / "moved", progress=True).result()
    ts.migrate(root.kvstore, progress=True).result()

    async def both():
        await ts.download(root.kvstore, tmp_path / "files", progress=True)
        await ts.upload(tmp_path / "files", ts.KvStore.open("memory://").result(), progress=True)

    asyncio.run(both())
    shown = terminal.getvalue()
    assert shown.count("\n") == 8
    titles = [line.split("\r")[-1] for line in shown.split("\n")]
    for title in ("write", "copy", "rechunk", "migrate", "download", "upload"):
        assert any(title in line for line in titles), titles


def test_a_migration_in_place_tells_of_chunks_that_are_encoded_anew():
    root = ts.Group.open("memory://", create=True, zarr_format=2).result()
    labels = {"id": "categorize", "labels": ["a", "b"], "dtype": "<U1", "astype": "|u1"}
    stored = {"dtype": "<U1", "chunks": [2], "filters": [labels], "compressor": None}
    text = root.create_array("text", shape=[3], metadata=stored).result()
    text[...] = np.array(["b", "a", "b"])
    seen: list[ts.Progress] = []
    done = ts.migrate(root.kvstore, progress=seen.append).result()

    assert {step.action for step in done.steps} >= {"chunks"}
    assert seen[-1] == ts.Progress(12, 12, 2, 2, 1, 1)


@pytest.mark.usefixtures("library")
def test_an_error_leaves_the_bar_where_it_was_and_says_nothing_more(on_terminal):
    terminal = on_terminal()
    store = array()
    store[...] = 7
    store.kvstore["c/7"] = b"cut"
    with pytest.raises(ts.DataLossError):
        store.read(progress=True).result()

    shown = terminal.getvalue()
    assert shown.count("\n") == 1
    assert "10 of 10" not in shown


@pytest.mark.usefixtures("library")
def test_a_cancelled_operation_closes_its_bar(on_terminal):
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def read(_domain, out, _parameters):
        begun.set()
        assert go.wait(30)
        out[...] = 7
        ended.set()

    terminal = on_terminal()
    store = ts.virtual_chunked(read, dtype="uint8", shape=[100])
    future = store.read(progress=True)
    future.force()
    assert begun.wait(30)
    assert future.cancel()
    shown = terminal.getvalue()
    go.set()
    assert ended.wait(30)
    store.read().result()

    assert shown.count("\n") == 1
    assert terminal.getvalue() == shown  # nothing is drawn after the end


@pytest.mark.usefixtures("library")
def test_two_bars_at_once(on_terminal):
    terminal = on_terminal()
    first, second = Bar("first"), Bar("second")
    for bar in (first, second, first, second):
        bar(ts.Progress(2**20, 2**20, 4, 4))
    first.close()
    second.close()
    shown = terminal.getvalue()
    first(ts.Progress(2**20, 2**20, 4, 4))

    assert terminal.getvalue() == shown
    assert "first" in terminal.getvalue()
    assert "second" in terminal.getvalue()


@pytest.mark.usefixtures("library")
def test_a_terminal_that_is_gone_ends_the_bar_and_not_the_work(monkeypatch):
    class Gone(Terminal):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    store = array()
    store[...] = 7

    assert store.read(progress=True).result().sum() == 700


def test_a_file_gets_a_line_and_no_escapes(monkeypatch):
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    bar = Bar("copy", [PlainLine])
    for done in range(11):
        bar(ts.Progress(done * 2**20, 10 * 2**20, done, 10))
    bar.close()

    (line,) = file.getvalue().splitlines()
    assert line.startswith("copy: 100%: 10.0 MiB of 10.0 MiB, 10 of 10 chunks, ")
    assert "B/s, in " in line


def test_rate_and_time_left():
    line = PlainLine("copy", ts.Progress(0, 2**32, 0, 4))

    half = line.line(ts.Progress(2**31, 2**32, 2, 4), elapsed=3600 + 2)
    assert half.endswith("2 of 4 chunks, 582.2 KiB/s, 1:00:02 left")
    whole = line.line(ts.Progress(2**32, 2**32, 4, 4), elapsed=64)
    assert whole.endswith("4 of 4 chunks, 64.0 MiB/s, in 1:04")


def test_what_is_no_progress_is_refused():
    with pytest.raises(TypeError, match="progress is a function, True or False, not 'yes'"):
        array().read(progress="yes")
    with pytest.raises(TypeError, match="progress is a function"):
        ts.copy(array(), ts.KvStore.open("memory://").result(), progress=1)  # type: ignore[arg-type]


def test_no_library_is_loaded_unasked():
    program = (
        "import sys, tensorstore_py as ts\n"
        "store = ts.open({'driver': 'zarr3', 'kvstore': 'memory://'}, create=True, dtype='int8',"
        " shape=[4]).result()\n"
        "store.read(progress=print).result(), store.read(progress=False).result()\n"
        "print([name for name in ('tqdm', 'rich', 'IPython') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


async def opened(**options):
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    layout = ts.ChunkLayout(chunk_shape=[2])
    return await ts.open(spec, create=True, dtype="int8", shape=[8], chunk_layout=layout, **options)


async def test_the_events_of_a_copy_end_with_it(tmp_path):
    store = await opened()
    stream = ts.ProgressStream()

    copying = ts.copy(store, tmp_path / "a", progress=stream)
    seen = [event async for event in stream]

    assert (await copying).bytes == 8
    assert seen[-1].bytes_done == seen[-1].bytes_total == 8
    assert [each.bytes_done for each in seen] == sorted(each.bytes_done for each in seen)


async def test_a_late_listener_gets_the_last_event():
    store = await opened()
    stream = ts.ProgressStream()
    await store.read(progress=stream)

    assert [event.fraction async for event in stream] == [1.0]
    assert [event async for event in stream] == []


async def test_a_failure_ends_it():
    store = await opened(context=ts.Context())
    stream = ts.ProgressStream()

    copying = ts.copy(store, "memory://x/y.zarr/", if_exists="raise", progress=stream, dtype="bool")
    async for _ in stream:
        pass

    with pytest.raises(ts.MismatchError):
        await copying


async def test_a_listener_that_is_cancelled_is_none():
    stream = ts.ProgressStream()
    listening = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    listening.cancel()
    await asyncio.wait([listening])

    stream(ts.Progress(1, 2, 0, 0))

    assert (await anext(stream)).bytes_done == 1


def test_news_from_a_loop_that_is_gone():
    stream = ts.ProgressStream()

    async def listen():
        asyncio.ensure_future(anext(stream)).add_done_callback(lambda each: each.cancelled())
        await asyncio.sleep(0)

    asyncio.run(listen())
    stream(ts.Progress(1, 2, 0, 0))
    stream.close()

    async def rest():
        return [event.bytes_done async for event in stream]

    assert asyncio.run(rest()) == [1]
