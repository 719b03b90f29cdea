"""Names to classes: how stores, drivers, codecs and the like are found.

A decorator on a class registers it. A name that is not known yet makes the registry import its
own built-in folders once, then the entry-point group `tensorstore_py.plugins` once; only then
is it an error. What is imported depends on what is installed, never on the name asked for: no
user's string ever becomes an import.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from tensorstore_py._spec.guests import admits, foreign_classes, is_built_in, not_admitted
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "ENTRY_POINT_GROUP",
    "CodecRegistry",
    "Registry",
    "chunk_grid",
    "chunk_grids",
    "chunk_key_encoding",
    "chunk_key_encodings",
    "codec",
    "codec_resolver",
    "codecs",
    "context_resource",
    "driver",
    "drivers",
    "hierarchy_format",
    "hierarchy_formats",
    "kvstore",
    "kvstores",
    "resources",
]

ENTRY_POINT_GROUP = "tensorstore_py.plugins"

C = TypeVar("C")

_guests_loaded: set[str] = set()


class Registry(Generic[C]):
    """The classes of one kind by name.

    Args:
        kind: what the classes are, for error messages, e.g. `"kvstore driver"`.
        folders: packages whose modules register the built-in classes when imported.
        tag: class attribute (and JSON member) that carries a class's own name.

    Example:
        >>> shapes: Registry[object] = Registry("shape", folders=(), tag="shape")
        >>> @shapes.registering("circle", aliases=["disc"])
        ... class Circle: ...
        >>> shapes.get("disc") is Circle, Circle.shape
        (True, 'circle')
        >>> shapes.names()
        ['circle']
    """

    def __init__(self, kind: str, *, folders: tuple[str, ...], tag: str) -> None:
        self.kind = kind
        self.tag = tag
        self._folders = folders
        self._classes: dict[str, type[C]] = {}
        self._aliases: dict[str, str] = {}
        self._schemes: dict[str, type[C]] = {}
        self._resolvers: list[Callable[[str], type[C] | None]] = []
        #: What `parse_registered` remembers of its results, by serialised JSON.
        self.parsed: dict[bytes, object] = {}
        self._discovered = False

    def register(
        self,
        name: str,
        cls: type[C],
        *,
        aliases: Iterable[str] = (),
        schemes: Iterable[str] = (),
    ) -> None:
        """Add a class under its name.

        Args:
            name: the name that JSON specs use, and that is printed.
            cls: the class; its tag attribute is set to `name` unless it sets one itself.
            aliases: further names that are accepted and never printed.
            schemes: URL schemes that the class understands.

        Raises:
            ValueError: another class has one of the names already.
        """
        for key in (name, *aliases):
            taken = self._find(key)
            if taken is not None and taken is not cls:
                raise ValueError(f'{self.kind} "{key}" is registered already, by {taken!r}')
        if self.tag not in cls.__dict__:
            setattr(cls, self.tag, name)
        self._classes[name] = cls
        self._aliases.update(dict.fromkeys(aliases, name))
        self._schemes.update(dict.fromkeys(schemes, cls))

    def registering(
        self, name: str, *, aliases: Iterable[str] = (), schemes: Iterable[str] = ()
    ) -> Callable[[type[C]], type[C]]:
        """`register` as a class decorator."""

        def decorate(cls: type[C]) -> type[C]:
            self.register(name, cls, aliases=aliases, schemes=schemes)
            return cls

        return decorate

    def get(self, name: str) -> type[C]:
        """The class of that name.

        Raises:
            SpecError: neither the built-in folders nor any installed plug-in has the name.
        """
        found = self.find(name)
        if found is None:
            if self._resolvers and not admits(name):
                raise not_admitted(self.kind, name)
            # A name is often remembered without what stands in front of it.
            whole = next((each for each in self._classes if each.endswith(f".{name}")), None)
            hint = f' (did you mean "{whole}"?)' if whole else did_you_mean(name, self._classes)
            raise SpecError(f'no {self.kind} is named "{name}"{hint}')
        return found

    def find(self, name: str) -> type[C] | None:
        """The class of that name, or None."""
        found = self._find(name)
        if found is None and not self._discovered:
            self.discover()
            found = self._find(name)
        return self._admissible(found, name) or self._resolved(name)

    def add_resolver(self, resolver: Callable[[str], type[C] | None]) -> None:
        """Ask `resolver` for the class of every name that nobody registered.

        For collections that another library keeps, and that can grow while the program runs.
        """
        self._resolvers.append(resolver)

    def for_scheme(self, scheme: str) -> type[C]:
        """The class that understands a URL scheme.

        Raises:
            SpecError: no class registered it.
        """
        found = self.find_scheme(scheme)
        if found is None:
            hint = did_you_mean(scheme, self._schemes)
            raise SpecError(f'no {self.kind} has the URL scheme "{scheme}"{hint}')
        return found

    def find_scheme(self, scheme: str) -> type[C] | None:
        """The class that understands a URL scheme, or None."""
        if scheme not in self._schemes and not self._discovered:
            self.discover()
        found = self._schemes.get(scheme)
        return self._admissible(found, getattr(found, self.tag, scheme))

    def classes(self) -> list[type[C]]:
        """Every registered class, in the order of their names."""
        return [self._classes[name] for name in self.names()]

    def names(self) -> list[str]:
        """Every registered name, sorted; aliases left out."""
        self.discover()
        return sorted(self._classes)

    def schemes(self) -> list[str]:
        """Every registered URL scheme, sorted."""
        self.discover()
        return sorted(self._schemes)

    def discover(self) -> None:
        """Import the built-in folders and the installed plug-ins, if not done yet."""
        if self._discovered:
            return
        for folder in self._folders:
            _import_folder(folder)
        _import_guests()
        self._discovered = True

    def _admissible(self, found: type[C] | None, name: str) -> type[C] | None:
        if found is None or admits(name) or is_built_in(found):
            return found
        raise not_admitted(self.kind, name)

    def _resolved(self, name: str) -> type[C] | None:
        if not admits(name):
            return None
        for resolver in self._resolvers:
            found = resolver(name)
            if found is not None:
                if self.tag not in found.__dict__:
                    setattr(found, self.tag, name)
                foreign_classes.add(found)
                return found
        return None

    def _find(self, name: str) -> type[C] | None:
        return self._classes.get(self._aliases.get(name, name))


class CodecRegistry(Generic[C]):
    """One registry of codecs for each family, that is for each metadata format.

    The same id may mean different members in different formats, so a codec file registers
    its classes for the families that it serves: `"zarr"` (version 2), `"zarr3"` and `"n5"` so far.

    Attributes:
        flat_tags: families that write a codec as one flat object, and the member that names it
            there; the others write `{"name", "configuration"}`.
    """

    flat_tags: ClassVar[Mapping[str, str]] = {"zarr": "id", "n5": "type"}

    def __init__(self, *, folders: tuple[str, ...]) -> None:
        self._folders = folders
        self._families: dict[str, Registry[C]] = {}

    def __getitem__(self, family: str) -> Registry[C]:
        """The registry of one family; made when first asked for."""
        found = self._families.get(family)
        if found is None:
            fresh: Registry[C] = Registry(f"{family} codec", folders=self._folders, tag="codec_id")
            found = self._families.setdefault(family, fresh)
        return found

    def get(self, family: str, name: str) -> type[C]:
        """The codec class of that name in that family.

        Raises:
            SpecError: no codec of the family has the name.
        """
        return self[family].get(name)

    def families(self) -> list[str]:
        """Every family that has a registry, sorted."""
        return sorted(self._families)


def _import_folder(folder: str) -> None:
    package = import_module(folder)
    for module in iter_modules(package.__path__):
        if not module.name.startswith("_"):
            import_module(f"{folder}.{module.name}")


def _import_guests() -> None:
    from importlib.metadata import entry_points  # noqa: PLC0415 - costs 15 ms, seldom needed

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.value not in _guests_loaded:
            _guests_loaded.add(entry.value)
            try:
                entry.load()
            except Exception as error:  # noqa: BLE001 - whatever it does when it is imported
                # Who did not ask for this plug-in must not be stopped by it.
                warnings.warn(
                    f'the plug-in "{entry.name}" ({entry.value}) cannot be loaded: {error!r}',
                    RuntimeWarning,
                    stacklevel=2,
                )


_KVSTORES = "tensorstore_py.kvstores"
_DRIVERS = "tensorstore_py.drivers"
_CODECS = "tensorstore_py.codecs"

kvstores: Registry[object] = Registry("kvstore driver", folders=(_KVSTORES,), tag="driver")
drivers: Registry[object] = Registry("driver", folders=(_DRIVERS,), tag="driver")
codecs: CodecRegistry[object] = CodecRegistry(folders=(_CODECS,))
chunk_key_encodings: Registry[object] = Registry(
    "chunk key encoding", folders=(_DRIVERS,), tag="encoding_id"
)
chunk_grids: Registry[object] = Registry("chunk grid", folders=(_DRIVERS,), tag="grid_id")
hierarchy_formats: Registry[object] = Registry(
    "hierarchy format", folders=(_DRIVERS,), tag="format_id"
)
resources: Registry[object] = Registry(
    "context resource", folders=(_KVSTORES, _DRIVERS), tag="resource_id"
)

T = TypeVar("T", bound=type[object])


def kvstore(
    name: str, *, aliases: Iterable[str] = (), schemes: Iterable[str] = ()
) -> Callable[[T], T]:
    """Register a kvstore's spec class (decorator).

    Args:
        name: the `"driver"` member of its JSON.
        aliases: further accepted names.
        schemes: URL schemes, e.g. `["s3"]`; the class then has `from_url` and `to_url`.
    """
    return _decorator(kvstores, name, aliases, schemes)


def driver(
    name: str, *, aliases: Iterable[str] = (), schemes: Iterable[str] = ()
) -> Callable[[T], T]:
    """Register a TensorStore driver's spec class (decorator); arguments as for `kvstore`."""
    return _decorator(drivers, name, aliases, schemes)


def codec(name: str, *, family: str, aliases: Iterable[str] = ()) -> Callable[[T], T]:
    """Register a codec's spec class for one family (decorator).

    Args:
        name: the codec's id in metadata.
        family: the metadata format, e.g. `"zarr3"`.
        aliases: further accepted ids.
    """
    return _decorator(codecs[family], name, aliases, ())


def chunk_grid(name: str) -> Callable[[T], T]:
    """Register a chunk grid's spec class (decorator).

    Args:
        name: the grid's name in metadata.
    """
    return _decorator(chunk_grids, name, (), ())


def chunk_key_encoding(name: str) -> Callable[[T], T]:
    """Register a chunk key encoding's spec class (decorator).

    Args:
        name: the encoding's name in metadata.
    """
    return _decorator(chunk_key_encodings, name, (), ())


def hierarchy_format(name: str) -> Callable[[T], T]:
    """Register what a format knows of groups, a `HierarchyFormat` (decorator).

    Args:
        name: the format's name, such as `"zarr3"`.
    """
    return _decorator(hierarchy_formats, name, (), ())


def codec_resolver(
    *, family: str
) -> Callable[[Callable[[str], type[object] | None]], Callable[[str], type[object] | None]]:
    """Let a function find the codecs of one family that nobody registered (decorator).

    The function takes a codec's id and returns its spec class, or None if it knows none either.

    Args:
        family: the metadata format, e.g. `"zarr"`.
    """

    def decorate(
        resolver: Callable[[str], type[object] | None],
    ) -> Callable[[str], type[object] | None]:
        codecs[family].add_resolver(resolver)
        return resolver

    return decorate


def context_resource(name: str) -> Callable[[T], T]:
    """Register a context resource's spec class (decorator)."""
    return _decorator(resources, name, (), ())


def _decorator(
    registry: Registry[object], name: str, aliases: Iterable[str], schemes: Iterable[str]
) -> Callable[[T], T]:
    def decorate(cls: T) -> T:
        registry.register(name, cls, aliases=aliases, schemes=schemes)
        return cls

    return decorate
