import pytest
import tensorstore as reference

import tensorstore_py as ts

ARRAY = {"driver": "array", "dtype": "int32", "array": [[1, 2, 3], [4, 5, 6]]}
LINE = {"driver": "array", "dtype": "int32", "array": [1, 2, 3]}
ZARR = {"driver": "zarr3", "kvstore": "memory://a/"}
KNOWN = {
    **ZARR,
    "schema": {
        "dtype": "uint8",
        "domain": {"shape": [[10], [13]], "labels": ["x", "y"]},
        "dimension_units": ["4nm", None],
        "chunk_layout": {"chunk": {"shape": [4, 6]}},
        "codec": {"driver": "zarr3"},
        "fill_value": 1,
    },
}


def smaller(base, factors, method="mean", **members):
    return {"driver": "downsample", "base": base, "downsample_factors": factors,
            "downsample_method": method, **members}  # fmt: skip


SPECS = [
    smaller(ARRAY, [2, 3]),
    smaller(ARRAY, [2, 3], "stride"),
    smaller(ARRAY, [1, 1], dtype="int32", rank=2),
    smaller({"driver": "array", "array": [1, 2, 3]}, [2], dtype="int32"),
    smaller({**LINE, "transform": {"input_inclusive_min": [-3], "input_shape": [3],
                                   "output": [{"input_dimension": 0, "offset": 3}]}}, [2]),
    smaller(LINE, [2], transform={"input_shape": [1]}),
    smaller(LINE, [2], schema={"dimension_units": ["4nm"]}),
    smaller(smaller(LINE, [2]), [2], "max"),
    smaller(KNOWN, [2, 3]),
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_specs_as_the_reference(spec):
    ours, theirs = ts.Spec(spec), reference.Spec(spec)
    assert str(ours) == str(theirs)
    assert str(ours.domain) == str(theirs.domain)
    assert str(ours.schema) == str(theirs.schema)
    assert str(ours.open_mode) == str(theirs.open_mode)
    assert str(ours.kvstore) == str(theirs.kvstore)
    bases = [ours.base, theirs.base]
    assert len({str(base and base.dtype) for base in bases}) == 1


@pytest.mark.parametrize("spec", SPECS[:-1], ids=str)
def test_handles_as_the_reference(spec):
    ours, theirs = ts.open(spec).result(), reference.open(spec).result()
    assert str(ours) == str(theirs)
    assert str(ours.schema) == str(theirs.schema)
    assert ours.mode == theirs.mode == "r"
    assert str(ours.base) == str(theirs.base)
    assert ours.read().result().tolist() == theirs.read().result().tolist()
    again = ts.open(ours.spec()).result()
    assert again.read().result().tolist() == ours.read().result().tolist()


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (smaller(LINE, [0]), ("downsample_factors", 0)),
        (smaller(LINE, [-1]), ("downsample_factors", 0)),
        (smaller(LINE, [2.5]), ("downsample_factors", 0)),
        (smaller(LINE, [2**63]), ("downsample_factors", 0)),
        (smaller(LINE, [1, 1]), ("downsample_factors",)),
        (smaller(LINE, []), ("downsample_factors",)),
        (smaller(LINE, 2), ("downsample_factors",)),
        (smaller(LINE, [2], rank=2), ("downsample_factors",)),
        (smaller(LINE, [2], "average"), ("downsample_method",)),
        (smaller({**LINE, "dtype": "json"}, [2]), ("downsample_method",)),
        (smaller(LINE, [2], dtype="int8"), ("dtype",)),
        (smaller(LINE, [2], schema={"fill_value": 1}), ("schema", "fill_value")),
        (smaller({"driver": "array", "array": [1]}, [2]), ("base", "dtype")),
        (smaller(5, [2]), ("base",)),
        ({"driver": "downsample", "downsample_factors": [1], "downsample_method": "mean"},
         ("base",)),
        ({"driver": "downsample", "base": LINE, "downsample_method": "mean"},
         ("downsample_factors",)),
        (smaller(LINE, [2], scales=[2]), ("scales",)),
    ],
    ids=str,
)  # fmt: skip
def test_malformed_specs_name_the_place(spec, path):
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec(spec)
    assert caught.value.path == path
    with pytest.raises(ValueError):
        reference.open(spec).result()


def test_what_is_only_found_when_it_is_opened():
    context = ts.Context()
    ts.open(ZARR, create=True, dtype="bool", shape=[4], context=context).result()
    for wrong in (smaller(ZARR, [2, 2]), smaller(ZARR, [2], schema={"domain": {"shape": [5]}})):
        with pytest.raises((ts.SpecError, ts.MismatchError)):
            ts.open(wrong, context=context).result()
    text = {"driver": "json", "kvstore": "memory://b"}
    with pytest.raises(ts.SpecError, match="mean is not for json"):
        ts.open(smaller(text, []), context=context).result()
    with pytest.raises(ts.PermissionDeniedError):
        ts.open(smaller(ZARR, [2]), write=True, context=context).result()


def test_options_reach_the_base():
    for library in (ts, reference):
        spec = library.Spec(smaller(ZARR, [2, 2]))
        spec.update(create=True, recheck_cached_data=False)
        base = spec.to_json()["base"]
        assert (base["create"], base["recheck_cached_data"]) == (True, False)
        assert spec.open_mode == library.OpenMode(create=True)
