import pickle

import pytest

from tensorstore_py._spec.options import OptionsModel, cause_of, schemes_with_password
from tensorstore_py.errors import SpecError


class Options(OptionsModel):
    harmless = frozenset({"region", "hosts"})


GIVEN = {
    "region": "north",
    "key": "swordfish",
    "list": ["trout-1", 5],
    "client": {"hosts": ["a", "b"], "token": "pike-22"},
    "none": {"of": {"these": "x"}},
}


def test_only_what_is_harmless_is_printed():
    options = Options.parse(GIVEN)
    shown = {"client": {"hosts": ["a", "b"]}, "region": "north"}

    assert options.to_json() == options.spec_json(True) == shown
    assert repr(options) == str(options) == f"Options({shown})"
    assert options.values["key"] == "swordfish"
    assert options.values["client"] == {"hosts": ("a", "b"), "token": "pike-22"}


def test_a_pickle_has_no_secrets():
    copy = pickle.loads(pickle.dumps(Options.parse(GIVEN)))

    assert copy == Options.parse({"region": "north", "client": {"hosts": ["a", "b"]}})


def test_secrets_and_queries_are_taken_out_of_texts():
    options = Options.parse(GIVEN)

    said = "swordfish for pike-22, trout-1 north x at https://host/a?sig=1&b=2 ended"
    text = options.hidden(said)
    assert text == "... for ..., ... north x at https://host/a?... ended"


@pytest.mark.parametrize("json", ["key", 5, ["a"]])
def test_anything_but_an_object_is_refused(json):
    with pytest.raises(SpecError, match="expected an object"):
        Options.parse(json)


def test_nothing_said_is_nothing_printed():
    assert Options.default().to_json(include_defaults=True) == {}


@pytest.mark.parametrize(
    ("url", "schemes"),
    [
        ("ftp://host:21/a@b", []),
        ("sftp://me@[::1]:22/a", []),
        ("abfs://box@account.example/a:b@c", []),
        ("ftp://me:pass@host/a", ["ftp"]),
        ("ftp://me:pa?ss@host", ["ftp"]),
        ("ftp://me:pa#ss@host", ["ftp"]),
        ("ftp://me:pa@ss@host", ["ftp"]),
        ("ftp://me@lab:pass@host", ["ftp"]),
        ("zip://a::ftp://me:pa::ss@host/b::memory://", ["ftp"]),
    ],
)
def test_passwords_in_urls_whatever_they_are_made_of(url, schemes):
    assert schemes_with_password(url) == schemes


def test_what_has_secrets_is_no_cause_and_hands_none_on():
    plain, secret = OSError("no route"), OSError("swordfish was refused")
    hidden = Options.parse(GIVEN).hidden
    wrapped = OSError("no way")
    wrapped.__cause__ = secret

    assert cause_of(plain, hidden) is plain
    assert cause_of(secret, hidden) is None
    assert cause_of(wrapped, hidden) is None
