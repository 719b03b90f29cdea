"""How fast the viewer answers, and how much memory it takes: tiles a second, a view of 100 GB.

    python benchmarks/viewer.py              # both
    python benchmarks/viewer.py --tiles 400  # more of them
    python benchmarks/viewer.py --browser http://127.0.0.1:9222   # and a Chromium that is there

Tiles are asked for as the page does, six at a time, each once, over HTTP. Memory is what
the process that serves has grown by at most since it began to; it is one of its own. Times are of
the wall, and of the server's processors, which are the steadier ones. Linux only.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import numpy as np

import tensorstore_py as ts

_AT_ONCE = 6
_HUGE = (1000, 5000, 10_000)
_LEVELS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tiles", type=int, default=240, help="how many are asked for (240)")
    parser.add_argument("--browser", help="the URL of a Chromium that takes orders of DevTools")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        print(
            f"{'array':<34} {'tiles/s':>8} {'CPU ms each':>12} {'grown by MB':>12} {'cache MB':>9}"
        )
        for name in ("planes", "volume", "huge", "huge, whole"):
            _measure(name, folder, options.tiles)
        if options.browser:
            _in_browser(folder, options.browser)


def _array(name: str, folder: str) -> ts.TensorStore:
    if name.startswith("huge"):
        return ts.virtual_chunked(
            _fill, dtype="uint16", shape=_HUGE,
            chunk_layout=ts.ChunkLayout(chunk_shape=[64, 64, 64]),
        )  # fmt: skip
    shape, chunk = {
        "planes": ([8, 8192, 8192], [1, 256, 256]),
        "volume": ([256, 1024, 1024], [64, 64, 64]),
    }[name]
    place = Path(folder) / name
    spec = {"driver": "zarr3", "kvstore": f"{place.as_uri()}/"}
    if place.exists():
        return ts.open(spec).result()
    codec = {"driver": "zarr3", "codecs": [{"name": "blosc", "configuration": {"cname": "zstd"}}]}
    store = ts.open(
        spec, create=True, dtype="uint16", shape=shape, codec=codec,
        chunk_layout=ts.ChunkLayout(chunk_shape=chunk),
    ).result()  # fmt: skip
    noise = np.random.default_rng(0).integers(0, 50, size=shape[1:], dtype="u2")
    smooth = np.add.outer(np.arange(shape[1]), np.arange(shape[2])).astype("u2")
    for number in range(0, shape[0], chunk[0]):
        store[number : number + chunk[0]] = smooth + noise
    return store


def _fill(domain: ts.IndexDomain, chunk: Any, _: object) -> None:
    chunk[...] = np.add.outer(
        np.arange(domain.inclusive_min[1], domain.exclusive_max[1]),
        np.arange(domain.inclusive_min[2], domain.exclusive_max[2]),
    ).astype("u2")


def _serve(given: str) -> None:
    """Serve an array until the input ends; then say what that took."""
    name, folder = json.loads(given)
    with _array(name, folder).view() as view:
        began, before = time.process_time(), _status("VmRSS")
        print(view.url, flush=True)
        sys.stdin.readline()
        took = time.process_time() - began
    print(json.dumps({"cpu": took, "grown": _status("VmHWM") - before}), flush=True)


def _status(field: str) -> int:
    """Of this process alone: what `getrusage` says of memory is the parent's, if that had more."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def _requests(name: str, count: int) -> list[str]:
    """Queries of different tiles of what is seen, as the page writes them."""
    chance = random.Random(0)  # noqa: S311 - chance, no secrets
    shape = _HUGE if name.startswith("huge") else (8, 8192, 8192)
    shape = (256, 1024, 1024) if name == "volume" else shape
    found: dict[str, None] = {}
    while len(found) < count:
        at = chance.randrange(shape[0])
        step = 2 ** chance.randrange(_LEVELS) if name == "huge, whole" else 1
        tile = [chance.randrange(-(-size // (256 * step))) for size in shape[1:]]
        query = {
            "rows": 1, "columns": 2, "at": f"{at},0,0", "steps": f"{step},{step}",
            "tile": f"{tile[0]},{tile[1]}",
        }  # fmt: skip
        found[urlencode(query)] = None
    return list(found)


def _measure(name: str, folder: str, count: int) -> None:
    _array(name, folder)
    running = subprocess.Popen(
        [sys.executable, __file__, "--serve", json.dumps([name, folder])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    url = running.stdout.readline().strip()
    wall, status = asyncio.run(_ask(url, _requests(name, count)))
    said, _ = running.communicate("\n", timeout=60)
    took = json.loads(said)
    assert status["tiles"]["read"] == count + 1, status
    print(
        f"{_named(name):<34} {count / wall:>8.0f} {1000 * took['cpu'] / count:>12.1f} "
        f"{took['grown'] / 1e6:>12.0f} {status['cached_bytes'] / 1e6:>9.0f}"
    )


def _named(name: str) -> str:
    return {
        "planes": "8 planes, chunks of 256 x 256",
        "volume": "a volume, chunks of 64 x 64 x 64",
        "huge": "100 GB virtual, each element",
        "huge, whole": "100 GB virtual, all zooms",
    }[name]


async def _ask(url: str, queries: list[str]) -> tuple[float, dict[str, Any]]:
    waiting = list(reversed(queries))

    async def client(session: aiohttp.ClientSession) -> None:
        while waiting:
            async with session.get(f"{url}api/tile?{waiting.pop()}") as answer:
                assert answer.status == 200, await answer.text()
                await answer.read()

    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}api/tile?rows=1&columns=2") as answer:
            await answer.read()
        began = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(_AT_ONCE)))
        wall = time.perf_counter() - began
        async with session.get(f"{url}api/status") as answer:
            return wall, await answer.json()


def _in_browser(folder: str, endpoint: str) -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is asked for

    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(endpoint)
        for name in ("planes", "huge"):
            with _array(name, folder).view() as view:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                began = time.perf_counter()
                page.goto(f"{view.url}#centre=2000,2000&scale=1&dims=1,2,")
                page.wait_for_selector("main[aria-busy=false]")
                first = time.perf_counter() - began
                began = time.perf_counter()
                for _ in range(20):
                    page.keyboard.press("ArrowRight")
                    page.wait_for_selector("main[aria-busy=false]")
                moved = (time.perf_counter() - began) / 20
                session = page.context.new_cdp_session(page)
                session.send("Performance.enable")
                metrics = session.send("Performance.getMetrics")["metrics"]
                heap = next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")
                print(
                    f"{_named(name)}: drawn after {1000 * first:.0f} ms, after each move by a "
                    f"quarter of the window {1000 * moved:.0f} ms; heap {heap / 1e6:.0f} MB"
                )
                page.close()


if __name__ == "__main__":
    main()
