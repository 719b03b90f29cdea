import pickle

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.obstore import ObstoreConfig, ObstoreStore
from tests.runtime.processes import run_script


def test_what_the_library_does_not_like_names_the_member():
    config = {"region": "x", "swordfish_option": "s3cr3t-value"}
    store = ts.KvStore.open({"driver": "obstore", "url": "s3://b", "config": config}).result()

    with pytest.raises(ts.SpecError, match="swordfish_option") as caught:
        _ = store["a"]
    assert "s3cr3t" not in str(caught.value)
    other = ts.KvStore.open({"driver": "obstore", "url": "ftp://host/"}).result()
    with pytest.raises(ts.SpecError, match="Unable to recognise URL"):
        _ = other["a"]


def test_secrets_are_not_printed():
    config = {"account_name": "lab", "account_key": "c2VjcmV0", "client_options": {"timeout": "3s"}}
    spec = {"driver": "obstore", "url": "az://box", "config": config}
    store = ts.KvStore.open(spec).result()
    shown = {"account_name": "lab", "client_options": {"timeout": "3s"}}

    assert store.spec(unbind_context=True).to_json()["config"] == shown
    for text in (
        repr(store),
        repr(store.spec(retain_context=True)),
        pickle.dumps(store).decode("latin-1"),
    ):
        assert "c2VjcmV0" not in text
    assert isinstance(store.store, ObstoreStore)


def test_how_often_to_try_again_is_handed_on():
    retries = {"max_retries": 0, "retry_timeout": "1s", "backoff": {"init_backoff": "1ms"}}
    options = {"endpoint": "http://127.0.0.1:9", "skip_signature": True, "region": "x"}
    config = {**options, "retry_config": retries, "client_options": {"allow_http": True}}
    store = ts.KvStore.open({"driver": "obstore", "url": "s3://box", "config": config}).result()

    with pytest.raises(ts.UnavailableError, match='cannot read "s3://box/a"'):
        _ = store["a"]


def test_stores_of_one_context_share_a_memory():
    context = ts.Context()
    first = ts.KvStore.open({"driver": "obstore", "url": "memory:///x/"}, context=context).result()
    first["a"] = b"1"

    again = ts.KvStore.open({"driver": "obstore", "url": "memory:///"}, context=context).result()
    assert again["x/a"] == b"1"
    assert again.list().result() == [b"x/a"]


def test_without_the_library_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    store = ts.KvStore.open("az://box/").result()

    with pytest.raises(ts.UnsupportedError, match=r"tensorstore-py\[obstore\]"):
        _ = store["a"]


@pytest.mark.parametrize("json", [5, "key", ["a"]])
def test_it_is_an_object(json):
    with pytest.raises(ts.SpecError, match="expected an object"):
        ObstoreConfig.parse(json)


def test_a_forked_child_is_told_and_does_not_wait_for_ever():
    script = """
        import os
        import tensorstore_py as ts

        store = ts.KvStore.open({"driver": "obstore", "url": "memory:///"}).result()
        store["a"] = b"1"
        child = os.fork()
        if not child:
            try:
                store["a"]
            except ts.UnsupportedError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(store["a"], flush=True)
        os._exit(0)  # how the library's threads end after a fork is its own affair
    """
    told, value = run_script(script).splitlines()
    assert told.startswith('cannot use "memory:///" in this process: it was forked')
    assert value == "b'1'"
