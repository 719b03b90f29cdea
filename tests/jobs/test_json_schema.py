"""What the schema accepts is what the parser accepts, as far as a schema can tell."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import tensorstore_py as ts
from tensorstore_py._api.spec_file import clean_json
from tensorstore_py._jobs.job import MEMBERS, Job

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ts.json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
PLAIN = {"driver": "zarr3", "kvstore": "memory://a/"}


def test_it_is_a_schema():
    Draft202012Validator.check_schema(SCHEMA)
    json.dumps(SCHEMA)
    references = set(re.findall(r"#/\$defs/([^'\"]+)", str(SCHEMA)))
    assert references <= set(SCHEMA["$defs"])
    assert "x-def" not in str(SCHEMA)


def spec_files():
    files = sorted((ROOT / "examples").rglob("*.json"))
    return [file for file in files if file.parent.name != "jobs"]


def test_there_are_spec_files():
    assert len(spec_files()) >= 4


@pytest.mark.parametrize("file", spec_files(), ids=lambda file: file.name)
def test_the_examples_are_valid(file):
    found = json.loads(file.read_text("utf-8"))
    assert list(VALIDATOR.iter_errors(found)) == []
    ts.load_spec(file)


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


@pytest.mark.parametrize("spec", GOOD, ids=lambda spec: str(spec)[:80])
def test_what_is_right(spec):
    assert [error.message for error in VALIDATOR.iter_errors(spec)] == []
    if not (isinstance(spec, dict) and "array" in spec):
        ts.Spec(spec)


@pytest.mark.parametrize("spec", BAD, ids=lambda spec: str(spec)[:80])
def test_what_is_wrong(spec):
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
            {**PLAIN, "metadata": {"codecs": [{"name": "gzip", "configuration": {"level": 12}}]}},
            ["metadata", "codecs", 0, "configuration", "level"],
        ),
        (
            {**PLAIN, "schema": {"chunk_layout": {"chunks": {}}}},
            ["schema", "chunk_layout"],
        ),
        ({"driver": "cast", "base": {**PLAIN, "create": 1}}, ["base", "create"]),
    ],
)
def test_an_error_is_at_the_member_and_alone(spec, path):
    errors = list(VALIDATOR.iter_errors(spec))
    assert [list(error.absolute_path) for error in errors] == [path]


def test_members_carry_the_texts_of_their_docstrings():
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


def test_every_driver_store_codec_and_resource_is_there():
    names = {name.partition(".")[0] for name in SCHEMA["$defs"]}
    assert names >= {"Driver", "KvstoreDriver", "Codec", "CodecSpec", "Resource", "Context"}
    for kind in ("Driver", "KvstoreDriver"):
        listed = SCHEMA["$defs"][kind]["then"]["properties"]["driver"]["enum"]
        assert {f"{kind}.{name}" for name in listed} <= set(SCHEMA["$defs"])


COPY = {"operation": "copy", "source": "a.zarr", "dest": "s3://bucket/b.zarr/"}


def job(*steps, **members):
    return {"tensorstore_py_job": 1, "steps": list(steps or [COPY]), **members}


GOOD_JOBS: list[Any] = [
    job(),
    job(description="Why", progress=True, manifest="m.json", report="s3://bucket/r.json"),
    job(COPY, {"operation": "rechunk", "source": "b.zarr", "dest": "c.zarr", "chunks": [1, -1]}),
    job({**COPY, "chunks": {"x": 64}, "shards": 512, "codec": "zstd", "dtype": "uint8"}),
    job({**COPY, "source": PLAIN, "dest": {"driver": "zarr3", "kvstore": "file:///b/"}}),
    job({**COPY, "source": {"driver": "file", "path": "/a/"}, "$comment": "a store"}),
    job({**COPY, "includes": "a/*", "excludes": ["b", "c"], "if_exists": "skip"}),
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
    job({**COPY, "chunsk": 3}),
    job({**COPY, "chunks": "3"}),
    job({**COPY, "if_exists": "skp"}),
    job({**COPY, "zarr_format": 4}),
    job({**COPY, "source": {"driver": "file", "pat": "/a/"}}),
    job({**COPY, "executor": "ray"}),
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


@pytest.mark.parametrize("json", GOOD_JOBS)
def test_good_jobs_are_accepted_by_schema_and_parser(json):
    assert [error.message for error in VALIDATOR.iter_errors(json)] == []
    Job.parse(clean_json(json), Path("/data"))


@pytest.mark.parametrize("json", BAD_JOBS)
def test_bad_jobs_are_refused_by_schema_and_parser(json):
    assert list(VALIDATOR.iter_errors(json)) != []
    with pytest.raises(ts.SpecError):
        Job.parse(clean_json(json), Path("/data"))


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "jobs").glob("*.json")), ids=str)
def test_example_jobs_are_accepted(file):
    found = json.loads(file.read_text("utf-8"))
    assert [error.message for error in VALIDATOR.iter_errors(found)] == []


def test_an_error_in_a_job_is_about_the_operation_that_it_names():
    (error,) = VALIDATOR.iter_errors(job({**COPY, "chunsk": 3}))
    assert "'chunsk' was unexpected" in error.message
    assert list(error.absolute_path) == ["steps", 0]


def test_editors_are_told_of_jobs_where_a_document_is_empty():
    assert "tensorstore_py_job" in SCHEMA["properties"]
    assert set(SCHEMA["$defs"]["Job"]["properties"]) == {
        "$comment", "$schema", "tensorstore_py_job", *MEMBERS
    }  # fmt: skip
