"""What the service's answers mean: which of them may pass, and its words about the others."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from tensorstore_py.errors import DataLossError, TensorStoreError
from tensorstore_py.kvstores.gcs.listing import json_object
from tensorstore_py.plugin import HttpDialect, HttpVerdict

if TYPE_CHECKING:
    from tensorstore_py.kvstores.gcs.credentials import GcsSigner
    from tensorstore_py.plugin import HttpResponse

__all__ = ["GcsDialect"]

#: What it says of a body whose checksum is not the one that was sent along.
_DAMAGED: Final = b"provided crc32c"
_CRC: Final = "crc32c="
_CRC_LENGTH: Final = 8  # of four bytes, as text
_STORED_AS: Final = "x-goog-stored-content-encoding"
_LONGEST_WORDS: Final = 300
_NOBODY: Final = (
    "it was asked without credentials, since none were found: run gcloud auth "
    "application-default login, and have google-auth installed, which tensorstore-py[gcs] brings"
)


class GcsDialect(HttpDialect):
    """Google Cloud Storage's JSON API.

    Args:
        signer: who signs the requests; None if nobody does.
    """

    name: ClassVar[str] = "gcs"
    retried: ClassVar[frozenset[int]] = frozenset({408, 425, 429, *range(500, 600)})

    def __init__(self, signer: GcsSigner | None = None) -> None:
        self._signer = signer

    def verdict(self, response: HttpResponse) -> HttpVerdict:
        return HttpVerdict.RETRY if _is_damaged(response) else super().verdict(response)

    def is_cut(self, response: HttpResponse) -> bool:
        body = bytes(response.body).strip()
        if not body.startswith(b"{"):
            return False
        try:
            json_object(body)
        except DataLossError:
            return True
        return False

    def error(self, response: HttpResponse) -> type[TensorStoreError]:
        return DataLossError if _is_damaged(response) else super().error(response)

    def digests(self, headers: Mapping[str, str]) -> Mapping[str, bytes]:
        # What every read of a whole value comes by, without looking at all that others may send.
        said = headers.get("x-goog-hash", "")
        at = said.find(_CRC) + len(_CRC)
        if at < len(_CRC) or headers.get(_STORED_AS, "identity") != "identity":
            return super().digests(headers)
        try:
            return {"crc32c": b64decode(said[at : at + _CRC_LENGTH], validate=True)}
        except ValueError:
            return super().digests(headers)

    def words(self, response: HttpResponse) -> str:
        body = bytes(response.body).strip()
        if body.startswith(b"<"):
            body = b""
        found: object = body.decode("utf-8", "replace")
        if body.startswith(b"{"):
            found = _message(body)
        words = " ".join(str(found or "").split())[:_LONGEST_WORDS]
        if response.status in (401, 403) and self._signer is not None and self._signer.anonymous:
            return f"{words}; {_NOBODY}" if words else _NOBODY
        return words


def _is_damaged(response: HttpResponse) -> bool:
    """Whether a value arrived with another checksum than it was sent with."""
    return response.status == 400 and _DAMAGED in bytes(response.body).lower()


def _message(body: bytes) -> object:
    try:
        document = json_object(body)
    except DataLossError:
        return ""
    error = document.get("error")
    return error.get("message") if isinstance(error, dict) else error
