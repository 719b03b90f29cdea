"""Answers whose text is not whole, although their length says so, and listings without an end.

A text that was cut twice goes unnoticed, since it is asked for again; for ever, it is an error that
names what it was about. Nothing is ever taken for less than it is.
"""

import itertools

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.s3.writes import S3Writes
from tensorstore_py.testing import Reply
from tensorstore_py.testing.fault_server import shortened
from tests.kvstores.s3.fake_s3 import FakeS3

NAMES = [f"d{number % 3}/{number:02}" for number in range(26)]
ALL = ts.KvStore.KeyRange()
#: From the last tag alone to nearly everything.
CUTS = [1, 21, 300, 2000]


@pytest.fixture
def fake():
    fake = FakeS3(page=10)
    for name in NAMES:
        fake.put(name, name.encode())
    return fake


def names(fake, start=""):
    return sorted(name for name in fake.values if name.startswith(start))


@pytest.mark.parametrize("by", CUTS)
def test_a_listing_that_is_cut_is_asked_for_again(fake, serve, open_store, by):
    store = open_store(serve(fake.handle, [None, shortened(by), shortened(by)]).url)

    assert sorted(store.list().result()) == sorted(map(str.encode, NAMES))


@pytest.mark.parametrize("by", CUTS)
def test_and_is_an_error_in_the_end(fake, serve, open_store, by):
    server = serve(
        fake.handle, lambda request: shortened(by) if "list-type" in request.target else None
    )
    store = open_store(server.url)

    for action in (store.list, lambda: store.delete_range(ALL)):
        server.requests.clear()
        with pytest.raises(DataLossError, match=r"cannot list .*bucket.*attempt 3"):
            action().result()
        assert len(server.requests) == 3
    assert names(fake) == sorted(NAMES)


def test_deleting_many_is_done_again_if_its_answer_is_cut(fake, serve, open_store):
    fake.put("d0/locked", b"")
    cut = itertools.chain([shortened(1)] * 2, itertools.repeat(None))
    server = serve(fake.handle, lambda each: next(cut) if each.target.endswith("delete=") else None)

    open_store(server.url).delete_range(ALL).result()

    assert names(fake) == []


@pytest.mark.parametrize("marker", ["uploads=", "uploadId="])
@pytest.mark.parametrize("by", [1, 30, 80])
def test_parts_are_put_together_whatever_is_cut(fake, serve, open_store, monkeypatch, marker, by):
    cut = itertools.chain([shortened(by)] * 2, itertools.repeat(None))
    server = serve(
        fake.handle,
        lambda each: next(cut) if each.method == "POST" and marker in each.target else None,
    )
    kv = open_store(server.url)
    writes = kv.store._writes
    monkeypatch.setattr(
        kv.store, "_writes", S3Writes(writes._bucket, None, large_bytes=10, part_bytes=8)
    )

    kv.write("large", b"0123456789" * 2).result()

    assert fake.values["large"].body == b"0123456789" * 2


def test_a_copy_that_does_not_say_that_it_was_made_is_made_again(fake, serve, open_store):
    server = serve(fake.handle)
    kv = open_store(server.url)
    cut = itertools.chain([shortened(1)] * 2, itertools.repeat(None))
    server.plan = lambda each: next(cut) if "x-amz-copy-source" in each.headers else None

    kv.experimental_copy_range_to(
        kv / "copy/", source_range=ts.KvStore.KeyRange("d0/", "d0/1")
    ).result()

    assert names(fake, "copy/") == [f"copy/d0/{number}" for number in ("00", "03", "06", "09")]


def test_an_error_that_is_cut_is_not_guessed_at(serve, open_store):
    server = serve(lambda _: Reply(403, b"<?xml version='1.0'?><Error><Code>Slow"))
    store = open_store(server.url)

    with pytest.raises(
        DataLossError, match=r"answered 403, and not all of its reasons .*attempt 3"
    ):
        store["a"]


def page(*keys, token="", is_cut=True):
    items = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    cut = f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>"
    return Reply(200, f"<ListBucketResult>{cut}{more}{items}</ListBucketResult>".encode())


@pytest.mark.parametrize(
    ("pages", "most"),
    [
        (lambda number: page(f"k{number}", token="same"), 2),
        (lambda number: page("a", "b", token=f"token {number}"), 2),
        (lambda number: page(f"k{number % 7}", token=f"token {number % 14}"), 8),
        (lambda number: page(token=f"token {number}"), 101),
    ],
    ids=["same token", "same page", "round and round", "empty"],
)
def test_a_listing_that_leads_on_and_on_ends(serve, open_store, pages, most):
    numbers = itertools.count()
    server = serve(lambda _: pages(next(numbers)))
    store = open_store(server.url)

    for action in (store.list, lambda: store.delete_range(ALL)):
        server.requests.clear()
        with pytest.raises(DataLossError, match=r"cannot list .*without an end"):
            action().result()
        assert len([each for each in server.requests if "list-type" in each.target]) <= most


def test_empty_pages_within_a_listing_are_passed_over(serve, open_store):
    replies = iter(
        [page("a", token="1"), page(token="2"), page(token="3"), page("b", is_cut=False)]
    )
    store = open_store(serve(lambda _: next(replies)).url)

    assert store.list().result() == [b"a", b"b"]
