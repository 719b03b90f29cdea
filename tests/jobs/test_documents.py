from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.documents import Document, as_place, in_memory, parsed


def test_is_written_and_read_at_paths_and_urls(tmp_path):
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


def test_errors_name_it(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(ts.NotFoundError, match=r"a\.json does not exist; a job file or a plan"):
        Document(path).read()
    for text, problem in (("{", "not valid JSON"), ("[]", "expected a job file or a plan")):
        path.write_text(text)
        with pytest.raises(ts.SpecError, match=rf"{problem}.*\(in .*a.json\)"):
            Document(path).read()
    with pytest.raises(ts.SpecError, match="is a directory; name one document in it"):
        Document("memory://a/").spec()


def test_secrets_are_not_told():
    assert Document("https://me:pass@host/a.json?X-Signature=1").name == (
        "https://host/a.json?X-Signature=..."
    )


def test_may_be_kept_to_stores_that_are_named(tmp_path):
    trust = ts.Trust(stores=[f"file://{tmp_path}/in/"])
    assert Document(tmp_path / "in" / "a.json").spec(trust).path == f"{tmp_path}/in/a.json"
    with pytest.raises(ts.SpecError, match="in none of the stores"):
        Document(tmp_path / "a.json").spec(trust)


def test_relative_paths_are_relative_to_a_directory():
    assert as_place("s3://bucket/a/", None) == "s3://bucket/a/"
    assert as_place({"driver": "zarr3"}, None) == {"driver": "zarr3"}
    assert as_place("a/b", Path("/data")) == Path("/data/a/b")
    assert as_place("/a/b", Path("/data")) == as_place("/a/b", None) == Path("/a/b")
    with pytest.raises(ts.SpecError, match="relative to a directory, and the document is in none"):
        as_place("a/b", None)


def test_the_environment_only_where_asked_for(monkeypatch):
    monkeypatch.setenv("VOLUME", "7")
    assert parsed(b'{"a": "${VOLUME}"}', "x") == {"a": "${VOLUME}"}
    assert parsed(b'{"a": "${VOLUME}", "$comment": 1}', "x", env=True) == {"a": "7"}


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
def test_knows_what_is_in_memory(place, found):
    assert in_memory(place) is found
