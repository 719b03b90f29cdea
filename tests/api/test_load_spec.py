import json
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py._api.spec_file import clean_json, load_json

SPEC = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/"}}


@pytest.fixture
def save(tmp_path):
    def write(content):
        file = tmp_path / "a.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return file

    return write


def test_notes_are_dropped_wherever_they_stand(save):
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


def test_a_path_may_be_text(save):
    assert ts.load_spec(str(save(SPEC))).to_json() == SPEC
    assert (
        ts.open(save({**SPEC, "$schema": "x"}), create=True, dtype="int8", shape=[3])
        .result()[0]
        .shape
        == ()
    )


def where(file):
    json: Any = ts.load_spec(file).to_json()
    return json["kvstore"]["path"]


def test_the_environment_is_left_alone_by_default(save, monkeypatch):
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
def test_references_to_the_environment(monkeypatch, text, expected):
    monkeypatch.setenv("WHERE", "there")
    monkeypatch.delenv("NOWHERE", raising=False)
    if expected is None:
        with pytest.raises(ts.SpecError, match="is not set") as caught:
            clean_json({"a": ["b", text]}, env=True)
        assert caught.value.path == ("a", 1)
    else:
        assert clean_json({"a": ["b", text]}, env=True) == {"a": ["b", expected]}


def test_an_unset_variable_is_named_with_its_nearest(monkeypatch):
    monkeypatch.setenv("PROJECT_DATA_ROOT", "x")
    with pytest.raises(ts.SpecError, match=r'PROJECT_DATA_ROT is not set.*"PROJECT_DATA_ROOT"'):
        clean_json("${PROJECT_DATA_ROT}", env=True)


def test_data_of_the_user_is_not_touched(monkeypatch):
    monkeypatch.setenv("WHERE", "there")
    data = {"metadata": {"attributes": {"$comment": "${WHERE}"}}, "array": ["${WHERE}"]}
    assert clean_json(data, env=True) == data


def test_errors_name_the_file(save, tmp_path):
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
        load_json(tmp_path)
