"""The HTTP store against a server of the loopback: what it sends, and what it makes of answers."""

import pickle
import time
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.kvstores.http import HttpStore
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, ByteRange, KvStore
from tensorstore_py.testing import FaultServer, KvStoreReadSuite, Reply, WebValues, drive
from tensorstore_py.testing.fault_server import redirect, slow, status

VALUE = b"0123456789"


class TestSuite(KvStoreReadSuite):
    @pytest.fixture
    def store(self, plain_store):
        return plain_store

    how: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    def web(self):
        self.source = WebValues(**self.how)
        return self.source

    async def put(self, _: KvStore, key: str, value: bytes) -> None:
        self.source.values[key] = value


class TestSuiteWithoutRanges(TestSuite):
    """A server that sends the whole value whatever part is asked for."""

    how: ClassVar[dict[str, Any]] = {"ranges": False}


class TestSuiteWithoutConditions(TestSuite):
    """A server that tells ETags and then does not heed conditions."""

    how: ClassVar[dict[str, Any]] = {"conditions": False}


class TestSuiteWithoutEtags(TestSuite):
    """A server that knows no more than when its files were changed."""

    how: ClassVar[dict[str, Any]] = {"etags": False, "changed": 1e9}


class TestSuiteBelowAPath(TestSuite):
    """Values below the root, at a server that wants to see a token."""

    base: ClassVar[str] = "/some/%C3%A9/place%2Fwith"

    @pytest.fixture
    def store(self, serve, open_store, web):
        def handle(request):
            path, _, query = request.target.partition("?")
            assert query == "token=5"
            assert path.startswith(self.base + "/"), path
            web_request = type(request)(request.method, path[len(self.base) :], request.headers)
            return web.handle(web_request)

        return open_store(serve(handle).url + self.base + "?token=5").store


def read(store: HttpStore, key: str = "a", byte_range: ByteRange | None = None, **conditions):
    if byte_range is None:
        return drive(store, lambda: store.read(key, **conditions))
    return drive(store, lambda: store.read(key, byte_range, **conditions))


class TestRequests:
    def test_a_read_is_one_get_of_the_value(self, plain_store, server):
        read(plain_store)

        (request,) = server.requests
        assert (request.method, request.target) == ("GET", "/a")
        assert request.headers["accept-encoding"] == "identity"
        assert not {"range", "if-match", "if-none-match", "cookie"} & set(request.headers)

    @pytest.mark.parametrize(
        ("byte_range", "header"),
        [
            (ByteRange(2, 5), "bytes=2-4"),
            (ByteRange(3), "bytes=3-"),
            (ByteRange(-4), "bytes=-4"),
            (ByteRange(6, 6), "bytes=5-5"),
        ],
    )
    def test_asks_for_no_more_than_is_wanted(self, plain_store, server, byte_range, header):
        read(plain_store, "a", byte_range)

        assert [request.headers["range"] for request in server.requests] == [header]

    def test_connections_are_used_again(self, plain_store, server):
        for _ in range(5):
            read(plain_store)

        assert (len(server.requests), server.connections) == (5, 1)

    def test_a_query_goes_along(self, server, open_store):
        store = open_store(server.url + "/?sig=a%2Fb&x").store

        read(store)

        assert server.requests[0].target == "/a?sig=a%2Fb&x"

    def test_headers_go_along(self, server, open_store):
        store = open_store(server.url, headers=["X-Key: k: v", "user-agent:  me ", "Empty:"]).store

        read(store)

        headers = server.requests[0].headers
        assert (headers["x-key"], headers["user-agent"]) == ("k: v", "me")
        assert "empty" not in headers

    def test_conditions_go_out_as_etags(self, plain_store, server):
        present = read(plain_store).stamp.generation

        same = read(plain_store, if_not_equal=present)
        other = read(plain_store, if_equal=b"\0other")

        _, second, third = server.requests
        assert second.headers["if-none-match"] == f'"{present[1:].decode()}"'
        assert third.headers["if-match"] == '"other"'
        assert (same.state, same.stamp.generation) == ("unspecified", present)
        assert (other.state, other.stamp.generation) == ("unspecified", UNKNOWN)

    @pytest.mark.parametrize("generation", [NO_VALUE, UNKNOWN, b"\x10", b"\0a\r\nX: y", b'\0a"b'])
    def test_what_is_no_etag_is_not_sent(self, plain_store, server, generation):
        read(plain_store, if_not_equal=generation, if_equal=generation)

        assert not {"if-match", "if-none-match", "x"} & set(server.requests[0].headers)


class TestFreshness:
    @pytest.fixture
    def store(self, server, open_store):
        return open_store(server.url)

    @pytest.mark.parametrize(
        ("age_s", "expected"), [(0.0, "no-cache"), (-100.0, "no-cache"), (3600.0, "max-age=3600")]
    )
    def test_caches_get_the_age_that_an_answer_may_have(self, store, server, age_s, expected):
        present = store.read("a", byte_range=slice(2, 4)).result()
        answer = store.read(
            "a", byte_range=slice(2, 4), staleness_bound=time.time() - age_s,
            if_not_equal=present.stamp.generation,
        ).result()  # fmt: skip

        assert answer.state == "unspecified"
        headers = server.requests[1].headers
        assert (headers["cache-control"], headers["range"]) == (expected, "bytes=2-3")

    def test_by_default_caches_look_again(self, store, server):
        store.read("a").result()

        assert server.requests[0].headers["cache-control"] == "no-cache"

    def test_any_age_will_do(self, store, server):
        store.read("a", staleness_bound=float("-inf")).result()

        assert "cache-control" not in server.requests[0].headers

    def test_the_users_word_counts_most(self, server, open_store):
        store = open_store(server.url, headers=["Cache-Control: only-if-cached"])

        store.read("a", staleness_bound=0.0).result()

        assert server.requests[0].headers["cache-control"] == "only-if-cached"

    def test_an_answer_is_as_old_as_it_says(self, plain_store, web):
        before = time.time()
        fresh = read(plain_store).stamp.time
        web.headers = {"Age": "500"}
        kept = read(plain_store).stamp.time

        assert before <= fresh <= time.time()
        assert kept == pytest.approx(fresh - 500, abs=30)

    @pytest.mark.parametrize("age", ["9" * 5000, "-5", "1.5", "soon"])
    def test_an_age_that_is_none_is_passed_over(self, plain_store, web, age):
        web.headers = {"Age": age}

        assert read(plain_store).stamp.time == pytest.approx(time.time(), abs=30)


class TestGenerations:
    def generation(self, store, web, **headers):
        web.etags = False
        web.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return read(store).stamp.generation

    def test_who_knows_no_sign_is_sent_the_value(self, plain_store, web):
        generation = self.generation(plain_store, web)

        for known in (generation, b""):
            result = read(plain_store, if_not_equal=known)
            assert (result.state, result.stamp.generation) == ("value", b"\x10")

    def test_a_strong_etag_is_one(self, plain_store, web):
        assert self.generation(plain_store, web, ETag='"5f-2"') == b"\x005f-2"

    def test_a_weak_etag_says_nothing(self, plain_store, web):
        assert self.generation(plain_store, web, ETag='W/"5f-2"') == b"\x10"

    def test_a_date_of_long_ago_will_do(self, plain_store, web, server):
        web.etags, web.changed = False, 1e9
        first = read(plain_store)
        again = read(plain_store, if_not_equal=first.stamp.generation)
        web.changed += 1
        changed = read(plain_store, if_not_equal=first.stamp.generation)

        assert first.stamp.generation != b"\x10"
        assert again.state == "unspecified"
        assert (changed.state, changed.stamp.generation[:1]) == ("value", b"\1")
        assert not any("if-none-match" in request.headers for request in server.requests)

    def test_a_part_has_the_generation_of_the_whole(self, plain_store, web):
        web.etags, web.changed = False, 1e9

        part = read(plain_store, "a", ByteRange(2, 4)).stamp.generation

        assert part == read(plain_store).stamp.generation

    def test_the_end_of_a_value_has_it_too(self, plain_store, server):
        whole = read(plain_store).stamp.generation

        end = read(plain_store, "a", ByteRange(10))

        assert (end.value, end.stamp.generation) == (b"", whole)
        asked = [request.headers["range"] for request in server.requests[1:]]
        assert asked == ["bytes=10-", "bytes=9-9"]

    def test_without_a_sign_no_value_is_known_again(self, plain_store, web):
        web.etags = False
        nothing = read(plain_store).stamp.generation

        assert nothing == b"\x10"
        assert read(plain_store, if_not_equal=nothing).state == "value"


class TestRanges:
    def test_neighbours_are_fetched_together(self, plain_store, server, web):
        web.values["a"] = bytes(range(256)) * 100
        ranges = [ByteRange(n, n + 10) for n in (20000, 0, 4000, 10)]

        results = drive(plain_store, lambda: plain_store.read_ranges("a", ranges))

        assert [bytes(result.value) for result in results] == [
            web.values["a"][each.start : each.stop] for each in ranges
        ]
        asked = sorted(request.headers["range"] for request in server.requests)
        assert asked == ["bytes=0-4009", "bytes=20000-20009"]

    def test_all_are_of_one_generation(self, plain_store, server, web):
        web.values["a"] = b"old!" * 5000

        def replace(_):
            if len(server.requests) == 2:
                web.values["a"] = b"new!" * 5000

        server.plan = replace
        ranges = [ByteRange(0, 4), ByteRange(10000, 10004)]

        results = drive(plain_store, lambda: plain_store.read_ranges("a", ranges))

        assert [bytes(result.value) for result in results] == [b"new!"] * 2
        assert len(server.requests) == 4

    def test_outside_is_an_error_with_the_size(self, plain_store):
        with pytest.raises(OutOfRangeError, match=r"cannot read .*/a.*\[5, 50\).*10 bytes"):
            read(plain_store, "a", ByteRange(5, 50))

    @pytest.mark.parametrize(
        "answer",
        [
            Reply(206, b"345", {"Content-Range": "bytes 3-5/10"}),
            Reply(206, b"23", {"Content-Range": "bytes 2-3/10"}),
            Reply(206, b"234", {"Content-Range": "bytes 2-4/3"}),
            Reply(206, b"234", {"Content-Range": "lines 2-4/10"}),
            Reply(206, b"234"),
            Reply(206, b"2345", {"Content-Range": "bytes 2-4/10"}),
        ],
        ids=["elsewhere", "short", "impossible", "unit", "unsaid", "long"],
    )
    def test_another_part_is_never_taken_for_the_one_asked_for(self, serve, open_store, answer):
        server = serve(lambda _: answer)
        store = open_store(server.url).store

        with pytest.raises(DataLossError, match=r"cannot read .*/a"):
            read(store, "a", ByteRange(2, 5))

        assert len(server.requests) == 3, "it may pass, but not for long"


class TestRedirects:
    def test_are_followed(self, plain_store, server):
        server.plan = [redirect(code, "/a") for code in (301, 302, 303, 307, 308)]

        assert read(plain_store, "elsewhere", ByteRange(1, 3)).value == b"12"

        assert [request.target for request in server.requests] == ["/elsewhere"] + ["/a"] * 5
        assert {request.headers["range"] for request in server.requests} == {"bytes=1-2"}

    def test_another_server_gets_no_secrets(self, serve, server, open_store, web):
        other = serve(web.handle)
        server.plan = [redirect(307, other.url + "/a")]
        store = open_store(
            server.url + "?token=5", headers=["Authorization: Bearer 5", "X-Key: 5", "Cookie: c=5"]
        ).store

        assert read(store).value == VALUE

        (request,) = other.requests
        assert request.target == "/a"
        assert not {"authorization", "x-key", "cookie"} & set(request.headers)
        assert server.requests[0].headers["authorization"] == "Bearer 5"

    def test_a_directory_is_no_value(self, plain_store, server):
        server.plan = [redirect(301, "/dir/")]

        assert read(plain_store, "dir").state == "missing"
        assert len(server.requests) == 1

    @pytest.mark.parametrize("place", ["ftp://h/a", "file:///etc/passwd", ""])
    def test_only_lead_to_web_servers(self, plain_store, server, place):
        server.plan = [redirect(302, place)]

        with pytest.raises((PermissionDeniedError, FailedPreconditionError), match="cannot read"):
            read(plain_store)


class TestErrors:
    @pytest.mark.parametrize(
        ("code", "error"),
        [
            (400, FailedPreconditionError),
            (401, PermissionDeniedError),
            (403, PermissionDeniedError),
            (405, UnsupportedError),
            (409, AbortedError),
            (501, UnsupportedError),
        ],
    )
    def test_say_what_and_where_at_once(self, plain_store, server, code, error):
        server.plan = [status(code, {"Content-Type": "text/plain"}, b"because\nof that")]

        with pytest.raises(error, match=rf'cannot read "{server.url}/a": .*{code}.*because of'):
            read(plain_store)

        assert len(server.requests) == 1

    @pytest.mark.parametrize("code", [404, 410])
    def test_what_is_not_there_is_missing(self, plain_store, server, code):
        server.plan = [status(code)]

        assert read(plain_store).state == "missing"
        assert len(server.requests) == 1

    @pytest.mark.parametrize("code", [201, 202, 204, 205, 304])
    def test_a_success_without_a_value_is_not_taken_for_one(self, plain_store, server, code):
        server.plan = lambda _: status(code, body=b"")

        with pytest.raises(DataLossError, match=rf"answered {code} .* is no answer .*attempt 3"):
            read(plain_store)

    def test_what_drips_is_given_up(self, monkeypatch, open_store):
        monkeypatch.setenv("TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS", "0.4")
        monkeypatch.setenv("TENSORSTORE_CURL_LOW_SPEED_LIMIT_BYTES", "1e6")
        drip = slow(pieces=10**6, gap_s=0.001)
        server = FaultServer(lambda _: Reply(200, bytes(10**6)), lambda _: drip)

        with (
            server.running() as url,
            pytest.raises(UnavailableError, match="LOW_SPEED_LIMIT_BYTES") as slowness,
        ):
            read(open_store(url).store)

        assert slowness.value.attempts >= 3

    @pytest.mark.parametrize("code", [204, 304])
    def test_and_is_tried_again(self, plain_store, server, code):
        server.plan = [status(code, body=b"")] * 2

        assert read(plain_store).state == "value"

    def test_a_server_that_is_not_there(self, open_store):
        store = open_store("http://127.0.0.1:1").store

        with pytest.raises(UnavailableError, match="no connection could be made") as error:
            read(store)

        assert error.value.attempts == 4

    def test_hold_no_secrets(self, server, open_store):
        server.plan = lambda _: status(503)
        url = server.url.replace("http://", "http://me:s3cret@")
        store = open_store(url + "?sig=s3cret", headers=["X-Key: s3cret"])

        with pytest.raises(UnavailableError) as error:
            store.read("a").result()

        assert "s3cret" not in str(error.value) + repr(error.value.__cause__)
        assert "/a?sig=..." in str(error.value)
        assert "s3cret" not in store.store.describe_key("a")


class TestReadOnly:
    @pytest.mark.parametrize(
        "call",
        [
            lambda store: store.write("a", b"x"),
            lambda store: store.write("a", None),
            lambda store: store.delete_range(ts.KvStore.KeyRange("a", "b")),
            lambda store: store.list(),
        ],
        ids=["write", "delete", "delete_range", "list"],
    )
    def test_everything_else_is_refused_before_anything_is_sent(
        self, server, open_store, call: Callable[[ts.KvStore], ts.Future[object]]
    ):
        store = open_store(server.url + "?token=s3cret")

        with pytest.raises(NotImplementedError, match=server.url) as error:
            call(store).result()

        assert isinstance(error.value, TensorStoreError)
        assert "s3cret" not in str(error.value)
        assert server.requests == []


class TestFace:
    def test_a_mapping_of_what_is_there(self, server, open_store):
        store = open_store(server.url)

        assert store["a"] == VALUE
        assert "a" in store
        assert "b" not in store
        with pytest.raises(KeyError):
            store["b"]

    def test_opens_by_its_url(self, server):
        store = ts.KvStore.open(server.url + "/").result()

        assert store["a"] == VALUE
        assert (store.url, store.path) == (server.url + "/", "/")

    def test_a_missing_array_says_where(self, server):
        with pytest.raises(NotFoundError, match=server.url):
            ts.open(server.url + "/x/|zarr3:").result()

    def test_survives_pickling(self, server, open_store):
        store = open_store(server.url, headers=["X-Key: 5"])

        again = pickle.loads(pickle.dumps(store))

        assert again["a"] == VALUE
        assert server.requests[-1].headers["x-key"] == "5"

    async def test_is_awaited_on_the_users_loop(self, server, open_store):
        store = open_store(server.url)

        assert (await store.read("a")).value == VALUE
