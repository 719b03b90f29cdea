import argparse
import pathlib

import pytest

import tensorstore_py as ts
from tensorstore_py.cli.places import codec, extents, lasting_place, place, tried


def test_places():
    assert place("file:///a/") == "file:///a/"
    assert place('{"driver": "memory"}') == '{"driver": "memory"}'
    assert place("a/b") == pathlib.Path("a/b")


@pytest.mark.parametrize(
    "text",
    [
        "memory://x/",
        "memory://x.zip|zip:|zarr3:",
        '{"driver": "memory"}',
        '{"driver": "zarr3", "kvstore": "memory://x/"}',
        '{"driver": "cast", "dtype": "int8", "base": "memory://x/|zarr3:"}',
    ],
)
def test_what_is_in_memory_does_not_last(text):
    with pytest.raises(
        argparse.ArgumentTypeError, match=r"gone when the command ends; name a file"
    ):
        lasting_place(text)


@pytest.mark.parametrize(
    "text", ["a/b", "file:///x/", '{"driver": "file", "path": "/x/"}', '{"driver": "wrong"}']
)
def test_other_places_last(text):
    assert lasting_place(text) == place(text)


@pytest.mark.parametrize("text", ["", "a", "1,b", "x=", "x=1=2", "x=1,2"])
def test_wrong_extents(text):
    with pytest.raises(argparse.ArgumentTypeError):
        extents(text)


def test_codecs():
    assert codec("zstd") == "zstd"
    assert codec('{"name": "gzip"}') == {"name": "gzip"}
    assert codec('[{"name": "gzip"}]') == [{"name": "gzip"}]
    with pytest.raises(argparse.ArgumentTypeError, match="no JSON"):
        codec("{name}")


def test_errors_are_printed(capsys):
    def fail():
        raise ts.NotFoundError("nothing there")

    assert tried(lambda: "done") == 0
    assert tried(fail) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("done\n", "nothing there\n")
