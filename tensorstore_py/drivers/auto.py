"""The `auto` driver: opens whichever format is there.

    {"driver": "auto", "kvstore": "file:///data/a/"}        or the URL alone, file:///data/a/

A directory is tried as each format that names the key of its metadata (`DriverSpec.detected_by`),
by opening it, so that a hit costs no request more than naming the format. A directory of none of
them is tried as each store format that names a key in it (`KvStoreSpec.detected_by`), such as an
OCDBT database, a single value as each store format that knows its own first bytes
(`KvStoreSpec.detects`), such as a zip archive; and then again with what is inside. Every context
resource is accepted as a member, and handed on to the format if it has it. Nothing is ever created:
that needs a format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from tensorstore_py.errors import (
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    SpecError,
    did_you_mean,
)
from tensorstore_py.plugin.codec import Field, Model
from tensorstore_py.plugin.driver import (
    DELETE_NEEDS_CREATE,
    Driver,
    DriverSpec,
    OpenMode,
    RecheckBound,
    ResourceSpec,
    Transaction,
    driver,
)
from tensorstore_py.plugin.kvstore import (
    ByteRange,
    KvStoreField,
    KvStoreSpec,
    Resource,
    model_validator,
)

__all__ = ["AutoSpec"]

#: Enough for the signature of any format.
_HEAD_BYTES = 4096
#: Formats within formats; more is somebody's joke.
_MAX_DEPTH = 8

_MODES = ("create", "delete_existing", "assume_metadata")


@driver("auto", schemes=["auto"])
class AutoSpec(DriverSpec):
    """An array of a format that is found out when it is opened.

    Attributes:
        kvstore: where it is.
        path: joined to the kvstore's; deprecated.
        open_: accepted for compatibility; it is always opened.
        create: accepted so that an option of `ts.open` is refused with a reason.
        recheck_cached_metadata: handed on to the format.
        recheck_cached_data: handed on to the format.
        assume_cached_metadata: accepted for compatibility; without a format there is none to
            assume, so what is stored is read.

    Example:
        >>> AutoSpec.parse({"kvstore": "memory://a/"}).to_url()
        'memory://a/|auto:'
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "kvstore", "open_", "assume_cached_metadata", "recheck_cached_metadata",
        "recheck_cached_data", "resources",
    })  # fmt: skip
    spread_members: ClassVar[frozenset[str]] = frozenset({"resources"})

    kvstore: KvStoreField | None = None
    path: str = ""
    open_: bool | None = Field(default=None, alias="open")
    create: bool = False
    delete_existing: bool = False
    assume_metadata: bool = False
    assume_cached_metadata: bool = False
    recheck_cached_metadata: RecheckBound | None = None
    recheck_cached_data: RecheckBound | None = None
    resources: dict[str, Resource[object] | ResourceSpec] = Field(default={})

    @classmethod
    def parse_frozen(cls, json: object) -> Self:
        if not isinstance(json, dict):
            return super().parse_frozen(json)
        known = ResourceSpec.providers()
        members = {*cls.member_names(), "$schema", "$comment"} - {"resources"}
        for name in json:
            if name not in members and name not in known:
                hint = did_you_mean(name, members | {*known}, cls.words)
                raise SpecError(f"no such member{hint}", (name,))
        rest: dict[str, object] = {name: json[name] for name in json if name in members}
        # Binding has to give the format that is found whatever it needs, whichever it is.
        given = [name for name in known if name in json]
        rest["resources"] = {
            name: _resource(name, json.get(name, name)) for name in sorted({*given, *_needed()})
        }
        return super().parse_frozen(rest)

    @classmethod
    def adapt_json_schema(cls, properties: dict[str, object]) -> None:
        del properties["resources"]
        for name in ResourceSpec.providers():
            properties[name] = {"x-def": f"Resource.{name}"}

    @model_validator(mode="after")
    def _check(self) -> Self:
        return self.checked()

    def checked(self) -> Self:
        if self.delete_existing and not self.create:
            raise SpecError(DELETE_NEEDS_CREATE)
        for name in _MODES:
            if getattr(self, name):
                raise SpecError(
                    f'"{name}" needs a format, which cannot be detected; name the driver, '
                    'for example "zarr3"'
                )
        if self.kvstore is not None and self.path:
            path = self.kvstore.path
            joint = "/" if path and not path.endswith("/") and not self.path.startswith("/") else ""
            kvstore = self.kvstore.replace(path=f"{path}{joint}{self.path}")
            return self.replace(kvstore=kvstore, path="")
        return self

    def store_spec(self) -> KvStoreSpec:
        """The kvstore.

        Raises:
            SpecError: there is none.
        """
        if self.kvstore is None:
            raise SpecError('this member is required, for example "file:///data/a/"', ("kvstore",))
        return self.kvstore

    @property
    def inline(self) -> bool:
        return self.store_spec().open().inline

    def open_mode(self) -> OpenMode:
        return OpenMode(open=True)

    def to_url(self) -> str:
        return f"{self.store_spec().to_url()}|auto:"

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        super().add_json(json, include_defaults)
        for name in ("open", "create", "delete_existing", "assume_metadata", "path"):
            json.pop(name, None)
        if not self.assume_cached_metadata:
            json.pop("assume_cached_metadata", None)
        json.pop("resources", None)
        for name, resource in self.resources.items():
            if not getattr(resource, "is_spec_default", False):
                json[name] = resource.spec_json(include_defaults)

    async def open(self) -> Driver:
        return await self.open_within(None)

    async def open_within(self, transaction: Transaction | None) -> Driver:
        return await self._open(self.store_spec(), 0, transaction)

    async def _open(
        self, where: KvStoreSpec, depth: int, transaction: Transaction | None
    ) -> Driver:
        if depth > _MAX_DEPTH:
            raise FailedPreconditionError(f"formats within formats, {depth} deep")
        inside = await self._in_value(where)
        if inside is not None:
            return await self._open(inside, depth + 1, transaction)
        tried = []
        for cls in DriverSpec.detectable():
            for key in cls.detected_by:
                tried.append(key)
                try:
                    return await self._as(cls, where).open_within(transaction)
                except NotFoundError:
                    continue
        inside = await self._in_directory(where)
        if inside is not None:
            return await self._open(inside, depth + 1, transaction)
        store = where.open()
        raise NotFoundError(
            f"no array found at {store.describe_key(where.path)}: looked for "
            f"{', '.join(sorted(tried))}; to create one name a driver and pass create=True, "
            'for example "driver": "zarr3"'
        )

    async def _in_directory(self, where: KvStoreSpec) -> KvStoreSpec | None:
        """The store that a directory is, if a format knows it by a key in it."""
        store = where.open()
        directory = where.path if where.path[-1:] in ("", "/") else f"{where.path}/"
        for cls, key in KvStoreSpec.in_directories():
            if (await store.read(directory + key)).state == "value":
                base = where.replace(path=directory)
                return cls.parse_frozen({**self._resources_of(cls), "base": base})
        return None

    async def _in_value(self, where: KvStoreSpec) -> KvStoreSpec | None:
        """The store in a single value, if there is such a value, and a format that knows it.

        Raises:
            FailedPreconditionError: there is one, but no format knows it.
        """
        if where.path[-1:] in ("", "/"):
            return None
        store = where.open()
        try:
            result = await store.read(where.path, ByteRange(0, _HEAD_BYTES))
        except OutOfRangeError:  # it is short
            result = await store.read(where.path)
        if result.state != "value":
            return None
        head = bytes(result.value)
        cls = KvStoreSpec.detected(head)
        if cls is not None:
            return cls.parse_frozen({**self._resources_of(cls), "base": where})
        raise FailedPreconditionError(
            f"{store.describe_key(where.path)} is a value of no known format; append one, "
            'for example "|json:", or name a directory by a "/" at its end'
        )

    def _resources_of(self, cls: type[Model]) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, field in cls.model_fields.items():
            # A member may have another name than the kind of resource that it is.
            default = field.default
            kind = default.provider if isinstance(default, ResourceSpec) else name
            if kind in self.resources:
                found[name] = self.resources[kind]
        return found

    async def inside(self) -> DriverSpec:
        where = self.store_spec()
        found = await self._in_value(where) or await self._in_directory(where)
        return self if found is None else self.replace(kvstore=found)

    def named(self, driver: str) -> DriverSpec:
        return self._as(DriverSpec.class_of(driver), self.store_spec())

    def _as(self, cls: type[DriverSpec], where: KvStoreSpec) -> DriverSpec:
        """This spec with the driver named."""
        given: dict[str, object] = {**self._resources_of(cls), "kvstore": where}
        for name in ("recheck_cached_metadata", "recheck_cached_data"):
            bound = getattr(self, name)
            if bound is not None and name in cls.model_fields:
                given[name] = bound
        spec = cls.parse_frozen(given).replace(
            dtype=self.dtype, rank=self.rank, transform=self.transform, schema_=self.schema_
        )
        return spec.checked()


def _needed() -> Iterator[str]:
    """The kinds of resources that formats need that can be found."""
    for cls in (*DriverSpec.detectable(), *KvStoreSpec.detectable()):
        for field in cls.model_fields.values():
            if isinstance(field.default, ResourceSpec):
                yield field.default.provider


def _resource(name: str, json: object) -> Resource[object] | ResourceSpec:
    if isinstance(json, Resource | ResourceSpec):
        return json
    try:
        return ResourceSpec.parse(name, json)
    except SpecError as error:
        raise error.inside(name) from None
