import pickle
from typing import Any

import pytest

from tensorstore_py._spec.binding import (
    bind,
    is_bound,
    likeness,
    spec_json,
    strip_context,
    unbind,
)
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import FailedPreconditionError, SpecError
from tests.spec.samples import Grid, Layer, Layered, Mem


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

    def test_a_key_is_kept_if_nobody_else_has_it(self):
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


def test_strip_context():
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


def test_pickle_keeps_what_is_shared():
    bound = bind(layers(mem(), mem()), Context({"sample_pool": {"limit": 6}}))

    first, second = (layer.base for layer in pickle.loads(pickle.dumps(bound)).layers)

    assert first.pool is second.pool
    assert first.pool.value.limit == 6


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
