import asyncio

import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.source import Source, shared_context
from tests.integrations.xarray.waves import bucket, far_away, make_tree


def source(given, **options):
    asked = {"group": None, "consolidated": None, "zarr_format": None, "context": None}
    return Source(given, **{**asked, "cache_pool": None, "max_depth": 0, **options})


@pytest.fixture
def path(tmp_path):
    root = ts.Group.open(tmp_path, create=True).result()
    root.create_array("g/a", dtype="int8", shape=[2]).result()
    return tmp_path


def test_what_is_there_is_told_with_its_url(path):
    found = source(path, max_depth=None)

    assert list(found.nodes) == ["", "g", "g/a"]
    assert found.url == path.as_uri() + "/"
    assert list(source(path, group="/g/").nodes) == ["", "a"]
    assert list(source(ts.Group.open(path).result(), group="g").nodes) == ["", "a"]
    assert list(source({"driver": "zarr3", "kvstore": path.as_uri() + "/"}).nodes) == ["", "g"]


def test_a_source_without_a_url(path, monkeypatch):
    monkeypatch.chdir(path)
    found = source({"driver": "zarr3", "kvstore": {"driver": "file", "path": "g/"}})

    assert list(found.nodes) == ["", "a"]
    assert found.url is None


def test_what_is_no_group_is_said(path):
    with pytest.raises(ts.MismatchError, match="an array, not a group"):
        source(path, group="g/a").look()
    with pytest.raises(ts.MismatchError, match="an array, not a group"):
        source(ts.Group.open(path).result(), group="g/a").look()
    with pytest.raises(ts.NotFoundError, match=r'at .*nowhere/zarr\.json.* no folder ".*nowhere"'):
        source(path / "nowhere").look()
    (path / "some").mkdir()
    with pytest.raises(ts.NotFoundError, match=r"some/\.zgroup.*; it is empty"):
        source(path, group="some").look()
    for number in range(7):
        (path / "some" / f"{number}.nc").touch()
    with pytest.raises(ts.NotFoundError, match=r"there are 0\.nc, .*4\.nc, and 2 more"):
        source(str(path / "some")).look()
    with pytest.raises(ts.NotFoundError, match="name the folder"):
        source("memory://nowhere/").look()
    with pytest.raises(ts.NotFoundError, match=r"h/zarr\.json"):
        source(path, group="h").look()
    with pytest.raises(ts.NotFoundError, match="no consolidated metadata"):
        source(path, consolidated=True).look()
    array = ts.open(path / "g" / "a").result()
    for given in (array, ts.open(path / "g" / "a")):
        with pytest.raises(TypeError, match=r"no group of arrays; pass the ts.Group"):
            source(given)


def test_a_group_of_which_consolidated_metadata_does_not_tell_is_found(path):
    ts.Group.open(path).result().consolidate().result()
    ts.Group.open(path, path="late/r", create=True, consolidated=False).result()

    assert list(source(path, group="late").nodes) == ["", "r"]
    with pytest.raises(ts.NotFoundError):
        source(path, group="late", consolidated=True).look()


def test_closing_is_for_what_was_opened_here(path):
    group = ts.Group.open(path).result()
    context = ts.Context()
    for given, options in ((group, {}), (path, {"context": context})):
        found = source(given, **options)
        node = found.nodes["g"].open().result()
        found.close()
        found.close()
        assert bool(given is group) is not closed(node)
    assert not closed(group)
    assert source(path, context=context).nodes


def closed(group):
    try:
        group.contains("a").result()
    except ts.FailedPreconditionError:
        return True
    return False


def test_one_context_for_all():
    assert shared_context(None, None) is None
    context = ts.Context()
    assert shared_context(context, None) is context
    for found in (
        shared_context(context, 1000),
        shared_context({"cache_pool": {"total_bytes_limit": 1000}}, None),
    ):
        assert found is not None
        assert found["cache_pool"].to_json() == {"total_bytes_limit": 1000}
    with pytest.raises(ts.SpecError):
        shared_context({"no_such_thing": {}}, None)


@pytest.mark.parametrize(
    ("zarr_format", "consolidated", "tree", "one"),
    [
        (3, False, [1, 2, 6, 24, 6], [1, 2, 4, 2]),
        (3, True, [1, 6], [1, 2]),
        (2, False, None, None),
        (2, True, None, None),
    ],
)
def test_a_tree_costs_few_round_trips(zarr_format, consolidated, tree, one):
    with bucket() as (spec, server):
        root = make_tree(spec, 3, 4, zarr_format=zarr_format)
        if consolidated:
            root.consolidate().result()
        with far_away(server) as waves:
            found = xr.open_datatree(spec, engine="tensorstore", consolidated=consolidated)
        assert waves.counts == tree or zarr_format == 2
        # Version 2 is looked for after version 3.
        assert len(waves.counts) <= (3 if consolidated else 6)
        assert len(found.groups) == 4
        with far_away(server) as waves:
            opened = xr.open_dataset(
                spec, engine="tensorstore", consolidated=consolidated, group="g1"
            )
        assert waves.counts == one or zarr_format == 2
        with far_away(server) as waves:
            asyncio.run(opened.load_async())
        assert waves.counts == [2]
