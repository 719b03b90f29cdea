import asyncio
import hashlib
import json
import pickle
import sys
import time
from urllib.parse import parse_qs

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import AwsCredentials, signing
from tensorstore_py.kvstores.s3.signing import (
    EMPTY_HASH,
    UNSIGNED,
    AwsKeys,
    KeySource,
    S3Signer,
    checksum_header,
    library_credentials,
    shared_source,
    signed_headers,
)
from tensorstore_py.plugin.http import HttpRequest, HttpResponse
from tensorstore_py.testing import Reply
from tests.kvstores.s3.conftest import KEYS
from tests.kvstores.s3.fake_s3 import FakeS3, error

# The examples of AWS's documentation, "Signature Calculations for the Authorization Header".
EXAMPLE = AwsKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOON = 1369353600.0
HOST = "https://examplebucket.s3.amazonaws.com"
PUBLISHED = {
    "GET object": (
        "GET",
        "/test.txt",
        {"Range": "bytes=0-9"},
        EMPTY_HASH,
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    ),
    "PUT object": (
        "PUT",
        "/test%24file.text",
        {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    ),
    "GET bucket lifecycle": (
        "GET",
        "/?lifecycle",
        {},
        EMPTY_HASH,
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    ),
    "list objects": (
        "GET",
        "/?max-keys=2&prefix=J",
        {},
        EMPTY_HASH,
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_examples_that_aws_published(name):
    method, target, headers, payload, proof = PUBLISHED[name]

    sent = signed_headers(method, HOST + target, headers, payload, EXAMPLE, "us-east-1", NOON)

    assert sent["Authorization"].endswith(f"Signature={proof}")
    assert headers.items() <= sent.items()


@pytest.mark.parametrize("token", [None, "a-session-token"])
@pytest.mark.parametrize(
    "url",
    [
        "https://b.s3.eu-west-1.amazonaws.com/a%20b/c~%2B%25",
        "http://localhost:9000/bucket//x/../%E6%97%A5",
        "http://localhost:9000/bucket/?delete",
        "http://localhost:9000/bucket/?list-type=2&prefix=a%2Fb&continuation-token=x%3D%3D",
    ],
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-amz-meta-note": "two  blanks ", "Content-MD5": "abc==", "If-Match": '"5"'},
        {"Host": "another.example:8080"},
    ],
)
def test_botocore_signs_alike(monkeypatch, url, headers, token):
    keys = AwsKeys("AKIA", "secret", token)
    theirs = AWSRequest("PUT", url, headers=dict(headers), data=b"")
    signer = S3SigV4Auth(Credentials("AKIA", "secret", token), "s3", "eu-west-1")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    signer.add_auth(theirs)
    stamp = theirs.headers["X-Amz-Date"]

    ours = signed_headers(
        "PUT", url, headers, theirs.headers["X-Amz-Content-SHA256"], keys, "eu-west-1", now
    )

    assert ours["x-amz-date"] == stamp
    assert ours["Authorization"] == theirs.headers["Authorization"]


def test_what_proxies_change_is_not_signed():
    headers = {"User-Agent": "x", "Accept-Encoding": "identity"}

    plain, extended = (
        signed_headers("GET", HOST + "/a", given, UNSIGNED, EXAMPLE, "us-east-1", NOON)
        for given in ({}, headers)
    )

    assert plain["Authorization"] == extended["Authorization"]


def test_secrets_are_neither_shown_nor_pickled():
    keys = AwsKeys("AKIA", "do-not-print", "nor-me")

    assert repr(keys) == str(keys) == "AwsKeys(...)"
    with pytest.raises(TypeError, match="keys are not pickled"):
        pickle.dumps(keys)


def test_equal_keys_are_the_same_keys():
    assert AwsKeys("a", "b") == AwsKeys("a", "b", "")
    assert len({AwsKeys("a", "b"), AwsKeys("a", "b"), AwsKeys("a", "c")}) == 2


async def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiobotocore.session", None)

    with pytest.raises(ts.UnsupportedError, match=r"pip install 'tensorstore-py\[s3\]'"):
        await library_credentials(AwsCredentials(type="default"))


async def test_roles_that_a_profile_names_are_the_librarys(tmp_path):
    path = tmp_path / "config"
    keys = '{"Version": 1, "AccessKeyId": "AKIP", "SecretAccessKey": "s"}'
    path.write_text(f"[profile lab]\ncredential_process = echo '{keys}'\n")
    model = AwsCredentials(type="profile", profile="lab", config_file=str(path))

    held = await library_credentials(model)

    assert held is not None
    assert (await held.get_frozen_credentials()).access_key == "AKIP"


async def test_a_profile_does_not_fall_back_to_the_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/keys")
    path = tmp_path / "config"
    path.write_text("[profile lab]\nregion = eu-west-1\n")

    model = AwsCredentials(type="profile", profile="lab", config_file=str(path))

    assert await library_credentials(model) is None


ROLE = """[profile lab]
role_arn = arn:aws:iam::123456789012:role/reader
source_profile = me
[profile me]
aws_access_key_id = AKIM
aws_secret_access_key = s
"""


@pytest.fixture
def sts(serve, monkeypatch):
    """AWS's service that gives keys for roles."""
    keys = "<AccessKeyId>AKIR</AccessKeyId><SecretAccessKey>r</SecretAccessKey>"
    until = "<SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
    found = f"<AssumeRoleResult><Credentials>{keys}{until}</Credentials></AssumeRoleResult>"
    body = f"<AssumeRoleResponse>{found}</AssumeRoleResponse>".encode()
    server = serve(lambda _: Reply(200, body, {"Content-Type": "text/xml"}))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
    return server


@pytest.mark.parametrize(
    ("said", "region"), [("", "eu-west-3"), ("region = us-east-2\n", "us-east-2")]
)
async def test_a_role_is_asked_for_in_the_profiles_region_or_the_buckets(
    tmp_path, sts, said, region
):
    path = tmp_path / "config"
    path.write_text(ROLE.replace("[profile me]", f"{said}[profile me]"))
    model = AwsCredentials(type="profile", profile="lab", config_file=str(path))

    held = await library_credentials(model, "eu-west-3")

    assert held is not None
    assert (await held.get_frozen_credentials()).access_key == "AKIR"
    (request,) = sts.requests
    assert f"/{region}/sts/" in request.headers["authorization"]
    assert parse_qs(request.body.decode())["Action"] == ["AssumeRole"]


def test_a_store_asks_for_a_role_in_its_own_region(tmp_path, sts, serve, open_store):
    fake = FakeS3()
    fake.put("a", b"1")
    path = tmp_path / "config"
    path.write_text(ROLE)
    credentials = {"type": "profile", "profile": "lab", "config_file": str(path)}
    server = serve(fake.handle)

    store = open_store(server.url, aws_region="eu-west-3", aws_credentials=credentials)

    assert store["a"] == b"1"
    assert "AKIR" in server.requests[0].headers["authorization"]
    assert "/eu-west-3/sts/" in sts.requests[0].headers["authorization"]


SECRET = "do-not-print-me"


def source(**members):
    return KeySource(AwsCredentials.parse(members))


def in_environment(monkeypatch, name="AKIA", token=None):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", name)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    if token is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)


async def test_static():
    found = source(type="static", access_key_id="AKIA", secret_access_key=SECRET, session_token="t")

    assert await found.keys() == AwsKeys("AKIA", SECRET, "t")
    assert not await found.renew(await found.keys())
    assert SECRET not in repr(found)


async def test_anonymous():
    found = source(type="anonymous")

    assert await found.keys() is None
    assert not await found.renew(None)


@pytest.mark.parametrize("kind", ["environment", "default"])
async def test_the_environment(monkeypatch, kind):
    in_environment(monkeypatch, token="t")

    assert await source(type=kind).keys() == AwsKeys("AKIA", SECRET, "t")


async def test_the_environment_must_have_them():
    with pytest.raises(ts.PermissionDeniedError, match="AWS_ACCESS_KEY_ID"):
        await source(type="environment").keys()


async def test_the_environment_is_looked_at_again(monkeypatch):
    in_environment(monkeypatch)
    found = source(type="environment")
    before = await found.keys()
    assert not await found.renew(before), "nothing has changed"
    in_environment(monkeypatch, "AKIB")

    assert await found.renew(before)

    assert await found.keys() == AwsKeys("AKIB", SECRET)
    assert await found.renew(before), "others renewed them meanwhile"


def write_profiles(folder):
    path = folder / "somewhere"
    path.write_text(
        "[default]\naws_access_key_id = AKID\naws_secret_access_key = d\n"
        f"[lab]\naws_access_key_id = AKIL\naws_secret_access_key = {SECRET}\n"
        "aws_session_token = t\n"
    )
    return path


async def test_a_profile_of_a_file(monkeypatch, tmp_path):
    in_environment(monkeypatch)
    path = str(write_profiles(tmp_path))

    found = source(type="profile", profile="lab", credentials_file=path)

    assert await found.keys() == AwsKeys("AKIL", SECRET, "t")


@pytest.mark.parametrize(("profile", "name"), [("lab", "AKIL"), (None, "AKID")])
async def test_the_usual_files(monkeypatch, tmp_path, profile, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(variable)
    (tmp_path / ".aws").mkdir()
    write_profiles(tmp_path).rename(tmp_path / ".aws" / "credentials")
    members = {} if profile is None else {"profile": profile}

    keys = await source(type="default", **members).keys()

    assert keys is not None
    assert keys.access_key_id == name


async def test_a_profile_must_be_there(tmp_path):
    path = str(write_profiles(tmp_path))

    with pytest.raises(ts.PermissionDeniedError, match="aws_credentials") as caught:
        await source(type="profile", profile="nobody", credentials_file=path).keys()

    assert SECRET not in str(caught.value)


async def test_nothing_found_means_anonymous_requests_and_is_believed_for_a_while(monkeypatch):
    found = source(type="default")

    assert await found.keys() is None
    in_environment(monkeypatch)
    assert await found.keys() is None
    assert await found.renew(None)
    assert await found.keys() == AwsKeys("AKIA", SECRET)


def issued(name):
    return {
        "AccessKeyId": name,
        "SecretAccessKey": SECRET,
        "Token": "t",
        "Expiration": "2999-01-01T00:00:00Z",
        "Code": "Success",
    }


async def test_a_container_asks_its_service_with_its_token(serve, tmp_path):
    (tmp_path / "token").write_text("let-me-in")
    server = serve(lambda _: Reply(200, json.dumps(issued("AKIC")).encode()))

    found = source(
        type="ecs", endpoint=f"{server.url}/keys", auth_token_file=str(tmp_path / "token")
    )

    assert await found.keys() == AwsKeys("AKIC", SECRET, "t")
    assert server.requests[0].headers["authorization"] == "let-me-in"


async def test_a_machine_asks_its_service(serve, monkeypatch):
    def handle(request):
        if request.method == "PUT":
            return Reply(200, b"session")
        if request.target.endswith("security-credentials/"):
            return Reply(200, b"role")
        return Reply(200, json.dumps(issued("AKIM")).encode())

    server = serve(handle)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url)

    assert await source(type="imds").keys() == AwsKeys("AKIM", SECRET, "t")


@pytest.mark.parametrize("kind", ["ecs", "imds"])
async def test_a_service_that_is_not_there_is_named(kind):
    with pytest.raises(ts.PermissionDeniedError, match=f'of the type "{kind}"'):
        await source(type=kind).keys()


async def test_lookups_at_the_same_time_are_one(serve):
    server = serve(lambda _: Reply(200, json.dumps(issued("AKIC")).encode()))
    found = source(type="ecs", endpoint=f"{server.url}/keys")

    keys = await asyncio.gather(*[found.keys() for _ in range(8)])

    assert set(keys) == {AwsKeys("AKIC", SECRET, "t")}
    assert len(server.requests) == 1


async def test_errors_are_reported_without_what_was_read(monkeypatch):
    async def fail(model):
        raise KeyError(SECRET, model)

    monkeypatch.setattr(signing, "library_credentials", fail)

    with pytest.raises(ts.PermissionDeniedError, match="could not be had") as caught:
        await source(type="profile").keys()

    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_what_is_found_is_shared_as_long_as_the_environment_stays(monkeypatch):
    model = AwsCredentials.default()
    first = shared_source(model)

    assert shared_source(AwsCredentials.default()) is first
    assert shared_source(AwsCredentials(type="anonymous")) is not first
    in_environment(monkeypatch)
    assert shared_source(model) is not first


LARGE = bytes(2**20)


def refusal(code, more="", time=0.0):
    reply = error(400, code, more)
    return HttpResponse(400, reply.headers, reply.body, time=time)


@pytest.fixture
def signer():
    return S3Signer(AwsCredentials.parse(KEYS), "us-east-1")


@pytest.mark.parametrize("body", [b"abc", LARGE], ids=len)
async def test_bodies_are_signed_over_plain_http(signer, body):
    for sent in (body, (body[:2], body[2:])):
        request = HttpRequest("PUT", "http://h/b/a", {}, sent)

        headers = await signer.sign(request, 0)

        assert headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()


async def test_bodies_over_tls_are_not_hashed(signer):
    headers = await signer.sign(HttpRequest("PUT", "https://h/b/a", {}, b"abc"), 0)

    assert headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


async def test_anonymous_requests_stay_as_they_are():
    request = HttpRequest("GET", "http://h/b/a", {"Range": "bytes=0-1"})

    assert await S3Signer(AwsCredentials(type="anonymous"), "x").sign(request, 0) == request.headers


async def test_the_region_is_corrected_by_what_the_service_says(signer):
    malformed = refusal("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")

    assert await signer.refresh(malformed)
    assert signer.region == "eu-west-1"
    headers = await signer.sign(HttpRequest("GET", "http://h/b/a", {}), 0)
    assert "/eu-west-1/s3/" in headers["Authorization"]
    assert not await signer.refresh(malformed), "that was it already"


async def test_damage_on_the_way_is_no_fault_of_the_keys(signer):
    assert await signer.refresh(refusal("BadDigest"))


async def test_keys_that_expired_are_looked_for_once_for_all(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    signer = S3Signer(AwsCredentials(type="environment"), "x")
    request = HttpRequest("GET", "http://h/b/a", {})
    await signer.sign(request, 0)
    assert not await signer.refresh(refusal("ExpiredToken", time=1.0))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIB")

    assert await signer.refresh(refusal("ExpiredToken", time=1.0))
    assert "Credential=AKIB/" in (await signer.sign(request, 0))["Authorization"]
    assert await signer.refresh(refusal("ExpiredToken", time=1.0)), "asked before that"
    assert not await signer.refresh(refusal("ExpiredToken", time=2e12))


async def test_large_bodies_are_summed_up_off_the_loop():
    assert await checksum_header(b"123456789") == {"x-amz-checksum-crc32c": "4waSgw=="}
    assert (await checksum_header(LARGE)).keys() == {"x-amz-checksum-crc32c"}
