"""Contexts and their resources, and specs that are bound to them."""

import gc
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py import Context, FailedPreconditionError, SpecError
from tensorstore_py._spec.context import bind, is_bound, likeness, spec_json, strip_context, unbind
from tensorstore_py._spec.held import Held, is_store, json_of_object, kvstore_object
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.resource import (
    Resource,
    ResourceField,
    ResourceModel,
    ResourceSpec,
    resource_class,
)
from tests.spec.samples import Chain, Config, Grid, Layer, Layered, LivePool, Mem, Pool


@pytest.fixture
def context() -> Any:
    return Context(
        {
            "sample_pool": {"limit": 10},
            "sample_pool#a": "sample_pool",
            "sample_pool#b": None,
            "sample_pool#c": {"limit": 20},
        }
    )


class TestLookup:
    def test_one_key_is_one_object(self, context):
        assert context["sample_pool"] is context["sample_pool"]
        assert isinstance(context["sample_pool"].value, LivePool)
        assert context["sample_pool"].value.limit == 10

    def test_an_alias_is_the_same_object(self, context):
        assert context["sample_pool#a"] is context["sample_pool"]

    def test_null_is_the_default_apart_from_what_has_the_plain_name(self, context):
        assert context["sample_pool#b"].to_json() == {}
        assert context["sample_pool#b"] is not context["sample_pool"]

    def test_null_is_the_parents_default(self, context):
        child = Context({"sample_pool": None}, context)

        assert child["sample_pool"] is context["sample_pool"]

    def test_what_is_not_defined_is_inherited(self, context):
        child = Context({"sample_pool": {"limit": 1}}, context)

        assert child["sample_pool"] is not context["sample_pool"]
        assert child["sample_pool#c"] is context["sample_pool#c"]
        assert child["sample_config"] is context["sample_config"]
        assert context.parent is None
        assert child.parent is context

    def test_a_reference_is_resolved_where_it_is_written(self, context):
        child = Context({"sample_pool": {"limit": 1}}, context)

        assert child["sample_pool#a"] is context["sample_pool"]

    def test_contexts_do_not_share_defaults(self):
        assert Context()["sample_pool"] is not Context()["sample_pool"]
        assert Context().spec is None

    def test_undefined(self, context):
        with pytest.raises(SpecError, match='Resource not defined: "sample_pool#x"'):
            context["sample_pool#x"]
        with pytest.raises(ValueError, match='Invalid context resource identifier: "abc"'):
            context["abc#x"]

    @pytest.mark.parametrize(
        "json",
        [
            {"sample_pool": "sample_pool"},
            {"sample_pool": "sample_pool#b", "sample_pool#b": "sample_pool"},
        ],
    )
    def test_circles(self, json):
        with pytest.raises(SpecError, match="reference cycle"):
            Context(json)["sample_pool"]

    def test_resources_may_need_resources(self):
        context = Context(
            {
                "sample_chain#a": {"value": 1},
                "sample_chain#b": {"value": 3, "parent": "sample_chain#a"},
                "sample_chain#d": {"parent": "sample_chain#e"},
                "sample_chain#e": {"parent": "sample_chain#d"},
            }
        )

        chain = context["sample_chain#b"].value
        assert isinstance(chain, Chain)
        assert chain.parent is context["sample_chain#a"]
        with pytest.raises(SpecError, match="reference cycle"):
            context["sample_chain#d"]


class TestPickle:
    def test_identity_is_kept_within_one_pickle(self, context):
        child = Context({"sample_pool#c": {"limit": 7}}, context)
        things = [child["sample_pool"], child["sample_pool#c"], child, context]

        for _ in range(2):
            pool, own, child, context = things = pickle.loads(pickle.dumps(things))

            assert child.parent is context
            assert child["sample_pool"] is context["sample_pool"] is pool
            assert child["sample_pool#c"] is own
            assert own.value.limit == 7

    def test_a_resource_outlives_its_context(self):
        resource = Context({"sample_chain": {"value": 5}})["sample_chain"]
        gc.collect()

        copy = pickle.loads(pickle.dumps(resource))

        assert resource.creator is None
        assert copy.to_json() == {"value": 5}
        assert repr(copy) == "Context.Resource({'value': 5})"


ContextSpec = Context.Spec


class TestContextSpec:
    def test_round_trip_and_repr(self):
        json: dict[str, object] = {
            "sample_pool": {},
            "sample_pool#a": "sample_pool",
            "sample_pool#b": None,
        }
        spec = ContextSpec(json)

        assert spec.to_json() == json
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert repr(spec) == (
            "Context.Spec({'sample_pool': {}, 'sample_pool#a': 'sample_pool', "
            "'sample_pool#b': None})"
        )

    def test_defaults(self):
        spec = ContextSpec({"sample_pool": {"limit": 0}})

        assert spec.to_json() == {"sample_pool": {}}
        assert spec.to_json(include_defaults=True) == {"sample_pool": {"limit": 0}}

    @pytest.mark.parametrize(
        ("json", "path", "problem"),
        [
            ([], (), "expected an object"),
            ("sample_pool", (), "expected an object"),
            ({"sample_pol": {}}, ("sample_pol",), 'did you mean "sample_pool"?'),
            ({"sample_pool": 5}, ("sample_pool",), "expected an object, but found 5"),
            ({"sample_pool": "sample_config"}, ("sample_pool",), "no reference"),
            ({"sample_pool#x": {"limit": -1}}, ("sample_pool#x", "limit"), "found -1"),
            ({"sample_pool": {"limt": 1}}, ("sample_pool", "limt"), 'did you mean "limit"?'),
        ],
    )
    def test_errors(self, json, path, problem):
        with pytest.raises(SpecError) as caught:
            ContextSpec(json)

        assert caught.value.path == path
        assert problem in caught.value.problem

    def test_parts(self):
        spec = ContextSpec({"sample_pool#b": None, "sample_pool": {"limit": 3}})

        assert list(spec.resources) == ["sample_pool", "sample_pool#b"]
        assert ContextSpec.of(spec.resources) == spec != ContextSpec({})
        assert spec != {}


def mem(**members):
    return {"driver": "mem", **members}


def mem_model(**members):
    return Mem.parse(mem(**members))


def layers(*bases):
    return Layered.parse({"layers": [{"base": base} for base in bases]})


def bases(json):
    return [layer["base"] for layer in json["layers"]]


class TestBind:
    def test_members_become_live(self):
        context = Context({"sample_pool#a": {"limit": 3}})
        spec = Grid.parse({"kvstore": mem(pool="sample_pool#a"), "cache": {"limit": 9}})

        bound: Any = bind(spec, context)

        assert not is_bound(spec)
        assert is_bound(bound)
        assert bound.kvstore.pool is context["sample_pool#a"]
        assert bound.cache.value.limit == 9
        assert bound.metadata_cache is None

    def test_an_unbound_resource_has_no_object(self):
        with pytest.raises(FailedPreconditionError, match="sample_pool"):
            _ = Mem.parse({}).pool.value

    def test_nothing_is_copied_when_nothing_changes(self):
        bound = bind(Grid.parse({"kvstore": mem()}), Context())

        assert bind(bound, Context()) is bound
        assert unbind(Mem.parse({})).to_json() == mem()

    def test_a_context_member_is_a_child_context(self):
        context = Context({"sample_pool#a": {"limit": 1}})
        spec = layers(
            mem(pool="sample_pool#a"),
            mem(pool="sample_pool#a", context={"sample_pool#a": {"limit": 2}}),
            mem(pool="sample_pool#b", context={"sample_pool#b": "sample_pool#a"}),
        )

        bases: list[Any] = [layer.base for layer in bind(spec, context).layers]
        first, second, third = bases

        assert first.pool.value.limit == 1
        assert second.pool.value.limit == 2
        assert third.pool is first.pool
        assert not second.context.resources

    def test_the_error_has_the_path(self):
        spec = layers(mem(), mem(pool="sample_pool#nowhere"))

        with pytest.raises(SpecError) as caught:
            bind(spec, Context())

        assert caught.value.path == ("layers", 1, "base", "pool")

    def test_bound_resources_are_accepted_in_json(self):
        pool = Context({"sample_pool": {"limit": 3}})["sample_pool"]

        assert Mem.parse({"pool": pool}).pool is pool
        with pytest.raises(SpecError, match='expected a "sample_config"'):
            Mem.parse({"config": pool})


class TestJson:
    def test_unbound(self):
        spec = Mem.parse({"pool": ["sample_pool#a"], "context": {"sample_pool#a": {}}})

        assert spec.to_json() == mem(pool="sample_pool#a", context={"sample_pool#a": {}})
        assert Mem.parse({"pool": "sample_pool"}).to_json() == mem()
        assert Mem.parse({}).to_json(include_defaults=True) == mem(
            config="sample_config", context={}, path="", pool="sample_pool"
        )

    @pytest.mark.parametrize("value", [None, 3, "other", ["sample_pool", "sample_pool"]])
    def test_refused(self, value):
        with pytest.raises(SpecError) as caught:
            Mem.parse({"pool": value})

        assert caught.value.path == ("pool",)

    def test_what_was_shared_stays_shared(self):
        context = Context({"sample_pool#a": {"limit": 1}})
        spec = layers(
            mem(pool="sample_pool#a"),
            mem(pool="sample_pool#a", context={"sample_pool#a": {"limit": 2}}),
            mem(pool="sample_pool#b", context={"sample_pool#b": "sample_pool#a"}),
            mem(pool={}),
            mem(),
        )

        json = spec_json(bind(spec, context))

        assert json["context"] == {
            "sample_pool": {},
            "sample_pool#0": {"limit": 1},
            "sample_pool#1": {"limit": 2},
        }
        assert [base.get("pool") for base in bases(json)] == [
            "sample_pool#0",
            "sample_pool#1",
            "sample_pool#0",
            {},
            None,
        ]

    def test_a_key_is_kept_if_it_is_not_taken(self):
        bound = bind(Mem.parse({"pool": "sample_pool#a"}), Context({"sample_pool#a": {"limit": 1}}))

        assert spec_json(bound) == mem(
            config={}, context={"sample_pool#a": {"limit": 1}}, pool="sample_pool#a"
        )

    def test_repr_marks_what_was_bound(self):
        bound = bind(Mem.parse({"pool": {"limit": 4}}), Context())

        assert spec_json(bound, mark_bound=True) == mem(config=[{}], pool=[{"limit": 4}])

    def test_mere_configuration_is_never_shared(self):
        context = Context({"sample_config": {"mode": "fast"}})

        json = spec_json(bind(layers(mem(pool={}), mem(pool={})), context))

        assert "context" not in json
        assert [base["config"] for base in bases(json)] == [{"mode": "fast"}] * 2

    def test_binding_the_json_again_shares_the_same(self):
        shared = Context({"sample_pool": {"limit": 1}})
        bound = bind(layers(mem(), mem(), mem(pool={"limit": 2})), shared)

        again: Any = bind(Layered.parse(spec_json(bound)), Context())

        pools = [layer.base.pool for layer in again.layers]
        assert pools[0] is pools[1]
        assert pools[0] is not pools[2]
        assert [pool.value.limit for pool in pools] == [1, 1, 2]

    def test_resources_inside_resources(self):
        definitions = {
            "sample_chain#a": {"value": 2},
            "sample_chain#b": {"value": 3, "parent": "sample_chain#a"},
        }
        context = Context(definitions)
        outer = {"driver": "chained", "chain": "sample_chain#b"}
        inner = {"driver": "chained", "chain": {"parent": "sample_chain#a"}}

        json = spec_json(bind(layers(outer, inner), context))

        assert json["context"] == definitions
        assert bases(json) == [outer, inner]

    def test_what_is_unbound_keeps_its_names(self):
        context = Context({"sample_pool#a": {"limit": 1}})
        bound = bind(mem_model(pool="sample_pool#a"), context)
        partly = Layered(layers=(Layer(base=bound), Layer(base=mem_model(pool="sample_pool#a"))))

        json = spec_json(partly)

        assert json["context"] == {"sample_pool#0": {"limit": 1}}
        assert [base["pool"] for base in bases(json)] == ["sample_pool#0", "sample_pool#a"]


class TestLikeness:
    def like(self, first, second):
        context = Context()
        bound = [bind(model, context) for model in (first, second)]
        return likeness(bound[0]) == likeness(bound[1])

    @pytest.mark.parametrize("members", [{}, {"path": "a/"}, {"config": {"mode": "odd"}}])
    def test_what_says_the_same_of_the_same_resources(self, members):
        assert self.like(mem_model(**members), mem_model(**members))

    @pytest.mark.parametrize(
        "members", [{"path": "a/"}, {"config": {"mode": "odd"}}, {"pool": {"limit": 3}}]
    )
    def test_what_differs(self, members):
        assert not self.like(mem_model(**members), mem_model())

    def test_what_holds_a_resource_of_its_own(self):
        assert not self.like(mem_model(pool={"limit": 3}), mem_model(pool={"limit": 3}))

    def test_goes_into_models_inside(self):
        odd = mem(config={"mode": "odd"})
        assert self.like(layers(odd, mem()), layers(odd, mem()))
        assert not self.like(layers(odd, mem()), layers(mem(), odd))


class TestBinding:
    def test_strip_context(self):
        spec = Grid.parse(
            {
                "kvstore": mem(pool={"limit": 3}),
                "metadata_cache": "sample_pool#a",
                "context": {"sample_pool#a": {}},
            }
        )
        plain = {"driver": "grid", "kvstore": mem()}

        assert strip_context(spec).to_json() == plain
        assert strip_context(bind(spec, Context())).to_json() == plain

    def test_pickle_keeps_what_is_shared(self):
        bound = bind(layers(mem(), mem()), Context({"sample_pool": {"limit": 6}}))

        first, second = (layer.base for layer in pickle.loads(pickle.dumps(bound)).layers)

        assert first.pool is second.pool
        assert first.pool.value.limit == 6


class TestSpec:
    def test_references(self):
        assert ResourceSpec.parse("sample_pool", "sample_pool#a").reference == "sample_pool#a"
        assert ResourceSpec.parse("sample_pool", ("sample_pool",)).is_spec_default
        assert ResourceSpec.parse("sample_pool", None, allow_null=True).to_json() is None
        with pytest.raises(SpecError, match="found null"):
            ResourceSpec.parse("sample_pool", None)

    def test_inline(self):
        spec = ResourceSpec.parse("sample_pool", {"limit": 0})

        assert spec.to_json() == {}
        assert spec.to_json(include_defaults=True) == {"limit": 0}
        assert ResourceSpec.parse("sample_pool", {"limit": 0}) == spec

    def test_marked(self):
        assert ResourceSpec("sample_pool", "sample_pool", was_bound=True).spec_json(False) == [
            "sample_pool"
        ]


class TestField:
    def test_optional_and_default(self):
        class Holder(Model):
            pool: Resource[object] = ResourceField("sample_pool")
            other: Resource[object] | None = ResourceField("sample_pool", optional=True)

        assert Holder.parse({}).to_json(include_defaults=True) == {"pool": "sample_pool"}
        assert Holder.parse({"other": "sample_pool"}).to_json() == {}
        assert Holder.parse({"other": "sample_pool#a"}).to_json() == {"other": "sample_pool#a"}

    def test_a_resource_that_is_no_object_in_json(self):
        class Switch(ResourceModel):
            on: bool = True

            @classmethod
            def parse_frozen(cls, json):
                return cls(on=json) if isinstance(json, bool) else super().parse_frozen(json)

            def spec_json(self, include_defaults):
                return self.on

        Switch.resource_id = "sample_switch"
        resource: Resource[Switch] = Resource(Switch.parse_frozen(False))

        assert repr(resource) == "Context.Resource(False)"
        assert resource.provider == "sample_switch"


class TestResource:
    def test_the_class_of_a_key(self):
        assert resource_class("sample_pool") is resource_class("sample_pool#x") is Pool

    def test_a_model_without_create_is_its_own_object(self):
        resource = Context({"sample_config": {"mode": "fast"}})["sample_config"]

        assert isinstance(resource.value, Config)
        assert resource.value.mode == "fast"
        assert resource.to_json() == {"mode": "fast"}
        assert resource.provider == "sample_config"


class Shelf:
    """A store of another library."""

    def __init__(self, path):
        self.path = path


class Better(Shelf):
    pass


@pytest.fixture
def shelves(monkeypatch):
    """Another library, and a plug-in that knows it."""
    library = ModuleType("shelves")
    vars(library).update(Shelf=Shelf, Better=Better)
    monkeypatch.setitem(sys.modules, "shelves", library)
    monkeypatch.setattr("tensorstore_py._spec.held._makers", {})
    kvstore_object("shelves", "Shelf")(lambda shelf: {"driver": "memory", "path": shelf.path})
    kvstore_object("shelves", "Better")(lambda shelf: f"memory://better/{shelf.path}")


class TestHeld:
    @pytest.mark.usefixtures("shelves")
    def test_an_object_stands_wherever_the_spec_of_a_store_may(self):
        shelf = Shelf("a/")

        assert ts.KvStore.open(shelf).result().url == "memory://a/"
        assert ts.KvStore.Spec(shelf).url == "memory://a/"
        inner = {"driver": "memory", "path": "a/"}
        assert ts.Spec({"driver": "zarr3", "kvstore": shelf}).to_json()["kvstore"] == inner
        assert ts.Spec({"driver": "zarr3"}, kvstore=shelf).to_json()["kvstore"] == inner
        assert ts.Spec(shelf).to_json() == {"driver": "auto", "kvstore": inner}
        with pytest.raises(ts.errors.NotFoundError):
            ts.open(shelf).result()
        group = ts.Group.open(shelf, create=True).result()
        assert group.kvstore.url == "memory://a/"

    @pytest.mark.usefixtures("shelves")
    def test_the_library_that_knows_an_object_best_is_asked(self):
        assert json_of_object(Better("x")) == "memory://better/x"
        assert ts.KvStore.open(Better("x")).result().url == "memory://better/x"

    @pytest.mark.usefixtures("shelves")
    def test_a_library_that_is_not_imported_has_no_objects(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "shelves")

        assert not is_store(Shelf("a"))
        with pytest.raises(TypeError, match="Shelf"):
            ts.KvStore.open(Shelf("a"))

    @pytest.mark.usefixtures("shelves")
    def test_an_object_is_no_element_of_a_json_array(self):
        array = ts.array([None], dtype="json")

        with pytest.raises(TypeError, match="Shelf"):
            array[0] = Shelf("a")

    def test_an_object_is_itself_alone(self):
        value = {"a": 1}

        assert Held(value) == Held(value)
        assert hash(Held(value)) == hash(Held(value))
        assert Held(value) != Held({"a": 1})
        assert pickle.loads(pickle.dumps(Held(value))).value == value
        assert Held(value).spec_json(False) == "<dict>"

    def test_open_stores_stand_for_themselves(self):
        kvstore = ts.KvStore.open("memory://a/").result()
        kvstore["x"] = b"1"

        for given in (kvstore, ts.zarr.MemoryStore(context=None)):
            ts.open(
                {"driver": "zarr3", "kvstore": given}, create=True, dtype="u1", shape=[2]
            ).result()
            assert ts.open(given).result().dtype == ts.uint8
        assert kvstore["zarr.json"]
        assert ts.KvStore.open(kvstore).result()["x"] == b"1"

    def test_what_no_spec_can_say_is_refused(self):
        kvstore = ts.KvStore.open("memory://a/").result()

        with pytest.raises(ts.errors.SpecError, match="transaction"):
            ts.KvStore.open(kvstore.with_transaction(ts.Transaction()))
        with pytest.raises(ts.errors.SpecError, match="read only"):
            ts.KvStore.open(ts.zarr.MemoryStore(read_only=True))
