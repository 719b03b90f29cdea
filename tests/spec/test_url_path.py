from pathlib import Path

import pytest
import tensorstore as reference
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._spec.url_path import (
    adapter_url_rest,
    decode_path,
    encode_path,
    local_url,
    root_url_rest,
    split_bucket,
)
from tensorstore_py.errors import SpecError


@given(st.text())
def test_decoding_is_the_inverse_of_encoding(key):
    assert decode_path(encode_path(key)) == key


@given(st.text(st.characters(codec="utf-8")))
def test_encodes_like_the_reference(key):
    theirs = reference.KvStore.Spec({"driver": "memory", "path": key}).url

    assert "memory://" + encode_path(key) == theirs


def test_bytes_that_are_no_text_can_be_encoded():
    assert encode_path("a/\udcff") == "a/%FF"


@pytest.mark.parametrize("path", ["%", "a%2", "%zz", "a%2xb"])
def test_a_stray_percent_sign_is_an_error(path):
    with pytest.raises(SpecError, match='"%25"'):
        decode_path(path)


def test_bytes_that_are_no_text_cannot_be_decoded():
    with pytest.raises(SpecError, match="UTF-8"):
        decode_path("a/%FF")


def test_the_rest_of_a_url_is_still_encoded():
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
def test_a_root_url_has_only_a_path(url, problem):
    with pytest.raises(SpecError, match=problem):
        root_url_rest(url, "memory")


def test_local_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert local_url(Path("/a b")) == "file:///a%20b/"
    assert local_url(Path("new")) == f"{tmp_path.as_uri()}/new/"
    assert local_url(Path("file")) == f"{tmp_path.as_uri()}/file"


@pytest.mark.parametrize("part", ["zip://a", "zip:a?b", "zip:a#b", "zip:%zz"])
def test_parts_that_are_refused(part):
    with pytest.raises(SpecError):
        adapter_url_rest(part, "zip")


def test_buckets():
    assert split_bucket("bucket") == split_bucket("bucket/") == ("bucket", "")
    assert split_bucket("bucket//a%20b/") == ("bucket", "/a b/")
