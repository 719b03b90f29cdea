"""Names to classes: how stores, drivers, codecs and the like are found.

A decorator on a class registers it. Each built-in folder has a table, `REGISTERED`, of what its
modules register, so that names are known before anything is imported, and a built-in name makes the
registry import that one module. A name that is in no table makes it import the entry-point group
`tensorstore_py.plugins` once; only then is it an error. What can be imported is what these tables
and the installed packages say: no user's string ever becomes an import.

A table says for each module, by the kind of the registry, the names that it registers; and by the
kind and one more word its `alias` names, its URL `scheme`s, its `resolver`s, and which of its names
are of a `detecting` class, one that finds out by itself whether something is of its format.

A guest is a plug-in of another package, or a class that stands for a codec of another library. To
parse a spec may be enough to run its code, so within `only_built_in` it is refused where its name
is looked up.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from tensorstore_py._runtime.loading import load
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "ENTRY_POINT_GROUP",
    "CodecRegistry",
    "Registry",
    "admits",
    "admits_all",
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
    "foreign_classes",
    "hierarchy_format",
    "hierarchy_formats",
    "is_built_in",
    "kvstore",
    "kvstores",
    "not_admitted",
    "only_built_in",
    "resources",
]

#: Classes of ours that run code of another library, whatever it is.
foreign_classes: set[type] = set()
#: The guests that may be looked up; None: any.
_admitted: ContextVar[frozenset[str] | None] = ContextVar("_admitted", default=None)


@contextmanager
def only_built_in(plugins: frozenset[str]) -> Iterator[None]:
    """Within this, nothing of other packages is looked up but the plug-ins with these names.

    Example:
        >>> with only_built_in(frozenset({"lab"})):
        ...     admits("lab"), admits("other")
        (True, False)
        >>> admits("other")
        True
    """
    token = _admitted.set(plugins)
    try:
        yield
    finally:
        _admitted.reset(token)


def admits(name: str) -> bool:
    """Whether a guest of that name may be looked up now."""
    admitted = _admitted.get()
    return admitted is None or name in admitted


def admits_all() -> bool:
    """Whether any guest may be looked up now."""
    return _admitted.get() is None


def is_built_in(cls: type) -> bool:
    """Whether a class is of this package, and no code of another one runs when it is used."""
    own = __name__.partition(".")[0]
    return cls.__module__.partition(".")[0] == own and cls not in foreign_classes


def not_admitted(kind: str, name: str) -> SpecError:
    """The error for a guest that may not be looked up.

    Example:
        >>> str(not_admitted("driver", "lab"))[:45]
        'no driver of this package is named "lab", and'
    """
    return SpecError(
        f'no {kind} of this package is named "{name}", and a spec that is not trusted may use no '
        f'plug-in; if this one may be used, pass trust=Trust(plugins=["{name}"])'
    )


ENTRY_POINT_GROUP = "tensorstore_py.plugins"

C = TypeVar("C")
T = TypeVar("T", bound=type[object])


class _Guests:
    """The plug-ins of other packages."""

    def __init__(self) -> None:
        #: The entry points that were loaded, or tried to; those of a package that imports itself.
        self.loaded: set[str] = set()
        self.are_loaded = False


_guests = _Guests()


class Registry(Generic[C]):
    """The classes of one kind by name.

    Args:
        kind: what the classes are, for error messages, e.g. `"kvstore driver"`.
        folders: packages whose modules register the built-in classes when imported, as their
            tables say.
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
        #: The modules of the folders, by what their tables say, then by name.
        self._homes: dict[str, dict[str, str]] = {}
        self._imported: set[str] = set()

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

        Raises ValueError: another class has one of the names already. A class that is defined
        again takes the place of its former self.
        """
        for key in (name, *aliases):
            taken = self._registered(key)
            home = self._home(key)
            if taken is None and home is not None and not cls.__module__.startswith(home):
                taken = self._known(key)
            if taken is not None and not _is_again(cls, taken):
                raise ValueError(f'{self.kind} "{key}" is registered already, by {taken!r}')
        if self.tag not in cls.__dict__:
            setattr(cls, self.tag, name)
        self._classes[name] = cls
        self.parsed.clear()
        self._aliases.update(dict.fromkeys(aliases, name))
        self._schemes.update(dict.fromkeys(schemes, cls))

    def registering(
        self, name: str, *, aliases: Iterable[str] = (), schemes: Iterable[str] = ()
    ) -> Callable[[T], T]:
        """`register` as a class decorator."""

        def decorate(cls: T) -> T:
            self.register(name, cls, aliases=aliases, schemes=schemes)  # type: ignore[arg-type]
            return cls

        return decorate

    def get(self, name: str) -> type[C]:
        """The class of that name.

        Raises SpecError: neither the built-in folders nor any installed plug-in has the name.
        """
        found = self.find(name)
        if found is None:
            if self._resolvers and not admits(name):
                raise not_admitted(self.kind, name)
            names = self.names()
            # A name is often remembered without what stands in front of it.
            whole = next((each for each in names if each.endswith(f".{name}")), None)
            hint = f' (did you mean "{whole}"?)' if whole else did_you_mean(name, names)
            raise SpecError(f'no {self.kind} is named "{name}"{hint}')
        return found

    def find(self, name: str) -> type[C] | None:
        """The class of that name, or None."""
        found = self._known(name)
        if found is None:
            _import_guests()
            found = self._known(name)
        return self._admissible(found, name) or self._resolved(name)

    def add_resolver(self, resolver: Callable[[str], type[C] | None]) -> None:
        """Ask `resolver` for the class of every name that is not registered.

        For collections that another library keeps, and that can grow while the program runs.
        """
        self._resolvers.append(resolver)

    def find_scheme(self, scheme: str) -> type[C] | None:
        """The class that understands a URL scheme, or None."""
        home = self._located("scheme").get(scheme)
        if home is not None:
            self._import(home)
        elif scheme not in self._schemes:
            _import_guests()
        found = self._schemes.get(scheme)
        return self._admissible(found, getattr(found, self.tag, scheme))

    def has_scheme(self, scheme: str) -> bool:
        """Whether a built-in class understands a URL scheme."""
        return scheme in self._located("scheme")

    def names(self) -> list[str]:
        """Every name, sorted; aliases left out."""
        _import_guests()
        return sorted({*self._classes, *self._located()})

    def schemes(self) -> list[str]:
        """Every URL scheme, sorted."""
        _import_guests()
        return sorted({*self._schemes, *self._located("scheme")})

    def classes(self) -> list[type[C]]:
        """Every class, in the order of their names."""
        self.discover()
        return [self._classes[name] for name in sorted(self._classes)]

    def detecting(self) -> list[type[C]]:
        """Classes in the order of their names, all those among them that detect their format."""
        _import_guests()
        for home in self._located("detecting").values():
            self._import(home)
        return [self._classes[name] for name in sorted(self._classes)]

    def discover(self) -> None:
        """Import all modules of the built-in folders, and the installed plug-ins."""
        for folder in self._folders:
            for module in _table(folder):
                load(f"{folder}.{module}")
        _import_guests()

    def _admissible(self, found: type[C] | None, name: str) -> type[C] | None:
        if found is None or admits(name) or is_built_in(found):
            return found
        raise not_admitted(self.kind, name)

    def _resolved(self, name: str) -> type[C] | None:
        if not admits(name):
            return None
        for home in self._located("resolver").values():
            self._import(home)
        for resolver in self._resolvers:
            found = resolver(name)
            if found is not None:
                if self.tag not in found.__dict__:
                    setattr(found, self.tag, name)
                foreign_classes.add(found)
                return found
        return None

    def _known(self, name: str) -> type[C] | None:
        """The class of that name, registered already or built in; None if it is neither."""
        home = self._home(name)
        if home is not None:
            self._import(home)
        return self._registered(name)

    def _registered(self, name: str) -> type[C] | None:
        return self._classes.get(self._aliases.get(name, name))

    def _home(self, name: str) -> str | None:
        return self._located().get(name) or self._located("alias").get(name)

    def _import(self, home: str) -> None:
        # A class is registered before its module is at its end: another thread may be there yet.
        if home not in self._imported:
            load(home)
            self._imported.add(home)

    def _located(self, what: str = "") -> Mapping[str, str]:
        """The modules of the folders by the names that their tables say, of one sort."""
        found = self._homes.get(what)
        if found is None:
            kind = f"{self.kind} {what}".rstrip()
            found = {
                name: f"{folder}.{module}"
                for folder in self._folders
                for module, kinds in _table(folder).items()
                for name in kinds.get(kind, ())
            }
            self._homes[what] = found
        return found


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

        Raises SpecError: no codec of the family has the name.
        """
        return self[family].get(name)

    def families(self) -> list[str]:
        """Every family that has a registry, sorted."""
        return sorted(self._families)


def _is_again(cls: type[object], known: type[object]) -> bool:
    """Whether it is the same class, whose module or cell of a notebook runs once more.

    An import that a signal interrupts is done again from its beginning.
    """
    return (cls.__module__, cls.__qualname__) == (known.__module__, known.__qualname__)


def _table(folder: str) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    table: Mapping[str, Mapping[str, tuple[str, ...]]] = load(folder).REGISTERED
    return table


def _import_guests() -> None:
    if _guests.are_loaded:
        return
    from importlib.metadata import entry_points  # noqa: PLC0415 - costs 15 ms, seldom needed

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.value not in _guests.loaded:
            _guests.loaded.add(entry.value)
            try:
                entry.load()
            except Exception as error:  # noqa: BLE001 - whatever it does when it is imported
                # Programs that do not use this plug-in must not fail because of it.
                warnings.warn(
                    f'the plug-in "{entry.name}" ({entry.value}) cannot be loaded: {error!r}',
                    RuntimeWarning,
                    stacklevel=2,
                )
    _guests.are_loaded = True


_KVSTORES = "tensorstore_py.kvstores"
_DRIVERS = "tensorstore_py.drivers"
_CODECS = "tensorstore_py.codecs"
_ENGINE = "tensorstore_py._chunked"

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
    "context resource", folders=(_ENGINE, _KVSTORES, _DRIVERS), tag="resource_id"
)


def kvstore(
    name: str, *, aliases: Iterable[str] = (), schemes: Iterable[str] = ()
) -> Callable[[T], T]:
    """Register a kvstore's spec class (decorator).

    Args:
        name: the `"driver"` member of its JSON.
        aliases: further accepted names.
        schemes: URL schemes, e.g. `["s3"]`; the class then has `from_url` and `to_url`.
    """
    return kvstores.registering(name, aliases=aliases, schemes=schemes)


def driver(
    name: str, *, aliases: Iterable[str] = (), schemes: Iterable[str] = ()
) -> Callable[[T], T]:
    """Register a TensorStore driver's spec class (decorator); arguments as for `kvstore`."""
    return drivers.registering(name, aliases=aliases, schemes=schemes)


def codec(
    name: str,
    *,
    family: str,
    aliases: Iterable[str] = (),
    without: Iterable[str] = (),
    **members: object,
) -> Callable[[T], T]:
    """Register a codec's spec class under its name in one family (decorator).

    A class that stands in several families, or under several names, has one such line for each.
    Where members differ there, what is registered is a variant of the class (`Model.variant`).

    Args:
        name: the codec's id in metadata.
        family: the metadata format, e.g. `"zarr3"`.
        aliases: further accepted ids.
        without: members that the codec does not have in this family.
        members: members that have another default, JSON name or type in this family, and class
            attributes.
    """

    def decorate(cls: T) -> T:
        registered: type[object] = cls
        taken = "codec_family" in cls.__dict__ and hasattr(cls, "variant")
        if members or without or taken:
            registered = cls.variant(members, without=without)  # type: ignore[attr-defined]
        setattr(registered, "codec_family", family)  # noqa: B010 - classes of guests may be any
        codecs[family].register(name, registered, aliases=aliases)
        return cls

    return decorate


def chunk_grid(name: str) -> Callable[[T], T]:
    """Register a chunk grid's spec class (decorator).

    Args:
        name: the grid's name in metadata.
    """
    return chunk_grids.registering(name)


def chunk_key_encoding(name: str) -> Callable[[T], T]:
    """Register a chunk key encoding's spec class (decorator).

    Args:
        name: the encoding's name in metadata.
    """
    return chunk_key_encodings.registering(name)


def hierarchy_format(name: str) -> Callable[[T], T]:
    """Register what a format knows of groups, a `HierarchyFormat` (decorator).

    Args:
        name: the format's name, such as `"zarr3"`.
    """
    return hierarchy_formats.registering(name)


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
    return resources.registering(name)
