"""`tspy view`, as it is typed."""

import json
import signal
import subprocess
import sys
from urllib.request import ProxyHandler, build_opener

import pytest

import tensorstore_py as ts
from tests.runtime.processes import FOREGROUND, ROOT

_OPENER = build_opener(ProxyHandler({}))
_WITHOUT = "import sys; sys.modules['aiohttp'] = None; from tensorstore_py.cli.main import main; "


def tspy(*arguments):
    command = [sys.executable, "-m", "tensorstore_py", "view", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def tree(tmp_path):
    group = ts.Group.open(tmp_path / "run.zarr", create=True).result()
    group.create_array("image", dtype="uint8", shape=[4, 10, 20]).result()[...] = 7
    return tmp_path / "run.zarr"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_it_prints_the_address_and_ends_at_an_interrupt(tree):
    program = FOREGROUND + "import sys; from tensorstore_py.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "view", f"{tree}/image[2]", "--no-browser"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        url = running.stdout.readline().strip()
        with _OPENER.open(f"{url}api/node") as reply:
            node = json.load(reply)
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)

    assert [axis["size"] for axis in node["axes"]] == [10, 20]
    assert url.startswith("http://127.0.0.1:")
    assert (running.returncode, said) == (0, ("", ""))


def test_directories_of_arrays_have_a_tree(tree):
    (tree.parent / "other").mkdir()
    ts.open(
        {"driver": "zarr", "kvstore": (tree.parent / "other" / "a").as_uri() + "/"},
        create=True, dtype="int8", shape=[3],
    ).result()  # fmt: skip
    command = [sys.executable, "-m", "tensorstore_py", "view", str(tree.parent), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        url = running.stdout.readline().strip()

        def ask(name, path):
            with _OPENER.open(f"{url}api/{name}?path={path}") as reply:
                return json.load(reply)

        top = [(each["name"], each["kind"]) for each in ask("members", "")["members"]]
        inner = ask("members", "other")["members"][0]
        array = ask("node", "run.zarr/image")
        running.terminate()

    assert top == [("other", "directory"), ("run.zarr", "group")]
    assert (inner["name"], inner["kind"]) == ("a", "array")
    assert array["kind"] == "array"


def test_what_cannot_be_shown_says_why(tree):
    done = tspy(tree / "nothing", "--no-browser")
    assert (done.returncode, "nothing" in done.stderr, done.stdout) == (1, True, "")

    assert "expected 0 to 65535" in tspy(tree, "--port", "70000").stderr


def test_without_aiohttp_it_says_what_to_install(tree):
    code = f"{_WITHOUT}sys.exit(main(['view', {str(tree)!r}]))"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 1
    assert 'pip install "tensorstore-py[serve]"' in done.stderr


def test_a_view_is_an_object_that_notebooks_show(tree):
    store = ts.open(tree / "image").result()

    with store.view(height=300) as view:
        assert f'src="{view.url}"' in view._repr_html_()
        assert 'height="300"' in view._repr_html_()
        with _OPENER.open(view.url) as reply:
            assert "frame-ancestors" not in reply.headers["Content-Security-Policy"]

    assert view.closed
    assert "closed" in view._repr_html_()
    view.close()
    assert store.read().result().max() == 7
    with pytest.raises(ts.SpecError, match="height of 100 to 10000"):
        store.view(height=1)


async def test_a_view_begins_and_ends_in_an_event_loop(tree):
    group = await ts.Group.open(tree)

    async with group.view() as view:
        assert not view.closed

    assert view.closed
