import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._index import IndexTransform
from tensorstore_py._interface.adapter import Adapter, AdapterSpec
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import drivers


class NegatedSpec(AdapterSpec):
    driver = "negated"

    def over(self, base):
        return Negated(self, base)


class Negated(Adapter):
    def __init__(self, spec, base):
        super().__init__(spec, base)
        self.data_type = base.data_type

    @property
    def schema(self):
        return self.base.schema

    async def read(self, transform, order):
        return np.negative(await self.base.read(transform, order))


@pytest.fixture
def spec():
    base = {"driver": "array", "array": [1, 2, 3], "dtype": "int8"}
    return NegatedSpec.parse({"base": base})


def test_everything_but_the_elements_is_the_bases(spec):
    driver = run_inline(spec.open())
    assert driver.domain == driver.base.domain == run_inline(driver.resolve())
    assert driver.inline is spec.inline is True
    assert driver.kvstore is None
    assert driver.spec().base.array.array.tolist() == [1, 2, 3]
    found = run_inline(driver.read(IndexTransform(input_shape=[3]), "C"))
    np.testing.assert_array_equal(found, [-1, -2, -3])
    assert spec.known_domain() == driver.domain
    assert not spec.open_mode().create


def test_transforms_compose_from_the_bottom_up(spec):
    array = parse_registered(
        drivers,
        {
            "driver": "array",
            "array": [1, 2, 3],
            "dtype": "int8",
            "transform": {"input_shape": [2], "output": [{"input_dimension": 0, "offset": 1}]},
        },
    )
    assert isinstance(array, DriverSpec)
    assert array.transform is not None
    outer = IndexTransform(input_shape=[2])[1:]
    stacked = spec.replace(base=array, transform=outer)
    assert stacked.view_transform == array.transform[outer]
    assert stacked.known_domain() == array.transform.domain
    assert spec.replace(base=array).view_transform == array.transform
    assert spec.replace(transform=outer).view_transform == outer


def test_storage_statistics_are_the_bases(spec):
    driver = run_inline(spec.open())
    found = run_inline(
        driver.storage_statistics(
            IndexTransform(input_shape=[3]), not_stored=True, fully_stored=True
        )
    )
    assert found == ts.TensorStore.StorageStatistics(not_stored=False, fully_stored=True)
