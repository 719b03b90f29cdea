import email.policy
import json
from array import array
from email.parser import BytesParser

import pytest

from tensorstore_py.kvstores.gcs.uploads import (
    MARK,
    checksum_of,
    in_one_piece,
    is_older,
    mark_in,
    new_mark,
    replaces,
    resource,
    stored_until,
)


@pytest.mark.parametrize(
    "value", [b"", b"abc", b"\r\n--x--\r\n", bytes(range(256)), memoryview(b"abc")]
)
def test_one_body_says_what_it_is_and_is_it(value):
    headers, parts = in_one_piece(resource("a/é", "4waSgw==", "5-x"), value)

    body = b"".join(parts)
    head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
    message = BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    said, data = message.iter_parts()
    assert json.loads(str(said.get_payload())) == {
        "name": "a/é",
        "crc32c": "4waSgw==",
        "metadata": {MARK: "5-x"},
    }
    assert data.get_content_type() == "application/octet-stream"
    assert body.count(bytes(value)) >= 1


def test_a_value_is_not_copied():
    value = bytes(2**20)

    _, body = in_one_piece(resource("a", "x"), value)

    assert any(part is value for part in body)


def test_wider_items_are_sent_as_they_lie_in_memory():
    numbers = memoryview(array("H", [1, 2, 3, 4, 5, 6])).cast("B").cast("H", (2, 3))

    _, body = in_one_piece(b"{}", numbers)

    assert numbers.tobytes() in b"".join(body)
    assert checksum_of(numbers) == checksum_of(numbers.tobytes())


def test_the_checksum_of_nothing():
    assert checksum_of(b"") == checksum_of(memoryview(b"")) == "AAAAAA=="


def test_every_mark_is_another_one():
    assert len({new_mark(5) for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("said", "mark"),
    [
        ({"metadata": {MARK: "5-x", "other": "y"}}, "5-x"),
        ({"metadata": {"other": "y"}}, ""),
        ({"metadata": None}, ""),
        ({}, ""),
    ],
)
def test_finds_the_mark_of_an_object(said, mark):
    assert mark_in(said) == mark


def test_a_mark_tells_what_was_replaced():
    assert replaces(new_mark(0), 0)
    assert not replaces(new_mark(0), 5)
    assert not replaces(new_mark(55), 5)
    assert not replaces("", 0)


@pytest.mark.parametrize(
    ("text", "older"),
    [
        ("1970-01-01T00:01:37Z", True),
        ("1970-01-01T00:01:38.500000Z", False),
        ("1970-01-01T01:01:37+01:00", True),
        ("1970-01-01T00:01:37", False),
        ("lately", False),
        (None, False),
    ],
)
def test_what_was_there_before(text, older):
    assert is_older({"timeCreated": text}, 100.0) is older


@pytest.mark.parametrize(
    ("text", "size"),
    [("bytes=0-0", 1), ("bytes=0-262143", 262144), (None, 0), ("", 0), ("bytes=5-9", 0), ("x", 0)],
)
def test_how_much_of_a_session_arrived(text, size):
    assert stored_until(text) == size
