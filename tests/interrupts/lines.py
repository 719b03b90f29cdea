"""Interrupt an operation at each of its lines, in a process of its own.

`python -m tests.interrupts.lines NAME` runs one operation of `operations` once to learn which lines
of the package the main thread passes; then, for each of these lines, it makes a fresh situation,
runs the operation, and raises a signal there. After each it checks what the operation left behind.
It prints how many lines were passed, how many of these signals were raised (a later run may take a
shorter way, and end before its line), and how many came out of the call.
"""

import signal
import sys
import threading
from pathlib import Path

import tensorstore_py as ts
from tests.interrupts.operations import OPERATIONS

PACKAGE = str(Path(ts.__file__).parent)


class Stop(BaseException):
    """What the signal's handler raises: no class that any code knows of."""


def interrupt(*_):
    raise Stop


class Passed:
    """Which lines of the package the calls on this thread pass, each when it is passed first.

    Args:
        at: raise the signal when so many lines were passed; None: only count.
    """

    def __init__(self, at):
        self.at = at
        self.seen = set()
        self.raised = False

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def trace(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        where = frame.f_code, frame.f_lineno, event
        if where not in self.seen:
            self.seen.add(where)
            if len(self.seen) - 1 == self.at:
                sys.settrace(None)
                self.raised = True
                signal.raise_signal(signal.SIGUSR1)
                return None
        return self.trace


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def main():
    operation = OPERATIONS[sys.argv[1]]()
    signal.signal(signal.SIGUSR1, interrupt)
    for _ in range(3):
        operation.check(operation.run(operation.prepare()), stopped=False)
    situation = operation.prepare()
    with Passed(None) as passed:
        operation.run(situation)
    operation.check(situation, stopped=False)

    before, threads = descriptors(), threading.active_count()
    raised = stopped = 0
    for at in range(len(passed.seen)):
        situation = operation.prepare()
        came = False
        signalled = Passed(at)
        try:
            with signalled:
                operation.run(situation)
        except Stop:
            came = True
        raised += signalled.raised
        stopped += came
        try:
            operation.check(situation, stopped=came)
        except BaseException:
            print("interrupted at", at, file=sys.stderr)
            raise
    operation.end()
    assert descriptors() <= before + 2, (before, descriptors())
    assert threading.active_count() <= threads + 8, threading.enumerate()
    print(len(passed.seen), raised, stopped)


if __name__ == "__main__":
    main()
