"""Models of specs: members, registered classes, options, limits, and their JSON schemas."""

import pickle
import random
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
import tensorstore as reference
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tensorstore_py import CodecSpec, Context, MismatchError, SpecError, dtype
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py._spec import registry as module
from tensorstore_py._spec.codec_spec import CodecSpecModel, codec_spec, codec_specs
from tensorstore_py._spec.json_schema import FORMS, model_schema, spec_schema
from tensorstore_py._spec.limits import (
    ConcurrencyModel,
    Duration,
    RateModel,
    RequestConcurrencyModel,
    RetriesModel,
)
from tensorstore_py._spec.model import (
    Field,
    JsonForm,
    Level,
    Model,
    NonNegativeInt,
    PlainValidator,
    PositiveInt,
    Rank,
    Unset,
    field_validator,
    model_validator,
    spec_error,
)
from tensorstore_py._spec.options import OptionsModel
from tensorstore_py._spec.registered import ParsedOnce, parse_registered
from tensorstore_py._spec.registry import CodecRegistry, Registry, codec, codecs, kvstore, kvstores
from tensorstore_py._spec.schema_constraints import SchemaConstraints
from tests.spec.samples import Grid, Mem, sample_drivers, sample_stores


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
            size: Annotated[int, Level()] = 0

        assert Tagged.parse({"driver": "sample", "size": 1}).to_json() == {
            "driver": "sample",
            "size": 1,
        }
        assert Tagged.member_names() == ["driver", "size"]


class TestModel:
    def test_replace_does_not_touch_the_original(self):
        model = Outer.parse({"shape": [1]})

        assert model.replace(schema_="x").to_json() == {"schema": "x", "shape": [1]}
        assert model.to_json() == {"shape": [1]}

    def test_pickle(self):
        model = Outer.parse({"shape": [1], "compressor": None})

        assert pickle.loads(pickle.dumps(model)) == model

    @pytest.mark.parametrize(
        ("kind", "good", "bad"),
        [
            (Annotated[int, Level()], [-1, 0, 5.0], [True, "1", 1.5, None]),
            (NonNegativeInt, [0, 1], [-1]),
            (PositiveInt, [1], [0]),
            (Rank, [0, 32], [-1, 33]),
            (Annotated[int, Level(high=3)], [3, -9], [4]),
        ],
    )
    def test_integer_types(self, kind, good, bad):
        class Holder(Model):
            value: kind  # type: ignore[valid-type]

        for value in good:
            assert Holder.parse({"value": value}).to_json() == {"value": value}
        for value in bad:
            with pytest.raises(SpecError):
                Holder.parse({"value": value})


class Colour(Enum):
    RED = "red"


class Part(Model):
    size: Annotated[float, Field(gt=0, le=10)] = 1.0
    name: Annotated[str, Field(min_length=2, pattern="^a")] = "aa"
    colour: Colour = Colour.RED


class Whole(Model):
    part: Part | int | None = None
    parts: dict[str, Part] = Field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    few: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,)


def problem(json):
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(json)
    return spec_error(caught.value, json)


class TestProblems:
    @pytest.mark.parametrize(
        ("json", "path", "text"),
        [
            ({"part": {"size": 0}}, ("part", "size"), "expected a number above 0.0, but found 0"),
            ({"part": {"size": 11}}, ("part", "size"), "expected a number not above 10.0"),
            ({"part": {"size": "x"}}, ("part", "size"), 'expected a number, but found "x"'),
            ({"part": {"name": "a"}}, ("part", "name"), "at least 2 characters"),
            ({"part": {"name": "bb"}}, ("part", "name"), 'a string that matches "^a"'),
            ({"part": {"colour": "blue"}}, ("part", "colour"), "expected"),
            ({"part": "x"}, ("part",), 'but found "x"'),
            ({"parts": {"one": {"size": None}}}, ("parts", "one", "size"), "found null"),
            ({"parts": []}, ("parts",), "expected an object, but found []"),
            ({"pair": ("x", "a")}, ("pair", 0), "expected an integer"),
            ({"pair": (1,)}, ("pair", 1), "required"),
            ({"few": ()}, ("few",), "expected at least 1 elements"),
            ({"few": (1, 2, 3)}, ("few",), "expected at most 2 elements"),
        ],
    )
    def test_the_most_telling_finding(self, json, path, text):
        error = problem(json)

        assert error.path == path
        assert text in error.problem


MEM = {"driver": "mem"}


class TestMemory:
    def test_the_same_json_is_parsed_once(self):
        def parse(path: str):
            return parse_registered(sample_stores, {"driver": "mem", "path": path})

        assert parse("same") is parse("same")
        assert parse("same") is not parse("other")

    def test_true_is_not_one(self):
        parse_registered(sample_drivers, {"driver": "grid", "kvstore": MEM, "level": 1})

        for wrong in (True, "1"):
            with pytest.raises(SpecError):
                parse_registered(sample_drivers, {"driver": "grid", "kvstore": MEM, "level": wrong})

    def test_bound_resources_are_not_remembered(self):
        pools = [Context({"sample_pool": {}})["sample_pool"] for _ in range(2)]

        specs = [parse_registered(sample_stores, {**MEM, "pool": pool}) for pool in pools]

        assert [getattr(spec, "pool", None) for spec in specs] == pools

    def test_memory_is_bounded(self):
        for number in range(2000):
            parse_registered(sample_stores, {"driver": "mem", "path": str(number)})
        parse_registered(sample_stores, {"driver": "mem", "path": "x" * 100_000})

        assert len(sample_stores.parsed) <= 512
        assert max(map(len, sample_stores.parsed)) <= 65536


class TestParsedOnce:
    def test_equal_json_gives_the_same_object_and_other_json_another(self):
        parse = ParsedOnce(lambda json: [json])
        first = parse({"a": (1, 2)})
        assert parse({"a": (1, 2)}) is first
        for other in ({"a": (1, True)}, {"a": (1.0, 2)}, {"a": (1, 2), "b": None}):
            assert parse(other) == [other]
            assert parse(other) is not first

    def test_what_is_no_json_is_parsed_each_time(self):
        bound = object()
        parse = ParsedOnce(lambda json: [json])
        assert parse(bound) == [bound]
        assert parse(bound) is not parse(bound)

    def test_errors_are_not_remembered(self):
        outcomes = [SpecError("no"), "yes"]

        def once(_json):
            outcome = outcomes.pop(0)
            if isinstance(outcome, SpecError):
                raise outcome
            return outcome

        parse = ParsedOnce(once)
        with pytest.raises(SpecError):
            parse(1)
        assert parse(1) == "yes"

    def test_no_more_are_kept_than_fit(self):
        parse = ParsedOnce(str)
        for number in range(2000):
            parse(number)
        assert len(parse.parsed) <= 512
        parse("x" * 100_000)
        assert not any(len(key) > 100_000 for key in parse.parsed)


class TestRegistered:
    def test_the_tag_picks_the_class(self):
        spec = parse_registered(sample_drivers, {"driver": "grid1", "kvstore": {"driver": "mem"}})

        assert isinstance(spec, Grid)
        assert isinstance(spec.kvstore, Mem)
        assert spec.to_json() == {"driver": "grid", "kvstore": {"driver": "mem"}}

    def test_a_url_is_turned_into_json(self):
        def from_url(url: str) -> object:
            return {"driver": "mem", "path": url.removeprefix("mem://")}

        spec = parse_registered(sample_stores, "mem://a", from_url=from_url)

        assert spec.to_json() == {"driver": "mem", "path": "a"}

    def test_a_model_is_taken_as_it_is(self):
        model = Mem.parse({})

        assert parse_registered(sample_stores, model) is model

    @pytest.mark.parametrize(
        ("json", "path", "problem"),
        [
            ({}, ("driver",), "required"),
            ({"driver": 3}, ("driver",), "expected a string"),
            ({"driver": "gird"}, ("driver",), 'did you mean "grid"?'),
            ({"driver": "grid"}, ("kvstore",), "required"),
            ({"driver": "grid", "kvstore": {"driver": "me"}}, ("kvstore", "driver"), '"mem"'),
            ({"driver": "grid", "kvstore": {"driver": "mem", "p": 1}}, ("kvstore", "p"), "no such"),
            ({"driver": "grid", "kvstore": "mem://"}, ("kvstore",), "expected an object"),
            ("mem://", (), "expected an object, but found"),
            (None, (), "found null"),
        ],
    )
    def test_errors(self, json, path, problem):
        with pytest.raises(SpecError) as caught:
            parse_registered(sample_drivers, json)

        assert caught.value.path == path
        assert problem in caught.value.problem


@pytest.fixture
def shapes() -> Registry[object]:
    return Registry("shape", folders=(), tag="shape")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with two registering modules, and one that its table does not have."""
    name = "sample_builtin_folder"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text(
        "imports = []\n"
        "REGISTERED = {\n"
        "    'square': {\n"
        "        'shape': ('square',), 'shape alias': ('quad',), 'shape scheme': ('edged',),\n"
        "    },\n"
        "    'oval': {'shape': ('oval',), 'shape detecting': ('oval',), 'form': ('square',)},\n"
        "}\n"
    )
    for shape, others in (("square", "aliases=['quad'], schemes=['edged']"), ("oval", "")):
        (package / f"{shape}.py").write_text(
            f"import {name} as p\np.imports.append('{shape}')\nclass Shape: pass\n"
            f"p.registry.register('{shape}', Shape, {others})\n"
        )
    (package / "_private.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for loaded in [each for each in sys.modules if each.startswith(name)]:
        del sys.modules[loaded]


class TestRegistry:
    def test_registering_names_the_class(self, shapes):
        @shapes.registering("circle", aliases=["disc"], schemes=["round"])
        class Circle:
            shape: str

        assert shapes.get("circle") is shapes.get("disc") is Circle
        assert shapes.find_scheme("round") is Circle
        assert Circle.shape == "circle"
        assert shapes.names() == ["circle"]
        assert shapes.schemes() == ["round"]

    def test_a_class_keeps_a_name_of_its_own(self, shapes):
        @shapes.registering("circle")
        class Circle:
            shape = "round one"

        assert Circle.shape == "round one"

    def test_unknown_names_suggest_the_nearest(self, shapes):
        shapes.register("circle", type("Circle", (), {}))

        with pytest.raises(
            SpecError, match=r'no shape is named "cirle" \(did you mean "circle"\?\)'
        ):
            shapes.get("cirle")
        assert shapes.find("cirle") is None
        assert shapes.find_scheme("x") is None

    def test_a_name_cannot_be_taken_twice(self, shapes):
        first, second = type("First", (), {}), type("Second", (), {})
        shapes.register("circle", first, aliases=["disc"])
        shapes.register("circle", first)

        with pytest.raises(ValueError, match="registered already"):
            shapes.register("disc", second)

    def test_a_class_that_is_defined_again_takes_its_place(self, shapes):
        def define():
            @shapes.registering("circle", aliases=["disc"])
            class Circle: ...

            return Circle

        define()
        again = define()

        assert shapes.get("circle") is shapes.get("disc") is again

    def test_a_module_of_a_folder_is_imported_when_its_name_is_asked_for(self, folder):
        registry: Registry[object] = Registry("shape", folders=(folder,), tag="shape")
        registry.register("circle", type("Circle", (), {}))
        package = vars(import_module(folder))
        package["registry"] = registry

        registry.get("circle")

        assert registry.has_scheme("edged")
        assert package["imports"] == []

        assert registry.get("quad") is registry.get("square") is registry.find_scheme("edged")

        assert package["imports"] == ["square"]

        assert registry.find("cube") is None
        assert registry.names() == ["circle", "oval", "square"]
        assert registry.schemes() == ["edged"]
        with pytest.raises(SpecError, match=r'did you mean "oval"\?'):
            registry.get("ovel")

        assert package["imports"] == ["square"]

        assert [vars(each)["shape"] for each in registry.classes()] == ["circle", "oval", "square"]

    def test_what_detects_its_format_is_imported_to_find_out(self, folder):
        registry: Registry[object] = Registry("shape", folders=(folder,), tag="shape")
        package = vars(import_module(folder))
        package["registry"] = registry

        assert [vars(each)["shape"] for each in registry.detecting()] == ["oval"]
        assert package["imports"] == ["oval"]

    def test_a_scheme_imports_its_module(self, folder):
        registry: Registry[object] = Registry("shape", folders=(folder,), tag="shape")
        package = vars(import_module(folder))
        package["registry"] = registry

        found = registry.find_scheme("edged")

        assert found is registry.get("square")
        assert package["imports"] == ["square"]

    def test_nobody_takes_a_built_in_name_first(self, folder):
        registry: Registry[object] = Registry("shape", folders=(folder,), tag="shape")
        vars(import_module(folder))["registry"] = registry

        with pytest.raises(ValueError, match='shape "quad" is registered already'):
            registry.register("round", type("Round", (), {}), aliases=["quad"])

    def test_guests_come_by_the_entry_point_group(self, monkeypatch, shapes, tmp_path):
        (tmp_path / "sample_guest.py").write_text(
            "loads = 0\ndef register():\n    pass\nloads += 1\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        entry = EntryPoint("guest", "sample_guest", module.ENTRY_POINT_GROUP)
        asked = []

        def entry_points(group: str) -> EntryPoints:
            asked.append(group)
            return EntryPoints([entry])

        monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
        monkeypatch.setattr(module._guests, "are_loaded", False)

        shapes.find("anything")
        shapes.find("anything else")

        assert asked == ["tensorstore_py.plugins"]
        assert sys.modules.pop("sample_guest").loads == 1
        module._guests.loaded.discard("sample_guest")

    def test_codecs_are_apart_by_family(self):
        families: CodecRegistry[object] = CodecRegistry(folders=())
        two, three = type("Two", (), {}), type("Three", (), {})
        families["zarr"].register("gzip", two)
        families["zarr3"].register("gzip", three)

        assert families.get("zarr", "gzip") is two
        assert families.get("zarr3", "gzip") is three
        assert families.families() == ["zarr", "zarr3"]
        with pytest.raises(SpecError, match='no zarr3 codec is named "gzp"'):
            families.get("zarr3", "gzp")

    def test_one_codec_file_may_serve_two_families(self):
        @codec("sample-codec", family="sample_a")
        @codec("sample-codec", family="sample_b")
        class Sample:
            codec_id: str

        assert codecs.get("sample_a", "sample-codec") is Sample
        assert codecs.get("sample_b", "sample-codec") is Sample
        assert Sample.codec_id == "sample-codec"

    def test_a_class_may_differ_between_families(self) -> None:
        @codec("sample", family="sample_a")
        @codec("sample", family="sample_b", level=3, without=["checksum"])
        @codec("numbered", family="sample_a", level=Field(default=4, alias="blockSize"), own=True)
        @codec("other", family="sample_b", level=Annotated[int, Level(-1, 9), Field()])
        class Sample(Model):
            own: ClassVar[bool] = False

            level: Annotated[int, Level(0, 9)] | None = None
            checksum: bool = False

        def parsed(family: str, name: str, **members: object) -> Sample:
            found = codecs.get(family, name)
            assert issubclass(found, Sample)
            return found.parse(members)

        assert codecs.get("sample_a", "sample") is Sample
        assert parsed("sample_a", "sample").level is None
        assert parsed("sample_b", "sample").level == 3
        assert parsed("sample_b", "sample").checksum is False
        assert parsed("sample_a", "numbered", blockSize=5).level == 5
        assert parsed("sample_a", "numbered").own
        assert parsed("sample_b", "other", level=-1).level == -1
        for family, name, members, problem in (
            ("sample_a", "sample", {"level": -1}, "^level: expected an integer from 0 to 9"),
            ("sample_b", "sample", {"checksum": True}, "^checksum: no such member"),
            ("sample_b", "sample", {"level": None}, "^level: expected an integer from 0"),
            ("sample_a", "numbered", {"level": 5}, "^level: no such member"),
            ("sample_b", "other", {}, "^level: this member is required"),
        ):
            with pytest.raises(SpecError, match=problem):
                parsed(family, name, **members)

    def test_a_resolver_is_asked_for_what_is_not_registered(self) -> None:
        shapes: Registry[object] = Registry("shape", folders=(), tag="shape")
        asked: list[str] = []

        def resolve(name: str) -> type[object] | None:
            asked.append(name)
            return type(name, (), {}) if name.startswith("poly") else None

        shapes.add_resolver(resolve)

        @shapes.registering("circle")
        class Circle: ...

        assert shapes.get("circle") is Circle
        assert shapes.get("polygon").shape == "polygon"  # type: ignore[attr-defined]
        assert asked == ["polygon"]
        with pytest.raises(SpecError, match='no shape is named "square"'):
            shapes.get("square")
        assert shapes.names() == ["circle"]


class Options(OptionsModel):
    harmless = frozenset({"region", "hosts"})


GIVEN = {
    "region": "north",
    "key": "swordfish",
    "list": ["trout-1", 5],
    "client": {"hosts": ["a", "b"], "token": "pike-22"},
    "none": {"of": {"these": "x"}},
}


class TestOptions:
    def test_only_what_is_harmless_is_printed(self):
        options = Options.parse(GIVEN)
        shown = {"client": {"hosts": ["a", "b"]}, "region": "north"}

        assert options.to_json() == options.spec_json(True) == shown
        assert repr(options) == str(options) == f"Options({shown})"
        assert options.values["key"] == "swordfish"
        assert options.values["client"] == {"hosts": ("a", "b"), "token": "pike-22"}

    def test_a_pickle_has_no_secrets(self):
        copy = pickle.loads(pickle.dumps(Options.parse(GIVEN)))

        assert copy == Options.parse({"region": "north", "client": {"hosts": ["a", "b"]}})

    def test_secrets_and_queries_are_taken_out_of_texts(self):
        options = Options.parse(GIVEN)

        said = "swordfish for pike-22, trout-1 north x at https://host/a?sig=1&b=2 ended"
        text = options.hidden(said)
        assert text == "... for ..., ... north x at https://host/a?... ended"

    @pytest.mark.parametrize("json", ["key", 5, ["a"]])
    def test_anything_but_an_object_is_refused(self, json):
        with pytest.raises(SpecError, match="expected an object"):
            Options.parse(json)

    def test_nothing_said_is_nothing_printed(self):
        assert Options.default().to_json(include_defaults=True) == {}

    @pytest.mark.parametrize(
        ("url", "schemes"),
        [
            ("ftp://host:21/a@b", []),
            ("sftp://me@[::1]:22/a", []),
            ("abfs://box@account.example/a:b@c", []),
            ("ftp://me:pass@host/a", ["ftp"]),
            ("ftp://me:pa?ss@host", ["ftp"]),
            ("ftp://me:pa#ss@host", ["ftp"]),
            ("ftp://me:pa@ss@host", ["ftp"]),
            ("ftp://me@lab:pass@host", ["ftp"]),
            ("zip://a::ftp://me:pa::ss@host/b::memory://", ["ftp"]),
        ],
    )
    def test_passwords_in_urls_whatever_they_are_made_of(self, url, schemes):
        assert OptionsModel.schemes_with_password(url) == schemes


class Requests(RequestConcurrencyModel):
    resource_id = "test_request_concurrency"
    variable = "TEST_REQUEST_CONCURRENCY"


class Operations(ConcurrencyModel):
    resource_id = "test_concurrency"


class Rate(RateModel):
    resource_id = "test_rate"


class Growing(RateModel):
    resource_id = "test_growing"
    variable = "TEST_DOUBLING_TIME"


class TestLimits:
    def test_a_number_is_its_own_limit(self):
        assert Requests.parse({"limit": 5}).create().limit == 5
        assert Requests(limit=5).create() is not Requests(limit=5).create()

    def test_shared_is_one_for_the_kind(self):
        assert Requests.parse({"limit": "shared"}).create().limit == 32
        assert Requests().create() is Requests().create()
        assert Operations().create().limit >= 4
        assert Operations().create() is Operations().create() is not Requests().create()

    @pytest.mark.parametrize(("text", "limit"), [("7", 7), ("0", 32), ("many", 32), ("", 32)])
    def test_the_environment_says_what_shared_is(self, monkeypatch, text, limit):
        monkeypatch.setenv("TEST_REQUEST_CONCURRENCY", text)
        assert Requests.shared_limit() == limit

    def test_rates(self):
        rate = Rate.parse({"read_rate": 3, "doubling_time": "1m"})
        assert rate.to_json() == {"doubling_time": "1m", "read_rate": 3.0}
        assert Rate().to_json(include_defaults=True) == {}

    def test_a_rate_limits_what_it_names(self):
        rates = Rate.parse({"read_rate": 3}).create()
        assert rates.read is not None
        assert rates.read.per_second == 3
        assert rates.write is None

    @pytest.mark.parametrize(
        ("said", "variable", "waits"),
        [
            ("0", "1s", [1.0, 1.0]),
            (None, None, [1.0, 1.0]),
            ("inf", None, [1.0, 1.0]),
            (None, "1s", [0.7597, 0.4951]),
            ("1s", "0", [0.7597, 0.4951]),
        ],
    )
    def test_a_rate_grows_as_it_or_the_environment_says(self, monkeypatch, said, variable, waits):
        clock, taken = [0.0], []

        async def sleep(seconds):
            taken.append(seconds)
            clock[0] += seconds

        monkeypatch.setattr("time.monotonic", lambda: clock[0])
        monkeypatch.setattr("asyncio.sleep", sleep)
        if variable is not None:
            monkeypatch.setenv("TEST_DOUBLING_TIME", variable)
        json = {"read_rate": 1} | ({} if said is None else {"doubling_time": said})

        rate = Growing.parse(json).create().read
        assert rate is not None
        for _ in range(2):
            run_inline(rate.acquire())

        assert taken == pytest.approx(waits, abs=1e-3)

    @pytest.mark.parametrize("rate", [0, -3, "3", True, float("inf"), float("nan")])
    def test_refuses_other_rates(self, rate):
        with pytest.raises(SpecError) as caught:
            Rate.parse({"write_rate": rate})
        assert caught.value.path == ("write_rate",)

    @pytest.mark.parametrize("limit", [0, -1, 1.5, True, "all", None, [3]])
    def test_refuses_other_limits(self, limit):
        with pytest.raises(SpecError, match=r'limit: expected "shared" or a positive integer'):
            Requests.parse({"limit": limit})

    def test_prints_only_what_is_said(self):
        assert Requests.parse({"limit": "shared"}).to_json() == {}
        assert Requests().to_json(include_defaults=True) == {"limit": "shared"}
        assert RetriesModel().to_json(include_defaults=True) == {
            "initial_delay": "1s",
            "max_delay": "32s",
            "max_retries": 32,
        }

    def test_delays_double_up_to_the_longest(self):
        retries = RetriesModel(
            initial_delay=Duration.parse("100ms"), max_delay=Duration.parse("2s"), max_retries=9
        )

        for attempt in range(20):
            assert 0.1 * 2**attempt <= retries.delay_s(attempt) + 1e-9 or attempt > 4
            assert retries.delay_s(attempt) <= min(0.1 * 2**attempt + 0.1, 2)

    def test_jitter_neither_follows_nor_disturbs_what_a_program_seeds(self):
        def drawn():
            random.seed(7)
            before = random.getstate()
            found = [RetriesModel().delay_s(0) for _ in range(4)]
            assert random.getstate() == before
            return found

        assert drawn() != drawn()

    def test_odd_delays_are_no_waits_into_the_past(self):
        retries = RetriesModel(initial_delay=Duration.parse("-1s"), max_delay=Duration.parse("-1s"))

        assert retries.delay_s(0) == 0

    def test_after_very_many_attempts_the_wait_is_the_longest(self):
        assert RetriesModel().delay_s(100_000) == 32


UNIT = st.sampled_from(["ns", "us", "ms", "s", "m", "h", "", "d"])


NUMBER = st.from_regex(r"[0-9]{0,7}(\.[0-9]{0,4})?", fullmatch=True)


SIGN = st.sampled_from(["", "", "", "-", "+"])


TERMS = st.lists(st.tuples(NUMBER, UNIT).map("".join), min_size=1, max_size=3).map("".join)


def reference_text(text):
    """The reference's printing of a duration, or None if it refuses it."""
    json = {"driver": "file", "path": "/a", "file_io_retries": {"initial_delay": text}}
    try:
        spec = reference.KvStore.Spec(json).to_json()
    except ValueError:
        return None
    return spec["file_io_retries"].get("initial_delay", "1s")


def our_text(text):
    try:
        return Duration.parse(text).to_json()
    except SpecError:
        return None


class TestDuration:
    @given(st.tuples(SIGN, TERMS).map("".join))
    def test_reads_and_prints_what_the_reference_does(self, text):
        assert our_text(text) == reference_text(text)

    @pytest.mark.parametrize(
        "text",
        ["1h2m3.5s", "1.5ms", "60s", "90s", "3600s", "24h", "0", "0s", "1ns", "1us", "inf", "-inf",
         "-1s", "+1s", "1s1s", ".5s", "1.s", "1500ms", "0.1ns", "0.25ns", "59.999999999s", "100h",
         "5", "", "bad", "1d", "1 s", "1e3s", "s", "inf s", ".s", "--1s", "1s ", "1S"],
    )  # fmt: skip
    def test_agrees_with_the_reference_at_the_edges(self, text):
        assert our_text(text) == reference_text(text)

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("1h", 3600),
            ("1m30s", 90),
            ("1.5ms", 0.0015),
            ("-2s", -2),
            ("inf", float("inf")),
            ("0", 0),
        ],
    )
    def test_is_so_many_seconds(self, text, seconds):
        assert Duration.parse(text).seconds == seconds

    @given(st.integers(-(10**24), 10**24))
    def test_printing_and_parsing_are_inverse(self, ticks):
        duration = Duration(ticks)

        assert Duration.parse(duration.to_json()) == duration

    @pytest.mark.parametrize("json", [5, 1.5, None, True, "1 second", ["1s"]])
    def test_says_what_a_duration_looks_like(self, json):
        with pytest.raises(SpecError, match=r'expected a duration such as "1\.5s"'):
            Duration.parse(json)


@codec_spec("sample_codec")
class Sample(CodecSpecModel):
    level: int | None = None
    codecs: tuple[str, ...] | None = None


@codec_spec("sample_other")
class Other(CodecSpecModel):
    pass


def make(**members):
    return CodecSpec({"driver": "sample_codec", **members})


class TestCodecSpec:
    def test_json(self):
        spec = make(level=3)

        assert spec.driver == "sample_codec"
        assert spec.to_json() == {"driver": "sample_codec", "level": 3}
        assert repr(spec) == "CodecSpec({'driver': 'sample_codec', 'level': 3})"
        assert spec == CodecSpec(spec) == pickle.loads(pickle.dumps(spec))

    def test_merging_takes_what_either_says(self):
        assert make(level=3).merged(make(codecs=["a"])) == make(level=3, codecs=["a"])
        assert make(level=3).merged(make(level=3)) == make(level=3)

    def test_merging_refuses_contradictions(self):
        with pytest.raises(MismatchError, match='"level" is both 3 and 4'):
            make(level=3).merged(make(level=4))
        with pytest.raises(MismatchError, match="Cannot merge codec spec"):
            make().merged(CodecSpec({"driver": "sample_other"}))

    @pytest.mark.parametrize(
        ("json", "path"),
        [
            (5, ()),
            ({}, ("driver",)),
            ({"driver": "sample_codex"}, ("driver",)),
            ({"driver": "sample_codec", "levl": 1}, ("levl",)),
            ({"driver": "sample_codec", "codecs": [1]}, ("codecs", 0)),
        ],
    )
    def test_errors(self, json, path):
        with pytest.raises(SpecError) as caught:
            CodecSpec(json)

        assert caught.value.path == path


class Leaf(Model):
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


class Tree(Base):
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
    inner: Leaf | None = None
    own: Annotated[object, PlainValidator(lambda json: json), JsonForm({"const": 5})] = 5


class TestJsonSchema:
    def test_a_model_becomes_an_object_with_its_docs(self):
        schema = model_schema(Tree)
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

    def test_a_plug_in_is_in_the_schema_as_soon_as_it_is_registered(self):
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


class TestJsonForms:
    def test_every_plain_data_type_is_listed(self):
        listed = FORMS["dtype"]["anyOf"][0]["enum"]
        plain = {name for name in dtype._by_name if name.isidentifier()}
        parametric = {name for name in plain if name[0] in "USV" or name.endswith("64")}
        assert set(listed) >= plain - parametric - {"datetime64", "timedelta64"}
        for name in listed:
            assert dtype(name).name == name

    def test_forms_refer_to_forms(self):
        assert set(FORMS) >= {"Schema", "ChunkLayout", "Grid", "IndexTransform", "Unit", "dtype"}

    def test_a_schema_has_the_members_that_its_parser_knows(self):
        known = set(SchemaConstraints.__dataclass_fields__)
        listed = set(FORMS["Schema"]["properties"]) - {"$schema", "$comment"}
        assert {"dtype", "domain", "codec", "fill_value"} <= listed
        assert listed - {"dimension_units", "chunk_layout"} <= known | {"units", "layout"}
