import math

import pytest

from tensorstore_py._chunked.layout import Remembered
from tensorstore_py._chunked.metadata import MetadataFile
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN, TimestampedStorageGeneration
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError, UnsupportedError
from tests.chunked.arrays import WatchedStore
from tests.chunked.specs import spec_over


@pytest.fixture
def file():
    store = WatchedStore()
    return MetadataFile(spec_over(store, "m", create=True), store, "m/")


def create(file):
    return run_inline(file.write(file.spec.new_metadata(), if_equal=NO_VALUE))


def test_nothing_is_stored_at_first(file):
    assert run_inline(file.read()) is None
    assert file.describe() == '"m/zarr.json"'


def test_what_was_written_is_read(file):
    written = create(file)
    found = run_inline(file.read())
    assert found.metadata == written.metadata
    assert found.layout is written.layout
    assert found.generation == written.generation


def test_written_on_condition_only(file):
    first = create(file)
    assert create(file) is None
    bigger = file.spec.resized(first.metadata, (9,))
    second = run_inline(file.write(bigger, if_equal=first.generation))
    assert second.layout.domain.shape == (9,)
    assert run_inline(file.write(bigger, if_equal=first.generation)) is None


def test_equal_documents_are_parsed_once(file):
    create(file)
    first, second = run_inline(file.read()), run_inline(file.read())
    assert first.metadata is second.metadata
    assert first.layout is second.layout


def test_what_is_still_current_costs_no_body(file):
    known = create(file)
    file.store.bytes_read = 0
    found = run_inline(file.read(known))
    assert found.layout is known.layout
    assert found.time >= known.time
    assert file.store.bytes_read == 0


def test_what_changed_is_read_anew(file):
    known = create(file)
    run_inline(file.write(file.spec.resized(known.metadata, (9,)), if_equal=known.generation))
    assert run_inline(file.read(known)).layout.domain.shape == (9,)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"zarr_format": 3}', b"\xff\xfe"])
def test_what_is_no_metadata_is_named(file, text):
    file.store.poke("m/zarr.json", text)
    with pytest.raises(DataLossError, match=r'Error reading "m/zarr\.json"'):
        run_inline(file.read())


def test_numbers_beyond_all_bounds_are_named(file):
    create(file)
    text = file.store.entries["m/zarr.json"]
    codec = b'{"name":"gzip","configuration":{"level":18446744073709551616}}'
    file.store.poke("m/zarr.json", text.replace(b'"codecs":[', b'"codecs":[' + codec + b","))
    message = r'Error reading "m/zarr\.json": codecs\[0\]\.configuration: 18446744073709551616'
    with pytest.raises(DataLossError, match=message):
        run_inline(file.read())


def test_what_we_cannot_do_is_named(file):
    create(file)
    text = file.store.entries["m/zarr.json"]
    file.store.poke("m/zarr.json", text.replace(b'"uint8"', b'"string"'))
    with pytest.raises((DataLossError, UnsupportedError), match=r"m/zarr\.json.*string"):
        run_inline(file.read())


def test_what_cannot_be_bound_is_not_stored(file, monkeypatch):
    def refuse(_spec, _metadata):
        raise UnsupportedError("no such chunk grid")

    monkeypatch.setattr(type(file.spec), "layout", refuse)
    monkeypatch.setattr("tensorstore_py._chunked.metadata._parsed", Remembered(1))
    with pytest.raises(UnsupportedError, match="chunk grid"):
        create(file)
    assert not file.store.entries


def test_only_what_is_too_old_is_asked_for(file):
    state = create(file)
    file.learn(None, state)
    file.store.counts.clear()
    assert run_inline(file.current(state.time)) is state
    assert not file.store.counts
    later = run_inline(file.current(state.time + 1000))
    assert later.layout is state.layout
    assert file.known is later
    assert file.store.counts == {"read": 1}


def test_an_answer_is_asked_for_again_if_somebody_learned_more_meanwhile(file):
    first = create(file)
    file.learn(None, first)
    second = run_inline(
        file.write(file.spec.resized(first.metadata, (9,)), if_equal=first.generation)
    )
    pending = [lambda: file.learn(first, second)]
    file.store.before = lambda _operation, _key: pending.pop()() if pending else None
    file.store.counts.clear()
    assert run_inline(file.current(float("inf"))).layout.domain.shape == (9,)
    assert file.store.counts == {"read": 2}


def test_what_somebody_else_read_is_taken_unless_something_newer_is_known(file):
    written = create(file)
    document = run_inline(file.store.read("m/zarr.json"))
    assert document.state == "value"

    taken = file.take(document)
    assert (taken.metadata, taken.generation) == (written.metadata, written.generation)
    assert file.known is taken
    assert file.take(document) is taken
    later = file.spec.resized(written.metadata, (9,))
    newer = run_inline(file.write(later, if_equal=written.generation))
    file.learn(taken, newer)
    assert file.take(document) is newer


def test_a_copy_tells_less_than_anything_that_was_read(file):
    written = create(file)
    stored = run_inline(file.store.read("m/zarr.json"))
    copy = ReadResult("value", stored.value, TimestampedStorageGeneration(UNKNOWN, math.inf))

    assert file.take(copy).generation == UNKNOWN
    file.learn(file.known, written)
    assert file.take(copy) is written
