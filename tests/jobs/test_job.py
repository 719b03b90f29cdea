"""What jobs say: their documents, members, operations and engines, and the schema of them."""

import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import distributed
import pytest
from jsonschema import Draft202012Validator

import tensorstore_py as ts
from tensorstore_py._api.spec import clean_json
from tensorstore_py._jobs.documents import Document, as_place, in_memory
from tensorstore_py._jobs.documents import parsed as parsed_document
from tensorstore_py._jobs.job import MEMBERS, Allowed, Job, JobEngine
from tensorstore_py._jobs.operations import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    check_form,
    operations,
    or_named,
    or_several,
)

FOLDER = Path("/data")


COPY = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr"}


def parsed(*steps, allowed=None, **members):
    json = {"tensorstore_py_job": 1, "steps": list(steps or [COPY]), **members}
    return Job.parse(json, FOLDER, allowed)


MISSPELT = {"driver": "zarr3", "kvstore": {"driver": "file", "pat": "/a/"}}


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


class TestJob:
    def test_says_what_is_done(self):
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
        assert first.options == {
            "source": FOLDER / "a.zarr",
            "dest": FOLDER / "b.zarr",
            "chunks": 64,
        }
        assert (second.options["source"], second.options["dest"]) == ("s3://bucket/a/", Path("/b"))
        assert (job.description, job.engine.workers, job.progress) == ("Why", 4, True)
        assert job.manifest is not None
        assert job.manifest.where == FOLDER / "m.json"
        assert job.report is not None
        assert job.report.where == "s3://bucket/r.json"

    def test_a_step_is_the_call_of_a_public_function(self):
        call = parsed({**COPY, "chunks": 64}).steps[0].call(None)
        assert call.operation == "copy"
        assert call.request()["chunks"] == 64

    def test_all_steps_share_a_context(self):
        context = parsed(context={"memory_limit": {"limit_bytes": 2**20}}).bound_context()
        assert context is not None
        assert context["memory_limit"].to_json() == {"limit_bytes": 2**20}
        assert parsed().bound_context() is None

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
    def test_errors_name_the_member(self, json, path, problem):
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
    def test_errors_in_steps_name_the_member(self, step, path, problem):
        with pytest.raises(ts.SpecError, match=problem) as caught:
            parsed(COPY, step)
        assert caught.value.path == ("steps", 1, *path)

    def test_several_sources(self):
        step = {"operation": "map_blocks", "function": "numpy:add", "target": "c.zarr"}
        job = parsed({**step, "sources": ["a.zarr", "s3://bucket/b/"], "halo": {"x": 1}})
        assert job.steps[0].options["sources"] == [FOLDER / "a.zarr", "s3://bucket/b/"]
        for wrong, path in (
            ("a.zarr", ()),
            ([], ()),
            (["a.zarr", MISSPELT], (1, "kvstore", "pat")),
        ):
            with pytest.raises(ts.SpecError) as caught:
                parsed({**step, "sources": wrong})
            assert caught.value.path == ("steps", 0, "sources", *path)

    def test_a_member_that_is_null_is_as_if_it_were_not_there(self):
        assert parsed({**COPY, "chunks": None}).steps[0].call(None).request() == (
            parsed().steps[0].call(None).request()
        )


class TestDocuments:
    def test_is_written_and_read_at_paths_and_urls(self, tmp_path):
        path = tmp_path / "new" / "a.json"
        for where in (path, (tmp_path / "b.json").as_uri(),
                      {"driver": "file", "path": str(tmp_path / "c.json")}):  # fmt: skip
            document = Document(where)
            document.write({"a": ["ü"]})
            assert document.read() == {"a": ["ü"]}
            beside = document.beside(".steps/2.json")
            beside.write({"b": 1})
            assert beside.read() == {"b": 1}
        assert sorted(each.name for each in tmp_path.rglob("*.json")) == [
            "2.json", "2.json", "2.json", "a.json", "b.json", "c.json",
        ]  # fmt: skip

    def test_errors_name_it(self, tmp_path):
        path = tmp_path / "a.json"
        with pytest.raises(ts.NotFoundError, match=r"a\.json does not exist; a job file or a plan"):
            Document(path).read()
        for text, problem in (("{", "not valid JSON"), ("[]", "expected a job file or a plan")):
            path.write_text(text)
            with pytest.raises(ts.SpecError, match=rf"{problem}.*\(in .*a.json\)"):
                Document(path).read()
        with pytest.raises(ts.SpecError, match="is a directory; name one document in it"):
            Document("memory://a/").spec()

    def test_secrets_are_not_shown(self):
        assert Document("https://me:pass@host/a.json?X-Signature=1").name == (
            "https://host/a.json?X-Signature=..."
        )

    def test_may_be_kept_to_stores_that_are_named(self, tmp_path):
        trust = ts.Trust(stores=[f"file://{tmp_path}/in/"])
        assert Document(tmp_path / "in" / "a.json").spec(trust).path == f"{tmp_path}/in/a.json"
        with pytest.raises(ts.SpecError, match="in none of the stores"):
            Document(tmp_path / "a.json").spec(trust)

    def test_relative_paths_are_relative_to_a_directory(self):
        assert as_place("s3://bucket/a/", None) == "s3://bucket/a/"
        assert as_place({"driver": "zarr3"}, None) == {"driver": "zarr3"}
        assert as_place("a/b", Path("/data")) == Path("/data/a/b")
        assert as_place("/a/b", Path("/data")) == as_place("/a/b", None) == Path("/a/b")
        with pytest.raises(
            ts.SpecError, match="relative to a directory, and the document is in none"
        ):
            as_place("a/b", None)

    def test_the_environment_only_where_asked_for(self, monkeypatch):
        monkeypatch.setenv("VOLUME", "7")
        assert parsed_document(b'{"a": "${VOLUME}"}', "x") == {"a": "${VOLUME}"}
        assert parsed_document(b'{"a": "${VOLUME}", "$comment": 1}', "x", env=True) == {"a": "7"}

    @pytest.mark.parametrize(
        ("place", "found"),
        [
            ("memory://a/", True),
            ("memory://a.zip|zip:b/", True),
            ({"driver": "zarr3", "kvstore": "memory://a/"}, True),
            ("file:///a/", False),
            (Path("a"), False),
            ("unheard://a", False),
        ],
    )
    def test_knows_what_is_in_memory(self, place, found):
        assert in_memory(place) is found


class TestForms:
    @pytest.mark.parametrize(
        ("value", "form"),
        [
            (3, INTEGER),
            (3, NUMBER),
            (0.5, NUMBER),
            ("a", STRING),
            (True, BOOLEAN),
            ([1, 2], or_several(INTEGER)),
            ({"x": 1}, or_named(INTEGER)),
            ("raise", {"enum": ["raise", "skip"]}),
            (4, {"type": "integer", "minimum": 4}),
            ([1, "a"], {"type": "array"}),
            (object, {}),
        ],
    )
    def test_fits(self, value, form):
        check_form(value, form)

    @pytest.mark.parametrize(
        ("value", "form", "problem"),
        [
            (True, INTEGER, "an integer, but found true"),
            (0.5, INTEGER, "an integer, but found 0.5"),
            (1, BOOLEAN, "true or false, but found 1"),
            (1, {"enum": ["a"]}, 'one of "a", but found 1'),
            ("skp", {"enum": ["raise", "skip"]}, r'found "skp" \(did you mean "skip"\?\)'),
            (
                [1, "a"],
                or_several(INTEGER),
                'an integer or a list of integers, but found \\[1, "a"\\]',
            ),
            ({"x": "a"}, or_named(INTEGER), "or an object of integers"),
            (0, {"type": "integer", "minimum": 1}, "an integer from 1 on, but found 0"),
            ({}, {"type": "array"}, "a list, but found {}"),
        ],
    )
    def test_does_not_fit(self, value, form, problem):
        with pytest.raises(ts.SpecError, match=problem):
            check_form(value, form)


class TestOperations:
    def test_are_public_functions_with_their_arguments(self):
        known = operations()
        for name, operation in known.items():
            assert callable(getattr(ts, name, None) or getattr(ts.multiscale, name, None))
            assert operation.text.endswith(".")
            assert {"executor", "manifest", "progress", "context"} & set(operation.members) == set()
        copy = known["copy"].members
        assert (copy["source"].kind, copy["source"].required) == ("read", True)
        assert (copy["dest"].kind, copy["chunks"].kind) == ("write", "data")
        assert copy["if_exists"].default == "raise"
        assert copy["excludes"].text == "Patterns of what is left out."

    def test_every_argument_is_known_to_editors_and_explained(self):
        unknown = [
            f"{operation.name}.{member.name}"
            for operation in operations().values()
            for member in operation.members.values()
            if member.kind == "other" or not member.text
        ]
        assert unknown == ["map_blocks.function"]  # which is code, and so not for everybody

    def test_a_function_whose_docstring_refers_to_another_has_that_ones_texts(self):
        known = operations()
        assert known["rechunk"].members["shards"].text == known["copy"].members["shards"].text != ""

    def test_checks_what_a_step_says(self):
        members = operations()["copy"].members
        members["dtype"].check("uint8")
        members["chunk_layout"].check({"chunk": {"shape": [3]}})
        members["chunks"].check({"x": 3})
        for name, value, problem in (
            ("dtype", "unt8", 'did you mean "uint8"'),
            ("dtype", 5, "expected a data type"),
            ("chunk_layout", {"chnk": 1}, "no such member"),
            ("chunks", "3", "expected an integer or a list of integers"),
            ("zarr_format", 4, "one of 2, 3"),
            ("if_exists", "skp", 'did you mean "skip"'),
        ):
            with pytest.raises(ts.SpecError, match=problem):
                members[name].check(value)

    def test_a_schema_has_the_text_and_the_default(self):
        schema = operations()["copy"].members["if_exists"].schema()
        assert schema["enum"] == ["raise", "skip", "replace"]
        assert schema["default"] == "raise"
        assert schema["description"].startswith(
            "What to do about arrays that are at the destination"
        )


class TestEngine:
    def test_goes_through_json(self):
        for said in (
            None,
            {"kind": "processes", "workers": 4},
            {"kind": "threads"},
            {"kind": "dask", "address": "tcp://host:8786"},
            {"kind": "ray"},
        ):
            assert JobEngine.parse(said).to_json() == said

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
    def test_errors_name_the_member(self, json, path, problem):
        with pytest.raises(ts.SpecError, match=problem) as caught:
            JobEngine.parse(json)
        assert caught.value.path == path

    def test_makes_pools(self):
        with JobEngine().running() as executor:
            assert executor is None
        with JobEngine("threads", 2).running() as executor:
            assert isinstance(executor, ThreadPoolExecutor)
        with JobEngine("processes", 1).running() as executor:
            assert isinstance(executor, ProcessPoolExecutor)

    def test_finds_a_cluster_of_dask(self):
        with (
            distributed.LocalCluster(
                n_workers=1, processes=False, dashboard_address=":0"
            ) as cluster,
            JobEngine("dask", None, cluster.scheduler_address).running() as client,
        ):
            assert isinstance(client, distributed.Client)
            assert client.submit(sum, [1, 2]).result() == 3

    @pytest.mark.parametrize(("kind", "library"), [("ray", "ray"), ("dask", "distributed")])
    def test_an_engine_that_is_not_installed(self, kind, library, monkeypatch):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ts.UnsupportedError, match="is not installed: pip install"):
            JobEngine(kind).running().__enter__()


ROOT = Path(__file__).resolve().parents[2]


SCHEMA = ts.json_schema()


VALIDATOR = Draft202012Validator(SCHEMA)


PLAIN = {"driver": "zarr3", "kvstore": "memory://a/"}


def spec_files():
    files = sorted((ROOT / "examples").rglob("*.json"))
    return [file for file in files if file.parent.name != "jobs"]


GOOD: list[Any] = [
    "memory://a/|zarr3:",
    "file:///a/b.zarr/",
    PLAIN,
    {**PLAIN, "$schema": "x", "$comment": "y"},
    {**PLAIN, "open": True, "create": True, "recheck_cached_data": "open"},
    {**PLAIN, "recheck_cached_metadata": 1.5e9, "cache_pool": "cache_pool#a", "context": {
        "cache_pool#a": {"total_bytes_limit": 5}, "cache_pool": None}},
    {**PLAIN, "kvstore": {"driver": "file", "path": "/a", "file_io_sync": False}},
    {**PLAIN, "kvstore": {"driver": "file", "path": "/a", "file_io_sync": [False]}},
    {**PLAIN, "kvstore": {"driver": "file", "path": "/a", "file_io_retries": {"max_delay": "1m"}}},
    {**PLAIN, "metadata": {"shape": [3], "data_type": "uint8", "codecs": ["bytes", "crc32c"]}},
    {**PLAIN, "metadata": {"codecs": [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2],
        "codecs": ["bytes", {"name": "gzip", "configuration": {"level": 1}}]}}]}},
    {**PLAIN, "metadata": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}},
    {**PLAIN, "metadata": {"extra": {"must_understand": False}, "dimension_names": ["x", None]}},
    *({**PLAIN, "dtype": name} for name in ("u1", "<f4", ">c16", "|b1", "half", "double")),
    {**PLAIN, "schema": {"dtype": "uint8", "domain": {"shape": [[3], 4], "labels": ["a", ""]}}},
    {**PLAIN, "schema": {"chunk_layout": {"chunk": {"shape": [3, None], "elements": 5},
        "inner_order": [1, 0], "grid_origin_soft_constraint": [0, None]}}},
    {**PLAIN, "schema": {"codec": {"driver": "zarr3", "codecs": ["gzip"]}, "fill_value": 3}},
    {**PLAIN, "schema": {"dimension_units": ["nm", [4, "nm"], None, 5], "rank": 4}},
    {**PLAIN, "transform": {"input_shape": [3], "output": [{"input_dimension": 0, "stride": 2}]}},
    {"driver": "auto", "kvstore": "memory://a/", "dtype": "datetime64[ns]"},
    {"driver": "auto", "kvstore": "memory://a/", "dtype": [["a", "uint8"], ["b", "U5", [2]]]},
    {"driver": "zarr", "kvstore": "memory://a/", "metadata": {"dtype": "<u2", "compressor": None,
        "filters": None, "order": "F", "fill_value": None}},
    {"driver": "zarr", "kvstore": "memory://a/", "metadata": {"compressor": {"id": "zlib"}}},
    {"driver": "zarr", "kvstore": "memory://a/", "key_encoding": "/"},
    {"driver": "zarr", "kvstore": "memory://a/", "schema": {"codec": {"driver": "zarr",
        "compressor": {"id": "blosc", "cname": "zstd"}}}},
    {"driver": "array", "array": [[1, 2]], "dtype": "int8"},
    {"driver": "cast", "base": PLAIN, "dtype": "int8"},
    {"driver": "cast", "base": "memory://a/|zarr3:", "dtype": "int8"},
    {"driver": "auto", "kvstore": "memory://a/", "file_io_concurrency": {"limit": "shared"}},
]  # fmt: skip


BAD: list[Any] = [
    5,
    None,
    {},
    {"kvstore": "memory://"},
    {"driver": "zar3"},
    {"driver": 3},
    {**PLAIN, "kvstor": "memory://"},
    {**PLAIN, "kvstore": 3},
    {**PLAIN, "kvstore": {"path": "/a"}},
    {**PLAIN, "kvstore": {"driver": "fil", "path": "/a"}},
    {**PLAIN, "kvstore": {"driver": "file", "path": 3}},
    {**PLAIN, "kvstore": {"driver": "file", "path": "/a", "file_io_sync": "yes"}},
    {**PLAIN, "kvstore": {"driver": "file", "path": "/a", "file_io_mode": {"mode": "fast"}}},
    {**PLAIN, "open": "yes"},
    {**PLAIN, "open": None},
    {**PLAIN, "create": 1},
    {**PLAIN, "recheck_cached_data": "never"},
    {**PLAIN, "cache_pool": "file_io_sync"},
    {**PLAIN, "cache_pool": {"total_bytes_limit": -1}},
    {**PLAIN, "context": {"cache_poll": {}}},
    {**PLAIN, "context": {"data_copy_concurrency": {"limit": 0}}},
    {**PLAIN, "metadata": {"shape": [-1]}},
    {**PLAIN, "metadata": {"shape": 3}},
    {**PLAIN, "metadata": {"zarr_format": 2}},
    {**PLAIN, "metadata": {"node_type": "group"}},
    {**PLAIN, "metadata": {"shapes": [1]}},
    {**PLAIN, "metadata": {"codecs": ["gzi"]}},
    {**PLAIN, "metadata": {"codecs": [{"name": "gzip", "configuration": {"level": 12}}]}},
    {**PLAIN, "metadata": {"codecs": [{"name": "gzip", "configuration": {"lvl": 1}}]}},
    {**PLAIN, "metadata": {"chunk_key_encoding": {"name": "v2", "separator": "."}}},
    {**PLAIN, "metadata": {"chunk_grid": {"name": "regular", "configuration": {"shape": [3]}}}},
    {**PLAIN, "metadata": {"storage_transformers": [{"name": "a"}]}},
    {**PLAIN, "schema": {"dtyp": "int8"}},
    {**PLAIN, "schema": {"dtype": "int9"}},
    {**PLAIN, "schema": {"chunk_layout": {"chunk": {"shape": ["a"]}}}},
    {**PLAIN, "schema": {"chunk_layout": {"chunks": {}}}},
    {**PLAIN, "schema": {"domain": {"shape": "3"}}},
    {**PLAIN, "schema": {"codec": {"driver": "n6"}}},
    {**PLAIN, "schema": {"rank": 33}},
    {**PLAIN, "schema": {"dimension_units": [{}]}},
    {**PLAIN, "transform": {"output": [{"offse": 1}]}},
    {**PLAIN, "transform": {"input_shape": [1.5]}},
    {**PLAIN, "rank": -1},
    {**PLAIN, "dtype": "u3"},
    {"driver": "zarr", "kvstore": "memory://", "metadata": {"compressor": {"id": "blsc"}}},
    {"driver": "zarr", "kvstore": "memory://",
        "metadata": {"compressor": {"id": "zlib", "level": 11}}},
    {"driver": "zarr", "kvstore": "memory://", "metadata": {"order": "A"}},
    {"driver": "zarr", "kvstore": "memory://", "metadata": {"zarr_format": 3}},
    {"driver": "zarr", "kvstore": "memory://", "key_encoding": "-"},
    {"driver": "array", "dtype": "int8"},
    {"driver": "cast", "dtype": "int8"},
    {"driver": "cast", "base": {"driver": "zarr3", "kvstor": 3}, "dtype": "int8"},
    {"driver": "auto", "kvstore": "memory://", "metadata": {}},
]  # fmt: skip


TO_S3 = {"operation": "copy", "source": "a.zarr", "dest": "s3://bucket/b.zarr/"}


def job(*steps, **members):
    return {"tensorstore_py_job": 1, "steps": list(steps or [TO_S3]), **members}


GOOD_JOBS: list[Any] = [
    job(),
    job(description="Why", progress=True, manifest="m.json", report="s3://bucket/r.json"),
    job(TO_S3, {"operation": "rechunk", "source": "b.zarr", "dest": "c.zarr", "chunks": [1, -1]}),
    job({**TO_S3, "chunks": {"x": 64}, "shards": 512, "codec": "zstd", "dtype": "uint8"}),
    job({**TO_S3, "source": PLAIN, "dest": {"driver": "zarr3", "kvstore": "file:///b/"}}),
    job({**TO_S3, "source": {"driver": "file", "path": "/a/"}, "$comment": "a store"}),
    job({**TO_S3, "includes": "a/*", "excludes": ["b", "c"], "if_exists": "skip"}),
    job({"operation": "map_blocks", "function": "numpy:add", "sources": ["a", "b"],
        "target": "c.zarr", "halo": {"x": [1, 2]}, "boundary": "reflect"}),
    job({"operation": "pyramid", "source": "a.zarr", "target": "b.zarr", "axes": "zyx",
        "levels": 3, "scale": {"x": 2, "y": 2}, "method": "mean", "version": "0.4"}),
    job({"operation": "reduce", "source": "a.zarr", "reductions": ["min", "max"], "dims": "t"}),
    job({"operation": "diff", "a": "a.zarr", "b": "b.zarr", "rtol": 0.1}),
    *(job(engine=each) for each in ({"kind": "processes", "workers": 2}, {"kind": "threads"},
        {"kind": "dask", "address": "tcp://host:8786"}, {"kind": "ray"})),
    job(context={"memory_limit": {"limit_bytes": 5}}, **{"$schema": "x", "$comment": "y"}),
]  # fmt: skip


BAD_JOBS: list[Any] = [
    {"tensorstore_py_job": 1},
    {**job(), "tensorstore_py_job": 2},
    {**job(), "steps": []},
    job(step=[]),
    job({"operation": "cpy", "source": "a", "dest": "b"}),
    job({"operation": "copy", "source": "a"}),
    job({**TO_S3, "chunsk": 3}),
    job({**TO_S3, "chunks": "3"}),
    job({**TO_S3, "if_exists": "skp"}),
    job({**TO_S3, "zarr_format": 4}),
    job({**TO_S3, "source": {"driver": "file", "pat": "/a/"}}),
    job({**TO_S3, "executor": "ray"}),
    job({"operation": "map_blocks", "function": "numpy:add", "sources": [], "target": "c.zarr"}),
    job({"operation": "reduce", "source": "a.zarr"}),
    job(engine="processes"),
    job(engine={"kind": "proceses"}),
    job(engine={"kind": "processes", "worker": 2}),
    job(engine={"kind": "processes", "workers": 0}),
    job(manifest=5),
    job(progress="yes"),
    job(context={"memory_limt": {}}),
]


class TestJsonSchema:
    def test_it_is_a_schema(self):
        Draft202012Validator.check_schema(SCHEMA)
        json.dumps(SCHEMA)
        references = set(re.findall(r"#/\$defs/([^'\"]+)", str(SCHEMA)))
        assert references <= set(SCHEMA["$defs"])
        assert "x-def" not in str(SCHEMA)

    def test_there_are_spec_files(self):
        assert len(spec_files()) >= 4

    @pytest.mark.parametrize("file", spec_files(), ids=lambda file: file.name)
    def test_the_examples_are_valid(self, file):
        found = json.loads(file.read_text("utf-8"))
        assert list(VALIDATOR.iter_errors(found)) == []
        ts.load_spec(file)

    @pytest.mark.parametrize("spec", GOOD, ids=lambda spec: str(spec)[:80])
    def test_what_is_right(self, spec):
        assert [error.message for error in VALIDATOR.iter_errors(spec)] == []
        if not (isinstance(spec, dict) and "array" in spec):
            ts.Spec(spec)

    @pytest.mark.parametrize("spec", BAD, ids=lambda spec: str(spec)[:80])
    def test_what_is_wrong(self, spec):
        assert list(VALIDATOR.iter_errors(spec))
        with pytest.raises((ValueError, TypeError)):
            ts.Spec(spec)

    @pytest.mark.parametrize(
        ("spec", "path"),
        [
            ({**PLAIN, "kvstor": 3}, []),
            ({"driver": "zar3"}, ["driver"]),
            ({**PLAIN, "kvstore": {"driver": "file", "path": 3}}, ["kvstore", "path"]),
            (
                {
                    **PLAIN,
                    "metadata": {"codecs": [{"name": "gzip", "configuration": {"level": 12}}]},
                },
                ["metadata", "codecs", 0, "configuration", "level"],
            ),
            (
                {**PLAIN, "schema": {"chunk_layout": {"chunks": {}}}},
                ["schema", "chunk_layout"],
            ),
            ({"driver": "cast", "base": {**PLAIN, "create": 1}}, ["base", "create"]),
        ],
    )
    def test_an_error_is_at_the_member_and_alone(self, spec, path):
        errors = list(VALIDATOR.iter_errors(spec))
        assert [list(error.absolute_path) for error in errors] == [path]

    def test_members_carry_the_texts_of_their_docstrings(self):
        members = SCHEMA["$defs"]["Driver.zarr3"]["properties"]
        plain = [name for name in members if not name.startswith("$") and name != "driver"]
        assert [name for name in plain if "description" not in members[name]] == []
        assert members["create"] == {
            "type": "boolean",
            "default": False,
            "description": "Create the array if it does not exist.",
        }
        codec = SCHEMA["$defs"]["Codec.zarr3.gzip"]["properties"]["configuration"]["properties"]
        assert codec["level"]["maximum"] == 9
        assert (
            SCHEMA["$defs"]["Resource.file_io_retries"]["anyOf"][1]["properties"]["max_delay"][
                "default"
            ]
            == "32s"
        )

    def test_every_driver_store_codec_and_resource_is_there(self):
        names = {name.partition(".")[0] for name in SCHEMA["$defs"]}
        assert names >= {"Driver", "KvstoreDriver", "Codec", "CodecSpec", "Resource", "Context"}
        for kind in ("Driver", "KvstoreDriver"):
            listed = SCHEMA["$defs"][kind]["then"]["properties"]["driver"]["enum"]
            assert {f"{kind}.{name}" for name in listed} <= set(SCHEMA["$defs"])

    @pytest.mark.parametrize("json", GOOD_JOBS)
    def test_good_jobs_are_accepted_by_schema_and_parser(self, json):
        assert [error.message for error in VALIDATOR.iter_errors(json)] == []
        Job.parse(clean_json(json), Path("/data"))

    @pytest.mark.parametrize("json", BAD_JOBS)
    def test_bad_jobs_are_refused_by_schema_and_parser(self, json):
        assert list(VALIDATOR.iter_errors(json)) != []
        with pytest.raises(ts.SpecError):
            Job.parse(clean_json(json), Path("/data"))

    @pytest.mark.parametrize("file", sorted((ROOT / "examples" / "jobs").glob("*.json")), ids=str)
    def test_example_jobs_are_accepted(self, file):
        found = json.loads(file.read_text("utf-8"))
        assert [error.message for error in VALIDATOR.iter_errors(found)] == []

    def test_an_error_in_a_job_is_about_the_operation_that_it_names(self):
        (error,) = VALIDATOR.iter_errors(job({**TO_S3, "chunsk": 3}))
        assert "'chunsk' was unexpected" in error.message
        assert list(error.absolute_path) == ["steps", 0]

    def test_editors_get_the_members_of_jobs_where_a_document_is_empty(self):
        assert "tensorstore_py_job" in SCHEMA["properties"]
        assert set(SCHEMA["$defs"]["Job"]["properties"]) == {
            "$comment", "$schema", "tensorstore_py_job", *MEMBERS
        }  # fmt: skip
