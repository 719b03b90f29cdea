"""Bound specs of small arrays over stores that watch."""

from tensorstore_py._api.spec import parse_spec
from tensorstore_py._chunked.spec import ChunkedSpec
from tensorstore_py._spec.binding import bind
from tensorstore_py._spec.context import Context
from tensorstore_py.kvstores.memory import MemorySpec

DOCUMENT = {
    "shape": [6],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
}


class WatchedSpec(MemorySpec):
    """A memory kvstore that opens as the store given."""

    def open(self):
        return STORES[self.path]


STORES: dict[str, object] = {}


def spec_over(store, name, **members):
    """The bound zarr3 spec of a small array at `name` in `store`."""
    STORES[f"{name}/"] = store
    members = {"metadata": DOCUMENT, **members}
    json = {"driver": "zarr3", "kvstore": f"memory://{name}/", **members}
    bound = bind(parse_spec(json), Context())
    assert isinstance(bound, ChunkedSpec)
    kvstore = bound.store_spec()
    watched = WatchedSpec.model_construct(**dict(kvstore))
    return bound.replace(kvstore=watched)
