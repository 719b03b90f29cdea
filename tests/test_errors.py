"""The error tree: what code for the reference catches, and whole when it arrives elsewhere."""

import inspect
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py import errors
from tensorstore_py.errors import (
    SpecError,
    TensorStoreError,
    UnavailableError,
    did_you_mean,
    format_json_path,
    without_secrets,
)

CLASSES = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
#: What code written for the reference catches.
BUILTIN = {
    "OutOfRangeError": (IndexError, ValueError),
    "IndexingError": (IndexError, ValueError),
    "UnsupportedError": (NotImplementedError,),
}
PATHS = st.lists(st.one_of(st.integers(0, 99), st.text("ab_", min_size=1)), max_size=4).map(tuple)


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls is not TensorStoreError])
def test_each_is_also_what_the_reference_raises(cls):
    assert issubclass(cls, TensorStoreError)
    for builtin in BUILTIN.get(cls.__name__, (ValueError,)):
        assert issubclass(cls, builtin)


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls is not TensorStoreError])
def test_each_says_what_its_catcher_can_do(cls):
    assert inspect.getdoc(cls)


def test_only_what_cannot_be_done_at_all_is_no_value_error():
    odd = [cls.__name__ for cls in CLASSES if not issubclass(cls, ValueError)]
    assert sorted(odd) == ["TensorStoreError", "UnsupportedError"]


@pytest.mark.parametrize("cls", CLASSES)
def test_each_survives_the_way_to_another_process(cls):
    error = pickle.loads(pickle.dumps(cls("what happened")))
    assert type(error) is cls
    assert str(error) == "what happened"


@pytest.mark.parametrize("cls", CLASSES)
def test_each_can_be_made_the_way_distributed_does_it(cls):
    error = cls.__new__(cls, "what happened")
    assert type(error) is cls
    assert error.args == ("what happened",)


class TestSpecError:
    @given(PATHS, PATHS)
    def test_an_enclosing_document_is_put_in_front(self, outer, inner):
        error = SpecError("wrong", inner).inside(*outer)
        assert error.path == (*outer, *inner)
        assert error.problem == "wrong"
        assert str(error) == str(SpecError("wrong", (*outer, *inner)))

    @given(PATHS)
    def test_its_path_survives_the_way_to_another_process(self, path):
        error = pickle.loads(pickle.dumps(SpecError("wrong", path)))
        assert (error.problem, error.path, str(error)) == (
            "wrong", path, str(SpecError("wrong", path))
        )  # fmt: skip

    def test_without_a_path_only_the_problem_is_said(self):
        assert str(SpecError("wrong")) == "wrong"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a",), "a"),
        ((0,), "[0]"),
        (("metadata", "chunks", 0), "metadata.chunks[0]"),
        (("codecs", 0, "configuration", "level"), "codecs[0].configuration.level"),
        ((1, 2, "a"), "[1][2].a"),
    ],
)
def test_json_paths(path, text):
    assert format_json_path(path) == text


def test_attempts_are_kept():
    error = pickle.loads(pickle.dumps(UnavailableError("no answer", 5)))
    assert (str(error), error.attempts) == ("no answer", 5)
    assert UnavailableError("no answer").attempts == 1


class TestDidYouMean:
    def test_the_nearest_name(self):
        assert did_you_mean("kvstor", ["path", "kvstore"]) == ' (did you mean "kvstore"?)'

    def test_all_names_if_none_is_near(self):
        assert did_you_mean("zzz", ["b", "a"]) == ' (one of: "a", "b")'

    def test_nothing_if_there_is_nothing_or_too_much_to_say(self):
        assert did_you_mean("zzz", []) == ""
        assert did_you_mean("zzz", [f"name{number}" for number in range(25)]) == ""

    def test_any_iterable_will_do(self):
        assert did_you_mean("abc", iter(["abd", "q"])) == ' (did you mean "abd"?)'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no URL", "no URL"),
        ('"http://me:pw@host/a@b"', '"http://host/a@b"'),
        ("see https://h/a?X-Sig=1&b=2&c#x, y", "see https://h/a?X-Sig=...&b=...&c#x, y"),
        ("ftp://a:p@h|zip:x", "ftp://h|zip:x"),
        ("two: s3://b/c http://u:p@h", "two: s3://b/c http://h"),
    ],
)  # fmt: skip
def test_messages_show_no_secrets_of_urls(text, shown):
    assert without_secrets(text) == shown
    for kind in (errors.NotFoundError, errors.SpecError, errors.UnsupportedError):
        assert kind(text).args[0] == str(kind(text)) == shown
    assert errors.SpecError(text).problem == shown
