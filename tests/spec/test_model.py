import pickle
from typing import Annotated, ClassVar, Literal

import pytest

from tensorstore_py._spec.model import (
    Field,
    Int,
    Level,
    Model,
    NonNegativeInt,
    PositiveInt,
    Rank,
    Unset,
    field_validator,
    model_validator,
)
from tensorstore_py.errors import SpecError


class Inner(Model):
    level: Annotated[int, Level(0, 9)] = 6
    shuffle: Literal["none", "bit", "byte"] = "none"


class Outer(Model):
    inner: Inner = Inner()
    several: tuple[Inner, ...] = ()
    shape: tuple[PositiveInt, ...] = ()
    schema_: str | None = Field(default=None, alias="schema")
    compressor: str | Unset | None = Unset.UNSET
    scale: float = 1.0
    flag: bool = False
    anything: object = None

    @field_validator("scale")
    @classmethod
    def _not_two(cls, value: float) -> float:
        if value == 2:
            raise SpecError("two is not allowed", ("deeper",))
        if value == 3:
            raise ValueError("three neither")
        return value


class Needy(Model):
    name: str

    @model_validator(mode="after")
    def _not_bad(self):
        if self.name == "bad":
            raise SpecError("a bad name", ("name",))
        return self


class TestParse:
    def test_arrays_are_frozen(self):
        model = Outer.parse({"shape": [1, 2.0], "anything": {"a": [1]}})

        assert model.shape == (1, 2)
        assert model.anything == {"a": (1,)}
        with pytest.raises(ValueError, match="frozen"):
            model.flag = True  # type: ignore[misc]

    def test_an_instance_is_taken_as_it_is(self):
        model = Outer.parse({})

        assert Outer.parse(model) is model

    def test_editors_and_people_may_comment(self):
        json = {"$schema": "x", "inner": {"$comment": "why", "level": 1}}

        assert Outer.parse(json).to_json() == {"inner": {"level": 1}}

    @pytest.mark.parametrize(
        ("json", "path", "problem"),
        [
            (3, (), "expected an object, but found 3"),
            ({"inner": None}, ("inner",), "expected an object, but found null"),
            ({"inner": {"lvel": 1}}, ("inner", "lvel"), 'no such member (did you mean "level"?)'),
            ({"inner": {"level": "3"}}, ("inner", "level"), "expected an integer from 0 to 9"),
            ({"inner": {"level": True}}, ("inner", "level"), "found true"),
            ({"inner": {"level": 3.5}}, ("inner", "level"), "found 3.5"),
            ({"inner": {"level": 10}}, ("inner", "level"), "found 10"),
            ({"inner": {"shuffle": "bits"}}, ("inner", "shuffle"), 'did you mean "bit"?'),
            ({"inner": {"shuffle": 1}}, ("inner", "shuffle"), 'expected "none", "bit" or "byte"'),
            ({"several": [{}, {"level": -1}]}, ("several", 1, "level"), "found -1"),
            ({"several": {}}, ("several",), "expected an array, but found {}"),
            ({"shape": [1, 0]}, ("shape", 1), "expected a positive integer, but found 0"),
            ({"schema": 1}, ("schema",), "expected a string, but found 1"),
            ({"scale": "1"}, ("scale",), 'expected a number, but found "1"'),
            ({"scale": 2}, ("scale", "deeper"), "two is not allowed"),
            ({"scale": 3}, ("scale",), "three neither"),
            ({"flag": 1}, ("flag",), "expected true or false, but found 1"),
        ],
    )
    def test_errors_name_the_member(self, json, path, problem):
        with pytest.raises(SpecError) as caught:
            Outer.parse(json)

        assert caught.value.path == path
        assert problem in caught.value.problem

    def test_a_missing_member(self):
        with pytest.raises(SpecError) as caught:
            Needy.parse({})

        assert caught.value.path == ("name",)
        assert "required" in caught.value.problem

    def test_a_typo_is_reported_before_what_it_makes_missing(self):
        with pytest.raises(SpecError) as caught:
            Needy.parse({"nam": "x"})

        assert caught.value.path == ("nam",)

    def test_model_validators_keep_their_path(self):
        with pytest.raises(SpecError) as caught:
            Needy.parse({"name": "bad"})

        assert caught.value.path == ("name",)
        assert caught.value.problem == "a bad name"


class TestToJson:
    def test_is_minimal_and_sorted(self):
        model = Outer.parse({"schema": "s", "flag": True, "inner": {}})

        assert model.to_json() == {"flag": True, "schema": "s"}
        assert list(model.to_json()) == ["flag", "schema"]

    def test_defaults_on_request(self):
        assert Outer().to_json(include_defaults=True) == {
            "flag": False,
            "inner": {"level": 6, "shuffle": "none"},
            "scale": 1.0,
            "several": [],
            "shape": [],
        }

    def test_null_is_printed_where_it_means_something(self):
        assert Outer.parse({"compressor": None}).to_json() == {"compressor": None}
        assert Outer.parse({}).to_json() == {}

    def test_one_is_not_true(self):
        class Loose(Model):
            value: object = True

        assert Loose.parse({"value": 1}).to_json() == {"value": 1}

    def test_parsing_the_output_gives_the_same_model(self):
        model = Outer.parse({"several": [{"level": 1}, {}], "compressor": "x", "shape": [3]})

        for include_defaults in (False, True):
            assert Outer.parse(model.to_json(include_defaults)) == model

    def test_the_tag_is_printed_and_accepted(self):
        class Tagged(Model):
            json_tag: ClassVar[str | None] = "driver"
            driver: ClassVar[str] = "sample"
            size: Int = 0

        assert Tagged.parse({"driver": "sample", "size": 1}).to_json() == {
            "driver": "sample",
            "size": 1,
        }
        assert Tagged.member_names() == ["driver", "size"]


def test_replace_does_not_touch_the_original():
    model = Outer.parse({"shape": [1]})

    assert model.replace(schema_="x").to_json() == {"schema": "x", "shape": [1]}
    assert model.to_json() == {"shape": [1]}


def test_pickle():
    model = Outer.parse({"shape": [1], "compressor": None})

    assert pickle.loads(pickle.dumps(model)) == model


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Int, [-1, 0, 5.0], [True, "1", 1.5, None]),
        (NonNegativeInt, [0, 1], [-1]),
        (PositiveInt, [1], [0]),
        (Rank, [0, 32], [-1, 33]),
        (Annotated[int, Level(high=3)], [3, -9], [4]),
    ],
)
def test_integer_types(kind, good, bad):
    class Holder(Model):
        value: kind  # type: ignore[valid-type]

    for value in good:
        assert Holder.parse({"value": value}).to_json() == {"value": value}
    for value in bad:
        with pytest.raises(SpecError):
            Holder.parse({"value": value})
