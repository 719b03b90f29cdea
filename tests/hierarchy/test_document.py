import asyncio
import math

import pytest

from tensorstore_py._hierarchy.document import (
    ChangeDocument,
    parse_document,
    read_document,
    serialize_document,
)
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import LoopStore


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


@pytest.mark.parametrize("count", [1, 10_000])
async def test_a_loop_does_something_else_while_a_large_document_is_parsed(count):
    text = serialize_document({str(number): number for number in range(count)})
    turns: list[int] = []

    async def other():
        while len(turns) < 3:
            turns.append(1)
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    document = await read_document(LoopStore(MemoryStore(SharedMap())), text, "here")

    assert len(document) == count
    assert bool(turns) == (count > 1)
    await beside
