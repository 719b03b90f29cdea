"""Says again, at the end of the gate, why its steps failed: a long log is read from its end.

Of tests: what each failure or error said, with where it was, and pytest's lines about all of them.
Of any other step: the last lines of its log.

Usage: causes.py LOG...
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: Of all steps together, about so many lines; of a single failure, so many.
LINES = 50
LINES_OF_ONE = 12

_SECTION = re.compile(r"=+ (.*?) =+$")
_NAME = re.compile(r"_+ (.*?) _+$")
_WHERE = re.compile(r"[^\s:]+\.py:\d+: \w")
_SUMMARY = re.compile(r"(FAILED|ERROR) \S")
#: An error, also one of a group, which is told as Python does.
_SAID = re.compile(r"E  |\s*\|[ |]*[\w.]+(Error|Exception|Failed|Failure|Group|Warning): ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def shortened(lines: list[str], most: int) -> list[str]:
    """The first and the last of too many lines."""
    if len(lines) <= most:
        return lines
    last = (most - 1) // 2
    first = most - 1 - last
    return [*lines[:first], f"... ({len(lines) - most + 1} lines)", *lines[len(lines) - last :]]


def failures(lines: list[str]) -> Iterator[list[str]]:
    """What pytest said of each failure: its name, its error, and where it was raised."""
    section = ""
    name, said, where = "", list[str](), ""
    for line in [*lines, "= end ="]:
        begun, named = _SECTION.match(line), _NAME.match(line)
        if (begun or named) and name:
            yield [name, *shortened([*said, *filter(None, [where])], LINES_OF_ONE - 1)]
            name, said, where = "", [], ""
        if begun:
            section = begun[1]
        elif named and section in ("FAILURES", "ERRORS"):
            name = line
        elif _SAID.match(line):
            said.append(line)
        elif _WHERE.match(line):
            where = line


def causes(log: str, most: int = LINES) -> list[str]:
    """Why a step failed.

    Args:
        log: what it printed.
        most: return so many lines.
    """
    lines = [line.rstrip() for line in _COLOUR.sub("", log).splitlines()]
    summary = [line for line in lines if _SUMMARY.match(line)]
    if not summary:
        return [line for line in lines if line][-min(most, LINES_OF_ONE) :]
    summary = shortened(summary, max(2, most // 2))
    told = list(failures(lines))
    room = max(6, (most - len(summary)) // max(1, len(told)))
    said = [line for each in told for line in shortened(each, room)]
    return [*shortened(said, max(2, most - len(summary))), *summary]


def main(logs: list[str]) -> None:
    """Print it for the log of each step; the name of the file is that of the step."""
    for log in map(Path, logs):
        print(f"\n== why {log.stem} failed")
        for line in causes(log.read_text("utf-8", "replace"), max(6, LINES // len(logs))):
            print(line[:500])


if __name__ == "__main__":
    main(sys.argv[1:])
