import pytest

from tensorstore_py._api.spec import parse_spec
from tensorstore_py._chunked.spec import ChunkedSpec, recheck_bound
from tensorstore_py.errors import SpecError


def spec(**members):
    made = parse_spec({"driver": "zarr3", "kvstore": "memory://", **members})
    assert isinstance(made, ChunkedSpec)
    return made


class TestRecheckBound:
    @pytest.mark.parametrize("json", [True, False, "open", 5, 1.5, 0])
    def test_allowed(self, json):
        assert recheck_bound(json) == json

    @pytest.mark.parametrize("json", ["never", None, [], {}])
    def test_refused(self, json):
        with pytest.raises(SpecError, match='"open" or a time'):
            recheck_bound(json)


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
