"""Databases for the tests of this folder, by either library."""

import random

import tensorstore as reference

import tensorstore_py as ts

LIBRARIES = {"ours": ts, "reference": reference}


def new(path, library=ts, **config):
    """A new database in a directory."""
    spec = {"driver": "ocdbt", "base": f"file://{path}/", "config": config}
    return library.KvStore.open(spec, context=library.Context()).result()


def contents(path, version=None, library=ts):
    """All keys and values, as a process that opens it now sees them."""
    at = "" if version is None else f"@v{version}/"
    url = f"file://{path}/|ocdbt:{at}"
    kv = library.KvStore.open(url, context=library.Context()).result()
    return {bytes(key): bytes(kv.read(key).result().value) for key in kv.list().result()}


def generations(db):
    return [version.generation for version in ts.ocdbt.versions(db)]


def random_changes(db, model, count, seed=0):
    """Transactions of a few random changes; the model after each, by generation."""
    source = random.Random(seed)
    models = {}
    for _ in range(count):
        with ts.Transaction() as transaction:
            staged = db.with_transaction(transaction)
            staged["count"] = model[b"count"] = source.randbytes(8)
            for _ in range(3):
                key = f"{source.choice('pq')}/{source.randrange(60)}".encode()
                if key in model and source.random() < 0.3:
                    del model[key]
                    staged.write(key, None).result()
                else:
                    staged[key] = model[key] = source.randbytes(source.randrange(60))
        models[generations(db)[0]] = dict(model)
    return models


def damage(path, file, place):
    """Change one byte of a file."""
    data = bytearray((path / file).read_bytes())
    data[place] ^= 1
    (path / file).write_bytes(data)


def root_of(path, index=-1):
    """The file, offset and length of the root of one of the manifest's versions."""
    manifest = ts.ocdbt.dump(f"file://{path}/").result()
    _, _, file, offset, length = manifest["versions"][index]["root"]["location"].split(":")
    return file, int(offset), int(length)
