import asyncio
import json

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import AwsCredentials, credentials
from tensorstore_py.kvstores.s3.credentials import KeySource, shared_source
from tensorstore_py.kvstores.s3.signature import AwsKeys
from tensorstore_py.testing import Reply

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


async def test_who_asks_at_the_same_time_looks_once(serve):
    server = serve(lambda _: Reply(200, json.dumps(issued("AKIC")).encode()))
    found = source(type="ecs", endpoint=f"{server.url}/keys")

    keys = await asyncio.gather(*[found.keys() for _ in range(8)])

    assert set(keys) == {AwsKeys("AKIC", SECRET, "t")}
    assert len(server.requests) == 1


async def test_troubles_are_told_without_what_was_read(monkeypatch):
    async def fail(model):
        raise KeyError(SECRET, model)

    monkeypatch.setattr(credentials, "library_credentials", fail)

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
