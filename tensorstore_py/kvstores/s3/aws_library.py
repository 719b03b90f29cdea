"""AWS's library, as far as it finds credentials: the one file that loads it.

It comes with the extra `s3` and knows what AWS's tools know: profiles, roles to assume, single
sign-on, processes, web identities, containers and machines.
"""

from __future__ import annotations

import os
from typing import Protocol, cast

from tensorstore_py.errors import UnsupportedError
from tensorstore_py.kvstores.s3.resources import AwsCredentials
from tensorstore_py.plugin import offload

__all__ = ["FrozenKeys", "HeldCredentials", "library_credentials"]

_ENDPOINT = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_TOKEN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - the name of a variable


class FrozenKeys(Protocol):
    """Keys at one moment."""

    @property
    def access_key(self) -> str:
        """Which key."""

    @property
    def secret_key(self) -> str:
        """The secret."""

    @property
    def token(self) -> str | None:
        """Of temporary keys."""


class HeldCredentials(Protocol):
    """Credentials as the library holds them."""

    async def get_frozen_credentials(self) -> FrozenKeys:
        """The keys as they are now; renewed first if they are about to expire."""


async def library_credentials(model: AwsCredentials, region: str = "") -> HeldCredentials | None:
    """What the library finds; None if there is nothing.

    Args:
        model: of type `"default"`, `"profile"`, `"imds"` or `"ecs"`.
        region: where to ask for a role, unless the environment or the profile says it.

    Raises:
        UnsupportedError: the library is not installed.
        Exception: whatever the library raises about what it found.
    """
    await offload(False, _load)  # a third of a second, which would hold the loop up
    if model.type == "ecs":
        return await _of_container(model)
    return await _of_session(model, region)


def _load() -> None:
    try:
        import aiobotocore.session  # noqa: F401, PLC0415 - only who needs it pays for it
    except ImportError:
        raise UnsupportedError(
            "to look for credentials for AWS takes the library aiobotocore: pip install "
            "'tensorstore-py[s3]'; or say in \"aws_credentials\" where they come from without it: "
            '{"type": "anonymous"}, "environment" or "static"'
        ) from None


async def _of_session(model: AwsCredentials, region: str) -> HeldCredentials | None:
    from aiobotocore.credentials import create_credential_resolver  # noqa: PLC0415 - as above
    from aiobotocore.session import AioSession  # noqa: PLC0415 - as above

    session = AioSession(profile=model.profile)
    for name in ("config_file", "credentials_file"):
        path = getattr(model, name)
        if path is not None:
            session.set_config_variable(name, path)
    if region and session.get_config_variable("region") is None:
        # Roles are asked for in a region, which files for other tools may leave to the command.
        session.set_config_variable("region", region)
    resolver = create_credential_resolver(session)
    if model.type == "imds":
        return cast(HeldCredentials | None, await resolver.get_provider("iam-role").load())
    if model.type == "profile":
        for name in ("env", "container-role", "iam-role"):
            if any(name == provider.METHOD for provider in resolver.providers):
                resolver.remove(name)
    return cast(HeldCredentials | None, await resolver.load_credentials())


async def _of_container(model: AwsCredentials) -> HeldCredentials | None:
    from aiobotocore.credentials import AioContainerProvider  # noqa: PLC0415 - as above

    environ = dict(os.environ)
    if model.endpoint is not None:
        environ[_ENDPOINT] = model.endpoint
        environ.pop("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", None)
    if model.auth_token_file is not None:
        environ[_TOKEN_FILE] = model.auth_token_file
    return cast(HeldCredentials | None, await AioContainerProvider(environ=environ).load())
