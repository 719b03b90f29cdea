"""The TypedDicts are what the JSON schema says; scripts/typed_specs.py writes them anew."""

import pytest

from tensorstore_py.typing import drivers, kvstores, parts
from tests.typing.generated import differences


@pytest.mark.parametrize("module", [drivers, kvstores, parts])
def test_they_are_as_the_models_are(module):
    assert differences(module) == [], "run scripts/typed_specs.py"
