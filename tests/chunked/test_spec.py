"""The members of a chunked array's spec, and the resources that it names."""

import os

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.driver import ChunkedSpec
from tests.runtime.processes import width


def spec(**members):
    made = ts.Spec({"driver": "zarr3", "kvstore": "memory://", **members}).model
    assert isinstance(made, ChunkedSpec)
    return made


def resource(kind, json):
    return ts.Context({kind: json})[kind].value


@pytest.mark.parametrize("kind", ["recheck_cached_data", "recheck_cached_metadata"])
class TestRecheckBound:
    @pytest.mark.parametrize("json", [True, False, "open", 5, 1.5, 0])
    def test_allowed(self, kind, json):
        assert getattr(spec(**{kind: json}), kind) == json

    @pytest.mark.parametrize("json", ["never", None, [], {}])
    def test_refused(self, kind, json):
        with pytest.raises(SpecError, match='"open" or a time'):
            spec(**{kind: json})


class TestResources:
    def test_a_cache_pool_keeps_nothing_by_default(self):
        assert resource("cache_pool", {}).limit_bytes == 0
        assert resource("cache_pool", {"total_bytes_limit": 1000}).limit_bytes == 1000

    def test_one_pool_a_context(self):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 7}, "cache_pool#b": {}})
        assert context["cache_pool"].value is context["cache_pool"].value
        assert context["cache_pool#b"].value is not context["cache_pool"].value

    def test_data_copy_concurrency_is_a_thread_a_core_by_default(self):
        shared = resource("data_copy_concurrency", {})
        assert shared.limit == width()
        assert resource("data_copy_concurrency", {"limit": "shared"}) is shared
        assert resource("data_copy_concurrency", {"limit": 3}).limit == 3

    def test_memory_in_flight_is_a_quarter_of_the_machines_by_default(self):
        shared = resource("memory_limit", {})
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert 64 * 2**20 <= shared.limit <= max(64 * 2**20, machine // 4)
        assert resource("memory_limit", {"limit_bytes": "shared"}) is shared
        assert resource("memory_limit", {"limit_bytes": 1000}).limit == 1000

    def test_a_memory_limit_is_printed_only_where_it_was_asked_for(self):
        spec = {"driver": "zarr3", "kvstore": "memory://a/"}
        store = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
        assert "memory_limit" not in repr(store)
        shown = store.spec(retain_context=True).to_json(include_defaults=True)
        assert "memory_limit" not in str(shown)
        limited = {**spec, "memory_limit": {"limit_bytes": 1000}}
        store = ts.open(limited, create=True, dtype="uint8", shape=[4]).result()
        found = store.spec(retain_context=True).to_json()
        assert found["memory_limit"] == {"limit_bytes": 1000}
        context = ts.Context({"memory_limit": {"limit_bytes": 1000}})
        store = ts.open(spec, create=True, dtype="uint8", shape=[4], context=context).result()
        assert "'memory_limit': {'limit_bytes': 1000}" in str(store.spec(retain_context=True))

    @pytest.mark.parametrize(
        ("kind", "json"),
        [
            ("cache_pool", {"total_bytes_limit": -1}),
            ("cache_pool", {"total_bytes_limit": "1 GB"}),
            ("cache_pool", {"total_bytes": 1}),
            ("data_copy_concurrency", {"limit": 0}),
            ("data_copy_concurrency", {"limit": "few"}),
            ("memory_limit", {"limit_bytes": 0}),
            ("memory_limit", {"limit": 5}),
        ],
    )
    def test_what_is_wrong_is_named(self, kind, json):
        with pytest.raises(SpecError) as caught:
            resource(kind, json)
        assert caught.value.path[:2] == (kind, *json)


class TestPath:
    @pytest.mark.parametrize(
        ("kvstore", "path", "joined"),
        [
            ("", "", ""), ("a", "", "a/"), ("a/", "", "a/"), ("", "b", "b/"), ("a", "b", "a/b/"),
            ("a/", "b", "a/b/"), ("a", "/b/", "a/b/"), ("a/b", "c/d", "a/b/c/d/"),
        ],
    )  # fmt: skip
    def test_joined_to_the_kvstores(self, kvstore, path, joined):
        made = spec(kvstore={"driver": "memory", "path": kvstore}, path=path)
        assert made.store_spec().path == joined

    def test_it_is_printed_once(self):
        json = spec(kvstore="memory://a", path="b").to_json()
        assert json == {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/b/"}}

    def test_no_kvstore(self):
        with pytest.raises(SpecError, match="required") as caught:
            spec().replace(kvstore=None).store_spec()
        assert caught.value.path == ("kvstore",)


class TestOpenMode:
    @pytest.mark.parametrize(
        ("members", "open_", "create"),
        [
            ({}, True, False),
            ({"open": True}, True, False),
            ({"create": True}, False, True),
            ({"create": True, "open": True}, True, True),
            ({"create": True, "open": False}, False, True),
            ({"open": False}, True, False),
        ],
    )
    def test_open_is_the_default_of_those_that_do_not_create(self, members, open_, create):
        mode = spec(**members).open_mode()
        assert (mode.open, mode.create) == (open_, create)

    def test_flags_that_exclude_each_other(self):
        with pytest.raises(SpecError, match="delete_existing"):
            spec(delete_existing=True).check_open_mode()
        with pytest.raises(SpecError, match="assume_metadata"):
            spec(create=True, assume_metadata=True).check_open_mode()


def test_defaults_are_not_printed():
    json = spec(
        create=False, recheck_cached_data=True, recheck_cached_metadata="open",
        fill_missing_data_reads=True, store_data_equal_to_fill_value=False,
    ).to_json()  # fmt: skip
    assert json == {"driver": "zarr3", "kvstore": {"driver": "memory"}}


def test_what_is_said_is_printed():
    members = {
        "create": True, "recheck_cached_data": False, "recheck_cached_metadata": 5.0,
        "fill_missing_data_reads": False, "store_data_equal_to_fill_value": True,
    }  # fmt: skip
    assert spec(**members).to_json() == {
        "driver": "zarr3", "kvstore": {"driver": "memory"}, **members
    }  # fmt: skip


def test_as_a_url():
    assert spec(kvstore="memory://a/b/").to_url() == "memory://a/b/|zarr3:"
