import sys
from urllib.parse import parse_qs

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import AwsCredentials
from tensorstore_py.kvstores.s3.aws_library import library_credentials
from tensorstore_py.testing import Reply
from tests.kvstores.s3.fake_s3 import FakeS3


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
