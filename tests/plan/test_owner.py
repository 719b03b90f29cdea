import os
import pickle
import subprocess
import sys

import pytest

from tensorstore_py._plan.owner import Owner
from tests.runtime.processes import run_script


@pytest.fixture
def process():
    """Another process, which waits to be ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_worker_of_this_process_is_gone_when_it_leaves():
    owner = Owner.new()
    owner.enter()
    assert not owner.is_gone()

    owner.leave()

    assert owner.is_gone()


def test_a_worker_of_another_process_is_gone_with_it(process):
    owner = Owner.new(process.pid)
    assert not owner.is_gone()

    process.kill()

    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not reaped
    assert owner.is_gone()
    process.wait()
    assert owner.is_gone()


def test_another_process_that_got_its_number_does_not_pass_for_it(process):
    owner = Owner.new(process.pid)

    assert owner._replace(began="12").is_gone()
    assert not owner._replace(began="").is_gone()  # where that cannot be known


def test_of_other_machines_nothing_is_known():
    owner = Owner.new()._replace(machine="another")

    assert not owner.is_gone()


def test_no_two_are_the_same_and_people_can_tell_who_it_is():
    owner = Owner.new()

    assert owner.id != Owner.new().id
    assert str(owner) == f"process {os.getpid()} on {os.uname().nodename}"
    assert pickle.loads(pickle.dumps(owner)) == owner


FORK = """
import os
from tensorstore_py._plan.owner import Owner
owner = Owner.new()
owner.enter()
child = os.fork()
if child == 0:
    mine = Owner.new()
    os._exit(int(owner.is_gone()) + 2 * (not mine.is_gone()) + 4 * (mine.pid == owner.pid))
print(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_is_somebody_else():
    assert run_script(FORK) == "0\n"
