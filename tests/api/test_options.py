"""Keyword arguments of specs, next to the reference."""

import pytest
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py._api.options import OPTIONS, updated
from tensorstore_py._api.spec import parse_spec
from tensorstore_py.errors import SpecError

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


@pytest.mark.parametrize(("json", "options"), CASES, ids=[case[1] for case in CASES])
def test_next_to_the_reference(json, options):
    mine, theirs = (outcome(library, json, options) for library in (ts, wheel))
    if isinstance(theirs, Exception):
        assert isinstance(mine, type(theirs)), (mine, theirs)
    else:
        assert mine == theirs


def test_none_leaves_everything_as_it_is():
    model = parse_spec(FULL)
    assert updated(model, dict.fromkeys(OPTIONS)) == model


def test_the_model_given_is_not_changed():
    model = parse_spec(PLAIN)
    before = model.to_json()
    updated(model, {"dtype": "uint8", "create": True, "recheck_cached": False})
    assert model.to_json() == before


def test_an_unknown_one_names_the_nearest():
    with pytest.raises(TypeError, match='did you mean "dtype"'):
        updated(parse_spec(PLAIN), {"dtpe": "uint8"})


@pytest.mark.parametrize("kvstore", ["memory://b/", {"driver": "memory", "path": "b/"}])
def test_a_kvstore_in_any_of_its_forms(kvstore):
    made = ts.Spec(BARE, kvstore=kvstore)
    assert made.to_json() == {**BARE, "kvstore": {"driver": "memory", "path": "b/"}}


def test_a_kvstore_is_given_once():
    with pytest.raises(SpecError, match="already") as caught:
        updated(parse_spec(PLAIN), {"kvstore": "memory://"})
    assert caught.value.path == ("kvstore",)
