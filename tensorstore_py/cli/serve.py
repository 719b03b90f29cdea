"""Serve arrays, groups and keys over HTTP, until it is interrupted.

The first lines say where; what cannot be served is named on the standard error stream.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._serving.serve import serve
from tensorstore_py._spec.context import Context
from tensorstore_py.cli.exit_codes import DONE
from tensorstore_py.cli.found import Target, add_target, entries, find
from tensorstore_py.cli.output import add_json, examples, printable, to_json, tried
from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._serving.server import Server

__all__ = ["add", "run"]

_FORMATS = ("zarr3", "zarr2", "precomputed", "stored")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, several=True)
    parser.add_argument("--as", dest="formats", action="append", choices=_FORMATS,
                        help="serve in this format only; may be said again")  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1",
                        help="the address to listen on; by default this machine's own, which "
                        "others do not reach; 0.0.0.0: all addresses")  # fmt: skip
    parser.add_argument("--port", type=int, default=0, help="by default any that is free")
    parser.add_argument("--no-token", action="store_true",
                        help="anybody who reaches the port may read")  # fmt: skip
    parser.add_argument("--cors", action="append", metavar="ORIGIN",
                        help="web pages of this origin may read, '*': all; by default all that "
                        "know the token")  # fmt: skip
    parser.add_argument("--memory", type=int, default=512, metavar="MIB",
                        help="how much memory answers and chunks may take (512)")  # fmt: skip
    add_json(parser)
    examples(
        parser,
        "  tspy serve image.zarr\n  tspy serve 'data.n5[0, :, 100:200]' --as precomputed\n"
        "  tspy serve s3://bucket/run.zarr --port 8000 --cors https://viewer.example.org\n",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until it is interrupted."""
    return tried(lambda: _serve(options))


def _serve(options: argparse.Namespace) -> int:
    memory = options.memory * 2**20
    context = Context({"cache_pool": {"total_bytes_limit": memory // 2}})
    server = serve(
        _source(options.targets, context, keys=options.formats == ["stored"]),
        formats=options.formats,
        host=options.host,
        port=options.port,
        token=not options.no_token,
        cors=options.cors,
        memory_limit=memory,
        context=context,
    ).result()
    with server, suppress(KeyboardInterrupt):  # that is how it is ended
        for line in _problems(server, options.formats or [""]):
            sys.stderr.write(f"{printable(line)}\n")
        sys.stdout.write(f"{to_json(_facts(server)) if options.json else _text(server)}\n")
        sys.stdout.flush()
        server.wait()
    return DONE


def _source(targets: Sequence[Target], context: Context, *, keys: bool) -> object:
    """What `ts.serve` takes for what is named."""
    if len(targets) == 1:
        return _open(targets[0], context, keys=keys)
    found: dict[str, object] = {}
    for asked in targets:
        name = asked.text.partition("[")[0].rstrip("/|:").rpartition("/")[2] or "array"
        again = sum(each.partition("~")[0] == name for each in found)
        found[f"{name}~{again}" if again else name] = _open(asked, context, keys=keys)
    return found


def _open(asked: Target, context: Context, *, keys: bool) -> object:
    found = find(asked, context)
    if keys or not isinstance(found, KvStore):
        return found
    return _inside(found) or found


def _inside(directory: KvStore) -> dict[str, object]:
    """The arrays and groups in a directory that is no group, and in those in it."""
    found: dict[str, object] = {}
    for each in entries(directory):
        if isinstance(each.found, KvStore):
            below = _inside(each.found)
            found.update({each.name: below} if below else {})
        elif each.found is not None:
            found[each.name] = each.found
    return found


def _problems(server: Server, asked: Sequence[str]) -> Iterator[str]:
    """What is left out: by formats that were asked for one by one, by others in a line."""
    for name, paths in server.left_out.items():
        if name in asked:
            how = f" as {name}" if name else ""
            yield from (f"/{path} is not served{how}: {why}" for path, why in paths.items())
        else:
            path, why = next(iter(paths.items()))
            more = f", and {len(paths) - 1} more" if len(paths) > 1 else ""
            yield f"not as {name}: /{path}: {why}{more}"


def _facts(server: Server) -> dict[str, object]:
    found: dict[str, object] = {"url": server.url, "urls": server.urls, "arrays": server.arrays}
    with suppress(UnsupportedError):
        found["neuroglancer"] = server.neuroglancer()
        found["neuroglancer_state"] = server.neuroglancer_state()
    if server.vizarr():
        found["vizarr"] = server.vizarr()
    return found


def _text(server: Server) -> str:
    """Where it is served, and links to viewers."""
    lines = list(server.urls.items())
    with suppress(UnsupportedError):
        lines.append(("Neuroglancer", server.neuroglancer()))
    if vizarr := server.vizarr():
        lines.append(("vizarr", vizarr))
    count = len(server.arrays)
    what = f"{count} arrays" if count > 1 else "an array" if count else "keys"
    width = max(len(name) for name, _ in lines)
    shown = [f"  {name:<{width}}  {url}" for name, url in lines]
    return "\n".join([f"serving {what}, read-only, until Ctrl-C", *shown])
