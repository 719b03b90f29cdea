"""Interrupt an operation at each of its lines, in a process of its own.

`python -m tests.interrupts.lines NAME` runs one operation of `operations` once to learn which lines
of the package the main thread passes; then, for each of these lines, it makes a fresh situation,
runs the operation, and raises a signal when the line is passed first. After each it checks what the
operation left behind. It prints how many lines were passed, how many of these signals were raised
(a later run may take a shorter way), and how many came out of the call.

What the main thread leaves in the middle goes on in other threads, which are used again when they
are done. How soon that is depends on the machine, so the next signal waits until only `LEFT` of
them are at work: then the number of threads has a bound on any machine, which a thread for each
signal, or one that never ends its work, goes beyond.

Lines that only look and jump change nothing: the signal comes at the one after them, in the same
situation.

`INTERRUPTED_LINES` says which lines: `even` or `odd` ones, for two runs that share the work; if it
is not set, all of them.
"""

import dis
import inspect
import os
import re
import signal
import sys
import threading
from functools import cache
from pathlib import Path
from time import monotonic, sleep

import tensorstore_py as ts
from tests.internals import unfinished_continuations
from tests.interrupts.operations import OPERATIONS
from tests.runtime.processes import width

PACKAGE = str(Path(ts.__file__).parent)
LEFT = 3
PATIENCE_S = 120  # for what takes milliseconds


class Stop(BaseException):
    """What the signal's handler raises: no class that any code knows of."""


def interrupt(*_):
    raise Stop


def is_place(code, event):
    """Whether a signal may come there.

    The call of a function is no place: nothing is done between it and the function's first line.
    Coroutines are resumed by one, in the middle of a line. Of generators only lines are places:
    they are closed when their last reference is dropped, where an exception of a trace function
    crashes CPython 3.11.
    """
    if code.co_flags & inspect.CO_GENERATOR:
        return event == "line"
    return event != "call" or code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)


# Instructions that change nothing, and call nothing.
QUIET = re.compile(
    "LOAD_(FAST.*|CONST|GLOBAL|ATTR|DEREF)|.*JUMP.*|(COMPARE|IS|CONTAINS)_OP|UNARY_NOT|TO_BOOL|"
    "RETURN_(VALUE|CONST)|BUILD_TUPLE|UNPACK_SEQUENCE|COPY|SWAP|POP_TOP|EXTENDED_ARG|NOP|RESUME|CACHE"
)


@cache
def handlers_of(code):
    """For each line the handlers of exceptions there, and which lines are quiet.

    A local variable is changed quietly where nothing handles exceptions: it goes with the frame.
    """
    entries = vars(dis.Bytecode(code))["exception_entries"]  # which has no type
    handlers: dict[int | None, set[frozenset[int]]] = {}
    loud = set()
    for each in dis.get_instructions(code):
        line = None if each.positions is None else each.positions.lineno
        here = frozenset(
            entry.target for entry in entries if entry.start <= each.offset < entry.end
        )
        handlers.setdefault(line, set()).add(here)
        local = each.opname.startswith("STORE_FAST") and not here
        if not (local or QUIET.fullmatch(each.opname)):
            loud.add(line)
    return handlers, set(handlers) - loud


def is_same(code, line, other):
    """Whether an exception at a line is as one at the other, where execution goes on."""
    handlers, quiet = handlers_of(code)
    return line in quiet and len(handlers[line]) == 1 and handlers[line] == handlers.get(other)


class Passed:
    """Which places of the package the calls on this thread pass, in the order of the first times.

    A place is a line of some code, and what happens there (`is_place`). One from which a quiet
    line leads to another place at once is not among them, but that one.
    """

    def __init__(self):
        self.places = {}
        self.leads = {}
        self.last = None

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)
        # Not before: helpers would do the work while this thread looks into its code.
        for place, line in self.leads.items():
            if is_same(self.places[place], place[1], line):
                del self.places[place]

    def trace(self, frame, event, argument):
        code = frame.f_code
        (where, before), self.last = self.last or (None, None), None
        if not code.co_filename.startswith(PACKAGE):
            return None
        line = frame.f_lineno
        place = (id(code), line, event)
        if is_place(code, event) and place not in self.places:
            if where is frame:
                self.leads[before] = line
            self.places[place] = code
            if event == "line":
                self.last = frame, place
        return self.trace


def chosen(places):
    """Those of this run's lines."""
    which = os.environ.get("INTERRUPTED_LINES", "all")
    modulo = {"even": (0,), "odd": (1,), "all": (0, 1)}[which]
    return {place: code for place, code in places.items() if place[1] % 2 in modulo}


class Interrupted:
    """Raise the signal when the calls on this thread pass a place for the first time.

    Args:
        place: as `Passed` tells it.
        code: whose it is. No other is traced, which would take most of the time.

    Attributes:
        raised: whether the place was passed.
    """

    def __init__(self, place, code):
        _, self.line, self.event = place
        self.code = code
        self.raised = False

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def trace(self, frame, event, argument):
        if frame.f_code is not self.code:
            return None
        if frame.f_lineno == self.line and event == self.event:
            sys.settrace(None)
            self.raised = True
            signal.raise_signal(signal.SIGUSR1)
            return None
        return self.trace


def wait_for_successors(left=0):
    """Wait until no more than so many are at work."""
    until = monotonic() + PATIENCE_S
    while unfinished_continuations() > left:
        assert monotonic() < until, "what was taken over does not end"
        sleep(0.001)


def check_threads(others):
    """Successors were used again, and no other threads were left."""
    threads = threading.enumerate()
    successors = [each for each in threads if "successor" in each.name]
    # A signal may leave two operations: a function of the user's waits for one within another.
    assert len(successors) <= LEFT + 3, threads
    assert len(threads) - len(successors) <= others + 3 * width(), threads


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def main():
    operation = OPERATIONS[sys.argv[1]]()
    signal.signal(signal.SIGUSR1, interrupt)
    for _ in range(3):
        operation.check(operation.run(operation.prepare()), stopped=False)
    situation = operation.prepare()
    with Passed() as passed:
        operation.run(situation)
    operation.check(situation, stopped=False)

    before, threads = descriptors(), threading.active_count()
    raised = stopped = 0
    places = chosen(passed.places)
    for place, code in places.items():
        situation = operation.prepare()
        came = False
        signalled = Interrupted(place, code)
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
            print("interrupted at", code, place, file=sys.stderr)
            raise
        wait_for_successors(LEFT)
    wait_for_successors()
    operation.end()
    assert descriptors() <= before + 2, (before, descriptors())
    check_threads(threads)
    print(len(places), raised, stopped)


if __name__ == "__main__":
    main()
