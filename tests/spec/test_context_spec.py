import pickle

import pytest

from tensorstore_py._spec.context import Context
from tensorstore_py._spec.context_spec import NO_CONTEXT, ContextSpec
from tensorstore_py.errors import SpecError
from tests.spec import samples  # noqa: F401 - registers the resources


def test_round_trip_and_repr():
    json: dict[str, object] = {
        "sample_pool": {},
        "sample_pool#a": "sample_pool",
        "sample_pool#b": None,
    }
    spec = ContextSpec(json)

    assert spec.to_json() == json
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert repr(spec) == (
        "Context.Spec({'sample_pool': {}, 'sample_pool#a': 'sample_pool', 'sample_pool#b': None})"
    )


def test_defaults():
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
def test_errors(json, path, problem):
    with pytest.raises(SpecError) as caught:
        ContextSpec(json)

    assert caught.value.path == path
    assert problem in caught.value.problem


def test_parts():
    spec = ContextSpec({"sample_pool#b": None, "sample_pool": {"limit": 3}})

    assert list(spec.resources) == ["sample_pool", "sample_pool#b"]
    assert ContextSpec.of(spec.resources) == spec != NO_CONTEXT
    assert Context.Spec is ContextSpec
    assert spec != {}
