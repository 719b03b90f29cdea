"""Reductions, digests and differences as plans that are kept in a manifest."""

import json
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import counting, created

DATA = np.arange(1, 1601, dtype="uint16").reshape(40, 40)


@pytest.fixture
def store():
    return counting()


def array(store, path, data=DATA):
    context = ts.Context({"memory_limit": {"limit_bytes": 4000}})
    made = created(store, data.shape, [10, 10], "uint16", path=path, context=context)
    made[...] = data
    return made


def test_what_is_done_is_not_done_again(store, tmp_path):
    one, other = array(store, "a/"), array(store, "b/", np.where(DATA == 77, 0, DATA).astype("u2"))
    calls: list[tuple[Any, Any, dict[str, Any]]] = [
        (ts.reduce, (one, ["min", "sum", "std", "quantiles", "histogram"]), {"dims": 0}),
        (ts.digest, (one,), {}),
        (ts.diff, (one, other), {}),
    ]
    for number, (function, arguments, options) in enumerate(calls):
        manifest = tmp_path / f"{number}.json"
        plain = function(*arguments, **options).result()

        first = function(*arguments, **options, manifest=manifest).result()
        store.reset()
        again = function(*arguments, **options, manifest=manifest).result()

        assert json.loads(manifest.read_text())
        assert repr(first) == repr(plain) == repr(again)
        assert not [key for key in store.reads if "/c/" in key]


def test_a_manifest_is_of_one_question(store, tmp_path):
    one = array(store, "a/")
    ts.reduce(one, "min", manifest=tmp_path / "m.json").result()

    with pytest.raises(ts.FailedPreconditionError):
        ts.reduce(one, "max", manifest=tmp_path / "m.json").result()
