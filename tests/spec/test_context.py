import gc
import pickle
from typing import Any

import pytest

from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError
from tests.spec.samples import Chain, LivePool


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
