"""Verbose logging: which subsystems tell what they do, and how much of it.

A flag stands for a subsystem: a kind of store, the HTTP transport. Its level is -1 (silent) unless
the environment variable `TENSORSTORE_VERBOSE_LOGGING` or `update` says otherwise. Its records are
those of the logger `tensorstore_py.verbose.<flag>`; where no handler is configured for them they go
to the standard error stream, since who switches a flag on wants to see something. What asks costs
an attribute look-up while a flag is off.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

__all__ = ["VerboseFlag", "update_verbose_logging", "verbose_flag"]

VARIABLE: Final = "TENSORSTORE_VERBOSE_LOGGING"
_SILENT: Final = -1
_MOST: Final = 1000
_logger: Final = logging.getLogger("tensorstore_py.verbose")


class VerboseFlag:
    """One subsystem.

    Attributes:
        name: as in the list of flags; a part before a dot stands for all that begin so.
        level: what is told: up to this level; -1: nothing.
    """

    __slots__ = ("_logger", "level", "name")

    def __init__(self, name: str, level: int) -> None:
        self.name = name
        self.level = level
        self._logger = _logger.getChild(name)

    def log(self, message: str, *values: object) -> None:
        """Tell something. The caller has looked at `level`, and shows no secret."""
        self._logger.info(message, *values)


class _Unhandled(logging.Handler):
    """Writes what no other handler gets to the standard error stream, as it is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return
            logger = logger.parent if logger.propagate else None
        sys.stderr.write(f"{record.name}: {record.getMessage()}\n")


_unhandled: Final = _Unhandled()
_levels: Final[dict[str, int]] = {}
_flags: dict[str, VerboseFlag] = {}


def verbose_flag(name: str) -> VerboseFlag:
    """The flag of that name, one for all who ask."""
    found = _flags.get(name)
    if found is None:
        found = _flags.setdefault(name, VerboseFlag(name, _level(name)))
    return found


def update_verbose_logging(flags: str, *, overwrite: bool = False) -> None:
    """Set the levels of flags.

    Args:
        flags: names separated by commas, each with `=level` after it, or at level 0; `all` is for
            those that are not named. What has no number after the `=` is ignored.
        overwrite: forget what was set before, instead of adding to it.
    """
    if overwrite:
        _levels.clear()
    _levels.update(_parsed(flags))
    for flag in list(_flags.values()):
        flag.level = _level(flag.name)
    if any(level > _SILENT for level in _levels.values()):
        if _logger.level == logging.NOTSET:
            _logger.setLevel(logging.INFO)
        if _unhandled not in _logger.handlers:
            _logger.addHandler(_unhandled)


def _parsed(flags: str) -> dict[str, int]:
    levels = {}
    for flag in flags.split(","):
        name, equals, level = flag.strip().rpartition("=")
        if not equals:
            name, level = level, "0"
        try:
            number = int(level)
        except ValueError:
            continue
        if name:
            levels[name] = max(_SILENT, min(number, _MOST))
    return levels


def _level(name: str) -> int:
    while name:
        if name in _levels:
            return _levels[name]
        name = name.rpartition(".")[0]
    return _levels.get("all", _SILENT)


update_verbose_logging(os.environ.get(VARIABLE, ""))
