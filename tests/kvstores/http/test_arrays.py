"""Arrays behind a web server, end to end: what is read, and with how many requests.

They are written to a directory, which a server then shows as it is.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import (
    DataLossError,
    MismatchError,
    NotFoundError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.testing import WebValues

DATA = np.arange(40 * 50, dtype="<u4").reshape(40, 50)
SHARDS = ts.ChunkLayout(write_chunk_shape=[20, 25], read_chunk_shape=[5, 5])
CHUNKS = ts.ChunkLayout(chunk_shape=[10, 20])


#: The schemes of the drivers.
SCHEMES = {"zarr": "zarr2", "zarr3": "zarr3"}


class Site:
    """A directory and a server that shows it."""

    def __init__(self, root: Path, serve) -> None:
        self.root = root
        self.web = WebValues()
        self.server = serve(self.web.handle)
        self.url = self.server.url

    def publish(self) -> None:
        """Show what the directory has now."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        self.web.values = {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def add(self, name: str, driver: str, layout: ts.ChunkLayout = CHUNKS, **members: Any) -> str:
        """Publish an array of `DATA`; returns its URL."""
        made = ts.open(
            {"driver": driver, "kvstore": f"file://{self.root}/{name}/", **members},
            create=True, dtype="uint32", shape=DATA.shape, chunk_layout=layout,
        ).result()  # fmt: skip
        made[...] = DATA
        self.publish()
        return f"{self.url}/{name}/"

    def asked(self) -> list[str]:
        """What was asked for since the last call, with its ranges."""
        found = []
        for request in self.server.requests:
            assert request.method == "GET"
            span = request.headers.get("range", "").removeprefix("bytes=")
            found.append(request.target.partition("/a/")[2] + (f" {span}" if span else ""))
        self.server.requests.clear()
        return found


@pytest.fixture
def site(tmp_path, serve) -> Site:
    return Site(tmp_path, serve)


FORMATS = [
    ("zarr", CHUNKS, {}),
    ("zarr", CHUNKS, {"metadata": {"dimension_separator": "/", "compressor": None}}),
    ("zarr3", CHUNKS, {}),
    ("zarr3", SHARDS, {}),
]


@pytest.mark.parametrize(("driver", "layout", "members"), FORMATS)
@pytest.mark.parametrize("how", ["url", "auto", "spec"])
def test_reads_what_was_written(site, driver, layout, members, how):
    url = site.add("a", driver, layout, **members)
    spec: Any = {
        "url": f"{url}|{SCHEMES[driver]}:",
        "auto": url,
        "spec": {"driver": driver, "kvstore": {"driver": "http", "base_url": url}},
    }[how]

    store = ts.open(spec).result()

    assert store.url == f"{url}|{SCHEMES[driver]}:"
    np.testing.assert_array_equal(store.read().result(), DATA)
    np.testing.assert_array_equal(store[3:33:7, ::-3].read().result(), DATA[3:33:7, ::-3])
    np.testing.assert_array_equal(store.oindex[[7, 39], [49, 0]], DATA[[7, 39]][:, [49, 0]])
    assert int(store[39, 49].read().result()) == DATA[39, 49]


@pytest.mark.parametrize(("driver", "layout", "members"), FORMATS)
def test_the_reference_reads_the_same(site, driver, layout, members):
    url = site.add("a", driver, layout, **members)

    theirs = reference.open(f"{url}|{SCHEMES[driver]}:").result().read().result()

    np.testing.assert_array_equal(theirs, DATA)


async def test_reads_on_the_users_loop(site):
    url = site.add("a", "zarr3", SHARDS)

    store = await ts.open(f"{url}|zarr3:")

    np.testing.assert_array_equal(await store[:5].read(), DATA[:5])


class TestRequests:
    @pytest.mark.parametrize(
        ("driver", "layout", "expected"),
        [("zarr", CHUNKS, [".zarray"]), ("zarr3", SHARDS, ["zarr.json"])],
    )
    def test_opening_is_one(self, site, driver, layout, expected):
        url = site.add("a", driver, layout)

        ts.open(f"{url}|{SCHEMES[driver]}:").result()

        assert site.asked() == expected

    def test_finding_the_format_costs_one_more_at_most(self, site):
        ts.open(site.add("a", "zarr3")).result()
        assert site.asked() == ["zarr.json"]
        for path in site.root.rglob("*"):
            if path.is_file():
                path.unlink()
        ts.open(site.add("a", "zarr")).result()
        assert site.asked() == ["zarr.json", ".zarray"]

    def test_a_chunk_is_one(self, site):
        store = ts.open(site.add("a", "zarr3") + "|zarr3:").result()
        site.asked()

        store[12:18, 21:39].read().result()

        assert site.asked() == ["c/1/1"]

    def test_a_chunk_of_a_shard_is_the_index_and_its_bytes(self, site):
        store = ts.open(site.add("a", "zarr3", SHARDS) + "|zarr3:").result()
        site.asked()

        got = store[20:25, 30:35].read().result()

        np.testing.assert_array_equal(got, DATA[20:25, 30:35])
        index, part = site.asked()
        assert index == "c/1/1 -324"  # 4 by 5 chunks: 16 bytes each, and a checksum
        key, _, span = part.partition(" ")
        first, last = map(int, span.split("-"))
        assert (key, last - first + 1) == ("c/1/1", 100)

    def test_neighbours_in_a_shard_are_one(self, site):
        store = ts.open(site.add("a", "zarr3", SHARDS) + "|zarr3:").result()
        site.asked()

        got = store[0:15, 0:25].read().result()

        np.testing.assert_array_equal(got, DATA[0:15, 0:25])
        assert site.asked() == ["c/0/0 -324", "c/0/0 0-1499"]

    def test_all_of_a_shard_is_one(self, site):
        store = ts.open(site.add("a", "zarr3", SHARDS) + "|zarr3:").result()
        site.asked()

        got = store[0:20, 0:25].read().result()

        np.testing.assert_array_equal(got, DATA[0:20, 0:25])
        assert site.asked() == ["c/0/0"]

    def test_what_is_kept_is_only_looked_at_again(self, site):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})
        url = site.add("a", "zarr3")
        store = ts.open(f"{url}|zarr3:", context=context, recheck_cached_data=True).result()
        store[:10, :20].read().result()
        site.server.requests.clear()

        np.testing.assert_array_equal(store[:10, :20].read().result(), DATA[:10, :20])

        (request,) = site.server.requests
        assert "if-none-match" in request.headers

    def test_what_is_fresh_enough_is_not(self, site):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 10**6}})
        url = site.add("a", "zarr3")
        store = ts.open(f"{url}|zarr3:", context=context, recheck_cached_data="open").result()
        store[:10, :20].read().result()
        site.asked()

        np.testing.assert_array_equal(store[:10, :20].read().result(), DATA[:10, :20])

        assert site.asked() == []

    def test_no_more_at_a_time_than_allowed(self, site):
        url = site.add("a", "zarr3", ts.ChunkLayout(chunk_shape=[2, 50]))
        context = ts.Context({"http_request_concurrency": {"limit": 3}})
        store = ts.open(f"{url}|zarr3:", context=context).result()

        store.read().result()

        assert len(site.asked()) == 21
        assert site.server.connections <= 3


def test_what_is_not_there_reads_as_the_fill_value(site):
    url = site.add("a", "zarr3")
    del site.web.values["a/c/0/0"]
    strict = {"driver": "zarr3", "kvstore": url, "fill_missing_data_reads": False}

    assert not ts.open(f"{url}|zarr3:").result()[:10, :20].read().result().any()
    with pytest.raises(NotFoundError, match=f"{url}c/0/0"):
        ts.open(strict).result().read().result()


def test_a_shard_that_is_replaced_is_begun_anew(site):
    url = site.add("a", "zarr3", SHARDS)
    store = ts.open(f"{url}|zarr3:").result()
    there = ts.open(f"file://{site.root}/a/|zarr3:").result()

    def replace(_):
        if len(site.server.requests) == 3:  # the metadata, the index, and now the bytes
            there[...] = DATA[::-1].copy()
            site.publish()

    site.server.plan = replace

    np.testing.assert_array_equal(store[:15, :25].read().result(), DATA[::-1][:15, :25])
    assert len(site.server.requests) == 5


def test_a_damaged_chunk_is_named(site):
    url = site.add("a", "zarr3", SHARDS)
    site.web.values["a/c/1/0"] = site.web.values["a/c/1/0"][:-1] + b"?"

    with pytest.raises(DataLossError, match=f"{url}c/1/0"):
        ts.open(f"{url}|zarr3:").result().read().result()


def test_the_server_decides_what_an_array_is(site):
    url = site.add("a", "zarr3")

    with pytest.raises(NotFoundError, match=f"{url}.zarray"):
        ts.open(f"{url}|zarr2:").result()
    with pytest.raises(MismatchError, match="dtype"):
        ts.open(f"{url}|zarr3:", dtype="int8").result()


class TestReadOnly:
    @pytest.fixture
    def store(self, site):
        return ts.open(site.add("a", "zarr3", SHARDS) + "|zarr3:").result()

    @pytest.mark.parametrize(
        "change",
        [
            lambda store: store.write(DATA),
            lambda store: store[3:5, 7].write(1),
            lambda store: store.write(0),
            lambda store: store.resize(exclusive_max=[80, 50]),
        ],
        ids=["write", "write in part", "write what is not stored", "resize"],
    )
    def test_writing_is_an_error_that_says_so(self, store, site, change):
        with pytest.raises(UnsupportedError, match="read-only") as error:
            change(store).result()

        assert site.url in str(error.value)

    @pytest.mark.parametrize(
        "options", [{"create": True}, {"create": True, "delete_existing": True}]
    )
    def test_so_is_creating(self, site, options):
        with pytest.raises(TensorStoreError, match=r"read-only") as error:
            ts.open(f"{site.url}/new/|zarr3:", dtype="uint8", shape=[3], **options).result()

        assert site.url in str(error.value)
        assert isinstance(error.value, UnsupportedError)

    def test_what_is_there_may_be_opened_with_create(self, store, site):
        again = ts.open(f"{site.url}/a/|zarr3:", create=True, open=True).result()

        assert again.shape == store.shape


def test_json_documents(site):
    site.web.values["doc.json"] = b'{"a": {"b": [1, 2, 3]}}'

    store = ts.open({"driver": "json", "kvstore": f"{site.url}/doc.json", "json_pointer": "/a/b/1"})

    assert store.result().read().result().item() == 2


def test_stacks_of_what_lies_elsewhere(site):
    url = site.add("a", "zarr3")
    view = ts.stack([ts.open(f"{url}|zarr3:").result()] * 2)

    np.testing.assert_array_equal(view[1, :7].read().result(), DATA[:7])
