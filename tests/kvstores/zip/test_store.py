import asyncio
import io
import time
import zipfile

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.kvstores.zip import ZipSpec, ZipStore
from tensorstore_py.kvstores.zip.store import SharedArchive
from tensorstore_py.plugin.kvstore import NO_VALUE, WHOLE, ByteRange
from tensorstore_py.testing import CountingStore, KvStoreSuite, LoopStore, drive

ODD = (*KvStoreSuite.odd_keys, "a//b", ".", "..", "/a", "../up", "w\\q")


class ZipSuite(KvStoreSuite):
    odd_keys = ODD


class TestOverMemory(ZipSuite):
    @pytest.fixture(params=["store", "deflate", "zstd", "xz"])
    def store(self, request):
        return ZipStore(SharedArchive(MemoryStore(SharedMap()), "a.zip"), request.param)


class TestOverFile(ZipSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return ZipStore(SharedArchive(FileStore(sync=False), f"{tmp_path}/a.zip"))


class TestOnTheLoop(ZipSuite):
    @pytest.fixture
    def store(self):
        return ZipStore(SharedArchive(LoopStore(MemoryStore(SharedMap())), "a.zip"))


class TestInAnArchiveInAnArchive(ZipSuite):
    @pytest.fixture
    def store(self):
        outer = ZipStore(SharedArchive(MemoryStore(SharedMap()), "a.zip"))
        return ZipStore(SharedArchive(outer, "in/b.zip"))


def test_an_archive_in_an_archive_opens_by_its_url():
    url = "memory://a.zip|zip:in/b.zip|zip:"
    context = ts.Context({"cache_pool": {"total_bytes_limit": 10_000}})
    store, again = (ts.KvStore.open(url, context=context).result() for _ in range(2))

    store["x"] = b"1"

    assert again["x"] == b"1"


@pytest.fixture
def base():
    return CountingStore(MemoryStore(SharedMap()))


def zipped(entries, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, value in entries.items():
            archive.writestr(name, value)
    return file.getvalue()


def opened(base, data=None, **options):
    if data is not None:
        drive(base, lambda: base.write("a.zip", data))
    base.reset()
    return ZipStore(SharedArchive(base, "a.zip"), **options)


def read(store, key, byte_range=WHOLE):
    return drive(store, lambda: store.read(key, byte_range))


def write(store, key, value):
    return drive(store, lambda: store.write(key, value))


def test_opening_and_reading_are_a_request_each(base):
    entries = {f"k{number}": b"%d " % number * 9000 for number in range(40)}
    store = opened(base, zipped(entries, zipfile.ZIP_STORED))

    assert bytes(read(store, "k1").value) == entries["k1"]
    assert base.reads["a.zip"] == 2
    assert base.bytes_read["a.zip"] < 140_000

    assert bytes(read(store, "k7").value) == entries["k7"]
    assert base.reads["a.zip"] == 3
    assert bytes(read(store, "k8", ByteRange(10, 20)).value) == entries["k8"][10:20]
    assert base.reads["a.zip"] == 4
    assert base.bytes_read["a.zip"] < 180_000

    assert read(store, "nothing").stamp.generation == NO_VALUE
    assert base.reads["a.zip"] == 5


def test_a_short_archive_and_a_large_directory_take_one_more(base):
    short = opened(base, zipped({"a": b"1"}))
    assert bytes(read(short, "a").value) == b"1"
    assert base.reads["a.zip"] == 3

    large = opened(base, zipped({f"{'x' * 200}{number}": b"" for number in range(400)}))
    assert bytes(read(large, "x" * 200 + "399").value) == b""
    assert base.reads["a.zip"] == 3


def test_what_is_known_to_be_current_is_not_sent_again(base):
    store = opened(base, zipped({"a": b"1"}))
    read(store, "nothing")
    sent = base.bytes_read["a.zip"]

    assert read(store, "nothing").state == "missing"
    assert base.bytes_read["a.zip"] == sent


def test_an_old_answer_takes_no_request_where_it_will_do(base):
    store = opened(base, zipped({"a": b"1"}))
    generation = read(store, "a").stamp.generation
    asked = base.reads["a.zip"]

    def old(key, bound=0.0):
        return drive(
            store, lambda: store.read_as_of(key, WHOLE, bound, if_not_equal=generation)
        ).state

    assert (old("nothing"), old("a")) == ("missing", "unspecified")
    assert base.reads["a.zip"] == asked
    assert old("nothing", time.time()) == "missing"
    assert base.reads["a.zip"] == asked + 1


def test_a_replaced_archive_is_noticed(base):
    store = opened(base, zipped({"a": b"1", "b": b"2"}))
    assert bytes(read(store, "a").value) == b"1"

    drive(base, lambda: base.write("a.zip", zipped({"a": b"3" * 100_000, "c": b"4"})))

    assert bytes(read(store, "a").value) == b"3" * 100_000
    assert read(store, "b").state == "missing"
    assert bytes(read(store, "c").value) == b"4"
    drive(base, lambda: base.write("a.zip", None))
    assert read(store, "a").state == "missing"


def test_writers_together_replace_the_archive_few_times():
    base = CountingStore(LoopStore(MemoryStore(SharedMap())))
    store = opened(base)
    reference_store = opened(base)

    async def write_all():
        await asyncio.gather(*(store.write(f"k{number}", b"x" * 99) for number in range(100)))

    drive(store, write_all)

    assert base.writes["a.zip"] < 50
    assert read(reference_store, "k99").state == "value"


def test_several_keys_are_stored_at_once(base):
    store = opened(base, zipped({"a": b"1", "b": b"2"}))
    before = read(store, "a").stamp.generation

    values = {"a": b"9", "b": None, "c": b"3"}
    assert drive(store, lambda: store.write_batch(values, {"c": NO_VALUE, "a": before})) is None
    assert drive(store, lambda: store.write_batch({"d": b""}, {"a": before})) == "a"

    assert base.writes["a.zip"] == 1
    assert [bytes(read(store, key).value) for key in "ac"] == [b"9", b"3"]
    assert {read(store, key).state for key in "bd"} == {"missing"}


def test_a_transaction_is_one_replacement():
    context = ts.Context()
    store = ts.KvStore.open("memory://a.zip|zip:", context=context).result()
    plain = ts.KvStore.open("memory://", context=context).result()

    with ts.Transaction(atomic=True) as transaction:
        inside = store.with_transaction(transaction)
        inside["a"], inside["b"] = b"1", b"2"
        assert b"a.zip" not in plain

    assert store.list().result() == [b"a", b"b"]


def test_the_keys_of_directories_are_refused(base):
    store = opened(base)

    for key in ("", "a/"):
        with pytest.raises(ts.SpecError, match="key"):
            write(store, key, b"1")
        assert read(store, key).state == "missing"


def test_errors_name_the_archive_and_the_entry(base):
    data = zipped({"some/key": b"x" * 1000})
    middle = data.index(b"some/key") + 10
    store = opened(base, data[:middle] + b"\xff\xff" + data[middle + 2 :])

    with pytest.raises(ts.DataLossError, match=r'"some/key" in the zip archive "a\.zip"'):
        read(store, "some/key")
    with pytest.raises(ts.DataLossError, match=r'zip archive "a\.zip": its end is missing'):
        read(opened(base, b"something else"), "some/key")


@pytest.mark.parametrize("compression", ["store", "deflate", "zstd", "xz"])
def test_the_reference_reads_ours_and_we_read_theirs(tmp_path, compression):
    values = {b"a": b"text " * 200, b"d/empty": b"", "é".encode(): b"\0\1"}
    for writer, reader in ((ts, reference), (reference, ts)):
        path = f"file://{tmp_path}/{writer.__name__}.zip"
        spec = {"driver": "zip", "base": path, "compression": compression}
        store = writer.KvStore.open(spec).result()
        for key, value in values.items():
            store[key] = b"before"
            store[key] = value

        found = reader.KvStore.open(f"{path}|zip:").result()
        assert sorted(found.list().result()) == sorted(values)
        assert {key: found[key] for key in values} == values
        found[b"more"] = b"m"
        assert store[b"more"] == b"m"
        assert store[b"a"] == values[b"a"]


def test_python_reads_ours(tmp_path):
    path = tmp_path / "a.zip"
    store = ts.KvStore.open(f"{path.as_uri()}|zip:").result()
    store["a"], store["d/é"] = b"text " * 200, b""

    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "a": b"text " * 200, "d/é": b""
        }  # fmt: skip


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_arrays_in_archives(tmp_path, driver):
    path = f"file://{tmp_path}/a.zip"
    data = np.arange(600, dtype=np.uint16).reshape(20, 30)
    made = ts.open(
        {"driver": driver, "kvstore": f"{path}|zip:in/ner/"},
        create=True,
        dtype="uint16",
        shape=data.shape,
    ).result()
    made[...] = data

    scheme = {"zarr": "zarr2"}.get(driver, driver)
    for url in (
        f"{path}|zip:in/ner/",
        f"{path}|zip|{scheme}:in/ner/",
        f"{path}|zip:in/ner|{scheme}",
    ):
        found = ts.open(url).result()
        np.testing.assert_array_equal(found[3:9].read().result(), data[3:9])
    theirs = reference.open({"driver": driver, "kvstore": f"{path}|zip:in/ner/"}).result()
    np.testing.assert_array_equal(theirs[...].read().result(), data)


PRINTED = [
    "memory://a.zip|zip:b c",
    "memory://a.zip|zip",
    "file:///a.zip|zip:inner/",
    "memory://a.zip|zip:b.zip|zip:c/",
    {"driver": "zip", "base": "memory://a.zip", "path": "x/", "compression": "zstd"},
    {"driver": "zip", "base": "memory://a.zip", "cache_pool": {"total_bytes_limit": 5}},
]
REFUSED = [
    ("file:///a.zip|zip://x", ()),
    ("file:///a.zip|zip:x?y", ()),
    ("zip:x", ()),
    ({"driver": "zip"}, ("base",)),
    ({"driver": "zip", "base": 5}, ("base",)),
    ({"driver": "zip", "base": {"driver": "memory", "pat": "a"}}, ("base", "pat")),
    ({"driver": "zip", "base": "memory://a.zip", "compression": "x"}, ("compression",)),
    ({"driver": "zip", "base": "memory://a.zip", "x": 5}, ("x",)),
]


@pytest.mark.parametrize("json", PRINTED, ids=str)
def test_printed_as_by_the_reference(json):
    ours, theirs = ts.KvStore.Spec(json), reference.KvStore.Spec(json)
    for include in (False, True):
        assert ours.to_json(include) == theirs.to_json(include)
    assert ours.url == theirs.url
    assert str(ours.base) == str(theirs.base)


@pytest.mark.parametrize(("json", "path"), REFUSED, ids=str)
def test_refused_with_the_path(json, path):
    with pytest.raises(ValueError):
        reference.KvStore.Spec(json)
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.Spec(json)
    assert caught.value.path == path


def test_an_archive_is_known_by_its_first_bytes():
    assert ZipSpec.detects(b"PK\x03\x04...")
    assert ZipSpec.detects(b"PK\x05\x06" + bytes(18))
    assert not ZipSpec.detects(b"PK")
    context = ts.Context()
    kvstore = ts.KvStore.open("memory://", context=context).result()
    kvstore["a.zip"] = b"PK\x05\x06" + bytes(18)
    with pytest.raises(ts.NotFoundError, match=r'no array found at the zip archive "a\.zip"'):
        ts.open("memory://a.zip", context=context).result()


def archive_of(kvstore: ts.KvStore) -> object:
    assert isinstance(kvstore.store, ZipStore)
    return kvstore.store._archive


def test_all_handles_of_an_archive_share_what_is_known_of_it():
    context = ts.Context()
    first = ts.KvStore.open("memory://a.zip|zip:x/", context=context).result()
    second = ts.KvStore.open("memory://a.zip|zip:y", context=context).result()
    other = ts.KvStore.open("memory://b.zip|zip:", context=context).result()

    assert archive_of(first) is archive_of(second)
    assert archive_of(first) is not archive_of(other)
    assert first.store.inline


def test_a_cache_pool_keeps_what_is_known_of_an_archive():
    context = ts.Context({"cache_pool": {"total_bytes_limit": 100_000}})
    first = ts.KvStore.open("memory://a.zip|zip:", context=context).result()
    first["a"] = b"1"
    archive = archive_of(first)
    del first

    again = ts.KvStore.open("memory://a.zip|zip:", context=context).result()
    assert archive_of(again) is archive
