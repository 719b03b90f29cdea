import sys

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import AwsCredentials
from tensorstore_py.kvstores.s3.aws_library import library_credentials


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
