"""Commits to copies of an OCDBT database, each by a process that is killed at another moment.

    python killed_writer.py SPEC TEMPLATE FOLDER TURN

Copies the folder TEMPLATE to `FOLDER/0`, `FOLDER/1`, … and commits turn TURN to each, to the
database that SPEC says there, by a forked process. That of copy N ends by SIGKILL after its Nth
step that changes files, or, for odd N, of what is written in the middle of it. Ends when one is not
killed any more; prints how many were.
"""

import json
import os
import shutil
import signal
import sys
import threading

STEPS = ("open", "write", "writev", "replace", "rename", "unlink", "mkdir")


class Death:
    """Counts steps, and ends the process at one of them."""

    def __init__(self):
        self.steps_left = sys.maxsize
        self.halfway = False
        self._lock = threading.Lock()

    def watch(self, name):
        """Have a function of the operating system counted."""
        plain = getattr(os, name, None)
        if plain is None:
            return

        def stepped(*arguments, **more):
            if name == "open" and not arguments[1] & os.O_CREAT:
                return plain(*arguments, **more)
            with self._lock:  # files of one commit are written by several threads
                self.steps_left -= 1
                left = self.steps_left
            if not left and self.halfway and name in ("write", "writev"):
                fd, data = arguments
                data = data if name == "write" else b"".join(map(bytes, data))
                plain_write(fd, bytes(data)[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return plain(*arguments, **more)
            finally:
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, name, stepped)


plain_write = os.write
death = Death()
for step in STEPS:  # before the package is imported, so that it finds these
    death.watch(step)

import tensorstore_py as ts  # noqa: E402


def values_of(turn):
    """What a turn stores; None deletes."""
    numbers = range(0, 60, 5)
    values: dict[str, bytes | None] = {
        f"k/{number:03}": b"%d " % turn * (1 + number % 40) for number in numbers
    }
    values[f"gone/{turn - 1}"] = None
    values[f"gone/{turn}"] = b"x" * 1000
    return values


def contents_after(turn, before=None):
    """What is there after a turn; before it, what the turn before left."""
    found = dict(before or {})
    for key, value in (values_of(turn) if turn else {}).items():
        if value is None:
            found.pop(key.encode(), None)
        else:
            found[key.encode()] = value
    return found


def commit(library, spec, turn):
    """Make one version."""
    kv = library.KvStore.open(spec, context=library.Context()).result()
    with library.Transaction(atomic=True) as transaction:
        staged = kv.with_transaction(transaction)
        for key, value in values_of(turn).items():
            staged.write(key, value).result()


def killed(spec, turn, number):
    """Whether a process that commits was killed."""
    child = os.fork()
    if not child:
        try:
            death.halfway = bool(number % 2)
            death.steps_left = number // 2 + 1
            commit(ts, spec, turn)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise AssertionError(f"it ended with {status}")
    return status != 0


def main(spec, template, folder, turn):
    # What is imported at first use is imported once, not by each process.
    for _ in range(2):
        commit(ts, {**spec, "base": f"file://{folder}/first/"}, 1)
    number = 0
    while True:
        copy = f"{folder}/{number}"
        shutil.copytree(template, copy)
        if not killed({**spec, "base": f"file://{copy}/"}, turn, number):
            break
        number += 1
    sys.stdout.write(str(number))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
