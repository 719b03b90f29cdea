"""Specs: in files, by keyword arguments, and what is wrong with them."""

import copy
import json
from typing import Any

import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py import IndexingError, SpecError, TensorStoreError

SPEC = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/"}}


@pytest.fixture
def save(tmp_path):
    def write(content):
        file = tmp_path / "a.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return file

    return write


def where(file):
    json: Any = ts.load_spec(file).to_json()
    return json["kvstore"]["path"]


class TestLoadSpec:
    def test_notes_are_dropped_wherever_they_stand(self, save):
        noted = {
            "$schema": "x.json",
            "driver": "zarr3",
            "kvstore": {"$comment": "here", "driver": "memory", "path": "a/"},
            "schema": {"$comment": ["a"], "domain": {"shape": [3], "$comment": 5}},
            "metadata": {"$comment": "b", "attributes": {"$comment": "mine"}},
        }
        found: Any = ts.load_spec(save(noted)).to_json()
        assert found["metadata"]["attributes"] == {"$comment": "mine"}
        assert str(found).count("$comment") == 1
        assert "$schema" not in str(found)

    def test_a_path_may_be_text(self, save):
        assert ts.load_spec(str(save(SPEC))).to_json() == SPEC
        assert (
            ts.open(save({**SPEC, "$schema": "x"}), create=True, dtype="int8", shape=[3])
            .result()[0]
            .shape
            == ()
        )

    def test_the_environment_is_left_alone_by_default(self, save, monkeypatch):
        monkeypatch.setenv("WHERE", "there")
        file = save({**SPEC, "kvstore": "memory://%24{WHERE}/"})
        assert where(file) == "${WHERE}/"
        file = save({**SPEC, "kvstore": {"driver": "memory", "path": "${WHERE}/"}})
        assert where(file) == "${WHERE}/"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("${WHERE}/", "there/"),
            ("a/${WHERE}/${WHERE}", "a/there/there"),
            ("${NOWHERE:-b}/", "b/"),
            ("${NOWHERE:-}", ""),
            ("${WHERE:-b}", "there"),
            ("$${WHERE}", "${WHERE}"),
            ("$WHERE", "$WHERE"),
            ("${}", None),
            ("${NOWHERE}", None),
        ],
    )
    def test_references_to_the_environment(self, save, monkeypatch, text, expected):
        monkeypatch.setenv("WHERE", "there")
        monkeypatch.delenv("NOWHERE", raising=False)
        file = save({**SPEC, "schema": {"domain": {"shape": [1], "labels": [text]}}})
        if expected is None:
            with pytest.raises(ts.SpecError, match="is not set") as caught:
                ts.load_spec(file, env=True)
            assert caught.value.path == ("schema", "domain", "labels", 0)
        else:
            found: Any = ts.load_spec(file, env=True)
            assert found.domain.labels == (expected,)

    def test_an_unset_variable_is_named_with_its_nearest(self, save, monkeypatch):
        monkeypatch.setenv("PROJECT_DATA_ROOT", "x")
        with pytest.raises(ts.SpecError, match=r'PROJECT_DATA_ROT is not set.*"PROJECT_DATA_ROOT"'):
            ts.load_spec(save({**SPEC, "kvstore": "${PROJECT_DATA_ROT}"}), env=True)

    def test_data_of_the_user_is_not_touched(self, save, monkeypatch):
        monkeypatch.setenv("WHERE", "there")
        metadata = {"attributes": {"$comment": "${WHERE}"}}
        found: Any = ts.load_spec(save({**SPEC, "metadata": metadata}), env=True).to_json()
        assert found["metadata"]["attributes"] == metadata["attributes"]
        array = save({"driver": "array", "array": ["${WHERE}"], "dtype": "ustring"})
        assert ts.open(ts.load_spec(array, env=True)).result().read().result().tolist() == [
            "${WHERE}"
        ]

    def test_errors_name_the_file(self, save, tmp_path):
        with pytest.raises(ts.SpecError, match=r"did you mean .*a\.json") as caught:
            ts.load_spec(save({**SPEC, "kvstor": 3}))
        assert caught.value.path == ("kvstor",)
        with pytest.raises(ts.SpecError, match=r"line 1, column 2.*a\.json"):
            ts.load_spec(save("{,"))
        with pytest.raises(ts.SpecError, match=r"given twice.*a\.json"):
            ts.load_spec(save('{"driver": "zarr", "driver": "zarr3"}'))
        with pytest.raises(ts.NotFoundError, match=r"none\.json does not exist"):
            ts.load_spec(tmp_path / "none.json")
        with pytest.raises(ts.SpecError, match="is a directory"):
            ts.load_spec(tmp_path)


@pytest.fixture
def array(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/a/"}}
    ts.open(spec, create=True, dtype="int8", shape=[3]).result()[...] = 5
    return tmp_path / "a"


class TestSpecFile:
    def test_a_file_by_its_path_or_its_name(self, tmp_path):
        file = tmp_path / "a.json"
        file.write_text('{"$schema": "x", "driver": "zarr3", "kvstore": "memory://${A}/"}', "utf-8")
        assert ts.load_spec(file).kvstore == ts.KvStore.Spec("memory://${A}/")
        assert ts.load_spec(str(file)) == ts.load_spec(file)

    def test_names_of_members_are_not_replaced(self, tmp_path, monkeypatch):
        monkeypatch.setenv("A", "dtype")
        file = tmp_path / "a.json"
        file.write_text('{"driver": "zarr3", "kvstore": "memory://", "${A}": "int8"}', "utf-8")
        with pytest.raises(ts.SpecError) as caught:
            ts.load_spec(file, env=True)
        assert caught.value.path == ("${A}",)

    def test_a_local_path_wherever_there_is_one(self, array):
        where = f"{array}/"
        for spec in (
            {"driver": "zarr3", "kvstore": array},
            {"driver": "zarr3", "kvstore": {"driver": "file", "path": array}},
            {"driver": "auto", "kvstore": array},
            {"driver": "cast", "base": array, "dtype": "int8"},
            array,
        ):
            store = ts.open(spec).result()
            assert store.kvstore is not None
            assert store.kvstore.path == where
            assert store.read().result().tolist() == [5, 5, 5]
        assert ts.open({"driver": "zarr3"}, kvstore=array).result().shape == (3,)
        assert ts.KvStore.open(array).result().path == where
        assert ts.KvStore.Spec(array).to_json() == {"driver": "file", "path": where}
        assert ts.Spec(array).to_json() == {
            "driver": "auto",
            "kvstore": {"driver": "file", "path": where},
        }

    def test_a_path_of_one_file_is_its_key(self, array):
        assert ts.KvStore.Spec(array / "zarr.json").path == f"{array}/zarr.json"

    def test_a_relative_path_is_where_the_program_is(self, array, monkeypatch):
        monkeypatch.chdir(array.parent)
        assert ts.KvStore.Spec(type(array)("a")).path == f"{array}/"

    def test_a_spec_file_as_a_spec(self, array):
        file = array.parent / "b.json"
        file.write_text('{"driver": "zarr3", "kvstore": "memory://b/"}', "utf-8")
        assert ts.Spec(file).kvstore == ts.KvStore.Spec("memory://b/")

    @pytest.mark.parametrize("member", ["dtype", "rank", "schema", "metadata"])
    def test_elsewhere_a_path_is_refused(self, array, member):
        with pytest.raises((ts.SpecError, TypeError)):
            ts.Spec({"driver": "zarr3", "kvstore": "memory://", member: array})


PLAIN = {"driver": "zarr3", "kvstore": "memory://a/"}


FULL = {
    **PLAIN,
    "schema": {"dtype": "uint8", "domain": {"shape": [4, 6], "labels": ["y", "x"]}},
    "create": True,
}


BARE = {"driver": "zarr3"}


CASES = [
    (PLAIN, "dict(dtype='uint8')"),
    (PLAIN, "dict(dtype=np.float32, shape=[3, 4])"),
    (PLAIN, "dict(rank=2)"),
    (PLAIN, "dict(rank=2, dtype='int8', dimension_units=['nm', None])"),
    (PLAIN, "dict(domain=ts.IndexDomain(shape=[3], labels=['x']))"),
    (PLAIN, "dict(shape=[3, 4], chunk_layout=ts.ChunkLayout(chunk_shape=[2, 2]))"),
    (PLAIN, "dict(chunk_layout=ts.ChunkLayout(inner_order=[1, 0]))"),
    (PLAIN, "dict(fill_value=5, dtype='uint8', rank=1)"),
    (PLAIN, "dict(codec=ts.CodecSpec({'driver': 'zarr3', 'codecs': [{'name': 'gzip'}]}))"),
    (PLAIN, "dict(schema=ts.Schema(dtype='uint8', rank=2))"),
    (PLAIN, "dict(schema=ts.Schema(dtype='uint8'), rank=3)"),
    (PLAIN, "dict(open=True)"),
    (PLAIN, "dict(create=True)"),
    (PLAIN, "dict(create=True, open=True)"),
    (PLAIN, "dict(create=True, delete_existing=True)"),
    (PLAIN, "dict(open_mode=ts.OpenMode(create=True, delete_existing=True))"),
    (PLAIN, "dict(assume_metadata=True)"),
    (PLAIN, "dict(assume_cached_metadata=True)"),
    (PLAIN, "dict(recheck_cached=True)"),
    (PLAIN, "dict(recheck_cached=False)"),
    (PLAIN, "dict(recheck_cached_data=False, recheck_cached_metadata=True)"),
    (PLAIN, "dict(recheck_cached_data='open')"),
    (PLAIN, "dict(recheck_cached_metadata=5.0)"),
    (PLAIN, "dict(recheck_cached='never')"),
    (PLAIN, "dict(dtype='uint9')"),
    (PLAIN, "dict(rank=2, shape=[1])"),
    (PLAIN, "dict(fill_value=[1, 2], shape=[2, 3])"),
    (PLAIN, "dict(dimension_units=['nm'], rank=2)"),
    (BARE, "dict(kvstore=ts.KvStore.Spec('memory://b/'))"),
    (FULL, "dict(dtype='uint8')"),
    (FULL, "dict(dtype='int8')"),
    (FULL, "dict(shape=[4, 6])"),
    (FULL, "dict(shape=[4, 7])"),
    (FULL, "dict(rank=3)"),
    (FULL, "dict(open=True)"),
    (FULL, "dict(create=False)"),
    (FULL, "dict(minimal_spec=True)"),
    (FULL, "dict(strip_context=True)"),
    (FULL, "dict(unbind_context=True)"),
    (FULL, "dict(context=ts.Context(), unbind_context=True)"),
]


def outcome(library, json, options):
    import numpy as np

    try:
        spec = library.Spec(json)
        spec.update(**eval(options, {"ts": library, "np": np}))
        return spec.to_json()
    except Exception as error:
        return error


class TestOptions:
    @pytest.mark.parametrize(("json", "options"), CASES, ids=[case[1] for case in CASES])
    def test_next_to_the_reference(self, json, options):
        mine, theirs = (outcome(library, json, options) for library in (ts, wheel))
        if isinstance(theirs, Exception):
            assert isinstance(mine, type(theirs)), (mine, theirs)
        else:
            assert mine == theirs

    def test_none_leaves_everything_as_it_is(self):
        spec = ts.Spec(FULL)
        spec.update(**dict.fromkeys(["dtype", "shape", "create", "recheck_cached", "kvstore"]))
        assert spec == ts.Spec(FULL)

    def test_the_spec_given_is_not_changed(self):
        given = ts.Spec(PLAIN)
        ts.Spec(given, dtype="uint8", create=True, recheck_cached=False)
        assert given.to_json() == ts.Spec(PLAIN).to_json()

    def test_an_unknown_one_names_the_nearest(self):
        with pytest.raises(TypeError, match='did you mean "dtype"'):
            ts.Spec(PLAIN).update(dtpe="uint8")  # type: ignore[call-arg]

    @pytest.mark.parametrize("kvstore", ["memory://b/", {"driver": "memory", "path": "b/"}])
    def test_a_kvstore_in_any_of_its_forms(self, kvstore):
        made = ts.Spec(BARE, kvstore=kvstore)
        assert made.to_json() == {**BARE, "kvstore": {"driver": "memory", "path": "b/"}}

    def test_a_kvstore_is_given_once(self):
        with pytest.raises(SpecError, match="already") as caught:
            ts.Spec(PLAIN).update(kvstore="memory://")
        assert caught.value.path == ("kvstore",)


METADATA = {
    "shape": [4, 6],
    "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip"}],
    "fill_value": 7,
    "dimension_names": ["y", None],
}


SPECS = {
    "bare": {"driver": "zarr3"},
    "plain": {"driver": "zarr3", "kvstore": "memory://a/"},
    "path": {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a"}, "path": "b/c"},
    "typed": {"driver": "zarr3", "kvstore": "memory://", "dtype": "float32"},
    "ranked": {"driver": "zarr", "kvstore": "memory://", "rank": 3},
    "schema": {
        "driver": "zarr3", "kvstore": "memory://", "create": True,
        "schema": {
            "dtype": "int8", "domain": {"shape": [4, 6]}, "fill_value": 3,
            "dimension_units": [[1, "nm"], None], "chunk_layout": {"chunk": {"shape": [2, 2]}},
        },
    },
    "metadata": {"driver": "zarr3", "kvstore": "memory://", "metadata": METADATA},
    "v2": {
        "driver": "zarr", "kvstore": "memory://", "field": "b",
        "metadata": {"shape": [4, 6], "dtype": [["a", "<u2"], ["b", "|i1"]], "chunks": [2, 3]},
    },
    "transform": {
        "driver": "zarr3", "kvstore": "memory://",
        "transform": {"input_shape": [3], "output": [{"input_dimension": 0, "offset": 1}]},
    },
    "flags": {
        "driver": "zarr", "kvstore": "memory://", "open": True, "create": True,
        "recheck_cached_data": False, "fill_missing_data_reads": False,
        "store_data_equal_to_fill_value": True,
    },
    "context": {
        "driver": "zarr3", "kvstore": "memory://", "cache_pool": "cache_pool#a",
        "context": {"cache_pool#a": {"total_bytes_limit": 5}},
    },
}  # fmt: skip


@pytest.fixture(params=SPECS)
def pair(request):
    json = SPECS[request.param]
    return ts.Spec(json), wheel.Spec(json)


class TestSpec:
    def test_printed_alike(self, pair):
        mine, theirs = pair
        assert mine.to_json() == theirs.to_json()
        assert mine.to_json().keys() <= mine.to_json(include_defaults=True).keys()
        assert repr(mine) == repr(theirs)

    @pytest.mark.parametrize("name", ["rank", "ndim"])
    def test_plain_properties(self, pair, name):
        mine, theirs = pair
        assert getattr(mine, name) == getattr(theirs, name)

    @pytest.mark.parametrize(
        "name", ["transform", "domain", "dtype", "schema", "chunk_layout", "codec", "kvstore"]
    )
    def test_properties_that_have_a_json_form(self, pair, name):
        mine, theirs = (getattr(spec, name) for spec in pair)
        assert (mine is None) == (theirs is None)
        if theirs is not None:
            assert mine.to_json() == theirs.to_json()

    def test_the_other_properties(self, pair):
        mine, theirs = pair
        for flag in ("open", "create", "delete_existing", "assume_metadata"):
            assert getattr(mine.open_mode, flag) == getattr(theirs.open_mode, flag)
        assert (mine.fill_value is None) == (theirs.fill_value is None)
        if theirs.fill_value is not None:
            assert mine.fill_value.tobytes() == theirs.fill_value.tobytes()
        units = theirs.dimension_units
        assert mine.dimension_units == (
            None
            if units is None
            else tuple(unit and ts.Unit(json=unit.to_json()) for unit in units)
        )
        assert mine.base is theirs.base is None

    @pytest.mark.parametrize("view", ["x[1:3]", "x[..., 2]", "x.transpose()", "x.translate_by[2]"])
    def test_views_of_specs(self, pair, view):
        outcome = []
        for spec in pair:
            try:
                outcome.append(eval(view, {"x": spec}).to_json())
            except Exception as error:
                outcome.append(error)
        mine, theirs = outcome
        if isinstance(theirs, Exception):
            assert isinstance(mine, type(theirs))
        else:
            assert mine == theirs

    def test_copies_are_equal_and_independent(self, pair):
        spec, _ = pair
        for made in (spec.copy(), copy.copy(spec), copy.deepcopy(spec)):
            assert made == spec
            made.update(create=True, open=True, recheck_cached=0.5)
            assert made != spec

    def test_a_spec_of_a_spec(self):
        spec = ts.Spec(SPECS["plain"])
        assert ts.Spec(spec, dtype="uint8").dtype == ts.uint8
        assert spec.dtype is None

    def test_nothing_to_index_without_a_rank(self):
        with pytest.raises(IndexingError, match="rank"):
            ts.Spec(SPECS["plain"])[0]

    def test_no_spec_at_all(self):
        for given in (None, 5, (), "zarr3"):
            with pytest.raises(SpecError):
                ts.Spec(given)

    @pytest.mark.parametrize("name", ["plain", "path"])
    def test_urls(self, name):
        mine, theirs = ts.Spec(SPECS[name]), wheel.Spec(SPECS[name])
        assert mine.url == theirs.url
        assert ts.Spec(mine.url).to_json() == wheel.Spec(theirs.url).to_json()


ZARR3 = {"driver": "zarr3", "kvstore": "memory://"}


ZARR2 = {"driver": "zarr", "kvstore": "memory://"}


def zarr3(**metadata):
    return {**ZARR3, "metadata": metadata}


def zarr2(**metadata):
    return {**ZARR2, "metadata": metadata}


def codec(name, **configuration):
    return zarr3(codecs=[{"name": name, "configuration": configuration}])


WRONG = [
    ({}, "driver", "required|missing"),
    ({"driver": 5}, "driver", "5"),
    ({"driver": "zar3"}, "driver", 'did you mean "zarr3"'),
    ({"driver": "zarr3", "kvstor": "memory://"}, "kvstor", 'did you mean "kvstore"'),
    ({"driver": "zarr3", "kvstore": {"driver": "fil"}}, "kvstore.driver", 'did you mean "file"'),
    ({"driver": "zarr3", "kvstore": {"path": "a"}}, "kvstore.driver", "required|missing"),
    ({"driver": "zarr3", "kvstore": "filee:///a"}, "kvstore", 'did you mean "file'),
    ({"driver": "zarr3", "kvstore": {"driver": "file", "path": 7}}, "kvstore.path", "7"),
    ({**ZARR3, "dtype": "uint9"}, "dtype", "uint"),
    ({**ZARR3, "rank": -1}, "rank", "-1"),
    ({**ZARR3, "rank": 33}, "rank", "33"),
    ({**ZARR3, "create": "yes"}, "create", '"yes"'),
    ({**ZARR3, "recheck_cached_data": "never"}, "recheck_cached_data", '"open"'),
    ({**ZARR3, "context": {"cache_pol": {}}}, "context.cache_pol", 'did you mean "cache_pool"'),
    (
        {**ZARR3, "context": {"cache_pool": {"total_bytes_limit": -5}}},
        "context.cache_pool.total_bytes_limit",
        "-5",
    ),
    ({**ZARR3, "cache_pool": {"total_bytes": 5}}, "cache_pool.total_bytes", "total_bytes_limit"),
    ({**ZARR3, "transform": {"input_rnk": 1}}, "transform.input_rnk", "input_rank"),
    ({**ZARR3, "schema": {"chunk_layot": {}}}, "schema.chunk_layot", "chunk_layout"),
    (
        {**ZARR3, "schema": {"chunk_layout": {"chunk": {"shape": [-2]}}}},
        r"schema.chunk_layout.chunk.shape[0]",
        "-2",
    ),
    (zarr3(shpe=[1]), "metadata.shpe", 'did you mean "shape"'),
    (zarr3(shape=[-1]), "metadata.shape[0]", "-1"),
    (zarr3(shape="big"), "metadata.shape", '"big"'),
    (zarr3(data_type="unit8"), "metadata.data_type", 'did you mean "uint8"'),
    (zarr3(chunk_grid={"name": "regula"}), "metadata.chunk_grid.name", "regular"),
    (
        zarr3(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0]}}),
        "metadata.chunk_grid.configuration.chunk_shape[0]",
        "0",
    ),
    (zarr3(chunk_key_encoding={"name": "v3"}), "metadata.chunk_key_encoding.name", "default"),
    (codec("gzp"), "metadata.codecs[0].name", 'did you mean "gzip"'),
    (codec("gzip", level=10), "metadata.codecs[0].configuration.level", "10"),
    (codec("gzip", lvl=1), "metadata.codecs[0].configuration.lvl", 'did you mean "level"'),
    (codec("blosc", cname="lz5"), "metadata.codecs[0].configuration.cname", "lz4"),
    (codec("blosc", shuffle="bits"), "metadata.codecs[0].configuration.shuffle", "bitshuffle"),
    (codec("bytes", endian="middle"), "metadata.codecs[0].configuration.endian", "little"),
    (
        codec("sharding_indexed", chunk_shape=[2], codecs=[{"name": "zsdt"}]),
        "metadata.codecs[0].configuration.codecs[0].name",
        'did you mean "zstd"',
    ),
    (zarr2(dtype="<u3"), "metadata.dtype", "<u3"),
    (zarr2(chunks=[0]), "metadata.chunks[0]", "0"),
    (zarr2(order="Fortran"), "metadata.order", '"Fortran"'),
    (zarr2(compressor={"id": "zlb"}), "metadata.compressor.id", 'did you mean "zlib"'),
    (zarr2(compressor={"id": "zlib", "level": 11}), "metadata.compressor.level", "11"),
    (zarr2(compressor={"level": 1}), "metadata.compressor.id", "required|missing"),
    (zarr2(zarr_format=3), "metadata.zarr_format", "3"),
    (zarr2(dimension_separator=":"), "metadata.dimension_separator", '":"'),
    (zarr2(fillvalue=1), "metadata.fillvalue", 'did you mean "fill_value"'),
]


class TestBadSpecs:
    @pytest.mark.parametrize(("spec", "path", "hint"), WRONG, ids=[case[1] for case in WRONG])
    def test_named_by_its_json_path_with_what_is_allowed(self, spec, path, hint):
        import re

        with pytest.raises(SpecError) as caught:
            ts.Spec(spec)
        message = str(caught.value)
        assert message.startswith(f"{path}: "), message
        assert re.search(hint, message), message
        with pytest.raises(SpecError):
            ts.open(spec)

    def test_it_is_what_the_reference_raises(self):
        with pytest.raises(ValueError):
            ts.open({"driver": "nope"})
        assert issubclass(SpecError, TensorStoreError)

    def test_a_metadata_document_that_is_wrong_names_its_key(self, tmp_path):
        from tensorstore_py.errors import DataLossError

        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
        document = tmp_path / "zarr.json"
        good = document.read_text()
        for bad in (
            "", "{", "[]", "null", good[:-10], good.replace('"uint8"', '"uint9"'),
            good.replace('"zarr_format":3', '"zarr_format":7'), "\xff", good.replace("[4]", "[-4]"),
            '{"zarr_format":3,"node_type":"group"}',
        ):  # fmt: skip
            document.write_bytes(bad.encode("latin-1"))
            with pytest.raises(ValueError, match=r"zarr\.json") as caught:
                ts.open(spec).result()
            assert isinstance(caught.value, (DataLossError, TensorStoreError)), bad

    def test_a_codec_that_is_not_known_is_named_by_the_document(self, tmp_path):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
        document = tmp_path / "zarr.json"
        document.write_text(document.read_text().replace('"bytes"', '"bytez"'))
        with pytest.raises((ValueError, NotImplementedError), match=r"zarr\.json.*bytez"):
            ts.open(spec).result()
