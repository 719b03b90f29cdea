"""Small registered classes for the tests of this room: two resources, two stores, an array."""

from typing import Annotated, ClassVar

from tensorstore_py._spec.model import Level, Model, NonNegativeInt, PositiveInt
from tensorstore_py._spec.registered import registered
from tensorstore_py._spec.registry import Registry, context_resource
from tensorstore_py._spec.resource import (
    NO_CONTEXT,
    ContextSpec,
    Resource,
    ResourceField,
    ResourceModel,
)

sample_stores: Registry[object] = Registry("sample store", folders=(), tag="driver")
sample_drivers: Registry[object] = Registry("sample driver", folders=(), tag="driver")


class LivePool:
    """What a `Pool` becomes; tells objects apart by identity."""

    def __init__(self, limit: int) -> None:
        self.limit = limit


@context_resource("sample_pool")
class Pool(ResourceModel):
    limit: NonNegativeInt = 0

    def create(self) -> LivePool:
        return LivePool(self.limit)


@context_resource("sample_config")
class Config(ResourceModel):
    config_only: ClassVar[bool] = True

    mode: str = "plain"


@context_resource("sample_chain")
class Chain(ResourceModel):
    value: NonNegativeInt = 42
    parent: Resource["Chain"] | None = ResourceField("sample_chain", optional=True)


class SampleStore(Model):
    json_tag: ClassVar[str | None] = "driver"

    path: str = ""
    context: ContextSpec = NO_CONTEXT


AnyStore = Annotated[SampleStore, registered(sample_stores)]


@sample_stores.registering("mem", schemes=["mem"])
class Mem(SampleStore):
    pool: Resource[LivePool] = ResourceField("sample_pool")
    config: Resource[Config] = ResourceField("sample_config")


@sample_stores.registering("chained")
class Chained(SampleStore):
    chain: Resource[Chain] = ResourceField("sample_chain")


class Layer(Model):
    base: AnyStore
    prefix: str = ""


@sample_stores.registering("layered")
class Layered(SampleStore):
    layers: tuple[Layer, ...]


@sample_drivers.registering("grid", aliases=["grid1"])
class Grid(Model):
    json_tag: ClassVar[str | None] = "driver"

    kvstore: AnyStore
    shape: tuple[PositiveInt, ...] = ()
    level: Annotated[int, Level(0, 9)] = 5
    cache: Resource[LivePool] = ResourceField("sample_pool")
    metadata_cache: Resource[LivePool] | None = ResourceField("sample_pool", optional=True)
    context: ContextSpec = NO_CONTEXT
