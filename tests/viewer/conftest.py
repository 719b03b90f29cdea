"""What tests of the viewer share: its answers, and its page in a real browser."""

import base64
import json
import struct
import time
from contextlib import ExitStack
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pytest

import tensorstore_py as ts
from tests.viewer.arrays import noise, stored

_OPENER = build_opener(ProxyHandler({}))

_CANVAS = """name => {
  const canvas = document.querySelector(`canvas.${name}`);
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let text = '';
  for (let at = 0; at < data.length; at += 32768)
    text += String.fromCharCode(...data.subarray(at, at + 32768));
  return [canvas.width, canvas.height, btoa(text)];
}"""


_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"


class Answers:
    """What a viewer answers to requests, without a page."""

    def __init__(self, view):
        self.url = view.url

    def get(self, path, headers=None, /, **query):
        """The status, the headers and the body."""
        parameters = {
            name: ",".join(map(str, value)) if isinstance(value, tuple) else value
            for name, value in query.items()
        }
        url = f"{self.url}{path}" + (f"?{urlencode(parameters)}" if query else "")
        try:
            with _OPENER.open(Request(url, headers=headers or {})) as reply:
                return reply.status, dict(reply.headers.items()), reply.read()
        except HTTPError as error:
            with error:
                return error.code, dict(error.headers.items()), error.read()

    def json(self, name, /, **query):
        status, _, body = self.get(f"api/{name}", **query)
        assert status == 200, body
        return json.loads(body)

    def problem(self, name, /, **query):
        """The status and the text of an error."""
        status, _, body = self.get(f"api/{name}", **query)
        return status, json.loads(body)["error"]

    def tile(self, **query):
        """The header of a tile, and its values."""
        status, _, body = self.get("api/tile", **query)
        assert status == 200, body
        (size,) = struct.unpack_from("<I", body)
        header = json.loads(body[4 : 4 + size])
        values = np.frombuffer(body, f"<{header['type']}", offset=4 + size)
        return header, values.reshape(header["shape"])

    def tiles(self):
        """What became of the tiles that were asked for."""
        return self.json("status")["tiles"]

    def until(self, found):
        """Ask for the counts of tiles until they are so."""
        end = time.monotonic() + 60
        while not found(tiles := self.tiles()):
            assert time.monotonic() < end, tiles


class Page:
    """A page of the viewer in the browser."""

    def __init__(self, page, view):
        self.page = page
        self.view = view
        self.answers = Answers(view)
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._opened)

    def _opened(self, dialog):
        """Nothing on the page opens a dialog of the browser, unless somebody else's script runs."""
        self.errors.append(dialog.message)
        dialog.dismiss()

    def go(self, link=""):
        """Open a link."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.view.url}#{link}")

    def settled(self):
        """Wait until what was done to the page is asked for, has come, and is drawn."""
        self.page.evaluate(_FRAMES)
        self.page.wait_for_selector("main[aria-busy=false]", timeout=60_000)
        self.page.evaluate(_FRAMES)
        return self

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        return self.settled()

    def pixels(self, name="picture"):
        """The pixels of a canvas: rows, columns, RGBA."""
        width, height, text = self.page.evaluate(_CANVAS, name)
        return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)

    def drawn(self, shape, centre):
        """The pixels of elements at scale 1, as many as `shape` around `centre`."""
        seen = self.pixels()
        top = int(seen.shape[0] / 2 - centre[0] + 0.5)
        left = int(seen.shape[1] / 2 - centre[1] + 0.5)
        return seen[top : top + shape[0], left : left + shape[1]]

    def link(self):
        """What the address says, by name."""
        parts = self.page.evaluate("[...new URLSearchParams(location.hash.slice(1))]")
        return dict(parts)

    def text(self, selector):
        return self.page.locator(selector).inner_text()


@pytest.fixture(scope="module")
def browser(chromium):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.connect_over_cdp(chromium)
        yield browser
        browser.close()


@pytest.fixture
def show(browser):
    """Show something in the browser; what it complains of fails the test."""
    with ExitStack() as stack:
        shown = []

        def begin(thing, link="", size=(960, 620), *, dark=False, wait=True):
            view = stack.enter_context(thing.view())
            scheme = "dark" if dark else "light"
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
            )
            stack.callback(context.close)
            page = Page(context.new_page(), view)
            shown.append(page)
            page.go(link)
            return page.settled() if wait else page

        yield begin
        assert [page.errors for page in shown if page.errors] == []


@pytest.fixture
def ask():
    """Ask a viewer of something."""
    with ExitStack() as stack:
        yield lambda thing: Answers(stack.enter_context(thing.view()))


@pytest.fixture
def volume():
    values = noise(6, 600, 800)
    chunks = ts.ChunkLayout(chunk_shape=[2, 100, 128])
    return values, stored(values, labels=["z", "y", "x"], chunk_layout=chunks)
