import multiprocessing
import os
import time

import pytest

from tensorstore_py._runtime.executors import process_pool, thread_pool


def test_threads_are_of_this_process():
    with thread_pool(2) as pool:
        assert pool.submit(os.getpid).result() == os.getpid()


def test_processes_are_others_and_end_with_it():
    with process_pool(1) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
    assert multiprocessing.active_children() == []


def test_processes_that_are_interrupted_are_not_waited_for():
    def interrupted():
        with process_pool(1) as pool:
            pool.submit(os.getpid).result()
            pool.submit(time.sleep, 1000)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []
