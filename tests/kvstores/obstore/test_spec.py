import pytest

import tensorstore_py as ts


@pytest.mark.parametrize(
    ("url", "json"),
    [
        ("az://box/a%20b/", {"driver": "obstore", "url": "az://box", "path": "a b/"}),
        ("abfss://fs@lab.dfs.core.windows.net/x", {
            "driver": "obstore", "url": "abfss://fs@lab.dfs.core.windows.net", "path": "x"
        }),
        ("az://box", {"driver": "obstore", "url": "az://box"}),
    ],
)  # fmt: skip
def test_azure_by_url(url, json):
    spec = ts.KvStore.Spec(url)

    assert spec.to_json() == json
    assert ts.KvStore.Spec(spec.url).to_json() == json


def test_the_path_of_the_url_is_the_path():
    spec = ts.KvStore.Spec({"driver": "obstore", "url": "s3://bucket/a/b", "path": "c"})

    assert spec.to_json() == {"driver": "obstore", "url": "s3://bucket", "path": "a/b/c"}
    with pytest.raises(ts.UnsupportedError, match="URL means another store"):
        _ = spec.url


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ({"url": "nothing"}, "is no URL"),
        ({"url": "az://me:pass@box"}, 'put it into "config"'),
        ({"url": "az://me:pa#ss@box"}, 'put it into "config"'),
        ({"url": "az://box/a?sig=x"}, r'^"az://box/a\.\.\." has a .*%3F'),
        ({"url": "az://box", "config": "key"}, "obstore_config"),
        ({}, "url"),
    ],
)
def test_bad_specs_are_refused(json, problem):
    with pytest.raises(ts.SpecError, match=problem):
        ts.KvStore.Spec({"driver": "obstore", **json})
