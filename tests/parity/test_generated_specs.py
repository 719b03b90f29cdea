"""Arrays created from generated specs are the same in both libraries, to the last member."""

import json

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tests.parity.generated_specs import COUNT, options, spec

KEYS = {"zarr": "a/.zarray", "zarr3": "a/zarr.json"}
BATCH = 20


def created(library, number):
    """Everything that can be found out about the array; the class of the error if it is refused."""
    context = library.Context()
    asked = spec(number)
    try:
        store = library.open(asked, context=context, **options(number)).result()
    except (ValueError, IndexError, NotImplementedError) as error:
        return error
    kvstore = library.KvStore.open("memory://", context=context).result()
    return {
        "metadata": json.loads(kvstore[KEYS[asked["driver"]]]),
        "spec": store.spec().to_json(),
        "minimal": store.spec(minimal_spec=True).to_json(),
        "schema": store.schema.to_json(),
        "layout": store.chunk_layout.to_json(),
        "domain": str(store.domain),
        "codec": store.codec.to_json(),
        "fill_value": str(store.fill_value),
        "units": str(store.dimension_units),
        "dtype": store.dtype.name,
    }


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_created_alike(first):
    for number in range(first, first + BATCH):
        theirs, ours = created(reference, number), created(ts, number)
        if isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), (number, spec(number), theirs, ours)
        else:
            assert ours == theirs, (number, spec(number))


def test_fortran_order_of_one_dimension_is_no_contradiction():
    asked = {
        "driver": "zarr",
        "kvstore": "memory://",
        "create": True,
        "dtype": "uint8",
        "schema": {"domain": {"shape": [3]}},
        "metadata": {"order": "F"},
    }
    with pytest.raises(ValueError):
        reference.open(asked).result()
    assert ts.open(asked).result().shape == (3,)


def test_most_are_created():
    made = sum(not isinstance(created(ts, number), Exception) for number in range(COUNT))
    assert made >= 500
