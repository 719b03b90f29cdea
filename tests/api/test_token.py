"""Tokens are equal exactly if the same elements are meant, in whichever process."""

import subprocess
import sys

import numpy as np
import pytest

import tensorstore_py as ts


def token_of(store):
    name, token = store.__dask_tokenize__()
    assert name == "tensorstore_py.TensorStore"
    return token


CODE = """
import sys, tensorstore_py as ts
print(ts.open(sys.argv[1]).result()[2:].__dask_tokenize__()[1])
"""


@pytest.fixture
def url(tmp_path):
    url = f"file://{tmp_path}/a/"
    ts.open({"driver": "zarr3", "kvstore": url}, create=True, dtype="int32", shape=[9, 5]).result()
    return url


def test_is_the_same_for_the_same_array_however_it_was_opened(url):
    store = ts.open(url).result()
    pool = ts.Context({"cache_pool": {"total_bytes_limit": 1000}})
    others = [
        ts.open({"driver": "zarr3", "kvstore": url}).result(),
        ts.open(store.spec(), context=pool).result(),
        store[1:][:, :].translate_by[1, 1].translate_backward_by[1, 1],
    ]
    assert [token_of(each) == token_of(store) for each in others] == [True, True, False]


def test_is_the_same_in_another_process(url):
    found = subprocess.run(
        [sys.executable, "-c", CODE, url], capture_output=True, text=True, check=True, timeout=240
    )
    assert found.stdout.strip() == token_of(ts.open(url).result()[2:])


def test_differs_for_other_elements_and_for_another_shape(url):
    store = ts.open(url).result()
    seen = {token_of(each) for each in (store, store[1:], store.T, store.astype("int64"))}
    seen.add(token_of(store.resize(exclusive_max=[12, 5]).result()))
    assert len(seen) == 5


def test_says_what_is_meant_and_not_what_it_is(url):
    store = ts.open(url).result()
    before = token_of(store)
    store[0] = 7
    assert token_of(store) == before


def test_what_is_in_memory_is_distinguished():
    spec = {"driver": "zarr3", "kvstore": "memory://a/"}
    one, other = (
        ts.open(spec, create=True, dtype="int8", shape=[3], context=ts.Context()).result()
        for _ in range(2)
    )
    assert token_of(one) != token_of(other)
    assert token_of(one) == token_of(ts.open(one.spec(retain_context=True)).result())


def test_elements_without_a_store_are_what_they_are():
    memory = np.arange(3)
    store = ts.array(memory)
    before = token_of(store)
    assert token_of(ts.array(np.arange(3))) == before
    memory[0] = 9
    assert token_of(store) != before


def test_what_cannot_be_distinguished_never_has_the_same(url):
    store = ts.open(url).result().with_transaction(ts.Transaction())
    assert token_of(store) != token_of(store)
    made = ts.virtual_chunked(lambda *_: None, dtype="int8", shape=[3])
    assert token_of(made) != token_of(made)
