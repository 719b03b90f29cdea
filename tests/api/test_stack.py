"""Arrays made of others: stacks, casts, downsampled ones, functions."""

# ruff: noqa: ARG001 - the functions of an array are called with three arguments, needed or not

import gc
import pickle
import weakref

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


class TestStack:
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
    def test_as_the_reference(self, call):
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
    def test_errors(self, call, error):
        with pytest.raises(error):
            eval(f"ts.{call}", arrays(ts))
        with pytest.raises((ValueError, TypeError)):
            eval(f"ts.{call}", arrays(reference))

    def test_handles_keep_their_access(self):
        memory = ts.array(np.arange(3))
        store = ts.overlay([ts.array(READ_ONLY), memory.translate_to[3]])
        assert store.mode == "rw"
        store[3:].write(1).result()
        with pytest.raises(ts.PermissionDeniedError, match="layer 0"):
            store.write(1).result()

    def test_specs_may_be_layers(self):
        assert ts.stack([ts.array([1, 2]).spec(), ts.array([3, 4])]).read().result().tolist() == [
            [1, 2], [3, 4],
        ]  # fmt: skip
        context = ts.Context()
        where = {"driver": "zarr3", "kvstore": "memory://a/"}
        ts.open(where, create=True, dtype="int64", shape=[2], context=context).result()[...] = 5
        layer = ts.Spec({**where, "dtype": "int64", "schema": {"domain": {"shape": [[2]]}}})
        store = ts.concat([ts.array([1]), layer], axis=0, context=context)
        assert store.read().result().tolist() == [1, 5, 5]

    def test_the_domain_of_an_array_that_can_be_resized(self):
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

    def test_a_transaction_must_be_one(self):
        with pytest.raises(TypeError, match="must be a Transaction"):
            ts.overlay([ts.array([1])], transaction=object())  # type: ignore[arg-type]

    @pytest.mark.parametrize("make", [ts.stack, ts.concat, ts.overlay])
    def test_layers_that_are_seen_through_a_transaction_make_a_stack_that_is(self, bound, make):
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

    def test_its_layers_are_seen_through_one_transaction(self, bound):
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
    def test_one_layer_by_itself_is_refused_unread(self, join):
        def read(*_):
            raise AssertionError("it was read")

        layer = ts.virtual_chunked(read, dtype="int8", shape=[3, 4])
        with pytest.raises(TypeError, match=r"not one TensorStore: write \[layer\]"):
            join(layer)


class TestCast:
    def test_cast_and_astype_are_the_same(self):
        store = ts.array([1, 2], dtype="uint8")
        assert ts.cast(store, "float32").spec() == store.astype("float32").spec()
        assert store.astype(ts.uint8).dtype == ts.uint8
        with pytest.raises(ts.SpecError):
            store.astype("uint9")

    def test_a_cast_goes_both_ways(self):
        store = ts.array([1, 2], dtype="uint8")
        store.astype("float64")[0] = 7.9
        assert store.read().result().tolist() == [7, 2]


class TestDownsample:
    def test_open_arrays_and_specs(self):
        found = []
        frames = np.array([[[8, 0, 4], [0, 4, 12]], [[-2, 6, 1], [2, 2, 5]]], np.float64)
        for library in (ts, reference):
            film = library.array(frames)
            halved = library.downsample(film, [1, 2, 2], method="mean")
            asked = library.downsample(film.spec(), [1, 2, 2], method="mean")
            pixels = library.open(asked).result().read().result()
            np.testing.assert_array_equal(pixels, halved.read().result())
            found.append((halved.mode, str(halved), asked.to_json(), pixels.tolist()))
        assert found[0] == found[1]
        assert found[0][-1] == [[[3.0, 8.0]], [[2.0, 3.0]]]

    @pytest.mark.parametrize(
        ("factors", "method", "error"),
        [
            ([2], "mean", ts.SpecError),
            ([0, 2], "mean", ts.SpecError),
            ([2, 2], "foo", ts.SpecError),
        ],
    )
    def test_errors(self, factors, method, error):
        with pytest.raises(error):
            ts.downsample(ts.array(np.zeros((2, 3))), factors, method)
        with pytest.raises(ValueError):
            reference.downsample(reference.array(np.zeros((2, 3))), factors, method)

    def test_what_can_be_downsampled(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        for library in (ts, reference):
            with pytest.raises(TypeError):
                library.downsample(spec, [1], "mean")
            store = library.open(spec, create=True, open=True, dtype="int8", shape=[3], write=True)
            with pytest.raises(ValueError):
                library.downsample(store.result(), [1], "mean")

    def test_a_factor_may_be_a_numpy_number(self):
        store = ts.downsample(ts.array([1, 2, 3, 4]), np.array([2]), "max")
        assert store.read().result().tolist() == [2, 4]

    def test_of_an_array_that_is_seen_through_a_transaction(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        array = ts.open(spec, create=True, dtype="int32", shape=[4]).result()
        with ts.Transaction() as transaction:
            staged = array.with_transaction(transaction)
            smaller = ts.downsample(staged, [2], "max")
            assert smaller.transaction is transaction
            staged.write([1, 2, 3, 4]).copy.result()
            assert smaller.read().result().tolist() == [2, 4]
            assert ts.downsample(array, [2], "max").read().result().tolist() == [0, 0]


def fill(domain, chunk, parameters):
    chunk[...] = 42


def take(domain, chunk, parameters):
    pass


OPTIONS = [
    "dtype='int32', shape=[2, 3]",
    "dtype=np.int32, shape=[4, 5], chunk_layout=ts.ChunkLayout(read_chunk_shape=[2, 3])",
    "dtype='int32', rank=2",
    "dtype='ustring', domain=ts.IndexDomain(inclusive_min=[-3], shape=[7], labels=['x'])",
    "dtype='int32', shape=[9], chunk_layout=ts.ChunkLayout(read_chunk_shape=[3], grid_origin=[1])",
    "dtype='int32', shape=[200, 300], chunk_layout=ts.ChunkLayout(chunk_elements=1000)",
    "dtype='int32', shape=[20000, 30000]",
    "dtype='int32', shape=[2], dimension_units=['nm']",
    "dtype='int32', shape=[2, 3], chunk_layout=ts.ChunkLayout(inner_order=[1, 0])",
    "schema=ts.Schema(dtype='int8', domain=ts.IndexDomain(shape=[2]))",
    "dtype='int8', domain=ts.IndexDomain(shape=[2], implicit_upper_bounds=[True])",
]


class TestVirtualChunked:
    @pytest.mark.parametrize("options", OPTIONS)
    @pytest.mark.parametrize("functions", ["fill", "None, take", "fill, take"])
    def test_handles_as_the_reference(self, functions, options):
        found = []
        for library in (ts, reference):
            names = {"ts": library, "np": np, "fill": fill, "take": take}
            store = eval(f"ts.virtual_chunked({functions}, {options})", names)
            spec = store.spec()
            found.append([
                str(store.domain), str(store.schema), str(store.chunk_layout), store.mode,
                store.dtype.name, repr(store), repr(spec), str(spec.schema), str(spec.domain),
                str(spec.open_mode), store.kvstore, store.base, str(store.dimension_units),
                str(library.open(spec).result().domain),
            ])  # fmt: skip
        assert found[0] == found[1]

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            ("virtual_chunked(dtype='int8', shape=[2])", ts.SpecError),
            ("virtual_chunked(fill, shape=[2])", ts.SpecError),
            ("virtual_chunked(fill, dtype='int8')", ts.SpecError),
            ("virtual_chunked(fill, dtype='int9', shape=[2])", ts.SpecError),
            ("virtual_chunked(fill, dtype='int8', rank=1, shape=[2, 3])", ts.MismatchError),
            ("virtual_chunked(fill, schema=ts.Schema(dtype='int8', rank=1, fill_value=3))",
             ts.SpecError),
            ("virtual_chunked(fill, dtype='int8', shape=[2], fill_value=3)", TypeError),
            ("virtual_chunked(fill, dtype='int8', shape=[2]).spec().to_json()",
             ts.UnsupportedError),
            ("virtual_chunked(fill, dtype='int8', shape=[2]).url", ts.UnsupportedError),
            ("Spec({'driver': 'virtual_chunked'})", ts.SpecError),
        ],
    )  # fmt: skip
    def test_errors(self, call, error):
        with pytest.raises(error):
            eval(f"ts.{call}", {"ts": ts, "fill": fill})
        with pytest.raises((ValueError, TypeError, NotImplementedError)):
            eval(f"ts.{call}", {"ts": reference, "fill": fill})

    def test_what_is_no_function(self):
        with pytest.raises(TypeError, match="a function is expected"):
            ts.virtual_chunked(5, dtype="int8", shape=[2])  # type: ignore[arg-type]
        with pytest.raises(ts.UnsupportedError):
            ts.virtual_chunked(fill, dtype="int8", shape=[2], transaction=object())  # type: ignore[arg-type]

    async def test_coroutines_and_futures(self):
        source = ts.array(np.arange(12).reshape(3, 4))
        written = {}

        async def read(domain, chunk, parameters):
            chunk[...] = (await source[domain].read()) + 100

        async def write(domain, chunk, parameters):
            written[domain.origin] = chunk.tolist()

        layout = ts.ChunkLayout(read_chunk_shape=[1, 2])
        store = ts.virtual_chunked(
            read, write, dtype="int64", domain=source.domain, chunk_layout=layout
        )
        np.testing.assert_array_equal(await store.read(), np.arange(12).reshape(3, 4) + 100)
        await store[1, :3].write(0)
        assert written == {(1, 0): [[0, 0]], (1, 2): [[0, 107]]}

    def test_a_coroutine_function_needs_no_event_loop(self):
        async def read(domain, chunk, parameters):
            chunk[...] = 9

        assert ts.virtual_chunked(read, dtype="int8", shape=[2]).read().result().tolist() == [9, 9]

    def test_a_function_may_return_a_future(self):
        source = ts.array([1, 2, 3])
        copies = []

        def write(domain, chunk, parameters):
            copies.append(source[domain].write(chunk).commit)
            return copies[-1]

        store = ts.virtual_chunked(write_function=write, dtype="int64", shape=[3])
        store.write([4, 5, 6]).result()
        assert copies[0].done()
        assert source.read().result().tolist() == [4, 5, 6]

    def test_layers_and_casts_of_virtual_arrays(self):
        store = ts.virtual_chunked(fill, dtype="int32", shape=[2])
        assert ts.cast(store, "ustring").read().result().tolist() == ["42", "42"]
        assert ts.stack([store, ts.array([1, 2], dtype="int32")]).read().result().tolist() == [
            [42, 42], [1, 2],
        ]  # fmt: skip
        assert repr(ts.stack([store])) == "TensorStore(...)"

    def test_it_travels(self):
        store = ts.virtual_chunked(fill, dtype="int32", shape=[2, 3])
        again = pickle.loads(pickle.dumps(store[1:]))
        assert again.schema == store[1:].schema
        assert again.read().result().tolist() == [[42, 42, 42]]

    def test_cycles_are_collected(self):
        def read(domain, chunk, parameters):
            chunk[...] = 1

        store = ts.virtual_chunked(read, dtype="int8", shape=[2])
        spec = store.spec()
        read.store, read.spec = store, spec  # type: ignore[attr-defined]
        seen = [weakref.ref(each) for each in (read, store, spec)]
        del read, store, spec
        gc.collect()
        assert [each() for each in seen] == [None, None, None]
