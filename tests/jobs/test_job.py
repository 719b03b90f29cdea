from pathlib import Path
from typing import ClassVar

import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.job import Allowed, Job

FOLDER = Path("/data")
COPY = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr"}


def parsed(*steps, allowed=None, **members):
    json = {"tensorstore_py_job": 1, "steps": list(steps or [COPY]), **members}
    return Job.parse(json, FOLDER, allowed)


def test_says_what_is_done():
    job = parsed(
        {**COPY, "chunks": 64},
        {"operation": "rechunk", "source": "s3://bucket/a/", "dest": "/b", "chunks": [1, -1]},
        description="Why",
        engine={"kind": "processes", "workers": 4},
        manifest="m.json",
        report="s3://bucket/r.json",
        progress=True,
    )
    first, second = job.steps
    assert (first.operation, second.operation) == ("copy", "rechunk")
    assert first.options == {"source": FOLDER / "a.zarr", "dest": FOLDER / "b.zarr", "chunks": 64}
    assert (second.options["source"], second.options["dest"]) == ("s3://bucket/a/", Path("/b"))
    assert (job.description, job.engine.workers, job.progress) == ("Why", 4, True)
    assert job.manifest is not None
    assert job.manifest.where == FOLDER / "m.json"
    assert job.report is not None
    assert job.report.where == "s3://bucket/r.json"


def test_a_step_is_the_call_of_a_public_function():
    call = parsed({**COPY, "chunks": 64}).steps[0].call(None)
    assert call.operation == "copy"
    assert call.request()["chunks"] == 64


def test_all_steps_share_a_context():
    context = parsed(context={"memory_limit": {"limit_bytes": 2**20}}).bound_context()
    assert context is not None
    assert context["memory_limit"].to_json() == {"limit_bytes": 2**20}
    assert parsed().bound_context() is None


MISSPELT = {"driver": "zarr3", "kvstore": {"driver": "file", "pat": "/a/"}}


@pytest.mark.parametrize(
    ("json", "path", "problem"),
    [
        ([], (), 'expected a job file, with the member "tensorstore_py_job": 1'),
        ({"steps": []}, (), "expected a job file"),
        ({"tensorstore_py_job": 2}, ("tensorstore_py_job",), "expected 1"),
        ({"tensorstore_py_job": 1}, ("steps",), "a list of at least one step"),
        ({"tensorstore_py_job": 1, "steps": []}, ("steps",), "a list of at least one step"),
        ({"tensorstore_py_job": 1, "step": []}, ("step",), 'did you mean "steps"'),
        ({"tensorstore_py_job": 1, "progress": 1}, ("progress",), "expected true or false"),
        ({"tensorstore_py_job": 1, "description": 1}, ("description",), "expected text"),
        ({"tensorstore_py_job": 1, "manifest": 1}, ("manifest",), "expected a URL or a path"),
        ({"tensorstore_py_job": 1, "report": "memory://a/"}, ("report",), "is a directory"),
        ({"tensorstore_py_job": 1, "engine": {"kind": "rey"}}, ("engine", "kind"), "no engine"),
        ({"tensorstore_py_job": 1, "context": {"cache_pol": {}}}, ("context", "cache_pol"),
         'did you mean "cache_pool"'),
    ],
)  # fmt: skip
def test_errors_name_the_member(json, path, problem):
    with pytest.raises(ts.SpecError, match=problem) as caught:
        Job.parse(json, FOLDER)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("step", "path", "problem"),
    [
        ("copy", (), "expected an object such as"),
        ({}, (), "expected an object such as"),
        ({**COPY, "operation": "cpy"}, ("operation",), 'did you mean "copy"'),
        ({**COPY, "chunsk": 64}, ("chunsk",), 'did you mean "chunks"'),
        ({"operation": "copy", "source": "a"}, ("dest",), "copy needs this"),
        ({**COPY, "chunks": "64"}, ("chunks",), "expected an integer or a list of integers"),
        ({**COPY, "dtype": "unt8"}, ("dtype",), 'did you mean "uint8"'),
        ({**COPY, "source": MISSPELT}, ("source", "kvstore", "pat"), 'did you mean "path"'),
        ({**COPY, "source": "s4://a/"}, ("source",), 'unsupported URL scheme "s4"'),
        ({**COPY, "dest": MISSPELT}, ("dest", "kvstore", "pat"), 'did you mean "path"'),
        ({**COPY, "dest": "memory://a/"}, ("dest",), "gone when the job ends"),
        ({**COPY, "dest": "b.h5"}, (), "name it .zarr, .n5 or .zip"),
        ({**COPY, "executor": "ray"}, ("executor",), "no such member"),
    ],
)
def test_errors_in_steps_name_the_member(step, path, problem):
    with pytest.raises(ts.SpecError, match=problem) as caught:
        parsed(COPY, step)
    assert caught.value.path == ("steps", 1, *path)


def test_several_sources():
    step = {"operation": "map_blocks", "function": "numpy:add", "target": "c.zarr"}
    job = parsed({**step, "sources": ["a.zarr", "s3://bucket/b/"], "halo": {"x": 1}})
    assert job.steps[0].options["sources"] == [FOLDER / "a.zarr", "s3://bucket/b/"]
    for wrong, path in (("a.zarr", ()), ([], ()), (["a.zarr", MISSPELT], (1, "kvstore", "pat"))):
        with pytest.raises(ts.SpecError) as caught:
            parsed({**step, "sources": wrong})
        assert caught.value.path == ("steps", 0, "sources", *path)


def test_a_member_that_is_null_is_as_if_it_were_not_there():
    assert parsed({**COPY, "chunks": None}).steps[0].call(None).request() == (
        parsed().steps[0].call(None).request()
    )


class TestOfSomebodyElse:
    STORES = ("file:///data/in/", "file:///data/out/")
    ALLOWED = Allowed(ts.Trust(STORES), ts.Trust(STORES, write=True))
    STEP: ClassVar = {"operation": "copy", "source": "in/a.zarr", "dest": "out/b.zarr"}

    def test_may_use_the_stores_that_are_named(self):
        job = parsed(
            {**self.STEP, "codec": {"driver": "zarr3", "codecs": ["zstd"]}, "chunks": 3},
            {**self.STEP, "source": "file:///data/in/a.zarr/"},
            allowed=self.ALLOWED,
            manifest="out/m.json",
            engine={"kind": "processes"},
            context={"memory_limit": {"limit_bytes": 5}},
        )
        assert len(job.steps) == 2

    @pytest.mark.parametrize(
        ("step", "path"),
        [
            ({"source": "secret/a.zarr"}, ("source",)),
            ({"source": "/etc/a"}, ("source",)),
            ({"source": "in/../secret/a.zarr"}, ("source",)),
            ({"source": "s3://bucket/a/"}, ("source", "kvstore")),
            ({"dest": "elsewhere.zarr"}, ("dest",)),
            ({"source": {"driver": "zarr", "kvstore": "file:///data/in/a/", "allow_pickle": True}},
             ("source", "allow_pickle")),
            ({"codec": "pickle"}, ("codec",)),
        ],
    )  # fmt: skip
    def test_may_use_no_others(self, step, path):
        with pytest.raises(ts.SpecError) as caught:
            parsed({**self.STEP, **step}, allowed=self.ALLOWED)
        assert caught.value.path == ("steps", 0, *path)

    def test_may_not_choose_code(self):
        step = {"operation": "map_blocks", "function": "os:system", "sources": ["in/a.zarr"]}
        with pytest.raises(ts.SpecError, match="may not say this") as caught:
            parsed({**step, "target": "out/b.zarr"}, allowed=self.ALLOWED)
        assert caught.value.path == ("steps", 0, "function")

    @pytest.mark.parametrize(
        ("members", "path"),
        [
            ({"manifest": "m.json"}, ("manifest",)),
            ({"report": "/etc/passwd"}, ("report",)),
            ({"engine": {"kind": "dask", "address": "tcp://evil:1"}}, ("engine", "kind")),
            ({"context": {"aws_credentials": {"type": "profile"}}},
             ("context", "aws_credentials", "type")),
        ],
    )  # fmt: skip
    def test_may_not_choose_these(self, members, path):
        with pytest.raises(ts.SpecError) as caught:
            parsed(self.STEP, allowed=self.ALLOWED, **members)
        assert caught.value.path == path
