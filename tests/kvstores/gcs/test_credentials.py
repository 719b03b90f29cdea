import asyncio
import json
import sys
import time
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import PermissionDeniedError, UnavailableError
from tensorstore_py.kvstores.gcs.credentials import GcsSigner, Grant, Token
from tensorstore_py.plugin.http import HttpRequest, HttpResponse
from tensorstore_py.testing import FaultServer, Reply
from tensorstore_py.testing.fault_server import status

SECRET = "s3cret-token"
CERTIFICATE = Path(__file__).parents[2] / "net" / "certificate.pem"


class Source:
    """Gives one token after the other, or raises the error that is set."""

    def __init__(self, *tokens):
        self.tokens = list(tokens)
        self.asked = 0

    def __call__(self):
        self.asked += 1
        given = self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
        if isinstance(given, Exception):
            raise given
        return given


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def grant(clock):
    return lambda source: Grant(source, now=lambda: clock[0])


async def test_a_token_is_fetched_once_for_everybody(grant):
    source = Source(Token("t", 5000.0))
    found = grant(source)

    tokens = await asyncio.gather(*(found.token() for _ in range(20)))

    assert set(tokens) == {"t"}
    assert source.asked == 1


async def test_and_again_before_it_ends(grant, clock):
    source = Source(Token("1", 4600.0), Token("2", 8200.0))
    found = grant(source)
    await found.token()

    clock[0] = 4600 - 226
    assert await found.token() == "1"
    clock[0] = 4600 - 224
    assert await found.token() == "2"
    assert source.asked == 2


async def test_a_token_that_holds_is_used_if_there_is_no_other(grant, clock):
    source = Source(Token("1", 4600.0), UnavailableError("out"), Token("2", 8200.0))
    found = grant(source)
    await found.token()

    clock[0] = 4500
    assert await found.token() == "1"
    assert await found.token() == "1"
    assert source.asked == 2
    clock[0] = 4511
    assert await found.token() == "2"


async def test_but_not_for_longer(grant, clock):
    found = grant(Source(Token("1", 4600.0), UnavailableError("out")))
    await found.token()
    clock[0] = 4600

    with pytest.raises(UnavailableError, match="out"):
        await found.token()


async def test_tokens_that_never_hold_long_are_used_all_the_same(grant, clock):
    source = Source(Token("1", 1100.0), Token("2", 1200.0))
    found = grant(source)

    assert [await found.token() for _ in range(3)] == ["1", "1", "1"]
    clock[0] = 1011
    assert await found.token() == "2"


async def test_an_absent_token_is_asked_for_once(grant, clock):
    source = Source(None)
    found = grant(source)

    assert await found.token() is None
    clock[0] += 10**6
    assert await found.token() is None
    assert source.asked == 1
    assert not await found.renew(clock[0])


async def test_of_many_refusals_one_fetches_another_token(grant, clock):
    source = Source(Token("1", 9000.0), Token("2", 9000.0))
    found = grant(source)
    await found.token()
    clock[0] += 5

    assert all(await asyncio.gather(*(found.renew(1002.0) for _ in range(8))))

    assert source.asked == 2
    assert await found.token() == "2"


async def test_what_was_asked_with_an_older_token_needs_no_other(grant, clock):
    source = Source(Token("1", 9000.0), Token("2", 9000.0))
    found = grant(source)
    clock[0] = 2000
    await found.token()

    assert await found.renew(1990.0)

    assert source.asked == 1


def request():
    return HttpRequest("GET", "http://h/a", {"Accept": "*/*"}, key="a")


async def test_signs_with_the_token(grant):
    signer = GcsSigner(grant(Source(Token("t", 9000.0))))

    assert await signer.sign(request(), 0.0) == {"Accept": "*/*", "Authorization": "Bearer t"}
    assert not signer.anonymous
    assert await signer.refresh(HttpResponse(401, {}, time=1000.0))


async def test_signs_with_nothing_if_there_is_nothing(grant):
    signer = GcsSigner(grant(Source(None)))

    assert await signer.sign(request(), 0.0) == {"Accept": "*/*"}
    assert signer.anonymous
    assert not await signer.refresh(HttpResponse(401, {}, time=1000.0))


def test_a_token_is_not_printed():
    assert SECRET not in repr(Token(SECRET, 5.0))
    assert SECRET not in repr(Grant(lambda: Token(SECRET)))


def fetched(grant):
    return asyncio.run(grant.token())


def test_the_environment_may_give_a_token(monkeypatch):
    monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", SECRET)

    assert fetched(Grant.found(nearby=True)) == SECRET
    assert Grant.found(nearby=True) is Grant.found(nearby=True)

    monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", "other")
    assert fetched(Grant.found(nearby=True)) == "other"


@pytest.mark.parametrize("nearby", [False, True])
def test_where_nothing_is_found_there_is_no_token(nearby):
    assert fetched(Grant.found(nearby=nearby)) is None


def key_file(tmp_path, token_uri):
    """What Google gives to a program: an account and its key."""
    pem = CERTIFICATE.read_text()
    said = {
        "type": "service_account",
        "client_email": "program@p.iam.gserviceaccount.com",
        "private_key_id": "1",
        "private_key": pem[pem.index("-----BEGIN PRIVATE KEY") :],
        "project_id": "p",
        "token_uri": token_uri,
    }
    path = tmp_path / "application_default_credentials.json"
    path.write_text(json.dumps(said))
    return path


@pytest.fixture
def token_server():
    """A server that gives tokens away: `token-0`, `token-1`, ..."""
    count = iter(range(100))

    def give(_):
        said = {"access_token": f"token-{next(count)}", "expires_in": 3600, "token_type": "Bearer"}
        return Reply(200, json.dumps(said).encode(), {"Content-Type": "application/json"})

    server = FaultServer(give)
    with server.running():
        yield server


@pytest.mark.parametrize("where", ["variable", "gcloud"])
def test_credentials_of_a_file(monkeypatch, tmp_path, token_server, where):
    path = key_file(tmp_path, token_server.url + "/token")
    if where == "variable":
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    else:
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    grant = Grant.found(nearby=True)

    assert fetched(grant) == "token-0"
    assert fetched(grant) == "token-0"
    assert b"jwt-bearer" in token_server.requests[0].body
    assert asyncio.run(grant.renew(time.time() + 1))
    assert fetched(grant) == "token-1"


def test_the_time_that_a_token_holds_is_read_as_utc(monkeypatch, tmp_path, token_server):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        path = key_file(tmp_path, token_server.url + "/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        grant = Grant.found(nearby=True)
        fetched(grant)
        assert grant._token is not None
        assert grant._token.until == pytest.approx(time.time() + 3600, abs=5)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_refused_credentials_are_an_error_without_secrets(monkeypatch, tmp_path, token_server):
    monkeypatch.setenv(
        "GOOGLE_APPLICATION_CREDENTIALS", str(key_file(tmp_path, token_server.url + "/token"))
    )
    body = b'{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}'
    token_server.plan = [status(400, {"Content-Type": "application/json"}, body)]

    with pytest.raises(PermissionDeniedError, match=r"invalid_grant.*gcloud auth") as error:
        fetched(Grant.found(nearby=True))

    assert "PRIVATE" not in str(error.value)


def test_a_file_that_is_not_there_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))

    with pytest.raises(PermissionDeniedError, match=r"none\.json"):
        fetched(Grant.found(nearby=True))


def test_no_server_to_ask_is_an_error_that_may_pass(monkeypatch, tmp_path):
    path = key_file(tmp_path, "http://127.0.0.1:9/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)  # the library's own patience

    with pytest.raises(UnavailableError, match="no token could be fetched"):
        fetched(Grant.found(nearby=True))


def test_without_the_library_a_public_bucket_can_be_read(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "google.auth.exceptions", None)

    assert fetched(Grant.found(nearby=False)) is None

    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file(tmp_path, "http://x/")))
    with pytest.raises(PermissionDeniedError, match=r"tensorstore-py\[gcs\]"):
        fetched(Grant.found(nearby=False))


class TestStore:
    @pytest.fixture
    def server(self, server):
        server.api.tokens = {SECRET}
        return server

    def test_is_let_in_with_a_token(self, server, kv, monkeypatch):
        monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", SECRET)
        store = kv()

        store["a"] = b"1"

        assert store["a"] == b"1"
        assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {SECRET}"}

    def test_a_refused_token_is_renewed_once(self, server, kv, monkeypatch):
        source = Source(Token("old", 1e12), Token(SECRET, 1e12))
        monkeypatch.setattr(Grant, "found", lambda **_: Grant(source))
        store = kv()
        server.put("a", b"1")

        futures = [store.read("a") for _ in range(8)]

        assert {future.result().value for future in futures} == {b"1"}
        assert source.asked == 2

    def test_a_token_that_stays_refused_is_reported(self, server, kv, monkeypatch):
        monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", "wrong-s3cret")

        with pytest.raises(PermissionDeniedError, match=r"gs://bucket/a.*Invalid Cred") as error:
            kv().read("a").result()

        assert "wrong-s3cret" not in str(error.value)
        assert len(server.requests) == 2

    def test_without_an_account_the_error_names_the_login_command(self, kv):
        with pytest.raises(PermissionDeniedError, match="gcloud auth application-default login"):
            kv().read("a").result()

    def test_an_emulator_gets_no_credentials(self, server, kv, monkeypatch):
        server.api.tokens = None
        monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", SECRET)
        monkeypatch.delenv("TENSORSTORE_GCS_HTTP_URL")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)

        kv()["a"] = b"1"

        assert all("authorization" not in each.headers for each in server.requests)

    def test_a_token_is_nowhere_to_be_seen(self, server, kv, monkeypatch):
        monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", SECRET)
        store = kv()
        store["a"] = b"1"

        for text in (
            repr(store),
            repr(store.store),
            repr(store.spec()),
            str(store.spec().to_json()),
        ):
            assert SECRET not in text


def test_nothing_of_google_is_loaded_by_opening():
    loaded = {name for name in sys.modules if name.startswith("google.auth")}

    ts.KvStore.open("gs://bucket/").result()

    assert {name for name in sys.modules if name.startswith("google.auth")} == loaded
