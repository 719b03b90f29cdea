"""The TypedDicts are what the JSON schema says; scripts/typed_specs.py writes them anew."""

from tensorstore_py.typing import parts
from tests.typing.generated import differences


def test_they_are_as_the_models_are():
    assert differences(parts) == [], "run scripts/typed_specs.py"
