import pickle
import time

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tensorstore_py.kvstores.s3.signature import EMPTY_HASH, UNSIGNED, AwsKeys, signed_headers

# The examples of AWS's documentation, "Signature Calculations for the Authorization Header".
KEYS = AwsKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
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

    sent = signed_headers(method, HOST + target, headers, payload, KEYS, "us-east-1", NOON)

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
        signed_headers("GET", HOST + "/a", given, UNSIGNED, KEYS, "us-east-1", NOON)
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
