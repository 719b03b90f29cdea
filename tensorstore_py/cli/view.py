"""Show an array, or a tree of arrays, in the browser.

The page is served until the command is interrupted (Ctrl-C), to this machine alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from contextlib import suppress

from tensorstore_py._api.view import view
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.found import add_target, find
from tensorstore_py.cli.output import examples, tried

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    parser.add_argument("--no-browser", action="store_true",
                        help="print the address, and open no browser")  # fmt: skip
    parser.add_argument("--port", type=_port, default=0, metavar="N",
                        help="the port of the page (any that is free)")  # fmt: skip
    examples(
        parser,
        "  tspy view image.zarr\n  tspy view 's3://bucket/run.zarr/|zarr3:'\n"
        "  tspy view 'image.zarr[t=0]' --no-browser --port 8080\n",
    )


def run(options: argparse.Namespace) -> int:
    """Serve the page until the command is interrupted."""

    def work() -> int:
        shown = find(options.target)
        with view(shown, port=options.port, framed=False) as page, suppress(KeyboardInterrupt):
            sys.stdout.write(f"{page.url}\n")
            sys.stdout.flush()
            if not options.no_browser and _has_windows():
                webbrowser.open(page.url)
            if sys.stderr.isatty():
                sys.stderr.write("Ctrl-C ends it.\n")
            page.wait()
        return DONE

    return tried(work)


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected 0 to 65535, not {text!r}")


def _has_windows() -> bool:
    """Whether a browser would have a window of its own, and not this terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
