"""Every context resource prints, defaults and refuses as the reference's does."""

import pytest
import tensorstore as reference

import tensorstore_py as ts

NAMES = [
    "cache_pool",
    "data_copy_concurrency",
    "file_io_concurrency",
    "file_io_sync",
    "file_io_mode",
    "file_io_locking",
    "file_io_retries",
    "gcs_request_concurrency",
    "gcs_request_retries",
    "gcs_user_project",
    "experimental_gcs_rate_limiter",
    "s3_request_concurrency",
    "s3_request_retries",
    "experimental_s3_rate_limiter",
    "http_request_concurrency",
    "http_request_retries",
    "aws_credentials",
    "memory_key_value_store",
]

RETRIES = [{"max_retries": 0}, {"initial_delay": "5ms", "max_delay": "inf"}, {"max_retries": 7}]
BAD_RETRIES = [{"max_retries": -1}, {"max_retries": "3"}, {"initial_delay": "5"}, {"max_retry": 1}]
RATES = [{"read_rate": 3, "write_rate": 2.5, "doubling_time": "1m"}, {"doubling_time": "-1s"}]
BAD_RATES = [{"read_rate": "3"}, {"doubling_time": 3}, {"rate": 3}]
LIMITS = [{"limit": 3}, {"limit": "shared"}, {}]
BAD_LIMITS = [{"limit": 0}, {"limit": -3}, {"limit": 1.5}, {"limit": "all"}, {"limits": 3}, 5]

GOOD = {
    "cache_pool": [{"total_bytes_limit": 5}, {"total_bytes_limit": 0}],
    "file_io_sync": [True, False],
    "file_io_mode": [{"mode": "memmap"}, {"mode": "default"}],
    "file_io_locking": [{"mode": "lockfile", "acquire_timeout": "3s"}, {"mode": "os"}],
    "gcs_user_project": [{"project_id": "p"}, {"project_id": ""}, {}],
    "aws_credentials": [
        {"type": "anonymous"},
        {"type": "environment"},
        {"type": "imds"},
        {"type": "profile"},
        {"type": "profile", "profile": "p", "config_file": "c", "credentials_file": "d"},
        {"type": "default", "profile": "p"},
        {"type": "ecs", "endpoint": "http://a", "auth_token_file": "f"},
        {"type": "ecs"},
    ],
}
BAD = {
    "cache_pool": [{"total_bytes_limit": -1}, {"total_bytes_limit": "5"}, {"bytes": 5}, 5],
    "file_io_sync": [1, "true", {}],
    "file_io_mode": [{"mode": "fast"}, {"mod": "memmap"}],
    "file_io_locking": [{"mode": "hope"}, {"acquire_timeout": 3}],
    "gcs_user_project": [{"project_id": None}, {"project_id": 3}, {"project": "p"}],
    "aws_credentials": [
        {},
        {"type": "x"},
        {"type": 3},
        {"type": "anonymous", "profile": "a"},
        {"type": "profile", "profile": 3},
    ],
    "memory_key_value_store": [{"a": 1}, 3],
}
for name in NAMES:
    if name.endswith("concurrency"):
        GOOD[name], BAD[name] = LIMITS, BAD_LIMITS
    elif name.endswith("retries"):
        GOOD[name], BAD[name] = RETRIES, BAD_RETRIES
    elif name.endswith("limiter"):
        GOOD[name], BAD[name] = RATES, BAD_RATES


def pairs(table):
    return [(name, json) for name in NAMES for json in table.get(name, ())]


@pytest.mark.parametrize("name", NAMES)
def test_defaults(name):
    ours, theirs = ts.Context()[name], reference.Context()[name]
    assert repr(ours) == repr(theirs)
    for include in (False, True):
        assert ours.to_json(include_defaults=include) == theirs.to_json(include_defaults=include)
    null = ts.Context({name: None})
    assert repr(null[name]) == repr(reference.Context({name: None})[name])


@pytest.mark.parametrize(("name", "json"), pairs(GOOD), ids=str)
def test_accepted_and_printed(name, json):
    ours, theirs = (library.Context({f"{name}#a": json}) for library in (ts, reference))
    assert repr(ours.spec) == repr(theirs.spec)
    assert repr(ours[f"{name}#a"]) == repr(theirs[f"{name}#a"])
    for include in (False, True):
        assert ours.spec.to_json(include) == theirs.spec.to_json(include)


@pytest.mark.parametrize(("name", "json"), pairs(BAD), ids=str)
def test_refused(name, json):
    for library in (ts, reference):
        with pytest.raises(ValueError):
            library.Context({name: json})


def test_a_rate_that_aborts_the_reference_is_an_error():
    with pytest.raises(ts.SpecError):
        ts.Context({"experimental_s3_rate_limiter": {"read_rate": -3}})
