import pytest

import tensorstore_py as ts
from tensorstore_py._api.spec_file import clean_json, in_file, load_json


def test_json_of_a_file(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"$schema": "x", "a": [1, "${A}"]}', "utf-8")
    assert load_json(file) == {"a": [1, "${A}"]}
    assert load_json(str(file)) == load_json(file)


def test_an_error_in_a_file_keeps_its_path():
    error = in_file(ts.SpecError("wrong", ("a", 0)), "b.json")
    assert str(error) == "a[0]: wrong (in b.json)"
    assert error.path == ("a", 0)


def test_names_of_members_are_not_replaced(monkeypatch):
    monkeypatch.setenv("A", "b")
    assert clean_json({"${A}": "${A}"}, env=True) == {"${A}": "b"}


@pytest.fixture
def array(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/a/"}}
    ts.open(spec, create=True, dtype="int8", shape=[3]).result()[...] = 5
    return tmp_path / "a"


def test_a_local_path_wherever_there_is_one(array):
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


def test_a_path_of_one_file_is_its_key(array):
    assert ts.KvStore.Spec(array / "zarr.json").path == f"{array}/zarr.json"


def test_a_relative_path_is_where_the_program_is(array, monkeypatch):
    monkeypatch.chdir(array.parent)
    assert ts.KvStore.Spec(type(array)("a")).path == f"{array}/"


def test_a_spec_file_as_a_spec(array):
    file = array.parent / "b.json"
    file.write_text('{"driver": "zarr3", "kvstore": "memory://b/"}', "utf-8")
    assert ts.Spec(file).kvstore == ts.KvStore.Spec("memory://b/")


@pytest.mark.parametrize("member", ["dtype", "rank", "schema", "metadata"])
def test_elsewhere_a_path_is_refused(array, member):
    with pytest.raises((ts.SpecError, TypeError)):
        ts.Spec({"driver": "zarr3", "kvstore": "memory://", member: array})
