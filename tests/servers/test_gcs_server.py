"""The server of the GCS tests, held to clients that know nothing of it: Google's and the wheel."""

import base64
import gc
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor

import google_crc32c
import pytest
from google.api_core.exceptions import (
    BadRequest,
    NotFound,
    PreconditionFailed,
    TooManyRequests,
)
from google.auth.exceptions import InvalidOperation
from google.cloud.storage.retry import DEFAULT_RETRY

from tensorstore_py.testing.fault_server import RESET, applied_then, reset_within, status
from tests.servers.gcs_server import GcsServer
from tests.servers.google_client import google_client

TESTBENCH = os.environ.get("TENSORSTORE_PY_TESTBENCH", "")
VALUE = bytes(range(256)) * 4


# Google's client drops the connections of failed requests without closing them.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def _dropped_connections():
    """They are collected here, so that no other test is blamed for them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class Real:
    """A testbench that runs elsewhere, where its URL is known."""

    url = TESTBENCH


@pytest.fixture(params=["own", *(["testbench"] if TESTBENCH else [])])
def server(request):
    if request.param == "testbench":
        yield Real()
    else:
        with GcsServer() as running:
            yield running


@pytest.fixture
def bucket(server):
    with google_client(server.url) as client:
        yield client.create_bucket(f"bucket-{os.urandom(6).hex()}")


def test_google_s_client_reads_what_it_wrote(bucket):
    blob = bucket.blob("a/ü b?#%2F")
    blob.upload_from_string(VALUE, content_type="application/x-test")

    again = bucket.get_blob("a/ü b?#%2F")

    assert again.download_as_bytes() == VALUE
    assert again.content_type == "application/x-test"
    assert again.size == len(VALUE)
    assert again.generation == blob.generation
    assert again.md5_hash == base64.b64encode(hashlib.md5(VALUE).digest()).decode()
    assert again.crc32c == base64.b64encode(google_crc32c.Checksum(VALUE).digest()).decode()


@pytest.mark.parametrize(("start", "end"), [(5, 9), (1000, None), (1020, 5000), (-10, None)])
def test_google_s_client_reads_ranges(bucket, start, end):
    bucket.blob("a").upload_from_string(VALUE)

    read = bucket.blob("a").download_as_bytes(start=start, end=end, raw_download=True)

    assert read == VALUE[start : None if end is None else end + 1]


def test_google_s_client_uploads_in_pieces(bucket):
    value = os.urandom(3 * 256 * 1024 + 17)
    blob = bucket.blob("large", chunk_size=256 * 1024)

    blob.upload_from_file(io.BytesIO(value), size=len(value))

    assert bucket.blob("large").download_as_bytes() == value


def test_conditions_hold_for_google_s_client(bucket):
    blob = bucket.blob("a")
    blob.upload_from_string(b"1", if_generation_match=0)
    first = blob.generation

    with pytest.raises(PreconditionFailed):
        bucket.blob("a").upload_from_string(b"2", if_generation_match=0)
    with pytest.raises(PreconditionFailed):
        bucket.blob("b").upload_from_string(b"2", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("a").delete(if_generation_match=first + 1)
    bucket.blob("a").upload_from_string(b"3", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("a").download_as_bytes(if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("a").upload_from_string(b"4", if_metageneration_match=2)

    assert bucket.blob("a").download_as_bytes(if_metageneration_match=1) == b"3"
    bucket.get_blob("a").delete(if_generation_not_match=first)
    with pytest.raises(NotFound):
        bucket.blob("a").delete()


def test_one_of_many_writers_wins(bucket):
    def write(number):
        try:
            bucket.blob("raced").upload_from_string(b"%d" % number, if_generation_match=0)
        except PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(write, range(16)) if number is not None]

    assert len(won) == 1
    assert bucket.blob("raced").download_as_bytes() == b"%d" % won[0]


def test_google_s_client_lists(bucket):
    for number in range(12):
        bucket.blob(f"d{number % 3}/k{number:02}").upload_from_string(b"")

    def names(**options):
        return [blob.name for blob in bucket.list_blobs(**options)]

    grouped = bucket.list_blobs(delimiter="/")

    assert names(prefix="d1/") == ["d1/k01", "d1/k04", "d1/k07", "d1/k10"]
    assert names(start_offset="d0/k09", end_offset="d1/k04") == ["d0/k09", "d1/k01"]
    assert list(grouped) == []
    assert grouped.prefixes == {"d0/", "d1/", "d2/"}
    assert [blob.size for blob in bucket.list_blobs(fields="items(name,size),nextPageToken")] == (
        [0] * 12
    )


def test_what_google_s_client_changes_and_copies(bucket):
    blob = bucket.blob("a")
    blob.upload_from_string(b"1")
    blob.metadata = {"who": "me"}
    blob.patch()

    copied = bucket.copy_blob(blob, bucket, "b", if_generation_match=0)

    assert bucket.get_blob("a").metageneration == 2
    assert copied.metadata == {"who": "me"}
    assert bucket.blob("b").download_as_bytes() == b"1"


def test_a_missing_bucket_is_said_to_be_missing(server):
    with google_client(server.url) as client, pytest.raises(NotFound):
        client.bucket("no-such-bucket").blob("a").upload_from_string(b"")


# ------------------------------------------------------------ what only the server of our own does


@pytest.fixture
def own(gcs_server):
    with google_client(gcs_server.url) as client:
        yield gcs_server, client.bucket("bucket")


def test_listings_come_in_pages_of_objects_and_prefixes(own):
    server, bucket = own
    for name in ("a", "b/1", "b/2", "c", "d/1"):
        server.put(name, b"")

    pages = list(bucket.list_blobs(delimiter="/", page_size=2).pages)

    assert [[blob.name for blob in page] for page in pages] == [["a"], ["c"]]
    assert [sorted(page.prefixes) for page in pages] == [["b/"], ["d/"]]


def test_a_batch_is_its_requests(own):
    server, bucket = own
    for name in ("a", "b", "c"):
        server.put(name, b"")

    with bucket.client.batch():
        bucket.blob("a").delete()
        bucket.blob("b").delete()

    assert list(server.objects()) == ["c"]


def test_a_wrong_checksum_is_refused(own):
    server, bucket = own
    blob = bucket.blob("a")
    blob.crc32c = "AAAAAA=="

    with pytest.raises(BadRequest, match="crc32c"):
        blob.upload_from_string(VALUE, checksum=None)

    assert server.objects() == {}


def test_a_stored_gzip_is_unpacked_for_clients_that_do_not_accept_it(own):
    _, bucket = own
    blob = bucket.blob("a")
    blob.content_encoding = "gzip"
    blob.upload_from_string(gzip.compress(VALUE))

    asked = urllib.request.Request(
        f"{own[0].url}/storage/v1/b/bucket/o/a?alt=media", headers={"Accept-Encoding": "identity"}
    )
    with urllib.request.urlopen(asked) as reply:
        assert reply.read() == VALUE
    assert blob.download_as_bytes() == VALUE


def test_tokens_are_asked_for():
    with GcsServer(tokens={"right"}) as server, google_client(server.url) as client:
        server.make_bucket()
        with pytest.raises(InvalidOperation, match="refreshed"):
            client.bucket("bucket").blob("a").upload_from_string(b"1")

        asked = urllib.request.Request(
            f"{server.url}/storage/v1/b/bucket/o", headers={"Authorization": "Bearer right"}
        )
        with urllib.request.urlopen(asked) as reply:
            assert json.load(reply) == {"kind": "storage#objects"}


def test_somebody_must_pay(own):
    server, bucket = own
    server.make_bucket("paid", requester_pays=True)

    with pytest.raises(BadRequest, match="requester pays"):
        list(bucket.client.bucket("paid").list_blobs())
    paying = bucket.client.bucket("paid", user_project="mine")

    assert list(paying.list_blobs()) == []


def test_writes_of_one_object_are_paced():
    with GcsServer(pace_s=60) as server, google_client(server.url) as client:
        bucket = client.bucket(server.make_bucket())
        bucket.blob("a").upload_from_string(b"1")
        bucket.blob("b").upload_from_string(b"1")
        with pytest.raises(TooManyRequests):
            bucket.blob("a").upload_from_string(b"2", retry=None)

        assert server.objects() == {"a": b"1", "b": b"1"}


@pytest.mark.parametrize("name", [".", "..", "a\nb", "x" * 1025, ".well-known/acme-challenge/a"])
def test_names_that_there_cannot_be(own, name):
    _, bucket = own

    with pytest.raises(BadRequest):
        bucket.blob(name).upload_from_string(b"")


def test_faults_stand_in_front_of_it(own):
    server, bucket = own
    server.plan = [status(429), status(503), reset_within(10)]
    server.put("a", VALUE)

    at_once = DEFAULT_RETRY.with_delay(initial=0.001, maximum=0.002)
    assert bucket.blob("a").download_as_bytes(retry=at_once) == VALUE
    assert len(server.requests) == 4

    server.plan = [applied_then(RESET)]
    with pytest.raises(Exception, match="reset"):
        bucket.blob("b").upload_from_string(b"1", retry=None)
    assert server.objects()["b"] == b"1"


def test_a_resumable_upload_goes_on_where_it_broke(own):
    server, _ = own
    piece = os.urandom(256 * 1024)
    begin = f"{server.url}/upload/storage/v1/b/bucket/o?uploadType=resumable&name=a"

    def put(where, data, content_range):
        asked = urllib.request.Request(where, data, {"Content-Range": content_range}, method="PUT")
        try:
            with urllib.request.urlopen(asked) as reply:
                return reply.status, reply.headers.get("Range")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers.get("Range")

    with urllib.request.urlopen(urllib.request.Request(begin, b"", method="POST")) as reply:
        where = reply.headers["Location"]

    assert put(where, b"", "bytes */*") == (308, None)
    assert put(where, piece, "bytes 0-262143/*") == (308, "bytes=0-262143")
    assert put(where, b"", "bytes */*") == (308, "bytes=0-262143")
    assert put(where, b"short", "bytes 262144-262148/*")[0] == 400
    assert put(where, piece, "bytes 524288-786431/*")[0] == 503
    assert server.objects() == {}
    assert put(where, piece[:10], "bytes 262144-262153/262154") == (200, None)
    assert put(where, piece[:10], "bytes 262144-262153/262154") == (200, None)
    assert server.objects() == {"a": piece + piece[:10]}


def wheel(server, code):
    """What a program with the reference implementation prints as JSON."""
    environment = {
        **os.environ,
        "TENSORSTORE_GCS_HTTP_URL": server.url,
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "t",
    }
    done = subprocess.run(
        [sys.executable, "-c", "import json, tensorstore as ts\n" + textwrap.dedent(code)],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_wheel_keeps_arrays_in_it(gcs_server):
    told = wheel(
        gcs_server,
        """
        for driver in ("zarr", "zarr3"):
            spec = {"driver": driver, "kvstore": {"driver": "gcs", "bucket": "bucket"}}
            spec["kvstore"]["path"] = driver + "/"
            a = ts.open(spec, create=True, dtype=ts.uint16, shape=[8, 8],
                        chunk_layout=ts.ChunkLayout(chunk_shape=[4, 4])).result()
            a[1:7, 1:7] = 5
            a[2, 2] = 6
        again = ts.open(spec).result()
        print(json.dumps([int(again.read().result().sum()), again[2, 2].read().result().item()]))
        """,
    )

    assert told == [36 * 5 + 1, 6]
    assert sorted(gcs_server.objects())[:2] == ["zarr/.zarray", "zarr/0.0"]


def test_the_wheel_finds_its_conditions_kept(gcs_server):
    told = wheel(
        gcs_server,
        """
        s = ts.KvStore.open({"driver": "gcs", "bucket": "bucket"}).result()
        first = s.write("a/ü b?", b"0123456789").result()
        lost = s.write("a/ü b?", b"no", if_equal=b"\\x02").result()
        same = s.read("a/ü b?", if_not_equal=first.generation).result()
        second = s.write("a/ü b?", b"new", if_equal=first.generation).result()
        for number in range(5):
            s.write(f"n/{number}", b"x").result()
        s.delete_range(ts.KvStore.KeyRange("n/1", "n/3")).result()
        print(json.dumps([
            lost.generation == b"", same.state, s.read("a/ü b?").result().value.decode(),
            [key.decode() for key in sorted(s.list().result())],
        ]))
        """,
    )

    assert told[0] is True
    assert told[1] == "unspecified"
    assert told[2] == "new"
    assert told[3] == ["a/ü b?", "n/0", "n/3", "n/4"]
