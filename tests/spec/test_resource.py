import pytest

from tensorstore_py._spec.context import Context
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.resource import (
    Resource,
    ResourceField,
    ResourceModel,
    ResourceSpec,
    resource_class,
)
from tensorstore_py.errors import SpecError
from tests.spec.samples import Config, Pool


def test_the_class_of_a_key():
    assert resource_class("sample_pool") is resource_class("sample_pool#x") is Pool


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


def test_a_model_without_create_is_its_own_object():
    resource = Context({"sample_config": {"mode": "fast"}})["sample_config"]

    assert isinstance(resource.value, Config)
    assert resource.value.mode == "fast"
    assert resource.to_json() == {"mode": "fast"}
    assert resource.provider == "sample_config"
