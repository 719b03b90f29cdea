"""Context resources of the S3 store: limits, retries, and where credentials come from.

JSON in, live limits out; nothing here opens a connection, reads a credential or needs AWS's
libraries. The one invariant: a secret goes in and is never printed: not in JSON, not in a repr,
not in an error, not in a pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from tensorstore_py.errors import SpecError, did_you_mean
from tensorstore_py.plugin.http import RateModel, RequestConcurrencyModel, RetriesModel
from tensorstore_py.plugin.kvstore import ResourceModel, context_resource, describe

__all__ = ["AwsCredentials", "S3RateLimiter", "S3RequestConcurrency", "S3RequestRetries"]

CredentialsType = Literal["default", "anonymous", "environment", "imds", "profile", "ecs", "static"]

#: Which members go with which type.
_MEMBERS: dict[str, tuple[str, ...]] = {
    "default": ("profile",),
    "anonymous": (),
    "environment": (),
    "imds": (),
    "profile": ("profile", "config_file", "credentials_file"),
    "ecs": ("endpoint", "auth_token_file"),
    "static": ("access_key_id", "secret_access_key", "session_token"),
}
_SECRETS = ("secret_access_key", "session_token")


@context_resource("s3_request_concurrency")
class S3RequestConcurrency(RequestConcurrencyModel):
    """How many requests to S3 run at a time.

    Attributes:
        limit: a number for this resource alone; `"shared"` is 32 for the whole process, or what
            the environment variable `TENSORSTORE_S3_REQUEST_CONCURRENCY` says.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    variable: ClassVar[str | None] = "TENSORSTORE_S3_REQUEST_CONCURRENCY"


@context_resource("s3_request_retries")
class S3RequestRetries(RetriesModel):
    """How to go on after a request to S3 failed in a way that may pass."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()


@context_resource("experimental_s3_rate_limiter")
class S3RateLimiter(RateModel):
    """How many requests a second S3 is asked at most."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    variable: ClassVar[str | None] = "TENSORSTORE_S3_RATE_LIMITER_DOUBLING_TIME"


@context_resource("aws_credentials")
class AwsCredentials(ResourceModel):
    """Where credentials for AWS come from.

    Attributes:
        type: `"default"`: the usual places, one after the other; `"anonymous"`: requests are not
            signed; `"environment"`: variables `AWS_ACCESS_KEY_ID` and so on; `"profile"`: AWS's
            configuration files; `"imds"`, `"ecs"`: the machine's or container's own service;
            `"static"`: given here.
        profile: a profile's name; of types `"default"` and `"profile"`.
        config_file: path of the configuration file; of type `"profile"`.
        credentials_file: path of the credentials file; of type `"profile"`.
        endpoint: URL of the credentials service; of type `"ecs"`.
        auth_token_file: path of the file with its token; of type `"ecs"`.
        access_key_id: which key; of type `"static"`.
        secret_access_key: the secret; of type `"static"`, never printed.
        session_token: for temporary credentials; of type `"static"`, never printed.

    Example:
        >>> AwsCredentials.parse({"type": "profile", "profile": "lab"}).to_json()
        {'profile': 'lab', 'type': 'profile'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "type", "access_key_id", "secret_access_key", "session_token",
    })  # fmt: skip
    # The others run programs, read files, or choose among the keys of this machine.
    data_values: ClassVar[Mapping[str, frozenset[object]]] = {
        "type": frozenset({"anonymous", "static"})
    }

    config_only: ClassVar[bool] = True

    type: CredentialsType
    profile: str | None = None
    config_file: str | None = None
    credentials_file: str | None = None
    endpoint: str | None = None
    auth_token_file: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None

    @classmethod
    def default(cls) -> Self:
        return cls(type="default")

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if isinstance(json, dict):
            _check(json)
        return super().parse_frozen(json)

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        for name in _SECRETS:
            json.pop(name, None)
        json["type"] = self.type

    def __repr__(self) -> str:
        return f"AwsCredentials({self.to_json()})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        # Who unpickles credentials has to have the secret; the pickle must not.
        return _without_secrets, (self.to_json(),)


def _check(json: dict[str, object]) -> None:
    """Errors that show no value: it may be a secret in the wrong place.

    Raises:
        SpecError: no or an unknown type, a member of another type, or one that is no text.
    """
    kind = json.get("type")
    if kind is None:
        raise SpecError(f"this member is required; one of {', '.join(_MEMBERS)}", ("type",))
    if not isinstance(kind, str) or kind not in _MEMBERS:
        hint = did_you_mean(str(kind), _MEMBERS)
        raise SpecError(f"{describe(kind)} is no type of credentials{hint}", ("type",))
    allowed = _MEMBERS[kind]
    for name, value in json.items():
        if name == "type" or name.startswith("$"):
            continue
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            raise SpecError(f'no such member of credentials of type "{kind}"{hint}', (name,))
        if not isinstance(value, str):
            raise SpecError("expected a string, but found something else", (name,))
    for name in ("access_key_id", "secret_access_key"):
        if kind == "static" and not json.get(name):
            raise SpecError('this member is required by type "static"', (name,))


def _without_secrets(json: dict[str, object]) -> AwsCredentials:
    """What a pickle gives back: static credentials have become those of the environment."""
    if json.get("type") == "static":
        return AwsCredentials(type="environment")
    return AwsCredentials.parse(json)
