"""Databases for tests, and what is in them."""

__all__ = ["contents", "open_anew", "spec_of"]


def spec_of(path, **members):
    """A database in a folder."""
    return {"driver": "ocdbt", "base": {"driver": "file", "path": f"{path}/"}, **members}


def open_anew(library, spec):
    """Open it as a process would that knows nothing of it."""
    return library.KvStore.open(spec, context=library.Context()).result()


def contents(kv):
    """All keys with their values."""
    return {bytes(key): bytes(kv.read(key).result().value) for key in kv.list().result()}
