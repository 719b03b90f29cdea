import asyncio

import pytest

from tensorstore_py._net.sessions import close_session, exact_url, session
from tests.runtime.processes import run_script


async def test_one_session_a_loop():
    made = session()
    try:
        assert session() is made
    finally:
        await close_session()

    assert made.closed
    again = session()
    assert again is not made
    await close_session()
    await close_session()


async def test_the_library_does_nothing_behind_our_back():
    made = session()
    try:
        assert made._retry_connection is False
        assert made.auto_decompress is False
        assert made.trust_env is False
        assert made.connector is not None
        assert made.connector.limit == 0
        assert made.timeout.total is None
        assert list(made.cookie_jar) == []
    finally:
        await close_session()


async def test_urls_go_out_as_they_are():
    session()
    try:
        for url in ("http://h/a%2Fb/../c?x=%20&y", "http://h/%e9+a//b"):
            assert str(exact_url(url)) == url
    finally:
        await close_session()


async def test_a_bundle_of_authorities_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("TENSORSTORE_CA_BUNDLE", "/nowhere/bundle.pem")

    with pytest.raises(OSError, match="No such file"):
        session()


def test_loops_do_not_share():
    async def own():
        made = session()
        await close_session()
        return made

    assert asyncio.run(own()) is not asyncio.run(own())


def test_the_library_is_imported_at_the_first_request():
    out = run_script("""
        import sys
        import tensorstore_py as ts
        store = ts.KvStore.open("http://127.0.0.1:9/").result()
        print("aiohttp" in sys.modules)
    """)

    assert out == "False\n"


def test_the_session_is_closed_at_exit_without_complaints():
    out = run_script("""
        import warnings
        warnings.simplefilter("error")
        import tensorstore_py as ts
        from tensorstore_py.testing import FaultServer, WebValues
        server = FaultServer(WebValues({"a": b"1"}).handle)
        with server.running() as url:
            print(ts.KvStore.open(url).result()["a"])
    """)

    assert out == "b'1'\n"


def test_a_forked_child_has_its_own():
    out = run_script("""
        import os
        import tensorstore_py as ts
        from tensorstore_py.testing import FaultServer, WebValues
        server = FaultServer(WebValues({"/a": b"1", "a": b"1"}).handle)
        with server.running() as url:
            store = ts.KvStore.open(url).result()
            print(store["a"], flush=True)
            child = os.fork()
            if child == 0:
                print(store["a"], flush=True)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            print(status, store["a"], len(server.requests), server.connections)
    """)

    assert out == "b'1'\nb'1'\n0 b'1' 3 2\n"


def test_what_a_forked_child_ends_with_is_not_its_parents():
    out = run_script("""
        import gc, os, sys, threading
        import tensorstore_py as ts
        from tensorstore_py._runtime.start import start
        from tensorstore_py.testing import FaultServer, WebValues
        from tensorstore_py.testing.fault_server import slow
        arrived = threading.Event()
        def plan(request):
            if request.target == "/slow":
                arrived.set()
                return slow(5, 0.05)
        server = FaultServer(WebValues({"a": b"1", "slow": b"23456"}).handle, plan)
        start(False, server.__aenter__).result()
        store = ts.KvStore.open(server.url).result()
        print(store["a"], flush=True)
        under_way = store.read("slow")
        arrived.wait()
        child = os.fork()
        if child == 0:
            gc.collect()
            sys.exit(0)  # everything is finalised
        _, status = os.waitpid(child, 0)
        print(status, under_way.result().value, store["a"])
        print([request.connection for request in server.requests])
        start(False, lambda: server.__aexit__(None, None, None)).result()
    """)

    # The connection is still good: nothing was tried again on another one.
    assert out == "b'1'\n0 b'23456' b'1'\n[0, 0, 0]\n"


@pytest.mark.parametrize("begun", [True, False], ids=["the library", "the loop"])
def test_too_many_open_files_at_the_first_request_is_an_error_that_may_pass(begun):
    out = run_script(
        """
        import os, resource
        import tensorstore_py as ts
        from tensorstore_py._runtime.loop import library_loop
        context = ts.Context({"http_request_retries": {"max_retries": 0}})
        store = ts.KvStore.open("http://127.0.0.1:9/", context=context).result()
        if BEGUN:
            library_loop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            store.read("a").result()
        except ts.errors.UnavailableError as error:
            print(("aiohttp could not" if BEGUN else "no event loop could") in str(error))
        for each in taken:
            os.close(each)
        try:
            store.read("a").result()
        except ts.errors.UnavailableError as error:
            print("Too many open files" in str(error))
    """.replace("BEGUN", str(begun))
    )

    assert out == "True\nFalse\n"
