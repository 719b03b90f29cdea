"""What drivers, their specs and adapters have of the promise when they implement the least."""

import numpy as np
import pytest
import tensorstore as reference
import tensorstore as wheel

import tensorstore_py as ts
from tensorstore_py import (
    IndexTransform,
    MismatchError,
    ResourceExhaustedError,
    SpecError,
    UnsupportedError,
)
from tensorstore_py.plugin.driver import (
    Adapter,
    AdapterSpec,
    Driver,
    DriverSpec,
    HierarchyFormat,
    Opened,
    StorageStatistics,
    new_array,
)
from tensorstore_py.plugin.kvstore import KvStore
from tests.runtime.processes import run_inline


class Constant(Driver):
    """Reads as zeros everywhere."""

    inline = True
    data_type = ts.uint8

    @property
    def domain(self):
        return ts.IndexDomain(shape=[3])

    @property
    def schema(self):
        return ts.Schema(dtype="uint8", domain=self.domain)

    async def resolve(self):
        return self.domain

    async def read(self, transform, order):
        return np.zeros(transform.input_shape, "uint8", order)

    def spec(self):
        return Odd()


class Odd(DriverSpec):
    driver = "odd"


class TestDriver:
    @pytest.mark.parametrize(
        ("body", "missing"),
        [
            (lambda d: d.write(ts.IndexTransform(1), np.zeros(3)), "cannot be written"),
            (lambda d: d.resize(None), "cannot be resized"),
            (lambda d: d.grow(0, 1, print), "cannot be resized"),
            (
                lambda d: d.storage_statistics(
                    ts.IndexTransform(1), not_stored=True, fully_stored=False
                ),
                "no storage statistics",
            ),
        ],
        ids=["write", "resize", "grow", "storage_statistics"],
    )
    def test_what_is_not_there_cannot_be_done_and_names_the_driver(self, body, missing):
        with pytest.raises(UnsupportedError, match=f"Constant .*{missing}"):
            run_inline(body(Constant()))

    def test_there_need_not_be_a_store(self):
        assert Constant().kvstore is None

    def test_it_can_be_viewed(self):
        store = ts.TensorStore(Constant(), ts.IndexTransform(Constant().domain), True, False)
        assert store[1:].read().result().tolist() == [0, 0]
        assert (store.kvstore, store.mode) == (None, "r")


class TestStatistics:
    @pytest.mark.parametrize("not_stored", [None, True, False])
    @pytest.mark.parametrize("fully_stored", [None, True, False])
    def test_are_those_of_the_reference(self, not_stored, fully_stored):
        named = {"not_stored": not_stored, "fully_stored": fully_stored}
        mine, theirs = StorageStatistics(**named), wheel.TensorStore.StorageStatistics(**named)
        assert repr(mine) == repr(theirs)
        assert mine == StorageStatistics(**named)

    def test_are_values_that_can_change(self):
        statistics = StorageStatistics(not_stored=True)
        assert statistics != StorageStatistics()
        statistics.not_stored = None
        assert statistics == StorageStatistics()
        assert statistics != "nothing"
        with pytest.raises(TypeError):
            hash(statistics)


class TestKnownSchema:
    def known(self, **members):
        return Odd.parse({"driver": "odd", **members}).known_schema()

    def test_members_and_schema_are_one(self):
        schema = self.known(dtype="uint8", rank=2, schema={"fill_value": 5})
        assert schema.to_json() == {"dtype": "uint8", "rank": 2, "fill_value": 5}

    def test_a_transform_tells_the_rank(self):
        transform = {"input_shape": [3], "output": [{"input_dimension": 0}, {"offset": 5}]}
        assert self.known(transform=transform).rank == 2

    @pytest.mark.parametrize(
        ("members", "named"),
        [
            ({"dtype": "uint8", "schema": {"dtype": "int8"}}, "dtype"),
            ({"rank": 2, "schema": {"rank": 3}}, "rank"),
            ({"rank": 2, "transform": {"input_rank": 1}}, "rank"),
        ],
        ids=["dtype", "rank", "transform"],
    )
    def test_contradictions_are_named(self, members, named):
        with pytest.raises((SpecError, MismatchError), match=named):
            self.known(**members)

    def test_asking_changes_nothing(self):
        spec = Odd.parse({"driver": "odd", "dtype": "uint8", "schema": {"fill_value": 5}})
        before = spec.to_json()
        spec.known_schema().update(rank=3)
        assert spec.to_json() == before


class TestSpec:
    def test_what_a_spec_cannot_do_is_named(self):
        spec = Odd()
        actions = (lambda: spec.inline, lambda: run_inline(spec.open()), spec.to_url)
        for action in actions:
            with pytest.raises(UnsupportedError, match='driver "odd"'):
                action()

    def test_it_opens_what_exists_unless_it_says_otherwise(self):
        assert Odd().open_mode() == ts.OpenMode(open=True)
        assert Odd().checked() == Odd() == Odd().minimal()

    @pytest.mark.parametrize(
        ("members", "printed"),
        [
            ({"schema": {"dtype": "uint8", "rank": 2}}, {"dtype": "uint8", "rank": 2}),
            ({"schema": {"rank": 2, "fill_value": 5}}, {"rank": 2, "schema": {"fill_value": 5}}),
            (
                {"dtype": "uint8", "schema": {"dtype": "uint8", "domain": {"shape": [3]}}},
                {
                    "dtype": "uint8",
                    "schema": {"domain": {"inclusive_min": [0], "exclusive_max": [3]}},
                },
            ),
        ],
    )
    def test_data_type_and_rank_are_printed_once(self, members, printed):
        assert Odd.parse(members).to_json() == {"driver": "odd", **printed}


class NegatedSpec(AdapterSpec):
    driver = "negated"

    def over(self, base):
        return Negated(self, base)


class Negated(Adapter):
    def __init__(self, spec, base):
        super().__init__(spec, base)
        self.data_type = base.data_type

    @property
    def schema(self):
        return self.base.schema

    async def read(self, transform, order):
        return np.negative(await self.base.read(transform, order))


@pytest.fixture
def spec():
    base = {"driver": "array", "array": [1, 2, 3], "dtype": "int8"}
    return NegatedSpec.parse({"base": base})


class TestAdapter:
    def test_everything_but_the_elements_is_the_bases(self, spec):
        driver = run_inline(spec.open())
        assert driver.domain == driver.base.domain == run_inline(driver.resolve())
        assert driver.inline is spec.inline is True
        assert driver.kvstore is None
        assert driver.spec().base.array.array.tolist() == [1, 2, 3]
        found = run_inline(driver.read(IndexTransform(input_shape=[3]), "C"))
        np.testing.assert_array_equal(found, [-1, -2, -3])
        assert spec.known_domain() == driver.domain
        assert not spec.open_mode().create

    def test_transforms_compose_from_the_bottom_up(self, spec):
        array = ts.Spec(
            {
                "driver": "array",
                "array": [1, 2, 3],
                "dtype": "int8",
                "transform": {"input_shape": [2], "output": [{"input_dimension": 0, "offset": 1}]},
            }
        ).model
        assert isinstance(array, DriverSpec)
        assert array.transform is not None
        outer = IndexTransform(input_shape=[2])[1:]
        stacked = spec.replace(base=array, transform=outer)
        assert stacked.view_transform == array.transform[outer]
        assert stacked.known_domain() == array.transform.domain
        assert spec.replace(base=array).view_transform == array.transform
        assert spec.replace(transform=outer).view_transform == outer

    def test_storage_statistics_are_the_bases(self, spec):
        driver = run_inline(spec.open())
        found = run_inline(
            driver.storage_statistics(
                IndexTransform(input_shape=[3]), not_stored=True, fully_stored=True
            )
        )
        assert found == ts.TensorStore.StorageStatistics(not_stored=False, fully_stored=True)


def views(library):
    domain = library.IndexTransform(input_rank=1)
    part = {"input_inclusive_min": [1], "input_shape": [2]}
    every = library.d[:].mark_bounds_implicit[True]
    yield domain
    yield domain[library.d[:].translate_by[10]]
    yield domain[::-1]
    for lower, upper in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield library.IndexTransform(
            **part, implicit_lower_bounds=[lower], implicit_upper_bounds=[upper]
        )
    yield domain[every]
    yield domain[library.newaxis][every]


class TestOpened:
    def test_an_open_array_stands_for_its_spec(self):
        store = ts.array(np.arange(6).reshape(2, 3))
        driver = store._driver
        spec = Opened(handle=driver)
        assert run_inline(spec.open()) is driver
        assert spec.inline is True
        assert spec.known_domain() == store.domain
        assert spec.known_schema().dtype == ts.int64
        assert spec.view_spec().to_json()["array"] == [[0, 1, 2], [3, 4, 5]]

    def test_a_view_of_it_keeps_its_place(self):
        view = ts.array(np.arange(6))[2:5]
        spec = Opened(handle=view._driver, transform=view._transform, writable=False)
        assert spec.view_transform == view._transform
        assert spec.view_spec().to_json()["array"] == [2, 3, 4]
        assert (spec.readable, spec.writable) == (True, False)

    @pytest.mark.parametrize("number", range(len(list(views(ts)))))
    def test_a_bound_that_the_array_cannot_change_is_implicit_in_no_view(self, number):
        outcomes = []
        for library in (ts, reference):
            context = library.Context()
            spec = {"driver": "zarr3", "kvstore": "memory://"}
            library.open(spec, create=True, dtype="uint8", shape=[4], context=context).result()
            transform = list(views(library))[number]
            view = library.open(
                {**spec, "transform": transform.to_json()}, context=context
            ).result()
            resolved = view[...].resolve().result()
            outcomes.append((str(view.domain), str(resolved.domain)))
        assert outcomes[0] == outcomes[1]


class TestAMemoryThatLasts:
    @pytest.mark.parametrize("writable", [True, False])
    def test_is_kept_by_the_memory_store(self, writable):
        array = created_in_memory()
        values = np.full(8, 5, "int32")
        given = values[...]
        given.flags.writeable = writable
        array.write(given, can_reference_source_data_indefinitely=True).result()
        values[...] = 6  # which it was said never to be
        assert array.read().result().tolist() == [6] * 8

    @pytest.mark.parametrize(
        "codecs", [["bytes", "gzip"], [{"name": "bytes", "configuration": {"endian": "big"}}]]
    )
    def test_is_not_where_it_is_encoded(self, codecs):
        array = created_in_memory(codecs=codecs)
        values = np.full(8, 5, "int32")
        array.write(values, can_reference_source_data_indefinitely=True).result()
        values[...] = 6
        assert array.read().result().tolist() == [5] * 8

    def test_is_not_where_it_is_a_part_of_a_chunk(self):
        array = created_in_memory()
        values = np.full(4, 5, "int32")
        array[:4].write(values, can_reference_source_data_indefinitely=True).result()
        values[...] = 6
        assert array.read().result().tolist() == [5] * 4 + [0] * 4

    def test_is_not_where_it_may_change(self):
        array = created_in_memory()
        values = np.full(8, 5, "int32")
        array.write(values).result()
        values[...] = 6
        assert array.read().result().tolist() == [5] * 8

    def test_may_be_said_to_any_array(self):
        array = ts.array(np.zeros(8, "int32"))
        array.write(np.ones(8, "int32"), can_reference_source_data_indefinitely=True).result()
        assert array.read().result().tolist() == [1] * 8


def created_in_memory(codecs=("bytes",)):
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": {"codecs": list(codecs)}}
    return ts.open(spec, create=True, dtype="int32", shape=[8]).result()


class Plain(HierarchyFormat):
    """A format with one document a node, and nothing else."""

    format_id = driver = "plain"
    array_key = group_key = attributes_key = "node.json"

    def kind(self, key, document):
        return "array" if "shape" in document else "group"

    def new_group(self, attributes):
        return {self.group_key: attributes}

    def attributes(self, document):
        return document or {}

    def with_attributes(self, document, attributes):
        return attributes

    def new_array(self, spec, attributes, *, labelled):
        return spec, attributes

    def type_name(self, document):
        return "bytes"


class TestHierarchyFormat:
    def test_a_key_is_asked_for_once(self):
        assert Plain().node_keys == ("node.json",)

    def test_what_a_format_need_not_have(self):
        form = Plain()

        assert form.consolidated({}) is None
        with pytest.raises(UnsupportedError, match='"plain" has no consolidated metadata'):
            form.with_consolidated(None, {})
        form.check_name("anything")
        assert form.may_be_node("anything")

    @pytest.mark.parametrize(
        ("shape", "summary"),
        [([2, 3], "(2, 3) bytes"), ([4], "(4,) bytes"), ([], "() bytes"), ("x", '"x" bytes')],
    )
    def test_an_array_in_a_few_words(self, shape, summary):
        assert Plain().summary({"shape": shape}) == summary


@pytest.mark.parametrize("promise", [KvStore, Driver])
class TestAClass:
    def test_that_says_nothing_is_refused_when_it_is_made(self, promise):
        with pytest.raises(
            TypeError, match=r"Ice must say .* `inline = True` if .* `inline = False`"
        ):

            class Ice(promise):  # type: ignore[valid-type, misc]
                async def read(self, key, *rest, **options):
                    return None

    def test_that_says_it_anywhere_is_taken(self, promise):
        class Said(promise):  # type: ignore[valid-type, misc]
            inline = False

            async def read(self, *arguments, **options): ...

        class Inherited(Said):
            async def read(self, *arguments, **options): ...

        class Property(promise):  # type: ignore[valid-type, misc]
            @property
            def inline(self):
                return True

            async def read(self, *arguments, **options): ...

        class PerObject(promise):  # type: ignore[valid-type, misc]
            def __init__(self, base):
                self.inline = base.inline

            async def read(self, *arguments, **options): ...

        class Elsewhere(promise):  # type: ignore[valid-type, misc]
            inline: bool

            async def read(self, *arguments, **options): ...

        assert not Inherited.inline

    def test_that_is_abstract_need_not_say_it(self, promise):
        class Base(promise):  # type: ignore[valid-type, misc]
            def helper(self): ...

        with pytest.raises(TypeError, match="Base"):
            Base()


class TestNewArray:
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_an_array_of_what_was_asked_for(self, order):
        found = new_array((2, 3), np.dtype("u2"), order)

        assert found.shape == (2, 3)
        assert found.dtype == np.dtype("u2")
        assert found.flags.f_contiguous == (order == "F")

    @pytest.mark.parametrize("shape", [(2**62,), (2**61, 2**61), (2**50,)])
    def test_what_no_memory_has_is_a_typed_error_that_says_how_much_it_is(self, shape):
        with pytest.raises(ResourceExhaustedError) as caught:
            new_array(shape, np.dtype("<f8"))

        size = 8 * int(np.prod(shape, dtype=object))
        assert str(caught.value) == (
            f"an array of shape {list(shape)} and type float64 takes {size} bytes of memory, which "
            "cannot be had"
        )
        assert isinstance(caught.value, MemoryError)
