"""Google's own client of a server that speaks the JSON API."""

from collections.abc import Iterator
from contextlib import contextmanager

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage


@contextmanager
def google_client(url: str) -> Iterator[storage.Client]:
    """A client, closed at the end.

    It does not look after the metadata of buckets: it would do so in threads that try again for
    minutes when the server is gone, draw numbers from `random` meanwhile, which Hypothesis takes
    for a fault of whatever test it runs then, and leave their connections to any other test.
    """
    client = storage.Client(
        project="p", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
    )
    client._bucket_metadata_cache = None
    try:
        yield client
    finally:
        client._http.close()
        client.close()
