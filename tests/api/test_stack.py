import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts

READ_ONLY = np.arange(3)
READ_ONLY.flags.writeable = False


def arrays(library):
    named = library.d[0].label["x"]
    return {
        "a": library.array([1, 2]),
        "b": library.array([3, 4]),
        "c": library.array([5, 6, 7]),
        "m": library.array([[1, 2], [3, 4]]),
        "n": library.array([[5, 6]]),
        "x": library.array([1, 2])[named],
        "y": library.array([1, 2])[library.d[0].label["y"]],
        "r": library.array(READ_ONLY),
        "s": library.array([8, 9]).spec(),
        "ts": library,
    }


@pytest.mark.parametrize(
    "call",
    [
        "overlay([a])",
        "overlay([a, c.translate_by[1]])",
        "overlay([c[::2], c[1::2].translate_by[1]])",
        "overlay([a, b], dimension_units=['nm'])",
        "overlay([c], shape=[2])",
        "overlay([a], shape=[5])",
        "overlay([a], domain=ts.IndexDomain(shape=[1]))",
        "overlay([m[[1, 0]], n])",
        "overlay([x, b])",
        "overlay([a], read=True)",
        "overlay([a], write=True)",
        "overlay([a], read=True, write=True)",
        "overlay([r])",
        "overlay([r, a])",
        "overlay((each for each in [a, b]))",
        "stack([a, b])",
        "stack([a, b], axis=1)",
        "stack([a, b], axis=-1)",
        "stack([a, b], -2)",
        "stack([m, n], axis=1)",
        "stack([a, c])",
        "stack([x, a])",
        "stack([a.translate_to[5], b.translate_to[5]])",
        "concat([m, n], axis=0)",
        "concat([m, n], axis=-2)",
        "concat([a, c, b], axis=0)",
        "concat([a.translate_to[5], b.translate_to[-7]], axis=0)",
        "concat([x, x], axis='x')",
        "concat([x, b], axis='x')",
        "concat([b, x], axis='x')",
    ],
)
def test_as_the_reference(call):
    ours, theirs = (eval(f"ts.{call}", arrays(library)) for library in (ts, reference))
    assert str(ours) == str(theirs)
    assert ours.mode == theirs.mode
    assert str(ours.schema) == str(theirs.schema)
    found = []
    for store in (ours, theirs):
        try:
            found.append(store.read().result().tolist())
        except ValueError:
            found.append("an error")
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("stack([])", ts.SpecError),
        ("concat([], axis=0)", ts.SpecError),
        ("stack([a, m])", ts.SpecError),
        ("stack([a, b], axis=2)", ts.SpecError),
        ("stack([a, b], axis=-3)", ts.SpecError),
        ("concat([a, b], axis=1)", ts.SpecError),
        ("concat([a, b], axis='x')", ts.SpecError),
        ("concat([x, y], axis='x')", ts.SpecError),
        ("overlay([a], dtype='int8')", ts.MismatchError),
        ("overlay([a], rank=2)", ts.SpecError),
        ("overlay([a], shape=[1, 2])", ts.SpecError),
        ("overlay([a, ts.cast(b, 'int8')])", ts.SpecError),
        ("overlay([r], write=True)", ts.PermissionDeniedError),
        ("overlay([a], fill_value=5)", TypeError),
        ("overlay([5])", TypeError),
        ("stack([{'driver': 'array'}])", TypeError),
        ("overlay([ts.Spec('memory://a/|zarr3:')])", ts.SpecError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        eval(f"ts.{call}", arrays(ts))
    with pytest.raises((ValueError, TypeError)):
        eval(f"ts.{call}", arrays(reference))


def test_handles_keep_their_access():
    memory = ts.array(np.arange(3))
    store = ts.overlay([ts.array(READ_ONLY), memory.translate_to[3]])
    assert store.mode == "rw"
    store[3:].write(1).result()
    with pytest.raises(ts.PermissionDeniedError, match="layer 0"):
        store.write(1).result()


def test_specs_may_be_layers():
    assert ts.stack([ts.array([1, 2]).spec(), ts.array([3, 4])]).read().result().tolist() == [
        [1, 2], [3, 4],
    ]  # fmt: skip
    context = ts.Context()
    where = {"driver": "zarr3", "kvstore": "memory://a/"}
    ts.open(where, create=True, dtype="int64", shape=[2], context=context).result()[...] = 5
    layer = ts.Spec({**where, "dtype": "int64", "schema": {"domain": {"shape": [[2]]}}})
    store = ts.concat([ts.array([1]), layer], axis=0, context=context)
    assert store.read().result().tolist() == [1, 5, 5]


def test_the_domain_of_an_array_that_can_be_resized():
    stacked = []
    for library in (ts, reference):
        store = library.open(
            {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="int8", shape=[2, 3]
        ).result()
        stacked.append([
            library.overlay([store]).domain,
            library.stack([store, store]).domain,
            library.concat([store, store], axis=1).domain,
            library.stack([store], axis=1).spec().to_json()["layers"][0]["transform"],
        ])  # fmt: skip
    assert str(stacked[0]) == str(stacked[1])


def test_a_transaction_must_be_one():
    with pytest.raises(TypeError, match="must be a Transaction"):
        ts.overlay([ts.array([1])], transaction=object())  # type: ignore[arg-type]


@pytest.fixture
def bound():
    """Two arrays, and a transaction that both are seen through."""
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    context = ts.Context()
    plain = [
        ts.open(
            {**spec, "path": name}, create=True, dtype="int32", shape=[4], context=context
        ).result()
        for name in "ab"
    ]
    transaction = ts.Transaction()
    return plain, [each.with_transaction(transaction) for each in plain], transaction


@pytest.mark.parametrize("make", [ts.stack, ts.concat, ts.overlay])
def test_layers_that_are_seen_through_a_transaction_make_a_stack_that_is(bound, make):
    plain, staged, transaction = bound
    axis = {} if make is ts.overlay else {"axis": 0}
    stack = make(staged, **axis)
    assert stack.transaction is transaction
    stack.write(7).copy.result()
    assert (stack.read().result() == 7).all()
    assert staged[1].read().result().tolist() == [7] * 4
    assert [each.read().result().tolist() for each in plain] == [[0] * 4] * 2
    assert stack.with_transaction(None).transaction is None
    assert not stack.with_transaction(None).read().result().any()
    transaction.commit_sync()
    assert plain[1].read().result().tolist() == [7] * 4


def test_its_layers_are_seen_through_one_transaction(bound):
    plain, staged, transaction = bound
    for layers, asked in (
        ([staged[0], plain[1]], None),
        ([plain[0], staged[1]], None),
        (staged, ts.Transaction()),
        ([plain[0], staged[1].with_transaction(ts.Transaction())], transaction),
    ):
        with pytest.raises(ts.SpecError, match="another transaction") as caught:
            ts.stack(layers, transaction=asked)
        assert "layers" in str(caught.value)
    for layers in (plain, staged, [plain[0], staged[1]]):
        assert ts.stack(layers, transaction=transaction).transaction is transaction
    specs = [each.spec() for each in plain]
    assert ts.stack([specs[0], staged[1]]).transaction is transaction


@pytest.mark.parametrize("join", [ts.overlay, ts.stack, lambda layer: ts.concat(layer, axis=0)])
def test_one_layer_by_itself_is_refused_unread(join):
    def read(*_):
        raise AssertionError("it was read")

    layer = ts.virtual_chunked(read, dtype="int8", shape=[3, 4])
    with pytest.raises(TypeError, match=r"not one TensorStore: write \[layer\]"):
        join(layer)
