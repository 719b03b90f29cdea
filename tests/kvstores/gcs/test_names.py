import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.gcs.names import check_key

GOOD = ["a", "a/", "/a", "a/./b", "a/..", "a\\b", "#[]*?", "\x80", "\ufeff", "x" * 1024, "é" * 512]
BAD = [
    ("", "empty"),
    (".", "reserved"),
    ("..", "reserved"),
    ("a\rb", "control"),
    ("a\nb", "control"),
    ("\t", "control"),
    ("a\x7f", "control"),
    ("x" * 1025, "1025 bytes"),
    ("é" * 513, "1026 bytes"),
    (".well-known/acme-challenge", "reserved"),
    (".well-known/acme-challenge/x", "reserved"),
    ("\udcff", "UTF-8"),
]


@pytest.mark.parametrize("key", GOOD)
def test_most_text_is_a_name(key):
    assert check_key(key) == key.encode()


@pytest.mark.parametrize(("key", "why"), BAD)
def test_the_rest_is_refused_with_the_reason(key, why):
    with pytest.raises(SpecError, match=f"key .* bucket: .*{why}"):
        check_key(key)
