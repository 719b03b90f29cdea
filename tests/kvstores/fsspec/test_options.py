import pickle

import tensorstore_py as ts
from tensorstore_py.kvstores.fsspec import FsspecStorageOptions


def test_secrets_are_not_printed():
    options = {"username": "me", "password": "swordfish", "client_kwargs": {"region_name": "x"}}
    spec = {"driver": "fsspec", "url": "memory://a", "storage_options": options}
    store = ts.KvStore.open(spec).result()
    shown = {"username": "me", "client_kwargs": {"region_name": "x"}}

    assert store.spec(unbind_context=True).to_json()["storage_options"] == shown
    pickled = pickle.dumps(store).decode("latin-1")
    for text in (repr(store), repr(store.spec(retain_context=True)), pickled):
        assert "swordfish" not in text


def test_options_are_said_once_for_all():
    context = ts.Context({"fsspec_storage_options#lab": {"password": "swordfish"}})
    spec = {
        "driver": "fsspec", "url": "memory://a", "storage_options": "fsspec_storage_options#lab"
    }  # fmt: skip
    store = ts.KvStore.open(spec, context=context).result()

    assert store.spec().to_json() == {"driver": "fsspec", "url": "memory://a"}
    unbound = store.spec(unbind_context=True).to_json()
    assert unbound["storage_options"] in ("fsspec_storage_options#lab", {})


def test_who_shares_options_shares_connections():
    shared = FsspecStorageOptions().create()

    assert shared.open("memory://a") is shared.open("memory://a")
    assert shared.open("memory://a") is not shared.open("memory://b")
