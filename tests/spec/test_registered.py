import pytest

from tensorstore_py._spec.context import Context
from tensorstore_py._spec.registered import ParsedOnce, parse_registered
from tensorstore_py.errors import SpecError
from tests.spec.samples import Grid, Mem, sample_drivers, sample_stores

MEM = {"driver": "mem"}


def test_the_tag_picks_the_class():
    spec = parse_registered(sample_drivers, {"driver": "grid1", "kvstore": {"driver": "mem"}})

    assert isinstance(spec, Grid)
    assert isinstance(spec.kvstore, Mem)
    assert spec.to_json() == {"driver": "grid", "kvstore": {"driver": "mem"}}


def test_a_url_is_turned_into_json():
    def from_url(url: str) -> object:
        return {"driver": "mem", "path": url.removeprefix("mem://")}

    spec = parse_registered(sample_stores, "mem://a", from_url=from_url)

    assert spec.to_json() == {"driver": "mem", "path": "a"}


def test_a_model_is_taken_as_it_is():
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
def test_errors(json, path, problem):
    with pytest.raises(SpecError) as caught:
        parse_registered(sample_drivers, json)

    assert caught.value.path == path
    assert problem in caught.value.problem


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
