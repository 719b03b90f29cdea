import pytest
import tensorstore as reference
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._spec.url_path import decode_path, encode_path, root_url_rest
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
