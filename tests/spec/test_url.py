"""URLs of stores and drivers, and the paths in them."""

from pathlib import Path
from typing import ClassVar

import pytest
import tensorstore as reference
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py import SpecError
from tensorstore_py._spec import url as module
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import Registry
from tensorstore_py._spec.url import (
    adapter_url_rest,
    decode_path,
    driver_from_url,
    encode_path,
    kvstore_from_url,
    local_url,
    root_url_rest,
)


class Root(Model):
    driver: ClassVar[str]
    path: str = ""

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        return {"driver": "memory", "path": decode_path(root_url_rest(url, "memory"))}


class Zip(Model):
    driver: ClassVar[str]
    base: object
    path: str = ""

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        return {"driver": "zip", "path": decode_path(url.removeprefix("zip:"))}


class Over(Model):
    driver: ClassVar[str]
    kvstore: object


class Cast(Model):
    driver: ClassVar[str]
    base: object

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        return {"driver": "cast", "dtype": url.removeprefix("cast:")}


class Silent(Model):
    driver: ClassVar[str]
    base: object


@pytest.fixture
def registries(monkeypatch):
    kvstores: Registry[object] = Registry("kvstore driver", folders=(), tag="driver")
    drivers: Registry[object] = Registry("driver", folders=(), tag="driver")
    kvstores.register("memory", Root, schemes=["memory"])
    kvstores.register("zip", Zip, schemes=["zip"])
    drivers.register("zarr", Over, schemes=["zarr2"])
    drivers.register("cast", Cast, schemes=["cast"])
    drivers.register("silent", Silent, schemes=["silent"])
    monkeypatch.setattr(module, "kvstores", kvstores)
    monkeypatch.setattr(module, "drivers", drivers)


def memory(path):
    return {"driver": "memory", "path": path}


def zipped(path, base):
    return {"driver": "zip", "path": path, "base": base}


def over(store):
    return {"driver": "zarr", "kvstore": store}


@pytest.mark.usefixtures("registries")
class TestUrl:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("memory://a%20b/c", memory("a b/c")),
            ("memory://x%7Cy", memory("x|y")),
            ("memory://x|zip:in/ner", zipped("in/ner", memory("x"))),
            ("memory://x|zip", zipped("", memory("x"))),
            ("memory://x|zip:a|zip:b", zipped("b", zipped("a", memory("x")))),
        ],
    )
    def test_stores(self, url, expected):
        assert kvstore_from_url(url) == expected

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("memory://a", {"driver": "auto", "kvstore": memory("a")}),
            ("memory://a|zip:b", {"driver": "auto", "kvstore": zipped("b", memory("a"))}),
            ("memory://a|zarr2:", over(memory("a"))),
            ("memory://a|zarr2", over(memory("a"))),
            ("memory://a|zarr2:b/c/", over(memory("a/b/c/"))),
            ("memory://a/|zarr2:%20b", over(memory("a/ b"))),
            ("memory://a|zarr2://b", over(memory("a/b"))),
            ("memory://|zarr2:b", over(memory("b"))),
            ("memory://a|zip:|zarr2:b", over(zipped("b", memory("a")))),
            (
                "memory://a|zarr2:|cast:int8",
                {"driver": "cast", "dtype": "int8", "base": over(memory("a"))},
            ),
            (
                "memory://a|cast:int8",
                {
                    "driver": "cast",
                    "dtype": "int8",
                    "base": {"driver": "auto", "kvstore": memory("a")},
                },
            ),
        ],
    )
    def test_arrays(self, url, expected):
        assert driver_from_url(url) == expected

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("", "URL must be non-empty"),
            ("memory://x||zip:", "empty part"),
            ("|zarr2:", "empty part"),
            ("a/b", "scheme must be specified"),
            ("x|zip:", "scheme must be specified"),
            ("memry://x", 'did you mean "memory"'),
            ("MEMORY://x", "unsupported URL scheme"),
            ("memory:a", "not present in url"),
            ("memory://a?x", "Query string not supported"),
            ("memory://a#x", "Fragment identifier not supported"),
            ("memory://%zz", "Invalid percent-encoding"),
            ("memory://%e9", "Invalid UTF-8"),
            ("zip:a", "needs a store in front"),
        ],
    )
    def test_refused_by_both(self, url, problem):
        for parse in (kvstore_from_url, driver_from_url):
            with pytest.raises(SpecError, match=problem):
                parse(url)

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("memory://x|zarr2:", "array driver; here a store is expected"),
            ("memory://x|memory:y", "it can only stand first"),
            ("memory://x|zp:", 'did you mean "zip"'),
        ],
    )
    def test_not_a_store(self, url, problem):
        with pytest.raises(SpecError, match=problem):
            kvstore_from_url(url)

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("zarr2:", "starts with a driver"),
            ("memory://a|zarr2:|zarr2:", "needs a store in front of it, not another driver"),
            ("memory://a|zarr2:|zip:", "unsupported URL scheme"),
            ("memory://a|zar2:", 'did you mean "zarr2"'),
            ("memory://a|zarr2:?x", "Query string"),
            ("memory://a|silent:", "has no URL form"),
        ],
    )
    def test_not_an_array(self, url, problem):
        with pytest.raises(SpecError, match=problem):
            driver_from_url(url)

    def test_a_path_is_encoded(self):
        assert encode_path("a b|é") == "a%20b%7C%C3%A9"


class TestUrlPath:
    @given(st.text())
    def test_decoding_is_the_inverse_of_encoding(self, key):
        assert decode_path(encode_path(key)) == key

    @given(st.text(st.characters(codec="utf-8")))
    def test_encodes_like_the_reference(self, key):
        theirs = reference.KvStore.Spec({"driver": "memory", "path": key}).url

        assert "memory://" + encode_path(key) == theirs

    def test_bytes_that_are_no_text_can_be_encoded(self):
        assert encode_path("a/\udcff") == "a/%FF"

    @pytest.mark.parametrize("path", ["%", "a%2", "%zz", "a%2xb"])
    def test_a_stray_percent_sign_is_an_error(self, path):
        with pytest.raises(SpecError, match='"%25"'):
            decode_path(path)

    def test_bytes_that_are_no_text_cannot_be_decoded(self):
        with pytest.raises(SpecError, match="UTF-8"):
            decode_path("a/%FF")

    def test_the_rest_of_a_url_is_still_encoded(self):
        assert root_url_rest("memory://a%20b/", "memory") == "a%20b/"
        assert root_url_rest("MEMORY://a", "memory") == "a"

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("memory:a", "Scheme"),
            ("file://a", "Scheme"),
            ("memory://a?b", 'Query string.*"%3F"'),
            ("memory://a#b", 'Fragment.*"%23"'),
        ],
    )
    def test_a_root_url_has_only_a_path(self, url, problem):
        with pytest.raises(SpecError, match=problem):
            root_url_rest(url, "memory")

    def test_local_paths(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file").write_bytes(b"")
        assert local_url(Path("/a b")) == "file:///a%20b/"
        assert local_url(Path("new")) == f"{tmp_path.as_uri()}/new/"
        assert local_url(Path("file")) == f"{tmp_path.as_uri()}/file"

    @pytest.mark.parametrize("part", ["zip://a", "zip:a?b", "zip:a#b", "zip:%zz"])
    def test_parts_that_are_refused(self, part):
        with pytest.raises(SpecError):
            adapter_url_rest(part, "zip")
