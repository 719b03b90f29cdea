"""Specs as values, next to the reference."""

import copy

import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py.errors import IndexingError, SpecError

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


def test_printed_alike(pair):
    mine, theirs = pair
    assert mine.to_json() == theirs.to_json()
    assert mine.to_json().keys() <= mine.to_json(include_defaults=True).keys()
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("name", ["rank", "ndim"])
def test_plain_properties(pair, name):
    mine, theirs = pair
    assert getattr(mine, name) == getattr(theirs, name)


@pytest.mark.parametrize(
    "name", ["transform", "domain", "dtype", "schema", "chunk_layout", "codec", "kvstore"]
)
def test_properties_that_have_a_json_form(pair, name):
    mine, theirs = (getattr(spec, name) for spec in pair)
    assert (mine is None) == (theirs is None)
    if theirs is not None:
        assert mine.to_json() == theirs.to_json()


def test_the_other_properties(pair):
    mine, theirs = pair
    for flag in ("open", "create", "delete_existing", "assume_metadata"):
        assert getattr(mine.open_mode, flag) == getattr(theirs.open_mode, flag)
    assert (mine.fill_value is None) == (theirs.fill_value is None)
    if theirs.fill_value is not None:
        assert mine.fill_value.tobytes() == theirs.fill_value.tobytes()
    units = theirs.dimension_units
    assert mine.dimension_units == (
        None if units is None else tuple(unit and ts.Unit(json=unit.to_json()) for unit in units)
    )
    assert mine.base is theirs.base is None


@pytest.mark.parametrize("view", ["x[1:3]", "x[..., 2]", "x.transpose()", "x.translate_by[2]"])
def test_views_of_specs(pair, view):
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


def test_copies_are_equal_and_independent(pair):
    spec, _ = pair
    for made in (spec.copy(), copy.copy(spec), copy.deepcopy(spec)):
        assert made == spec
        made.update(create=True, open=True, recheck_cached=0.5)
        assert made != spec


def test_a_spec_of_a_spec():
    spec = ts.Spec(SPECS["plain"])
    assert ts.Spec(spec, dtype="uint8").dtype == ts.uint8
    assert spec.dtype is None


def test_nothing_to_index_without_a_rank():
    with pytest.raises(IndexingError, match="rank"):
        ts.Spec(SPECS["plain"])[0]


def test_no_spec_at_all():
    for json in (None, 5, (), "zarr3"):
        with pytest.raises(SpecError):
            ts.Spec(json)


@pytest.mark.parametrize("name", ["plain", "path"])
def test_urls(name):
    mine, theirs = ts.Spec(SPECS[name]), wheel.Spec(SPECS[name])
    assert mine.url == theirs.url
    assert ts.Spec(mine.url).to_json() == wheel.Spec(theirs.url).to_json()
