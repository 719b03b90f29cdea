import math

import pytest

from tensorstore_py._hierarchy.document import ChangeDocument, parse_document, serialize_document
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError, SpecError


def test_numbers_that_are_none_survive():
    document = {"a": math.inf, "b": -math.inf, "c": [math.nan]}

    text = serialize_document(document)

    assert text == b'{"a":Infinity,"b":-Infinity,"c":[NaN]}'
    assert repr(parse_document(text, "here")) == repr(document)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_named(text):
    with pytest.raises(DataLossError, match="Error reading here"):
        parse_document(text, "here")


def test_a_change_sees_what_is_stored_by_then():
    change = ChangeDocument(lambda found: {**(found or {}), "n": len(found or {})}, "here")

    assert run_inline(change.apply(None)) == b'{"n":0}'
    assert run_inline(change.apply(b'{"a":1}')) == b'{"a":1,"n":1}'


def test_a_refused_change_says_where():
    def refuse(_):
        raise SpecError("no JSON", ("a",))

    with pytest.raises(SpecError, match="Error changing here: a: no JSON"):
        run_inline(ChangeDocument(refuse, "here").apply(None))
