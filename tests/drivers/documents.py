"""Metadata documents that are wrong, and what an array over one is refused with."""

import json
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, MismatchError, UnsupportedError

#: Where documents are tested: in a directory of a memory store.
DIRECTORY = "memory://a/"


def no_documents(document: dict[str, Any], name: str) -> dict[str, str | bytes]:
    """Text that is no document, by what is wrong with it.

    Args:
        document: one that is right.
        name: any text.
    """
    right = json.dumps(document)
    return {
        "nothing": "",
        "space": "  ",
        "open": "{",
        "comma": '{"a": 1,}',
        "text": name,
        "no utf-8": b"\xff\xfe",
        "cut": right[:-20],
        "two": right * 2,
        "deep": "[" * 100_000,
        "null": "null",
        "array": "[]",
        "number": "2",
        "string": json.dumps(name),
    }


class Documents:
    """Documents of one driver, stored under one key."""

    def __init__(self, driver: str, key: str) -> None:
        self.driver = driver
        self.key = key

    def stored(self, data: str | bytes) -> ts.Context:
        """A context in whose memory the document is all there is."""
        context = ts.Context()
        ts.KvStore.open(DIRECTORY, context=context).result()[self.key] = data
        return context

    def opened(self, data: str | bytes, **members: object) -> ts.TensorStore:
        """The array that the document is of."""
        spec = {"driver": self.driver, "kvstore": DIRECTORY, **members}
        return ts.open(spec, context=self.stored(data)).result()

    def refusal(self, data: str | bytes, **members: object) -> Exception:
        """Why it is none."""
        with pytest.raises((DataLossError, UnsupportedError, MismatchError)) as raised:
            self.opened(data, **members)
        return raised.value
