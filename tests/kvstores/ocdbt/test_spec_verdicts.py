"""Specs and URLs of OCDBT databases, right and wrong: the reference's verdicts, and its JSON."""

import random
from typing import Any

import pytest
import tensorstore as reference

import tensorstore_py as ts

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 3, 16, 17, 22, 23, 2**20, 2**20 + 1, 2**32 - 1, 2**32, 2**63,
    2**64 - 1, 2**64, 1.5, "", "a", "x/", "single", "numbered", "Single", "zstd", "gzip",
    "0" * 32, "A" * 32, "0" * 31, "g" * 32, "1s", "1ms", "-1s", "2025-01-01T01:23:45Z",
    "2025-01-01T01:23:45.678Z", "2025-13-01T00:00:00Z", "2025-01-01T00:00:00", "v3", "@v3", [], {},
    {"id": "zstd"}, {"id": "zstd", "level": 5}, {"id": "zstd", "level": 99}, {"id": "x"},
    {"id": "zstd", "levels": 1}, "memory://", "memory://b/", {"driver": "memory"},
    {"driver": "memory", "path": "q/"}, {"limit": "shared"}, {"limit": 2}, {"address": "a"},
    {"total_bytes_limit": 5}, "cache_pool", "cache_pool#x", "data_copy_concurrency",
]  # fmt: skip
MEMBERS = [
    "base", "manifest", "path", "config", "assume_config", "version", "cache_pool",
    "data_copy_concurrency", "coordinator", "experimental_read_coalescing_threshold_bytes",
    "experimental_read_coalescing_merged_bytes", "experimental_read_coalescing_interval",
    "target_data_file_size", "value_data_prefix", "btree_node_data_prefix",
    "version_tree_node_data_prefix", "nope", "context",
]  # fmt: skip
CONFIG = [
    "uuid", "manifest_kind", "max_inline_value_bytes", "max_decoded_node_bytes",
    "version_tree_arity_log2", "compression", "nope",
]  # fmt: skip
BASE: dict[str, Any] = {"driver": "ocdbt", "base": "memory://a/"}


def verdict(library, spec):
    """What a spec is printed as, or `"refused"`."""
    errors = (ts.SpecError,) if library is ts else (ValueError, TypeError, OverflowError)
    try:
        return library.KvStore.Spec(spec).to_json()
    except errors:
        return "refused"


@pytest.mark.parametrize("member", MEMBERS)
def test_each_member(member):
    for value in VALUES:
        spec = {**BASE, member: value}
        if member == "version" and isinstance(value, str) and value.replace("_", "").isalpha():
            assert verdict(ts, spec)["version"] == value  # a name, which the reference has not
            continue
        assert verdict(ts, spec) == verdict(reference, spec), value


@pytest.mark.parametrize("member", CONFIG)
def test_each_member_of_the_configuration(member):
    source = random.Random(member)
    for value in VALUES:
        spec = {**BASE, "config": {member: value}}
        assert verdict(ts, spec) == verdict(reference, spec), value
        spec["config"][source.choice(CONFIG)] = source.choice(VALUES)
        assert verdict(ts, spec) == verdict(reference, spec), spec


@pytest.mark.parametrize(
    "base", ["memory://a/|", "memory://a|", "file:///a/|", "memory://|ocdbt:|"]
)
@pytest.mark.parametrize(
    "url",
    ["", "@v3", "@v3/", "@v0/", "@v", "@", "@5x/", "@v99999999999999999999/", f"@v{'9' * 5000}/",
     "@v٣/", "@2025-01-01T01:23:45Z/a", "@2025-01-01T01:23:45.123456789Z/a", "@2025-01-01/a",
     "@2025-02-30T00:00:00Z/a", "%zz", "a?x", "a#x", "a/../b", "@v3/@v4/x", "a@v3", "a%2Fb",
     "@v03/a", "@v-1/", "@V3/", "@v3//a", "/a", "@v3?x", "%"],
)  # fmt: skip
def test_urls(base, url):
    whole = f"{base}ocdbt:{url}"

    assert verdict(ts, whole) == verdict(reference, whole)


def test_a_url_may_name_a_version_which_the_reference_has_no_names_for():
    assert verdict(reference, "memory://a/|ocdbt:@best/") == "refused"
    assert verdict(ts, "memory://a/|ocdbt:@best/")["version"] == "best"


def test_a_url_with_an_authority_is_refused_instead_of_losing_it():
    assert verdict(reference, "memory://a/|ocdbt://b") == verdict(reference, "memory://a/|ocdbt:")
    assert verdict(ts, "memory://a/|ocdbt://b") == "refused"
