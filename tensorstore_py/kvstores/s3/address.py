"""Where a bucket is: its URL, the header `Host`, and the region that requests are signed for.

With an endpoint, the bucket is the first part of the path, or the endpoint says it by itself. At
AWS the bucket is part of the host name, where its name allows that.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple
from urllib.parse import quote_from_bytes

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.kvstore import check_authority

__all__ = [
    "DEFAULT_REGION",
    "Address",
    "aws_address",
    "encode",
    "endpoint_address",
    "environment_endpoint",
]

DEFAULT_REGION: Final = "us-east-1"
#: Names that can be part of a host name, and of a certificate's pattern.
_HOST_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]\Z", re.ASCII)
_AWS_HOST: Final = re.compile(r"\.amazonaws\.com(\.cn)?\Z")
_AWS_REGION: Final = re.compile(r"[.-](?:fips-|dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws")
#: What most keys are made of.
_PLAIN: Final = re.compile(r"[A-Za-z0-9._~/-]*\Z", re.ASCII)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class Address(NamedTuple):
    """Where a bucket is.

    Attributes:
        base: URL of the bucket, without a slash at the end; keys follow after one.
        region: what requests are signed for.
        host: what to send as `Host`; None for the URL's.
        is_aws: whether this is AWS itself, of which it is known what it can do.
    """

    base: str
    region: str
    host: str | None = None
    is_aws: bool = False

    def url(self, key: str) -> str:
        """The URL of a whole key.

        Example:
            >>> Address("http://localhost:9000/bucket", "us-east-1").url("a b/c")
            'http://localhost:9000/bucket/a%20b/c'
        """
        return f"{self.base}/{encode(key)}"


def encode(text: str, kept: str = "/") -> str:
    """Percent-encode as AWS's signature wants it, so that it is encoded once for both.

    Example:
        >>> encode("a+b/c~"), encode("a+b/c", kept="")
        ('a%2Bb/c~', 'a%2Bb%2Fc')
    """
    if kept == "/" and _PLAIN.match(text):
        return text
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), safe=f"-_.~{kept}")


def aws_address(bucket: str, region: str) -> Address:
    """A bucket at AWS.

    Example:
        >>> aws_address("data", "eu-west-1").base
        'https://data.s3.eu-west-1.amazonaws.com'
        >>> aws_address("my.data", "cn-north-1").base
        'https://s3.cn-north-1.amazonaws.com.cn/my.data'
    """
    host = f"s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    if _HOST_LABEL.match(bucket):
        return Address(f"https://{bucket}.{host}", region, is_aws=True)
    return Address(f"https://{host}/{bucket}", region, is_aws=True)


def environment_endpoint() -> tuple[str, str]:
    """The endpoint that the environment names, as for AWS's tools, after the variable's name.

    Both are `""` if there is none.
    """
    environ = os.environ
    if environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            found = environ.get(name, "")
            if found:
                return name, found
    return "", ""


def endpoint_address(endpoint: str, bucket: str, region: str, host: str | None) -> Address:
    """A bucket at an endpoint.

    Raises:
        SpecError: the endpoint is no URL of an HTTP server.

    Example:
        >>> endpoint_address("http://localhost:9000/", "data", "", None)
        Address(base='http://localhost:9000/data', region='us-east-1', host=None, is_aws=False)
    """
    scheme, colon, rest = endpoint.partition("://")
    if not colon or scheme not in ("http", "https"):
        raise SpecError(
            f'Endpoint {endpoint} has invalid scheme {scheme if colon else ""}. Should be "http" '
            f'or "https", as in "http://localhost:9000"',
            ("endpoint",),
        )
    for mark, name in (("?", "Query"), ("#", "Fragment")):
        if mark in rest:
            raise SpecError(f"{name} in endpoint unsupported: {endpoint}", ("endpoint",))
    authority, _, path = rest.partition("/")
    try:
        check_authority(f"{scheme}://{authority}")
    except ValueError as error:
        raise SpecError(f"this is no URL: {error}", ("endpoint",)) from None
    if "@" in authority:
        raise SpecError(
            "an endpoint is scheme, host and port; credentials go into the resource "
            '"aws_credentials"',
            ("endpoint",),
        )
    authority = authority.lower().removesuffix(_DEFAULT_PORTS[scheme])
    path = path.rstrip("/")
    parts = [f"{scheme}://{authority}", *([path] if path else []), *([bucket] if bucket else [])]
    stated = _AWS_REGION.search(authority)
    region = region or (stated[1] if stated else DEFAULT_REGION)
    is_aws = _AWS_HOST.search(authority.partition(":")[0]) is not None
    return Address("/".join(parts), region, host, is_aws)
