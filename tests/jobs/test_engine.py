import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import distributed
import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.engine import JobEngine


def test_goes_through_json():
    for json in (
        None,
        {"kind": "processes", "workers": 4},
        {"kind": "threads"},
        {"kind": "dask", "address": "tcp://host:8786"},
        {"kind": "ray"},
    ):
        assert JobEngine.parse(json).to_json() == json


@pytest.mark.parametrize(
    ("json", "path", "problem"),
    [
        ("processes", (), "expected an object such as"),
        ({"workers": 3}, (), "expected an object such as"),
        ({"kind": "proceses"}, ("kind",), 'did you mean "processes"'),
        ({"kind": "processes", "worker": 3}, ("worker",), 'did you mean "workers"'),
        ({"kind": "threads", "address": "a"}, ("address",), "has no such member"),
        ({"kind": "processes", "workers": 0}, ("workers",), "a number of workers from 1 on"),
        ({"kind": "processes", "workers": True}, ("workers",), "a number of workers from 1 on"),
        ({"kind": "dask", "address": 5}, ("address",), "the address of a scheduler"),
        ({"kind": "dask", "address": "a", "workers": 2}, ("workers",), "has its own"),
    ],
)
def test_errors_name_the_member(json, path, problem):
    with pytest.raises(ts.SpecError, match=problem) as caught:
        JobEngine.parse(json)
    assert caught.value.path == path


def test_makes_pools():
    with JobEngine().running() as executor:
        assert executor is None
    with JobEngine("threads", 2).running() as executor:
        assert isinstance(executor, ThreadPoolExecutor)
    with JobEngine("processes", 1).running() as executor:
        assert isinstance(executor, ProcessPoolExecutor)


def test_finds_a_cluster_of_dask():
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        JobEngine("dask", None, cluster.scheduler_address).running() as client,
    ):
        assert isinstance(client, distributed.Client)
        assert client.submit(sum, [1, 2]).result() == 3


@pytest.mark.parametrize(("kind", "library"), [("ray", "ray"), ("dask", "distributed")])
def test_an_engine_that_is_not_installed(kind, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ts.UnsupportedError, match="is not installed: pip install"):
        JobEngine(kind).running().__enter__()
