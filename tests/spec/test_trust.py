"""Specs that are not trusted: what is refused, where, and what is let pass."""

import json
import os
import sys

import numcodecs
import numcodecs.abc
import pytest

import tensorstore_py as ts
from tensorstore_py._spec.codec_spec import codec_specs
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import (
    admits,
    chunk_grids,
    chunk_key_encodings,
    codecs,
    drivers,
    foreign_classes,
    is_built_in,
    kvstores,
    not_admitted,
    only_built_in,
    resources,
)
from tensorstore_py.plugin import kvstore

PUBLIC = "s3://bucket/public/"


TRUST = ts.Trust(stores=[PUBLIC, "memory://", "https://host/data/", "file:///data/"])


def refused(spec, trust=TRUST, kind=ts.Spec):
    """The path and the problem of the error that a spec is refused with."""
    with pytest.raises(ts.SpecError) as caught:
        kind(spec, trust=trust)
    return caught.value.path, caught.value.problem


def where(spec):
    assert spec.kvstore is not None
    return spec.kvstore.path


# Each member of each registered class that a spec that is not trusted may not set freely. A member
# that is new has to be thought about: it is mere data, or it comes here.
GUARDED = {
    "driver array": set(),
    "driver auto": {"path", "create", "delete_existing", "assume_metadata"},
    "driver cast": set(),
    "driver downsample": set(),
    "driver json": {"path"},
    "driver n5": {"path", "create", "delete_existing"},
    "driver stack": set(),
    "driver zarr": {
        "path", "create", "delete_existing", "metadata_key_", "allow_pickle",
    },
    "driver zarr3": {"path", "create", "delete_existing"},
    "kvstore driver file": {"path"},
    "kvstore driver fsspec": {
        "path", "url", "filesystem", "storage_options", "use_conditional_write",
    },
    "kvstore driver gcs": {"path", "bucket", "gcs_user_project"},
    "kvstore driver http": {"path", "base_url", "headers"},
    "kvstore driver kvstack": {"path"},
    "kvstore driver memory": {"path"},
    "kvstore driver obstore": {"path", "url", "store", "config", "use_conditional_write"},
    "kvstore driver ocdbt": {
        "path", "assume_config", "coordinator", "value_data_prefix", "btree_node_data_prefix",
        "version_tree_node_data_prefix", "target_data_file_size",
    },
    "kvstore driver safetensors": {"path"},
    "kvstore driver union": {"path"},
    "kvstore driver zarr_store": {"path", "store"},
    "kvstore driver s3": {
        "path", "bucket", "aws_region", "endpoint", "host_header", "requester_pays",
        "use_conditional_write",
    },
    "kvstore driver zip": {"path"},
    "context resource aws_credentials": {
        "profile", "config_file", "credentials_file", "endpoint", "auth_token_file",
    },
    "context resource fsspec_storage_options": {"values"},
    "context resource gcs_user_project": {"project_id"},
    "context resource ocdbt_coordinator": {"address", "lease_duration", "security"},
    "context resource unpacking_limit": {"limit_bytes"},
    "context resource obstore_config": {"values"},
}  # fmt: skip


def registered():
    registries = (
        drivers,
        kvstores,
        resources,
        chunk_grids,
        chunk_key_encodings,
        codec_specs,
    )
    for registry in registries:
        for name in registry.names():
            cls = registry.get(name)
            # Examples in docstrings register some as well, which no module has.
            known = getattr(sys.modules[cls.__module__], cls.__name__, None) is cls
            if is_built_in(cls) and issubclass(cls, Model) and known:
                yield f"{registry.kind} {name}", cls


ALLOWED = [
    f"{PUBLIC}a/|zarr3:",
    f"{PUBLIC}a.zip|zip:inner/|zarr2:",
    "memory://x/",
    "https://host/data/a/|zarr3:",
    {"driver": "zarr3", "kvstore": "file:///data/a/", "schema": {"codec": {"driver": "zarr3"}}},
    {"driver": "array", "array": [1, 2], "dtype": "int8"},
    {"driver": "cast", "dtype": "float32", "base": f"{PUBLIC}a/|zarr2:"},
    {"driver": "downsample", "downsample_factors": [2], "downsample_method": "mean",
     "base": {"driver": "n5", "kvstore": f"{PUBLIC}a/",
              "metadata": {"compression": {"type": "gzip"}}}},
    {"driver": "stack", "layers": [{"driver": "zarr3", "kvstore": "memory://a/",
                                    "transform": {"input_shape": [3]}}]},
    {"driver": "json", "kvstore": f"{PUBLIC}a.json", "json_pointer": "/a"},
    {"driver": "zarr", "kvstore": {"driver": "s3", "bucket": "bucket", "path": "public/a/",
                                   "aws_credentials": {"type": "anonymous"},
                                   "s3_request_concurrency": {"limit": 3}},
     "metadata": {"compressor": {"id": "blosc"}, "filters": [{"id": "delta", "dtype": "<i2"}]},
     "context": {"cache_pool": {"total_bytes_limit": 100}}, "cache_pool": "cache_pool#mine"},
    {"driver": "zarr3", "kvstore": "memory://a/", "metadata": {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "v2"},
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [2], "codecs": ["bytes", "gzip"]}}]}},
]  # fmt: skip


def zarr3(kvstore, **members):
    return {"driver": "zarr3", "kvstore": kvstore, **members}


def s3(**members):
    return {"driver": "s3", "bucket": "bucket", "path": "public/a/", **members}


REFUSED = [
    # other stores, and other members of them
    (zarr3("s3://bucket/public-evil/"), "kvstore"),
    (zarr3("s3://bucket/"), "kvstore"),
    (zarr3("s3://other/public/"), "kvstore"),
    (zarr3("gs://bucket/public/"), "kvstore"),
    (zarr3("file:///etc/"), "kvstore"),
    (zarr3("file:///database/"), "kvstore"),
    (zarr3("https://host/"), "kvstore"),
    (zarr3("https://host.evil/data/"), "kvstore"),
    (zarr3("http://host/data/"), "kvstore"),
    (zarr3("https://me:pw@host/data/"), "kvstore"),
    (zarr3("https://host/data/?to=evil"), "kvstore"),
    (zarr3({"driver": "http", "base_url": "https://host/data/", "headers": ["A: b"]}), "kvstore"),
    (zarr3(s3(endpoint="http://evil/")), "kvstore"),
    (zarr3(s3(requester_pays=True)), "kvstore"),
    (zarr3({"driver": "fsspec", "url": "simplecache::https://host/data/"}), "kvstore"),
    (zarr3({"driver": "fsspec", "url": "filecache::s3://bucket/public/"}), "kvstore"),
    (zarr3({"driver": "obstore", "url": "file:///data/"}), "kvstore"),
    # ways out of the path
    (zarr3({"driver": "s3", "bucket": "bucket", "path": "public/../secret/"}), "kvstore.path"),
    (zarr3({"driver": "s3", "bucket": "bucket", "path": "public/./a/"}), "kvstore.path"),
    (zarr3("https://host/data/%2e%2e/"), "kvstore.path"),
    (zarr3("https://host/data/%252e%252E/"), "kvstore.path"),
    (zarr3("https://host/data/a%255c..%255c/"), "kvstore.path"),
    (zarr3("s3://bucket/public/..%5C..%5C/"), "kvstore.path"),
    (zarr3("memory://a%0Ab/"), "kvstore.path"),
    (zarr3("s3://bucket/public/", path="../a"), "kvstore.path"),
    ({"driver": "json", "kvstore": PUBLIC, "path": "../../a"}, "kvstore.path"),
    # nested
    ("file:///etc/a.zip|zip:b/|zarr3:", "kvstore.base"),
    (zarr3({"driver": "zip", "base": {"driver": "zip", "base": "gs://bucket/a.zip"}}),
     "kvstore.base.base"),
    ({"driver": "cast", "dtype": "int8", "base": zarr3("gs://bucket/")}, "base.kvstore"),
    ({"driver": "stack", "layers": [
        {**zarr3("memory://a/"), "transform": {"input_shape": [3]}},
        {"driver": "cast", "dtype": "int8", "base": zarr3("gs://bucket/"),
         "transform": {"input_shape": [3]}}]}, "layers[1].base.kvstore"),
    ({"driver": "json", "kvstore": "file:///etc/passwd"}, "kvstore"),
    ("file:///etc/", "kvstore"),
    # what runs programs, sends files, or takes the keys of this machine
    ({"driver": "zarr", "kvstore": "memory://", "allow_pickle": True}, "allow_pickle"),
    ({"driver": "zarr", "kvstore": "memory://", "metadata_key": "../x"}, "metadata_key"),
    ({"driver": "zarr", "kvstore": "memory://", "metadata": {"filters": [{"id": "pickle"}]}},
     "metadata.filters[0]"),
    ({"driver": "zarr", "kvstore": "memory://",
      "schema": {"codec": {"driver": "zarr", "compressor": {"id": "pickle"}}}},
     "schema.codec.compressor"),
    (zarr3(s3(aws_credentials={"type": "profile", "profile": "x"})),
     "kvstore.aws_credentials.type"),
    (zarr3(s3(aws_credentials={"type": "ecs", "endpoint": "http://evil/",
                               "auth_token_file": "/etc/passwd"})),
     "kvstore.aws_credentials.type"),
    (zarr3(s3(aws_credentials="aws_credentials#admin")), "kvstore.aws_credentials"),
    (zarr3("memory://", context={"aws_credentials": {"type": "imds"}}),
     "context.aws_credentials.type"),
    (zarr3({"driver": "memory", "context": {"fsspec_storage_options": {"protocol": "x"}}}),
     "kvstore.context.fsspec_storage_options.values"),
    ({"driver": "auto", "kvstore": "memory://", "aws_credentials": {"type": "imds"}},
     "aws_credentials.type"),
    (zarr3({"driver": "file", "path": "/data/", "file_io_locking": {"mode": "none"}}),
     "kvstore.file_io_locking.mode"),
    # what makes and deletes
    (zarr3("memory://", create=True), "create"),
    (zarr3("memory://", create=True, delete_existing=True), "create"),
    # code of other packages
    (zarr3("memory://", metadata={"codecs": ["bytes", "lab.codec"]}), "metadata.codecs[1].name"),
    ({"driver": "zarr", "kvstore": "memory://", "metadata": {"compressor": {"id": "lab"}}},
     "metadata.compressor.id"),
]  # fmt: skip


class TestTrust:
    def test_every_registered_class_says_what_of_it_is_mere_data(self):
        found = {name: cls.harmless_members() for name, cls in registered()}

        assert [name for name, harmless in found.items() if harmless is None] == []
        assert {
            name: guarded
            for name, cls in registered()
            if (guarded := set(cls.model_fields) - found[name]) != GUARDED.get(name, set())
        } == {}

    def test_every_codec_but_pickles_is_mere_data(self):
        harmful = set()
        for family in ("zarr", "zarr3", "n5"):
            for name in codecs[family].names():
                cls = codecs[family].get(name)
                assert issubclass(cls, Model)
                if is_built_in(cls) and cls.harmless_members() is None:
                    harmful.add((family, name))

        assert harmful == {("zarr", "pickle")}

    def test_a_derived_class_has_to_say_it_again(self):
        class Guest(kvstore.ResourceModel):
            size: int = 3

        class Harmless(Guest):
            data_members = frozenset({"size"})

        class Derived(Harmless):
            other: int = 4

        assert Guest.harmless_members() is None
        assert Harmless.harmless_members() == frozenset({"size"})
        assert Derived.harmless_members() is None

    @pytest.mark.parametrize("spec", ALLOWED, ids=json.dumps)
    def test_data_in_named_stores_is_let_in(self, spec):
        assert ts.Spec(spec, trust=TRUST) == ts.Spec(spec)

    @pytest.mark.parametrize(("spec", "path"), REFUSED, ids=lambda value: json.dumps(value)[:90])
    def test_anything_else_is_refused_where_it_stands(self, spec, path):
        found, problem = refused(spec)

        assert ts.SpecError("", found).args[0] == f"{path}: "
        assert "trust" in problem, problem

    def test_by_default_no_store_is_trusted(self):
        assert refused("memory://a/", ts.Trust())[0] == ("kvstore",)
        assert (
            ts.Spec({"driver": "array", "array": [1], "dtype": "int8"}, trust=ts.Trust()).rank == 1
        )

    def test_a_directory_without_a_slash_is_not_its_neighbour(self):
        trust = ts.Trust(stores=["s3://bucket/pub"])

        assert where(ts.Spec("s3://bucket/pub/a/|zarr3:", trust=trust)) == "pub/a/"
        assert ts.KvStore.Spec("s3://bucket/pub", trust=trust).path == "pub"
        assert refused("s3://bucket/public/", trust, ts.KvStore.Spec)[0] == ()

    def test_what_was_named_with_a_store_goes_with_it(self):
        named = {"driver": "http", "base_url": "https://host/", "headers": ["Authorization: me"]}
        trust = ts.Trust(stores=[named])

        assert ts.KvStore.Spec({**named, "path": "a/"}, trust=trust).path == "/a/"
        assert "headers" in refused("https://host/a/", trust, ts.KvStore.Spec)[1]

    def test_stores_are_named_in_any_of_their_forms(self, tmp_path):
        for store in (tmp_path, f"file://{tmp_path}/", ts.KvStore.Spec(f"file://{tmp_path}/")):
            trust = ts.Trust(stores=[store])
            assert where(ts.Spec(f"file://{tmp_path}/a/", trust=trust)) == f"{tmp_path}/a/"

    def test_naming_goes_wrong_by_name(self):
        with pytest.raises(TypeError, match=r"stores=\['memory://'\]"):
            ts.Trust(stores="memory://")
        with pytest.raises(ts.SpecError, match=r"^stores\[1\]: .*name that one"):
            ts.Trust(stores=["memory://", "memory://a.zip|zip:"])
        with pytest.raises(ts.SpecError, match=r'^stores\[0\]: unsupported URL scheme "s4"'):
            ts.Trust(stores=["s4://bucket/"])

    def test_users_that_may_write_may_create_and_delete(self):
        trust = ts.Trust(stores=["memory://"], write=True)

        spec = zarr3("memory://a/", create=True, delete_existing=True)

        assert ts.Spec(spec, trust=trust) == ts.Spec(spec)

    def test_contexts_and_stores_by_themselves_are_checked_too(self):
        trust = ts.Trust(stores=["memory://a/"])

        assert refused("memory://b/", trust, ts.KvStore.Spec)[0] == ()
        assert ts.KvStore.Spec("memory://a/b", trust=trust).path == "a/b"
        found = refused({"aws_credentials#x": {"type": "profile"}}, trust, ts.Context.Spec)[0]
        assert found == ("aws_credentials#x", "type")
        limits = {"cache_pool": {"total_bytes_limit": 3}}
        assert ts.Context.Spec(limits, trust=trust) == ts.Context.Spec(limits)

    def test_a_plug_in_is_refused_before_its_code_runs_and_may_be_named(self):
        ran = []

        class Guest(kvstore.KvStoreSpec):
            @classmethod
            def parse_frozen(cls, json):
                ran.append(json)
                return super().parse_frozen(json)

            @classmethod
            def from_url(cls, url):
                ran.append(url)
                return {"driver": "trust_test_guest", "path": "x"}

        kvstore.kvstore("trust_test_guest", schemes=["trust-test-guest"])(Guest)
        for json_spec in ({"driver": "trust_test_guest"}, "trust-test-guest://x"):
            problem = refused(json_spec, TRUST, ts.KvStore.Spec)[1]
            assert 'plugins=["trust_test_guest"]' in problem
            assert ran == []

        trust = ts.Trust(stores=[{"driver": "trust_test_guest"}], plugins=["trust_test_guest"])
        ran.clear()
        assert ts.KvStore.Spec("trust-test-guest://x", trust=trust).path == "x"
        # What trusted code parsed before is known by its JSON; it is refused all the same.
        ts.KvStore.Spec({"driver": "trust_test_guest"})
        assert "plug-in" in refused({"driver": "trust_test_guest"}, TRUST, ts.KvStore.Spec)[1]

    def test_a_codec_of_numcodecs_registry_is_refused_before_it_is_made(self):
        made = []

        class Codec(numcodecs.abc.Codec):  # type: ignore[misc]
            codec_id = "trust_test_codec"

            def __init__(self):
                made.append(self)

            def encode(self, buf):
                return buf

            def decode(self, buf, out=None):
                return buf

        numcodecs.register_codec(Codec)
        spec = {
            "driver": "zarr",
            "kvstore": "memory://",
            "metadata": {"filters": [{"id": "trust_test_codec"}]},
        }

        assert refused(spec)[0] == ("metadata", "filters", 0, "id")
        assert made == []
        trust = ts.Trust(stores=["memory://"], plugins=["trust_test_codec"])
        ts.Spec(spec, trust=trust)
        assert len(made) == 1
        # It is known from now on.
        assert refused(spec)[0] == ("metadata", "filters", 0)

    def test_a_spec_file_is_refused_by_name_and_does_not_see_the_environment(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("SECRET", "swordfish")
        file = tmp_path / "job.json"
        file.write_text('{"driver": "zarr3", "kvstore": "https://evil/${SECRET}/"}')

        with pytest.raises(ts.SpecError, match=r"^kvstore: .*job\.json"):
            ts.load_spec(file, trust=TRUST)
        with pytest.raises(ValueError, match="env=True"):
            ts.load_spec(file, trust=TRUST, env=True)

        file.write_text('{"driver": "zarr3", "kvstore": "memory://a/"}')
        assert ts.load_spec(file, trust=TRUST) == ts.Spec("memory://a/|zarr3:")
        assert ts.Spec(file, trust=TRUST) == ts.load_spec(os.fspath(file))

    def test_errors_show_no_secrets(self):
        path, problem = refused(zarr3("https://me:swordfish@evil/?token=swordfish"))

        assert path == ("kvstore",)
        assert "swordfish" not in problem
        assert "https://evil" in problem

    def test_a_trust_says_what_it_is(self):
        trust = ts.Trust(stores=["memory://a/"], plugins=["b", "a"], write=True)

        assert repr(trust) == "Trust(stores=['memory://a/'], plugins=['a', 'b'], write=True)"


class TestGuests:
    def test_anything_is_admitted_unless_it_was_restricted(self):
        assert admits("guest")
        with only_built_in(frozenset({"lab"})):
            assert (admits("lab"), admits("guest")) == (True, False)
        with pytest.raises(KeyError), only_built_in(frozenset()):
            raise KeyError
        assert admits("guest")

    def test_what_is_built_in_is_of_this_package_and_runs_no_code_of_others(self):
        class Guest:
            pass

        class Dressed:
            __module__ = ts.__name__ + ".codecs.numcodecs"

        assert is_built_in(ts.Spec)
        assert not is_built_in(Guest)
        assert is_built_in(Dressed)
        foreign_classes.add(Dressed)
        try:
            assert not is_built_in(Dressed)
        finally:
            foreign_classes.remove(Dressed)

    def test_the_error_says_how_to_admit_it(self):
        assert 'Trust(plugins=["lab"])' in str(not_admitted("driver", "lab"))
