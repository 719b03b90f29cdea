import io

from tensorstore_py._runtime.progress import Progress
from tensorstore_py.cli.meter import Meter


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def told(stream, workers=0):
    """What is told of a step of 60 s, a tenth of which is done when it begins."""
    clock = Clock()
    meter = Meter(stream, workers, clock)
    meter.begin("copy")
    for number in range(1, 11):
        meter(Progress(1024 * number, 10240, number, 10))
        clock.now += 6
    meter.close()
    return stream.getvalue()


def test_tells_share_bytes_rate_and_time_left():
    lines = told(io.StringIO()).splitlines()

    assert lines[0] == ("copy: 30%, 3.0 KiB of 10.0 KiB, 3 of 10 chunks, 171 B/s, 0:00:42 left")
    assert lines[-1] == "copy: 100%, 10.0 KiB of 10.0 KiB, 10 of 10 chunks, 154 B/s, in 0:01:00"
    assert len(lines) == 5  # one each ten seconds, and the last


def test_tells_of_each_of_several_workers():
    assert ", 4 workers of 43 B/s, " in told(io.StringIO(), 4)


def test_draws_one_line_on_a_terminal():
    text = told(Terminal())
    assert text.count("\n") == 1
    assert text.count("\r") == 9
    assert text.endswith("\x1b[K\n")


def test_nobody_is_told():
    meter = Meter(None)
    meter.begin("copy")
    meter(Progress(1, 1, 1, 1))
    meter.close()


def test_a_step_of_which_nothing_was_told_has_no_line():
    stream = Terminal()
    meter = Meter(stream)
    meter.begin("copy")
    meter.close()
    assert stream.getvalue() == ""
