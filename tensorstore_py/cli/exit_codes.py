"""Exit codes of `tspy`: what its callers may rely on."""

from __future__ import annotations

from typing import Final

__all__ = ["CALLED_WRONGLY", "DONE", "EXIT_CODES", "FAILED", "INTERRUPTED"]

#: All of it was done, and nothing is wrong.
DONE: Final = 0
#: It failed; or something was looked for and found: a damaged chunk, a difference.
FAILED: Final = 1
#: The arguments are wrong, or ask for what needs a confirmation; nothing was begun.
CALLED_WRONGLY: Final = 2
#: What shells say of a program that Ctrl-C ended.
INTERRUPTED: Final = 130

#: For `tspy --help`.
EXIT_CODES: Final = """\
exit codes:
  0    done, and nothing is wrong
  1    failed; or what was looked for was found: damaged chunks, differences
  2    called wrongly, or a confirmation is missing; nothing was begun
  3    of run: partly done
  130  interrupted
"""
