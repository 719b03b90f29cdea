import pytest
import tensorstore as reference

import tensorstore_py as ts


def moved(low, extent):
    return {"input_inclusive_min": [low], "input_shape": [extent],
            "output": [{"input_dimension": 0, "offset": -low}]}  # fmt: skip


def layer(array, low=None, dtype="int32", **members):
    if low is not None:
        members["transform"] = moved(low, len(array))
    return {"driver": "array", "dtype": dtype, "array": array, **members}


def stack_of(*layers, **members):
    return {"driver": "stack", "layers": list(layers), **members}


ZARR = {"driver": "zarr3", "kvstore": "memory://a/", "dtype": "int16",
        "schema": {"domain": {"shape": [[4], [4]]}}}  # fmt: skip
LABELLED = {"input_shape": [1], "input_labels": ["x"]}
SPECS = [
    stack_of(layer([1, 2, 3, 4]), layer([5, 6, 7], 3)),
    stack_of(layer([1, 2]), layer([5, 6], 4)),
    stack_of(layer([1, 2]), dtype="int32", rank=1),
    stack_of(layer([1, 2, 3]), schema={"domain": {"shape": [2]}}),
    stack_of(layer([1, 2, 3]), schema={"domain": {"shape": [5]}, "dimension_units": ["nm"]}),
    stack_of(layer([1], schema={"dimension_units": ["nm"]}), layer([1])),
    stack_of(
        layer([1], schema={"dimension_units": ["nm"]}),
        layer([1], schema={"dimension_units": ["um"]}),
    ),
    stack_of(layer([1], transform=LABELLED), layer([2])),
    stack_of(layer([1, 2, 3]), transform={"input_shape": [2], "output": [{"input_dimension": 0}]}),
    stack_of(ZARR, ZARR),
    stack_of(stack_of(layer([1, 2])), layer([3], 2)),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_specs_and_handles_as_the_reference(spec):
    ours, theirs = ts.Spec(spec), reference.Spec(spec)
    assert str(ours) == str(theirs)
    assert str(ours.domain) == str(theirs.domain)
    assert str(ours.schema) == str(theirs.schema)
    assert str(ours.open_mode) == str(theirs.open_mode)
    opened, other = ts.open(spec).result(), reference.open(spec).result()
    assert str(opened) == str(other)
    assert str(opened.schema) == str(other.schema)
    assert opened.mode == other.mode
    assert str(opened.spec()) == str(other.spec())
    assert str(opened.dimension_units) == str(other.dimension_units)
    assert ts.open(opened.spec()).result().domain == opened.domain


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"driver": "stack"}, ("layers",)),
        ({"driver": "stack", "layers": 5}, ("layers",)),
        (stack_of(5), ("layers", 0)),
        (stack_of({"driver": "array", "array": [1]}), ("layers", 0, "dtype")),
        (stack_of(layer([1]), layer([1], dtype="int8")), ("layers", 1)),
        (stack_of(layer([1]), dtype="int8"), ("layers", 0)),
        (stack_of(layer([1]), layer([[1]])), ("layers", 1)),
        (stack_of(layer([1]), rank=2), ("layers", 0)),
        (
            stack_of(
                layer([1], transform=LABELLED),
                layer([1], transform={**LABELLED, "input_labels": ["y"]}),
            ),
            ("layers", 1),
        ),
        (stack_of(layer([1]), schema={"fill_value": 5}), ("schema", "fill_value")),
        (stack_of(layer([1]), schema={"codec": {"driver": "zarr3"}}), ("schema", "codec")),
        (
            stack_of(layer([1]), schema={"chunk_layout": {"chunk": {"shape": [2]}}}),
            ("schema", "chunk_layout"),
        ),
        (stack_of(layer([1]), foo=3), ("foo",)),
    ],
    ids=str,
)
def test_malformed_specs_name_the_place(spec, path):
    with pytest.raises(ts.SpecError) as caught:
        ts.open(spec).result()
    assert caught.value.path == path
    with pytest.raises(ValueError):
        reference.open(spec).result()


def test_a_stack_of_nothing():
    # where the reference ends the process
    for members in ({}, {"dtype": "int32"}, {"dtype": "int32", "rank": 1}):
        with pytest.raises(ts.SpecError, match="data type and a domain"):
            ts.open(stack_of(**members)).result()


def test_layers_of_unknown_domain_are_opened_with_the_stack():
    context = ts.Context()
    where = [{"driver": "zarr3", "kvstore": f"memory://{name}/"} for name in "ab"]
    for number, each in enumerate(where):
        ts.open(each, create=True, dtype="int16", shape=[3 - number], context=context).result()[
            ...
        ] = number + 1
    spec = ts.Spec(stack_of("memory://a/|zarr3:", "memory://b/"))
    assert (spec.domain, spec.rank, spec.dtype) == (None, None, None)
    store = ts.open(spec, context=context).result()
    assert store.dtype == ts.int16
    assert store.read().result().tolist() == [2, 2, 1]
    assert ts.open(store.spec(), context=context).result().read().result().tolist() == [2, 2, 1]
    wrong = stack_of("memory://a/|zarr3:", layer([1]))
    with pytest.raises(ts.SpecError) as caught:
        ts.open(wrong, context=context).result()
    assert caught.value.path == ("layers", 0)


def test_the_mode_is_the_layers():
    for spec in (
        stack_of(ZARR, {**ZARR, "create": True}), stack_of(ZARR), stack_of(layer([1])),
    ):  # fmt: skip
        assert str(ts.Spec(spec).open_mode) == str(reference.Spec(spec).open_mode)
        found = []
        for library in (ts, reference):
            changed = library.Spec(spec)
            changed.update(create=True, open=True)
            found.append((changed.to_json(), str(changed.open_mode)))
        assert found[0] == found[1]


def test_layers_are_created_when_they_are_written():
    context = ts.Context()
    store = ts.open(stack_of(ZARR), create=True, open=True, context=context).result()
    kvstore = ts.KvStore.open("memory://", context=context).result()
    assert kvstore.list().result() == []
    store[1].write(5).result()
    assert ts.open("memory://a/", context=context).result().read().result().tolist() == [
        [0] * 4, [5] * 4, [0] * 4, [0] * 4,
    ]  # fmt: skip


def test_options():
    spec = stack_of(layer([1, 2, 3]))
    assert ts.open(spec, create=True, shape=[2]).result().shape == (2,)
    assert ts.open(spec, dimension_units=["nm"]).result().dimension_units == (ts.Unit("nm"),)
    assert ts.open(spec, read=True).result().mode == "r"
    with pytest.raises(ValueError):
        ts.open(spec, dtype="int8")
