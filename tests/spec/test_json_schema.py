from typing import Annotated, ClassVar

from tensorstore_py._spec.codec_spec import codec_specs
from tensorstore_py._spec.json_schema import model_schema, spec_schema
from tensorstore_py._spec.model import Field, JsonForm, Level, Model, PlainValidator
from tensorstore_py._spec.registry import kvstore, kvstores


class Inner(Model):
    """Inside.

    Attributes:
        size: how large.
    """

    size: Annotated[int, Level(1)] = 3


class Base(Model):
    """The base.

    Attributes:
        name: what it is
            called.
    """

    name: str | None = None


class Outer(Base):
    """Outside, with `marks`.

    More of it.

    Attributes:
        from_: where from; None: here.
        inner: what is inside.

    Example:
        >>> 1
        1
    """

    from_: int = Field(alias="from")
    inner: Inner | None = None
    own: Annotated[object, PlainValidator(lambda json: json), JsonForm({"const": 5})] = 5


def test_a_model_becomes_an_object_with_its_docs():
    schema = model_schema(Outer)
    assert schema["description"] == "Outside, with marks."
    assert schema["required"] == ["from"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["from"] == {"type": "integer", "description": "Where from; null: here."}
    assert properties["name"] == {"type": "string", "description": "What it is called."}
    assert properties["inner"]["properties"]["size"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "How large.",
    }
    assert properties["own"] == {"const": 5, "default": 5}
    assert "$defs" not in schema


def test_a_plug_in_is_in_the_schema_as_soon_as_it_is_registered():
    @kvstore("schema_test_store")
    class Store(Model):
        """A store of a guest.

        Attributes:
            size: how much.
        """

        json_tag: ClassVar[str | None] = "driver"
        driver: ClassVar[str]
        size: int = 5

    try:
        found = spec_schema(codec_specs)["$defs"]["KvstoreDriver.schema_test_store"]
        assert found["properties"]["size"]["description"] == "How much."
        assert found["properties"]["driver"] == {"const": "schema_test_store"}
    finally:
        del kvstores._classes["schema_test_store"]
